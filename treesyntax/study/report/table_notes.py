"""The notes below the table: the methods of rows, the marks, and unequal settings; and the differences
of rows from their baselines as texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean

from treesyntax.endings import RESTED
from treesyntax.metrics import LOWER_IS_BETTER, plain_name
from treesyntax.metrics.conclusions import CEILING, FLOOR, TOO_FEW_RUNS, p_as_text
from treesyntax.metrics.runs import FEWEST_RUNS, LEVEL
from treesyntax.study.recipe.fairness import (
    find_differences,
    own_settings,
    writes_whole_trees,
)
from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.recipe.search import FOUND
from treesyntax.study.results.comparisons import HIGHEST_SCORE, Comparison
from treesyntax.study.results.current import missing_scores
from treesyntax.study.results.results import Result
from treesyntax.study.results.rows import is_tested
from treesyntax.study.results.table_text import RAISED, Table

INJECTIONS = {"encoder-injection": "{}", "decoder-injection": "{} in the decoder"}
"""The flags that say what a method is, and how a note says it."""
ALLOWED = 0.01
"""Share by which the number of parameters may differ without a note."""
ALLOWED_PAIRS = 0.02
ALLOWED_RUNS = 0.1
"""Share by which the runs of a row may differ in their pairs an update; one with another number of GPUs has twice as many."""
LOWEST, HIGHEST = (share * HIGHEST_SCORE for share in (FLOOR, CEILING))
"""Points: rows that are all below the one or all above the other do not tell methods apart."""
BEAM = 5
"""What fairseq searches with if a recipe does not say."""
SIGNIFICANT, EQUAL, LOPSIDED = "†", "ns", "°"
WOULD_FIND = "would find"
"""The name of the line below the rows: the smallest true differences that 80 % of such studies find."""

BUSY_NOTE = "~ measured while the machine had more to do than it has cores: no speed to compare"


def row_notes(recipe: Recipe, rows: Collection[str]) -> dict[str, list[str]]:
    """Injections that the names of rows do not tell, and settings of their own: notes, each with its rows."""
    differences = find_differences(recipe)
    notes: dict[str, list[str]] = {}
    for method in recipe.methods:
        if method.name not in rows:
            continue
        injections = [
            form.format(method.train[flag])
            for flag, form in INJECTIONS.items()
            if method.train.get(flag)
        ]
        if injections:
            notes.setdefault(f"injection {' with '.join(injections)}", []).append(method.name)
        if settings := own_settings(recipe, method, differences):
            equal = all(FOUND in text for text in settings)
            text = f"own settings ({'; '.join(settings)})"
            text += "" if equal else ", not equal to those of the other rows"
            notes.setdefault(text, []).append(method.name)
    return notes


def footnote_mark(number: int) -> str:
    """ᵃ for 1, ᵇ for 2: letters, as a raised digit would look like a part of a name or a figure."""
    mark = ""
    while number:
        number, letter = divmod(number - 1, len(RAISED))
        mark = [*RAISED][letter] + mark
    return mark


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def partial_note(recipe: Recipe, results: Sequence[Result]) -> str:
    """The runs and metrics that rows of a table lack; "" for a whole one. Rows without any are advised to run."""
    begun = {result.method for result in results}
    groups: dict[str, list[str]] = {}
    for name, metrics in missing_scores(recipe, results).items():
        if name not in begun:
            continue
        for seeds in dict.fromkeys(map(tuple, metrics.values())):
            of = [metric for metric, missing in metrics.items() if tuple(missing) == seeds]
            some_metrics = listed(of) * (len(of) < len(recipe.score))
            numbers = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
            some_seeds = numbers * (len(seeds) < len(recipe.seeds))
            what = " of ".join(filter(None, [some_metrics, some_seeds]))
            groups.setdefault(what, []).append(name)
    gaps = [f"{what} of {listed(names)}" for what, names in groups.items()]
    return f"PARTIAL TABLE without {'; '.join(gaps)}" if gaps else ""


def coinciding_notes(coinciding: Mapping[str, str]) -> list[str]:
    """A note for all metrics that are not shown since they say the same as another one."""
    groups: dict[str, list[str]] = {}
    for metric, other in coinciding.items():
        groups.setdefault(other, []).append(metric)
    return [
        f"{listed(metrics)} {'has' if len(metrics) == 1 else 'have'} the scores of {other} in every run of every row: shown once"
        for other, metrics in groups.items()
    ]


def baselines_of(recipe: Recipe) -> dict[str, str]:
    """By row of a recipe the one that it is compared with."""
    baselines = {method.name: recipe.baseline_of(method) for method in recipe.methods}
    return {name: baseline.name for name, baseline in baselines.items() if baseline is not None}


def parameter_note(baselines: Mapping[str, str], parameters: Mapping[str, float]) -> list[str]:
    """A note if rows have noticeably more or fewer parameters than their baseline."""
    texts = uneven(baselines, parameters, ALLOWED)
    if not texts:
        return []
    return [
        f"Parameters differ by more than {ALLOWED:.0%} from the baseline's, so size may explain part of the "
        f"difference: {', '.join(texts)}"
    ]


def pairs_note(
    baselines: Mapping[str, str], results: Sequence[Result], declared: str | None = None
) -> list[str]:
    """A loud note if rows learned from noticeably more or fewer training pairs than their baseline.

    Trainings that rested end each in its time: where a run of either row did, the pairs of an update are compared.
    ``declared`` is the reason that a recipe gives.
    """
    rested = {result.method for result in results if result.ended == RESTED}
    pairs = [(result, result.pairs) for result in results if result.pairs is not None]
    seen = _mean_by_row((result.method, number) for result, number in pairs)
    an_update = _mean_by_row(
        (result.method, number / result.updates) for result, number in pairs if result.updates
    )
    notes = _uneven_runs(pairs)
    for what, texts in (
        ("seen", uneven(_pairs_of(baselines, rested, False), seen, ALLOWED_PAIRS)),
        ("an update", uneven(_pairs_of(baselines, rested, True), an_update, ALLOWED_PAIRS)),
    ):
        if texts:
            notes.append(
                f"UNEQUAL TRAINING: pairs {what} differ by more than {ALLOWED_PAIRS:.0%} from the baseline's: "
                f"{', '.join(texts)}; "
                + (f"declared: {declared}" if declared else "set train.batch-size for all rows")
            )
    return notes


def _pairs_of(
    baselines: Mapping[str, str], rested: Collection[str], either: bool
) -> dict[str, str]:
    """The rows that, or whose baselines, are among some rows; or those of which neither is."""
    return {
        row: baseline
        for row, baseline in baselines.items()
        if (row in rested or baseline in rested) == either
    }


def _uneven_runs(pairs: Sequence[tuple[Result, float]]) -> list[str]:
    """A note on rows whose own runs learned from more or fewer pairs an update, as on another number of GPUs."""
    updates: dict[str, list[float]] = {}
    for result, number in pairs:
        if result.updates:
            updates.setdefault(result.method, []).append(number / result.updates)
    texts = [
        f"{row} {min(values):.1f} to {max(values):.1f}"
        for row, values in updates.items()
        if max(values) - min(values) > ALLOWED_RUNS * min(values)
    ]
    return [
        f"UNEQUAL TRAINING: pairs an update differ between runs of a row: {', '.join(texts)}; give all runs as many "
        "GPUs and one batch size, and delete those that had others"
    ] * bool(texts)


def _mean_by_row(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    by_row: dict[str, list[float]] = {}
    for row, value in values:
        by_row.setdefault(row, []).append(value)
    return {row: fmean(group) for row, group in by_row.items()}


def uneven(
    baselines: Mapping[str, str],
    values: Mapping[str, float],
    allowed: float,
) -> list[str]:
    """The rows whose value differs from their baseline's by more than a share of it."""
    texts = []
    for row, baseline in baselines.items():
        if not {row, baseline} <= set(values):
            continue
        value, other = values[row], values[baseline]
        if abs(value - other) > allowed * other:
            texts.append(f"{row} {value / other - 1:+.1%} ({baseline})")
    return texts


def limit_notes(recipe: Recipe, results: Sequence[Result]) -> list[str]:
    """A note for each baseline where it and all rows compared with it have learned next to nothing, or
    next to everything, so that their differences say nothing of methods."""
    scores: dict[tuple[str, str], list[float]] = {}
    for result in results:
        scores.setdefault((result.method, result.metric), []).append(result.value)
    groups: dict[tuple[str, str], dict[str, float]] = {}
    for method in recipe.methods:
        values = scores.get((method.name, method.primary))
        if values and plain_name(method.primary) not in LOWER_IS_BETTER:
            baseline = (recipe.baseline_of(method) or method).name
            groups.setdefault((baseline, method.primary), {})[method.name] = fmean(values)
    notes = []
    for (baseline, metric), means in groups.items():
        rows = "of all rows" if len(groups) == 1 else f"of {listed([*means])}"
        if baseline in means and max(means.values()) < LOWEST:
            notes.append(
                f"NOTHING LEARNED: {metric} {rows} is below {LOWEST:g}, where differences say nothing of "
                "methods; train longer, on more data or on an easier task"
            )
        if baseline in means and min(means.values()) > HIGHEST:
            notes.append(
                f"NOTHING LEFT TO GAIN: {metric} {rows} is above {HIGHEST:g}; less training data or a harder "
                "test tells methods apart"
            )
    return notes


def average_note(recipe: Recipe) -> list[str]:
    """A note if what is tested is no single checkpoint."""
    if not recipe.average:
        return []
    return [
        f"Tested is the mean of the last {recipe.average} checkpoints of each run (Vaswani et al. "
        "2017, section 6.1)"
    ]


def search_note(recipe: Recipe, rows: Collection[str]) -> list[str]:
    """A note if a beam ends by one rule in some rows and by another in others."""
    wide = [
        method
        for method in recipe.methods
        if method.name in rows and int(recipe.flags(method, "generate").get("beam") or BEAM) > 1
    ]
    trees = [method.name for method in wide if writes_whole_trees(recipe, method)]
    if len(trees) in (0, len(wide)):
        return []
    return [
        f"UNEQUAL SEARCH: the beam of {listed(trees)} goes on to the best tree, that of the other rows ends with the "
        "first complete outputs; set generate.beam=1 for all rows, which trains nothing again"
    ]


def verdict(test: Comparison | None) -> str:
    """The mark behind a score: whether the row differs, and of how many runs if some are missing."""
    if test is None or not test.tested:
        return ""
    mark = (SIGNIFICANT if test.significant else EQUAL) + (LOPSIDED if test.lopsided else "")
    few = "" if test.complete else f" ({min(test.runs)} of {test.seeds} runs)"
    return f" {mark}{few}"


def would_find(comparisons: Sequence[Comparison]) -> str:
    """The smallest true difference that 80 % of studies find, from row to row; "" where none is known."""
    return ends_of(
        [comparison.smallest for comparison in comparisons if not comparison.control_of], 2
    )


def ends_of(values: Sequence[float | None], digits: int) -> str:
    """``1.2 to 3.4``: the lowest and the highest of the values that are known; "" for none."""
    known = [value for value in values if value is not None]
    ends = (min(known), max(known)) if known else ()
    return " to ".join(dict.fromkeys(f"{end:.{digits}f}" for end in ends))


def sentence(comparison: Comparison) -> str:
    """The conclusion on a row with its reason."""
    why = "" if comparison.conclusion is None else comparison.conclusion.why
    of = (
        ""
        if comparison.conclusion is None or comparison.conclusion.is_verdict
        else f" in {comparison.metric}"
    )
    return f"{comparison.method}: {comparison.conclusion}{of}. {why[:1].upper()}{why[1:]}."


def unknown_endings(
    results: Sequence[Result], comparisons: Sequence[Comparison], fixed: bool
) -> list[str]:
    """A note on the compared rows of which it is not known whether their trainings had rested."""
    compared = {
        name for comparison in comparisons for name in (comparison.method, comparison.baseline)
    }
    rows = {
        result.method: result
        for result in results
        if result.ended is None and result.method in compared
    }
    if fixed or not rows:
        return []
    return [
        f"Older records do not say how these trainings ended, so they may have been still learning: {', '.join(rows)}"
    ]


def significance_notes(recipe: Recipe, comparisons: Sequence[Comparison]) -> list[str]:
    """What the marks of significance mean, and which metrics have none."""
    if not comparisons:
        return []
    notes = []
    names = list(dict.fromkeys(comparison.baseline for comparison in comparisons))
    baseline = names[0] if len(names) == 1 else f"{recipe.baseline} at the same point of the axes"
    tested = [comparison for comparison in comparisons if comparison.p is not None]
    if tested:
        distinct = [comparison for comparison in tested if not comparison.same_as]
        first = sum(comparison.in_family for comparison in distinct)
        notes.append(
            f"{SIGNIFICANT} differs from {baseline}: p < {LEVEL} over training runs and test items, after Holm's "
            f"correction for {first} in {' or '.join(recipe.primary)} and {len(distinct) - first} in other metrics; "
            f"{EQUAL}: not shown to differ, which is no proof of equality"
        )
    if any(comparison.lopsided for comparison in tested):
        notes.append(
            f"{LOPSIDED} the row or its baseline is close to the lowest or highest score, where p < {LEVEL} comes too "
            "easily"
        )
    few: dict[str, list[str]] = {}
    for comparison in comparisons:
        if comparison.no_verdict == TOO_FEW_RUNS and not comparison.no_trees:
            few.setdefault(comparison.method, []).append(comparison.metric)
    for metrics in dict.fromkeys(map(tuple, few.values())):
        rows = [name for name, of_row in few.items() if tuple(of_row) == metrics]
        notes.append(
            f"No verdict on {', '.join(rows)} in {listed(metrics)}: the row or its baseline has fewer than "
            f"{FEWEST_RUNS} runs"
        )
    notes += _same_notes(tested)
    untested = [metric for metric in recipe.score if not is_tested(metric)]
    if untested:
        notes.append(f"Not tested for significance: {', '.join(untested)}")
    return notes


def _same_notes(tested: Sequence[Comparison]) -> list[str]:
    """A note for all metrics that judge the outputs of some rows as another one does."""
    same: dict[tuple[str, str], list[str]] = {}
    for comparison in tested:
        if comparison.same_as:
            same.setdefault((comparison.metric, comparison.same_as), []).append(comparison.method)
    groups: dict[tuple[str, str], list[str]] = {}
    for (metric, other), rows in same.items():
        groups.setdefault((other, ", ".join(rows)), []).append(metric)
    return [
        f"{listed(metrics)} {'scores' if len(metrics) == 1 else 'score'} every output as {other} does: "
        f"one test ({rows})"
        for (other, rows), metrics in groups.items()
    ]


def direction(metrics: Sequence[str]) -> str:
    """Which way is better."""
    lower = [metric for metric in metrics if plain_name(metric) in LOWER_IS_BETTER]
    if not lower:
        return "higher is better"
    if len(lower) == len(metrics):
        return "lower is better"
    return f"higher is better, but lower for {', '.join(lower)}"


COMPARISON_NOTE = (
    "In points, row minus baseline. p is corrected for several rows, intervals and what is found in 80 % are not. The report ends with what the words "
    "mean; how the tests work: python -m pydoc treesyntax.metrics.runs"
)
DIFFERENCES = "Differences from the baseline"
COMPARISON_HEADER = (
    "row", "baseline", "metric", "difference", "95 % interval", "p after Holm", "runs", "items",
    "found in 80 %", "p on other lines",
)  # fmt: skip


def comparison_table(comparisons: Iterable[Comparison], title: str = DIFFERENCES) -> Table:
    """The differences of rows from their baselines."""
    return Table(title, COMPARISON_HEADER, list(map(comparison_cells, comparisons)))


def comparison_cells(test: Comparison) -> list[str]:
    """A line of the table; what there is no verdict on is a dash."""
    return [
        test.method, test.baseline, test.metric, "–" if test.no_trees else f"{test.difference:+.2f}", test.interval,
        _p(test.shown_p) + (LOPSIDED if test.lopsided and test.shown_p is not None else ""),
        f"{test.runs[0]} and {test.runs[1]}", counted(test.items, test.lines),
        "–" if test.smallest is None else f"{test.smallest:.2f}", _p(test.checkpoint_p),
    ]  # fmt: skip


def counted(items: int, lines: int) -> str:
    """How many items, and how many lines where that is another number."""
    return str(items) if items == lines else f"{items} ({lines} lines)"


def _p(value: float | None) -> str:
    return "–" if value is None else p_as_text(value)

"""The notes below the table: the methods of rows, the marks, and unequal settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treesyntax.metrics import LOWER_IS_BETTER, UNSEEN
from treesyntax.study.recipe.fairness import find_differences, own_settings
from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.results.comparisons import FEW_SEEDS, LEVEL, Comparison
from treesyntax.study.results.significance import is_tested

INJECTIONS = {"encoder-injection": "{}", "decoder-injection": "{} in the decoder"}
"""The flags that say what a method is, and how a note says it."""
ALLOWED = 0.01
"""Share by which the number of parameters may differ without a note."""
SIGNIFICANT, EQUAL = "†", "ns"


def row_notes(recipe: Recipe) -> dict[str, str]:
    """For each row with settings of its own or an injection that its name does not tell, a note."""
    differences = find_differences(recipe)
    notes = {}
    for method in recipe.methods:
        parts = [
            form.format(method.train[flag])
            for flag, form in INJECTIONS.items()
            if method.train.get(flag)
        ]
        texts = [f"{method.name} is {' with '.join(parts)}"] if parts else []
        if own := own_settings(recipe, method, differences):
            texts.append(
                f"{method.name} has settings of its own ({'; '.join(own)}): "
                "not at equal settings with the other rows"
            )
        if texts:
            notes[method.name] = "; ".join(texts)
    return notes


def parameter_note(recipe: Recipe, parameters: Mapping[str, int]) -> list[str]:
    """A note if rows have noticeably more or fewer parameters than their baseline."""
    texts = []
    for method in recipe.methods:
        baseline = recipe.baseline_of(method)
        if baseline is None or not {method.name, baseline.name} <= set(parameters):
            continue
        own, other = parameters[method.name], parameters[baseline.name]
        if abs(own - other) > ALLOWED * other:
            texts.append(f"{method.name} {own / other - 1:+.1%} ({baseline.name})")
    if not texts:
        return []
    return [
        f"Parameters differ by more than {ALLOWED:.0%} from the baseline's, so size may explain a "
        f"part of the difference: {', '.join(texts)}"
    ]


def average_note(recipe: Recipe) -> list[str]:
    """A note if what is tested is no single checkpoint."""
    if not recipe.average:
        return []
    return [
        f"Tested is the mean of the last {recipe.average} checkpoints of each run (Vaswani et al. "
        "2017, section 6.1)"
    ]


def significance_notes(recipe: Recipe, comparisons: Sequence[Comparison]) -> list[str]:
    """What the marks of significance mean, and which metrics have none."""
    if not comparisons:
        return []
    names = list(dict.fromkeys(one.baseline for one in comparisons))
    baseline = names[0] if len(names) == 1 else f"{recipe.baseline} at the same point of the axes"
    tests = list(dict.fromkeys(one.test for one in comparisons))
    notes = [
        f"{SIGNIFICANT} differs from {baseline} with p < {LEVEL} after Holm's correction for "
        f"{len(comparisons)} {'test' if len(comparisons) == 1 else 'tests'}; {EQUAL}: not "
        f"significant, which is no proof of equality (two-sided; {'; '.join(tests)}; see "
        "significance.json)"
    ]
    fewest = min(len(one.seeds) for one in comparisons)
    if fewest < FEW_SEEDS:
        notes.append(
            f"Too few seeds to tell methods apart ({fewest}; at least {FEW_SEEDS} are needed): "
            f"{SIGNIFICANT} and {EQUAL} say how these runs would differ on other test sentences, not how the "
            "methods differ"
        )
    untested = [metric for metric in recipe.score if not is_tested(metric)]
    if untested:
        notes.append(f"Not tested for significance: {', '.join(untested)}")
    return notes


def direction(metrics: Sequence[str]) -> str:
    """Which way is better."""
    lower = [metric for metric in metrics if metric.removesuffix(UNSEEN) in LOWER_IS_BETTER]
    if not lower:
        return "higher is better"
    if len(lower) == len(metrics):
        return "lower is better"
    return f"higher is better, but lower for {', '.join(lower)}"

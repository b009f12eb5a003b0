"""Which lines each run has right, and what is wrong with the others; kept from report to report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treesyntax.data.encoding import TEXT
from treesyntax.files import read_object, sha256_of, sha256_of_value
from treesyntax.metrics import ITEM_METRICS, UNSEEN
from treesyntax.study.recipe.recipe import Method
from treesyntax.study.report.examples import kinds
from treesyntax.study.report.examples.kinds import KINDS, RIGHT, WRONG, kind_of
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.run.code import code_of
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import located
from treesyntax.trees.formats import FORMATS

EXACT = "exact"
Kept = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Verdicts:
    """Letters for each line of the test set by row and run.

    Attributes:
        metrics: by row, what says whether a line is right.
        notations: by row the format of its target's trees; "" where it is not known.
        letters: by row, for each seed a string of `RIGHT`, `WRONG` and the letters of `KINDS`.
        kept: what a file keeps.
    """

    metrics: Mapping[str, str]
    notations: Mapping[str, str]
    letters: Mapping[str, Mapping[int, str]]
    kept: Kept

    @property
    def metric(self) -> str:
        """The metric's name, or the names where rows on other test sets have another."""
        return " or ".join(dict.fromkeys(self.metrics.values()))

    def counts(self, row: str) -> Counter[str]:
        """How often each letter stands in all runs of a row."""
        return Counter("".join(self.letters[row].values()))

    def numbers(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {"metric": self.metric, "kinds": {RIGHT: "right", **KINDS}, "runs": self.kept}


def judging_metric(score: Sequence[str], primary: str) -> str:
    """The first metric that judges each line, the primary one before others; ``exact`` without any."""
    names = [name.removesuffix(UNSEEN) for name in (primary, *score)]
    return next((name for name in names if name in ITEM_METRICS), EXACT)


def target_notation(plan: Plan, method: Method) -> str:
    """The tree format of a row's references, as binarize is told it or a metric names it.

    A row that reads them as text has the format of another row with the same test set.
    """
    recipe = plan.recipe
    alike = [one for one in recipe.methods if one.target.test == method.target.test]
    named = [str(recipe.flags(one, "binarize").get("target-format", TEXT)) for one in alike]
    named += [metric.removesuffix(UNSEEN).partition(":")[2] for metric in recipe.score]
    return next((name for name in named if name in FORMATS), "")


def find_verdicts(scores: ItemScores, file: Path) -> Verdicts:
    """The letters of all runs with results; those that ``file`` keeps are not found again."""
    plan, recipe = scores.plan, scores.plan.recipe
    metrics = {one.name: judging_metric(recipe.score, one.primary) for one in recipe.methods}
    scored = {(method, seed) for method, seed, _ in scores.values}
    before = read_object(file).get("runs")
    kept: Kept = {}
    letters: dict[str, dict[int, str]] = {}
    notations = {method.name: target_notation(plan, method) for method in recipe.methods}
    for run in plan.runs:
        row = run.method.name
        references = located(run.method.target.test, scores.folder)
        if (row, run.seed) not in scored or not scores.output(run).is_file():
            continue
        if not references.is_file():
            continue
        outputs, wanted = scores.lines(scores.output(run)), scores.lines(references)
        if len(outputs) != len(wanted):
            continue
        key = sha256_of_value([
            outputs, wanted, metrics[row], notations[row], code_of("score"),
            sha256_of(kinds.__file__),
        ])  # fmt: skip
        text = _kept_letters(before, run.name, key, len(wanted))
        if text is None:
            right: list[bool] | None = None
            if metrics[row] in recipe.score:  # the step score has judged the lines
                right = [share > 0 for share in scores.statistics(run, metrics[row])[:, 0].tolist()]
            text = judge(outputs, wanted, metrics[row], notations[row], right)
        kept[run.name] = {"key": key, "letters": text, "checksum": sha256_of_value([key, text])}
        letters.setdefault(row, {})[run.seed] = text
    return Verdicts(metrics, notations, letters, kept)


def _kept_letters(before: Any, name: str, key: str, size: int) -> str | None:
    """What an earlier report found of a run; None where something has changed since."""
    entry = before.get(name) if isinstance(before, dict) else None
    if not isinstance(entry, dict):
        return None
    text = entry.get("letters")
    if (entry.get("key"), entry.get("checksum")) != (key, sha256_of_value([key, text])):
        return None
    return text if isinstance(text, str) and len(text) == size else None


def judge(
    outputs: Sequence[str],
    references: Sequence[str],
    metric: str,
    notation: str,
    right: Sequence[bool] | None = None,
) -> str:
    """A letter a line. What has the tokens of its reference is right in every metric.

    Args:
        outputs: of a run.
        references: as many.
        metric: what says whether a line is right.
        notation: the format of the trees; "" where it is not known.
        right: which lines are right in the metric, where that is known.
    """
    differ = [
        line
        for line, (output, reference) in enumerate(zip(outputs, references, strict=True))
        if output.split() != reference.split()
    ]
    letters = [RIGHT] * len(outputs)
    if right is None:
        pair = ([lines[line] for line in differ] for lines in (outputs, references))
        judged: Sequence[bool | None] = ITEM_METRICS[metric](*pair) if differ else ()
    else:
        judged = [right[line] for line in differ]
    for line, is_right in zip(differ, judged, strict=True):
        if not is_right:
            kind = kind_of(outputs[line], references[line], notation) if notation else WRONG
            letters[line] = kind
    return "".join(letters)

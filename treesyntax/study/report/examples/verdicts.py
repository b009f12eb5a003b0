"""Which lines each run has right, and what is wrong with the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treesyntax.data.encoding import TEXT
from treesyntax.metrics import ITEM_METRICS, plain_name
from treesyntax.study.recipe.recipe import Method
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.report.examples.kinds import KINDS, RIGHT, WRONG, kind_of
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.run.plan import Plan
from treesyntax.trees.formats import FORMATS

EXACT = "exact"


@dataclass(frozen=True)
class Verdicts:
    """Letters for each line of the test set by row and run.

    Attributes:
        metrics: by row, what says whether a line is right.
        notations: by row the format of its target's trees; "" where it is not known.
        letters: by row, for each seed a string of `RIGHT`, `WRONG` and the letters of `KINDS`.
    """

    metrics: Mapping[str, str]
    notations: Mapping[str, str]
    letters: Mapping[str, Mapping[int, str]]

    @property
    def metric(self) -> str:
        """The metric's name, or the names where rows on other test sets have another."""
        return " or ".join(dict.fromkeys(self.metrics.values()))

    def counts(self, row: str) -> Counter[str]:
        """How often each letter stands in all runs of a row."""
        return Counter("".join(self.letters[row].values()))

    def numbers(self) -> dict[str, Any]:
        """Everything as plain values."""
        runs = {
            run_name(row, seed): {"letters": text}
            for row, own in self.letters.items()
            for seed, text in own.items()
        }
        return {"metric": self.metric, "kinds": {RIGHT: "right", **KINDS}, "runs": runs}


def judging_metric(score: Sequence[str], primary: str) -> str:
    """The first metric that judges each line, the primary one before others; ``exact`` without any."""
    names = [plain_name(name) for name in (primary, *score)]
    return next((name for name in names if name in ITEM_METRICS), EXACT)


def target_notation(plan: Plan, method: Method) -> str:
    """The tree format of a row's references, as binarize is told it or a metric names it.

    A row that reads them as text has the format of another row with the same test set.
    """
    recipe = plan.recipe
    alike = [one for one in recipe.methods if one.target.test == method.target.test]
    named = [str(recipe.flags(one, "binarize").get("target-format", TEXT)) for one in alike]
    named += [plain_name(metric).partition(":")[2] for metric in recipe.score]
    return next((name for name in named if name in FORMATS), "")


def find_verdicts(outputs: Outputs) -> Verdicts:
    """The letters of all runs with results."""
    plan, recipe = outputs.plan, outputs.plan.recipe
    metrics = {row.name: judging_metric(recipe.score, row.primary) for row in recipe.methods}
    scored = {(row, seed) for row, seed, _ in outputs.scored}
    letters: dict[str, dict[int, str]] = {}
    notations = {method.name: target_notation(plan, method) for method in recipe.methods}
    for run in plan.runs:
        row, file = run.method.name, outputs.output(run)
        if (row, run.seed) not in scored or not file.is_file() or not outputs.has_references(row):
            continue
        lines, references = outputs.text(file), outputs.references(row)
        if len(lines) == len(references):
            right = outputs.statistics(row, run.seed, metrics[row])[:, 0] > 0
            text = judge(lines, references, notations[row], right.tolist())
            letters.setdefault(row, {})[run.seed] = text
    return Verdicts(metrics, notations, letters)


def judge(
    outputs: Sequence[str], references: Sequence[str], notation: str, right: Sequence[bool]
) -> str:
    """A letter a line. What has the tokens of its reference is right in every metric.

    Args:
        outputs: of a run.
        references: as many.
        notation: the format of the trees; "" where it is not known.
        right: which lines the metric says are right.
    """
    letters = []
    for output, reference, is_right in zip(outputs, references, right, strict=True):
        if is_right or output.split() == reference.split():
            letters.append(RIGHT)
        else:
            letters.append(kind_of(output, reference, notation) if notation else WRONG)
    return "".join(letters)

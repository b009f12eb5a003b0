"""The words of tables, reports and messages: what they mean, for reports and for the page of the documentation."""

from __future__ import annotations

from typing import NamedTuple


class Word(NamedTuple):
    """A word with its meaning.

    Attributes:
        text: the word, or those that mean the same.
        meaning: in a sentence without a stop.
        page: of the documentation that says more; "" for none.
    """

    text: str
    meaning: str
    page: str = ""


CONCLUSIONS = "statistics.md#a-conclusion-in-a-word"
WORDS = {
    "baseline": Word("baseline", "the row that others are compared with: the first of a recipe, or the one named by `baseline:`"),
    "beam": Word("beam", "how many outputs the search keeps at each step"),
    "cap": Word("cap", "the most updates of a training: `max-update` or `max-epoch`; with a pretrained model `max_steps`, else `num_train_epochs`"),
    "ceiling": Word("on the floor, at the ceiling", "all scores are near the lowest, or the highest, so nothing can be told apart"),
    "conclusion": Word(
        "conclusion",
        "the word about a row. *Syntax helps*: better than its baseline and its control. *Mechanism helps*: better than its "
        "baseline, and not shown to be better than its control, or without one. Others: *not shown*, *hurts*, *still learning*, *too few runs*",
        CONCLUSIONS,
    ),
    "control": Word("control", "the same row over trees without syntax", "controls.md"),
    "difference": Word("difference", "the mean score of a row minus that of its baseline, in points", "statistics-test.md"),
    "family": Word(
        "family, Holm", "the p-values that Holm's correction counts together: those of all rows but controls, on the primary metric. Their "
        "differences from controls are a second family, all else is a third", "statistics.md#the-marks",
    ),
    "interval": Word(
        "interval",
        "the 95 % interval of a difference over training runs and test items; it leaves out 0 exactly where p is below 0.05 "
        "before correction, so one of several may miss 0 by chance",
    ),
    "item": Word(
        "item", "a distinct pair of source and reference in the test set; copies give it weight, not evidence"
    ),
    "line-statistics": Word(
        "line statistics", "what a metric keeps of a test line, such as counts of n-grams"
    ),
    "linearization": Word(
        "linearization", "how a tree becomes the tokens that a model reads or writes", "data.md#what-a-model-reads-of-a-tree"
    ),
    "map": Word("map", "rows against tasks, each cell a difference to the strongest plain row of the task"),
    "mark": Word(
        "mark, †",
        "shown to differ: p below 0.05 after correction, over training runs and test items. None where "
        "nothing is concluded, as on a row that was still learning",
        "statistics.md#the-marks",
    ),
    "degree": Word(
        "°",
        "the row or its baseline is close to the lowest or highest score. Runs are skewed there, and a † comes too easily: in up "
        "to 15 % of simulated pairs of equal rows",
    ),
    "minutes": Word(
        "minutes", "of a run: training, generation, scoring and start-up; equal updates are not equal time"
    ),
    "ns": Word("ns, not shown", "not shown to differ; no proof of equality"),
    "other-lines": Word(
        "p on other lines",
        "whether these trained checkpoints would differ on other test lines too. It takes the trainings as they are, so it says "
        "nothing of the methods",
    ),
    "plain": Word("plain row", "a row without trees"),
    "primary": Word("primary metric", "the one that decides: `primary:` of the recipe, else the first"),
    "rest": Word("at rest", "a training that `patience` ended before its cap, because validation no longer got better"),
    "row": Word("row", "a method with its settings, a line of the table"),
    "run": Word("run", "one training of a row with one seed, and its scores"),
    "seed": Word(
        "seed", "the number that a run's random draws start from; equal seeds of two rows share nothing"
    ),
    "side": Word("side", "encoder or decoder"),
    "speed": Word(
        "pairs/s", "pairs a second while training, without validation: the mean of medians, and quartiles over log intervals"
    ),
    "step": Word("step", "one command of a run: train, generate, score"),
    "still-learning": Word(
        "still learning",
        "more than a third of the runs of the row, its baseline or its control had not come to rest; differences may be of "
        "speed. `treesyntax study … --train-on 2` trains on; a pretrained model needs a larger cap, which trains it anew",
        "protocol.md#the-checklist",
    ),
    "study": Word("study", "a recipe with its runs, tables and report, in one folder"),
    "tuning": Word("tuning", "search for settings on validation data", "search.md"),
    "well-formed": Word("well-formed", "the output is a tree of its format"),
    "would-find": Word(
        "would find, found in 80 %", "the smallest true difference that so many runs and items show in 80 of 100 studies, "
        "before correction for several rows"
    ),
}  # fmt: skip
"""By their anchor on the page."""

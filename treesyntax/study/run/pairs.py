"""Which pairs each row of a study uses: the same ones, or nothing is trained.

fairseq leaves pairs that are too long for a model, or for a batch, out of its training. Rows read
sequences of different lengths, so one row would learn from pairs that another never sees. The
lengths in the binarized data and the limits of each row tell which these are before a training begins.

``skip: allowed`` in a recipe leaves such pairs out of all rows that are compared: their numbers are
written to ``left_out/GROUP.json``, which each training reads (``--leave-out``). A test set is never
cut: a line that a row cannot read is a fault of the study in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treesyntax.data.pairs import (
    Lengths,
    Limits,
    Numbers,
    read_left_out,
    read_lengths,
    some,
    write_left_out,
)
from treesyntax.errors import InputError, OptionError
from treesyntax.study.recipe.recipe import Flags, Method, Recipe
from treesyntax.study.recipe.rows import row_of_run
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import group_of, left_out_file

POSITIONS = 1024
"""Most tokens of a side where no flag says it, in fairseq and in our models."""
BATCH = 12000
"""Most tokens of a batch in generation where neither of its limits is given."""
SKIP_FLAG = "skip-invalid-size-inputs-valid-test"
TRAIN, VALID, TEST = "train", "valid", "test"
WORDS = {TRAIN: "training", VALID: "validation", TEST: "test"}


class Bounds(NamedTuple):
    """What limits the pairs of a split in a row.

    Attributes:
        subsets: the splits of the data folder that a step reads as this one.
        positions: most tokens of a side by the positions of the model.
        batch: most tokens of a side by the size of a batch.
        section: of the recipe, whose ``max-tokens`` says that.
        stops: whether the step stops at a pair that is too long, as validation and generation do.
    """

    subsets: tuple[str, ...]
    positions: Limits
    batch: int | None
    section: str
    stops: bool

    @property
    def limits(self) -> Limits:
        """What both allow."""
        return self.positions.least(Limits(self.batch, self.batch))

    def options(self, lengths: Lengths) -> list[str]:
        """The options of a recipe that some pairs are too long for."""
        names = []
        for side, sizes, most in zip(Limits._fields, lengths, self.positions, strict=True):
            longest = int(np.max(sizes, initial=0))
            if most is not None and longest > most:
                names.append(f"train.max-{side}-positions")
            if self.batch is not None and longest > self.batch:
                names.append(f"{self.section}.max-tokens")
        return names


@dataclass(frozen=True)
class Use:
    """What a row uses of a split.

    Attributes:
        pairs: how many the split has.
        limits: most tokens of a side.
        long: the pairs that are longer.
        empty: those of which a side has no token; they are used.
        stops: as of `Bounds`.
        options: those of the recipe that would have to be larger.
    """

    pairs: int
    limits: Limits
    long: Numbers
    empty: Numbers
    stops: bool
    options: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """The numbers for a script."""
        return {"pairs": self.pairs, "too_long": len(self.long), "empty": len(self.empty)}

    def shown(self) -> str:
        """The pairs that it cannot use."""
        if not len(self.long):
            return "none"
        return f"{len(self.long)} of more than {self.limits} (number {some(self.long)})"


Uses = dict[str, dict[str, Use]]
"""By the name of a row and of a split."""


def uses_of(plan: Plan, folder: Path) -> Uses:
    """What each row uses of each split, as far as its data is there."""
    if not plan.trainer.drops_pairs:
        return {}  # all rows read the same tokens, whatever their trees
    lengths = cache(read_lengths)
    uses: Uses = {}
    runs = {run.method.name: run for run in plan.runs}
    for name, run in runs.items():
        data = plan.data_folder(run.method, folder)
        for split, bounds in bounds_of(plan.recipe, run.method).items():
            if bounds.subsets != (split,):
                continue  # a recipe's own subsets: what of them is too long its trainings tell
            try:
                sizes: Lengths = lengths(data, split)
            except InputError:
                continue  # not made yet; the steps that need it name its fault
            uses.setdefault(name, {})[split] = Use(
                len(sizes.source), bounds.limits, sizes.too_long(bounds.limits), sizes.empty,
                bounds.stops, tuple(bounds.options(sizes)),
            )  # fmt: skip
    return uses


def bounds_of(recipe: Recipe, method: Method) -> dict[str, Bounds]:
    """What limits the pairs of a row, by split."""
    train, generate = (_dashed(recipe.flags(method, name)) for name in ("train", "generate"))
    positions, searched = _positions(train, POSITIONS), _positions(generate, None)
    # fairseq's own default, which our task does not count as a limit.
    searched = Limits(*(None if limit == POSITIONS else limit for limit in searched))
    most = _number(train, "max-tokens")
    batch = BATCH if generate.get("batch-size") is None else None
    bounds = {
        TRAIN: Bounds(_subsets(train, TRAIN), positions, most, "train", False),
        VALID: Bounds(
            _subsets(train, VALID),
            positions,
            _number(train, "max-tokens-valid", most),
            "train",
            not train.get(SKIP_FLAG),
        ),
        TEST: Bounds(
            (TEST,),
            positions.least(searched),
            _number(generate, "max-tokens", batch),
            "generate",
            True,
        ),
    }
    if train.get("disable-validation"):
        del bounds[VALID]
    return bounds


def _subsets(flags: Mapping[str, Any], split: str) -> tuple[str, ...]:
    return tuple(str(flags.get(f"{split}-subset", split)).split(","))


def _dashed(flags: Flags) -> dict[str, Any]:
    return {
        name.replace("_", "-"): value
        for name, value in flags.items()
        if value is not None and value is not False
    }


def _number(flags: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    text = str(flags.get(name, ""))
    return int(text) if text.isdecimal() else default


def _positions(flags: Mapping[str, Any], default: int | None) -> Limits:
    return Limits(*(_number(flags, f"max-{side}-positions", default) for side in Limits._fields))


def groups(recipe: Recipe, uses: Uses) -> dict[str, list[str]]:
    """The rows that are compared with each other and have data, by the name of their group."""
    rows_by_group: dict[str, list[str]] = {}
    for method in recipe.methods:
        if method.name in uses:
            rows_by_group.setdefault(group_of(recipe, method), []).append(method.name)
    return rows_by_group


def left_out_of(rows: Sequence[str], uses: Uses) -> dict[str, Numbers]:
    """The pairs that some of the rows cannot use, or have empty where others have not, by split."""
    left_out = {}
    for split in (TRAIN, VALID):
        split_uses = [uses[row][split] for row in rows if split in uses[row]]
        if split_uses:
            long = np.unique(np.concatenate([use.long for use in split_uses]))
            left_out[split] = np.union1d(long, _unevenly_empty(split_uses))
    return left_out


def _unevenly_empty(uses: Sequence[Use]) -> Numbers:
    numbers, counts = np.unique(np.concatenate([use.empty for use in uses]), return_counts=True)
    return numbers[counts < len(uses)]


def conflicts(recipe: Recipe, uses: Uses) -> list[str]:
    """Why rows would not use the same pairs, or a step would stop at one: a clause each."""
    clauses = [
        f"{method.name} has train.max-valid-steps, which validates on the first batches alone: other pairs "
        "in each row; leave it out, or give less validation data to all rows"
        for method in recipe.methods
        if recipe.flags(method, "train").keys() & {"max-valid-steps", "max_valid_steps"}
        and method.name in uses
    ][:1]
    for rows in groups(recipe, uses).values():
        for split in WORDS:
            split_uses = {row: uses[row][split] for row in rows if split in uses[row]}
            if split_uses and (split == TEST or not recipe.skips):
                clauses += _conflicts_of(split, split_uses, recipe.skips)
    return clauses


def _conflicts_of(split: str, uses: Mapping[str, Use], skips: bool) -> Iterator[str]:
    title = f"of {next(iter(uses.values())).pairs} {WORDS[split]} pairs"
    allow = ", or write skip: allowed in the recipe, which leaves them out of all rows"
    allow = "" if split == TEST else allow
    stopping = {row: use for row, use in uses.items() if use.stops and len(use.long)}
    if stopping or len({use.long.tobytes() for use in uses.values()}) > 1:
        options = dict.fromkeys(option for use in uses.values() for option in use.options)
        what = (
            "rows cannot read"
            if stopping
            else "rows would not use the same pairs: fairseq leaves out"
        )
        yield (
            f"{what} {title} {_rows(uses)}; raise {' and '.join(options)} for all rows, or take these "
            f"pairs out of the data{allow}"
        )
    if len(uneven := _unevenly_empty(list(uses.values()))) and not (skips and split == TEST):
        counts = ", ".join(
            f"{row} {len(np.intersect1d(use.empty, uneven))}" for row, use in uses.items()
        )
        yield (
            f"{title} {len(uneven)} have no token in some rows and tokens in others ({counts}; number "
            f"{some(uneven)}); give all rows the same lines, or take these out of the data{allow}"
        )


def _rows(uses: Mapping[str, Use]) -> str:
    """What rows cannot use, those that are alike together."""
    alike: dict[str, list[str]] = {}
    for row, use in uses.items():
        alike.setdefault(use.shown(), []).append(row)
    return "; ".join(f"{text} ({', '.join(rows)})" for text, rows in alike.items())


def check_pairs(plan: Plan, folder: Path, begun: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Make sure that all rows use the same pairs; write those that all leave out, if the recipe allows it.

    Returns a line for each split of which pairs are left out.

    Args:
        plan: of the whole study.
        folder: of the study, with the data of all rows that are to be trained.
        begun: what is noted of the trainings that have begun, by the name of the run.

    Raises:
        OptionError: if rows would use different pairs, a step would stop at one, or a training has begun
            with others left out than would be now.
    """
    recipe, uses = plan.recipe, uses_of(plan, folder)
    if clauses := conflicts(recipe, uses):
        more = f"; --plan shows {len(clauses) - 1} more" if len(clauses) > 1 else ""
        raise OptionError(f"{recipe.path}: {clauses[0]}{more}")
    for name, rows in groups(recipe, uses).items() if recipe.skips else ():
        file, left_out = folder / left_out_file(name), left_out_of(rows, uses)
        if not file.exists() or not _same(read_left_out(file), left_out):
            trained = {run for run in begun if row_of_run(run)[0] in rows and begun[run]}
            if trained and file.exists():
                raise OptionError(
                    f"{folder}: {', '.join(sorted(trained))} began without other pairs than all rows "
                    f"would leave out now ({_counted(left_out)}); choose another --out, or take the row "
                    "out that is new"
                )
            write_left_out(file, left_out)
    return pair_lines(recipe, uses)


def _same(before: Mapping[str, Numbers], now: Mapping[str, Numbers]) -> bool:
    return before.keys() == now.keys() and all(
        np.array_equal(before[key], now[key]) for key in before
    )


def _counted(left_out: Mapping[str, Numbers]) -> str:
    return " and ".join(
        f"{len(numbers)} {WORDS[split]} pairs" for split, numbers in left_out.items()
    )


def pair_lines(recipe: Recipe, uses: Uses) -> list[str]:
    """What a study will say of the pairs of its rows: those that are left out, and what stops it."""
    lines = [f"NOTHING WILL BE TRAINED: {text}" for text in conflicts(recipe, uses)]
    for rows in groups(recipe, uses).values():
        left_out = left_out_of(rows, uses)
        for split, numbers in left_out.items():
            if not len(numbers) or (lines and not recipe.skips):
                continue
            total = uses[rows[0]][split].pairs
            why = "skip: allowed" if recipe.skips else "they are too long in each of them"
            lines.append(
                f"{len(numbers)} of {total} {WORDS[split]} pairs are left out of {', '.join(rows)} ({why})"
            )
    return lines

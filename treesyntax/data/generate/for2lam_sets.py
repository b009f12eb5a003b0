"""Random FOR programs for train, valid and test."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

from treesyntax.data.generate.for_programs import Style, draw_program
from treesyntax.data.generate.for_to_lambda import translate
from treesyntax.data.generate.lexical import draw_test_program, draw_train_program
from treesyntax.data.generate.split import SPLITS
from treesyntax.errors import OptionError
from treesyntax.trees.formats.for2lam import FOR, LAMBDA
from treesyntax.trees.tree import Tree

MAX_BARREN_DRAWS = 10_000
MAX_LENGTH = 500
SINGLE_ASSIGNMENT = 5
TOLERANCE = 0.1
SAMPLE = 500


@dataclass(frozen=True)
class For2LamOptions:
    """What to generate.

    Attributes:
        style: the distribution of programs.
        size: the size to draw programs with, see `draw_program`; 15 and drissi are the published
            set.
        length: instead of `size`, for the style chen only: the mean length in tokens, met
            within 10 %. SYN-S has 20, SYN-L 50.
        test_length: the mean length of test programs, each longer than any program of train and
            valid, and its translation longer than theirs; None for the same as those.
        held_out: how many names and how many constants train and valid have in single assignments
            only, see `lexical`.
        min_nodes: smaller programs are drawn again. A single assignment has 5 nodes and 3 more
            for each operator (of which drissi has one at most), any other program 11 or more: 9
            leaves out the single assignments of drissi and nothing else.
        repeats: whether a program may come up again within its split.
        seed: 0, 1, 2, …; the same seed gives the same programs on every machine.
    """

    style: Style = Style.DRISSI
    size: int = 15
    length: int | None = None
    test_length: int | None = None
    held_out: int = 0
    min_nodes: int = 0
    repeats: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("size", "held_out", "min_nodes", "seed"):
            if getattr(self, name) < 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if self.length is not None and self.style is not Style.CHEN:
            raise OptionError(f"the style {self.style} takes a size; only chen takes a length")
        for name in ("length", "test_length"):
            value = getattr(self, name)
            if value is not None and not 10 <= value <= MAX_LENGTH:
                raise OptionError(f"{name} is {value}; it must be 10 to {MAX_LENGTH} tokens")
        self._check_test()

    def _check_test(self) -> None:
        if self.test_length is not None and (self.length is None or self.held_out):
            raise OptionError("test_length needs a length, and goes without held_out")
        if self.test_length is not None and self.test_length <= (self.length or 0):
            raise OptionError(
                f"test_length is {self.test_length}; it must be more than the length {self.length}"
            )
        if self.held_out and self.min_nodes > SINGLE_ASSIGNMENT:
            raise OptionError(
                f"min_nodes is {self.min_nodes}; held_out needs single assignments, which have "
                f"{SINGLE_ASSIGNMENT} nodes"
            )

    def of_test(self) -> For2LamOptions:
        """The options whose size test programs are drawn with."""
        return replace(self, length=self.test_length or self.length, test_length=None)


def generate_splits(
    train: int,
    valid: int,
    test: int,
    options: For2LamOptions,
    advance: Callable[[], None] = lambda: None,
) -> dict[str, list[Tree]]:
    """FOR programs for three splits that share no program.

    Each distinct program goes to one split, drawn in proportion to what the splits still need
    when it first turns up, so that all three have the same distribution. Large sets without
    repeats soon exhaust the short programs: of 120,000 programs of the style drissi 0.4 % are
    single assignments and the mean is 32 nodes, where the bare draws have 40 % and 21.6. With
    repeats they keep those figures, but a frequent program counts in one split only, so the
    splits then differ in their share of short ones.

    With `test_length` or `held_out` the test programs have a distribution of their own. `advance`
    is called once a program.
    """
    wanted = dict(zip(SPLITS, (train, valid, test), strict=True))
    for split, number in wanted.items():
        if number < 0:
            raise OptionError(f"{split} is {number}; it must be 0 or more")
    filling = _Filling(options, advance)
    style, size, held_out = options.style, fitted_size(options), options.held_out
    known = {split: wanted[split] for split in SPLITS[:2]}
    if held_out:
        splits = filling.fill(known, lambda rng: draw_train_program(rng, style, size, held_out))
        return splits | filling.fill(
            {"test": test}, lambda rng: draw_test_program(rng, style, size, held_out)
        )
    if options.test_length is None:
        return filling.fill(wanted, lambda rng: draw_program(rng, style, size))
    splits = filling.fill(known, lambda rng: draw_program(rng, style, size))
    test_size = fitted_size(options.of_test())
    longer = _longer_than([*splits["train"], *splits["valid"]])
    return splits | filling.fill(
        {"test": test}, lambda rng: longer(draw_program(rng, style, test_size))
    )


def _longer_than(programs: list[Tree]) -> Callable[[Tree], Tree | None]:
    """A function that returns a program only if it and its translation are longer than all these."""
    lengths = [_lengths(program) for program in programs]
    longest = [max(side) for side in zip(*lengths, strict=True)] or [0, 0]

    def passed(program: Tree) -> Tree | None:
        longer = all(own > most for own, most in zip(_lengths(program), longest, strict=True))
        return program if longer else None

    return passed


def _lengths(program: Tree) -> tuple[int, int]:
    """Tokens of a program and of its translation."""
    return len(FOR.write(program).split()), len(LAMBDA.write(translate(program)).split())


class _Filling:
    """Draws distinct programs until all splits are full, and keeps the split of every program."""

    def __init__(self, options: For2LamOptions, advance: Callable[[], None]) -> None:
        self.options, self.advance = options, advance
        self.rng = random.Random(options.seed)
        self.homes: dict[Tree, str] = {}

    def fill(
        self, wanted: dict[str, int], draw: Callable[[random.Random], Tree | None]
    ) -> dict[str, list[Tree]]:
        """The wanted number of programs for each split; no program is in two splits."""
        missing = dict(wanted)
        splits: dict[str, list[Tree]] = {split: [] for split in missing}
        barren = 0
        while any(missing.values()):
            tree = draw(self.rng)
            home = "" if tree is None else self.home(tree, missing)
            if tree is not None and missing.get(home):
                splits[home].append(tree)
                missing[home] -= 1
                barren = 0
                self.advance()
            else:
                barren += 1
                if barren == MAX_BARREN_DRAWS:
                    raise _too_few(sum(wanted.values()), len(self.homes), self.options)
        return splits

    def home(self, tree: Tree, missing: dict[str, int]) -> str:
        """The split to add a program to, "" for none."""
        if tree not in self.homes:
            if len(tree) < self.options.min_nodes:
                return ""
            self.homes[tree] = self.rng.choices(list(missing), list(missing.values()))[0]
            return self.homes[tree]
        return self.homes[tree] if self.options.repeats else ""


def _too_few(wanted: int, found: int, options: For2LamOptions) -> OptionError:
    return OptionError(
        f"{wanted} programs are asked for, but only {found} distinct ones of at least "
        f"{options.min_nodes} nodes were found before {MAX_BARREN_DRAWS} draws in a row gave none; "
        "ask for fewer or smaller programs, or raise the size"
    )


def fitted_size(options: For2LamOptions) -> int:
    """The size to draw with: the one given, or the one whose mean length is nearest to `length`.

    It does not depend on the seed, so data sets of several seeds have one distribution.
    Measured on 120,000 distinct programs of seed 1: length 20 gives 19.8 tokens (sd 4.3), length
    50 gives 48.8 (sd 9.5); their translations have 32.0 and 81.4.
    """
    if options.length is None:
        return options.size
    return _fitted_size(options.length, options.style, options.min_nodes)


@cache
def _fitted_size(wanted: int, style: Style, min_nodes: int) -> int:
    low, high = 1, 2 * wanted
    while high - low > 1:
        middle = (low + high) // 2
        short = _mean_length(middle, style, min_nodes) < wanted
        low, high = (middle, high) if short else (low, middle)
    means = {size: _mean_length(size, style, min_nodes) for size in (low, high)}
    best = min(means, key=lambda size: abs(means[size] - wanted))
    if abs(means[best] - wanted) > TOLERANCE * wanted:
        raise OptionError(
            f"no size gives a mean length of {wanted} tokens, the nearest is {means[best]:.1f} "
            f"with at least {min_nodes} nodes; lower the minimum or change the length"
        )
    return best


def _mean_length(size: int, style: Style, min_nodes: int) -> float:
    """Mean length in tokens of a sample of the programs that `generate_splits` would keep."""
    rng = random.Random(0)
    sample = {draw_program(rng, style, size): None for _ in range(SAMPLE)}
    lengths = [len(FOR.write(tree).split()) for tree in sample if len(tree) >= min_nodes]
    return fmean(lengths) if lengths else 0.0

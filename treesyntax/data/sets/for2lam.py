"""Random FOR programs with their translations to LAMBDA.

Test programs are like the training programs, or harder where structure should matter:

  --test-length N   all of them are longer than any program in train and valid, in both languages
  --held-out K      each has a name and a constant in loops, comparisons or sums that train and valid
                    show only in assignments such as a22 = 11, a tenth of the programs; K names and
                    K constants are held out

No program is in two splits, so neither is any pair; the counts printed at the end say so.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from statistics import fmean
from typing import Any

from treesyntax.data.sets.folder import Files, pair_files, write_data_set
from treesyntax.data.sets.for_programs import Style, draw_program
from treesyntax.data.sets.for_to_lambda import translate
from treesyntax.data.sets.lexical import (
    EXPOSED,
    SINGLE_ASSIGNMENT,
    check_exposed,
    draw_exposing_program,
    draw_plain_program,
    draw_test_program,
    held_out_words,
)
from treesyntax.data.sets.split import (
    SPLITS,
    Split,
    check_numbers,
    fixed_shares,
    tell_of_test,
    wanted_numbers,
)
from treesyntax.errors import OptionError
from treesyntax.jobs.terminal import progress_bar
from treesyntax.trees.formats.for2lam import FOR, LAMBDA
from treesyntax.trees.tree import Tree

Draw = Callable[[random.Random], Tree | None]
Programs = dict[str, list[Tree]]
MAX_BARREN_DRAWS = 10_000
MAX_LENGTH = 500
TOLERANCE = 0.1
SAMPLE = 500
BOUND_SAMPLE = 2000
"""Programs of which the longest is the bound between known programs and longer test programs."""


@dataclass(frozen=True)
class For2LamOptions:
    """What to generate.

    Attributes:
        style: the distribution of programs.
        size: the size to draw programs with, see `draw_program`; 15 and drissi are the published
            set.
        length: instead of `size`, for the style chen only: the mean length in tokens, met
            within 10 %. SYN-S has 20, SYN-L 50.
        test_length: the mean length of test programs, each longer than a bound that no program of
            train and valid passes, and so its translation; None for the same as those. The bound
            depends on `length` alone, see `longest_known`.
        held_out: how many names and how many constants train and valid have in single assignments
            only, see `lexical`; those assignments come up again.
        min_nodes: smaller programs are drawn again. A single assignment has 5 nodes and 3 more
            for each operator (of which drissi has one at most), any other program 11 or more: 9
            leaves out the single assignments of drissi and nothing else.
        repeats: whether a program may come up again within its split.
        fixed_test: whether valid and test are the same for every number of training programs, and a
            smaller train is the beginning of a larger one, see `fixed_shares`.
        seed: 0, 1, 2, …; the same seed gives the same programs on every machine.
    """

    style: Style = Style.DRISSI
    size: int = 15
    length: int | None = None
    test_length: int | None = None
    held_out: int = 0
    min_nodes: int = 0
    repeats: bool = False
    fixed_test: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(
            {name: getattr(self, name) for name in ("size", "held_out", "min_nodes", "seed")}
        )
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


def generate(args: argparse.Namespace) -> None:
    """Write the data set, unless the folder is up to date."""
    options = For2LamOptions(
        style=Style(args.style),
        size=args.size,
        length=args.length,
        test_length=args.test_length,
        held_out=args.held_out,
        min_nodes=args.min_nodes,
        repeats=args.repeats,
        fixed_test=args.fixed_test,
        seed=args.seed,
    )
    numbers = wanted_numbers(args)
    described = _described(args, options, numbers)
    write_data_set(args.out, described, lambda: _make(numbers, options, args.small_train))
    tell_of_test(args)


def _described(
    args: argparse.Namespace, options: For2LamOptions, numbers: dict[str, int]
) -> dict[str, Any]:
    """What the contents depend on; options that are not used are left out."""
    described = {"generator": args.generator, **asdict(options), **numbers}
    described["small_train"] = args.small_train
    if options.length is not None:
        del described["size"]
    optional = ("test_length", "held_out", "small_train", "fixed_test")
    return {name: value for name, value in described.items() if value or name not in optional}


def _make(
    numbers: dict[str, int], options: For2LamOptions, small_train: Sequence[int]
) -> tuple[Files, dict[str, Any]]:
    split = _draw(numbers, options)
    suffixes = (FOR.suffix, LAMBDA.suffix)
    files = pair_files(split, suffixes, small_train)
    for name in files:
        if name.startswith("train.") and name.endswith(FOR.suffix) and split.test:
            check_exposed(name, files[name], options.held_out)
    return files, _notes(split, options)


def _draw(numbers: dict[str, int], options: For2LamOptions) -> Split:
    # The bar counts every program twice: when it is drawn and when it is translated.
    with progress_bar() as progress:
        bar = progress.add_task("programs", total=2 * sum(numbers.values()))
        splits = generate_splits(**numbers, options=options, advance=lambda: progress.advance(bar))
        by_split: dict[str, list[tuple[str, str]]] = {}
        for split, programs in splits.items():
            by_split[split] = []
            for program in programs:
                by_split[split].append(texts(program))
                progress.advance(bar)
    return Split(**by_split)


def _notes(split: Split, options: For2LamOptions) -> dict[str, Any]:
    notes: dict[str, Any] = {"size": fitted_size(options), **split.seen()}
    if options.test_length is not None:
        notes |= {"test_size": fitted_size(options.of_test()), **split.length_range()}
    if options.held_out:
        names, constants = held_out_words(options.held_out)
        notes["held_out"] = " ".join((*names, *constants))
    return notes


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
    check_numbers(wanted)
    if options.fixed_test:
        return _fixed_splits(wanted, options, advance)
    filling = _Filling(options, advance)
    style, size, held_out = options.style, fitted_size(options), options.held_out
    known = {split: wanted[split] for split in SPLITS[:2]}
    if held_out:
        shown = {split: round(EXPOSED * number) for split, number in known.items()}
        plain = {split: known[split] - shown[split] for split in known}
        plain_programs = filling.fill(plain, lambda rng: draw_plain_program(rng, style, size))
        exposing = filling.fill(
            shown, lambda rng: draw_exposing_program(rng, style, held_out), repeats=True
        )
        splits = {split: filling.mixed(plain_programs[split], exposing[split]) for split in known}
        return splits | filling.fill(
            {"test": test}, lambda rng: draw_test_program(rng, style, size, held_out)
        )
    if options.test_length is None:
        return filling.fill(wanted, lambda rng: draw_program(rng, style, size))
    short, longer = _by_length(options)
    return filling.fill(known, short) | filling.fill({"test": test}, longer)


def _by_length(options: For2LamOptions) -> tuple[Draw, Draw]:
    """Draw programs of train and valid, and the longer ones of test."""
    style, size = options.style, fitted_size(options)
    most, test_size = longest_known(size, style), fitted_size(options.of_test())

    def short(rng: random.Random) -> Tree | None:
        program = draw_program(rng, style, size)
        fits = all(length <= bound for length, bound in zip(_lengths(program), most, strict=True))
        return program if fits else None

    def longer(rng: random.Random) -> Tree | None:
        program = draw_program(rng, style, test_size)
        fits = all(length > bound for length, bound in zip(_lengths(program), most, strict=True))
        return program if fits else None

    return short, longer


def _fixed_splits(
    wanted: dict[str, int], options: For2LamOptions, advance: Callable[[], None]
) -> dict[str, list[Tree]]:
    """As `generate_splits`, but valid and test do not depend on the number of training programs.

    What has a distribution of its own has a generator of its own; such programs are never equal.
    """
    style, size, held_out = options.style, fitted_size(options), options.held_out
    known, test = {split: wanted[split] for split in SPLITS[:2]}, {"test": wanted["test"]}

    def fill(name: str, numbers: dict[str, int], draw: Draw, repeats: bool = False) -> Programs:
        filling = _Filling(
            options, advance, name, fixed_shares(numbers) if "train" in numbers else None
        )
        return filling.fill(numbers, draw, repeats)

    if held_out:
        shown = {split: int(EXPOSED * number) for split, number in known.items()}
        plain = {split: known[split] - shown[split] for split in known}
        plain_programs = fill("plain", plain, lambda rng: draw_plain_program(rng, style, size))
        exposing = fill(
            "exposing", shown, lambda rng: draw_exposing_program(rng, style, held_out), True
        )
        return {
            split: _interleaved(plain_programs[split], exposing[split]) for split in known
        } | fill("test", test, lambda rng: draw_test_program(rng, style, size, held_out))
    if options.test_length is None:
        return fill("all", wanted, lambda rng: draw_program(rng, style, size))
    short, longer = _by_length(options)
    return fill("known", known, short) | fill("test", test, longer)


def _interleaved(plain: list[Tree], exposing: list[Tree]) -> list[Tree]:
    """Both lists as one, in which the beginning of any length has the same share of each."""
    coming, others = iter(exposing), iter(plain)
    return [
        next(coming if int(EXPOSED * (index + 1)) > int(EXPOSED * index) else others)
        for index in range(len(plain) + len(exposing))
    ]


@cache
def longest_known(size: int, style: Style) -> tuple[int, int]:
    """Tokens of the longest program, and of the longest translation, in a sample of one size.

    The sample is the same for every seed and number of programs, so larger sets have the same test.
    """
    rng = random.Random(0)
    lengths = [_lengths(draw_program(rng, style, size)) for _ in range(BOUND_SAMPLE)]
    return max(source for source, _ in lengths), max(target for _, target in lengths)


def _lengths(program: Tree) -> tuple[int, int]:
    """Tokens of a program and of its translation."""
    source, target = texts(program)
    return len(source.split()), len(target.split())


@lru_cache(1 << 18)
def texts(program: Tree) -> tuple[str, str]:
    """A program and its translation as text; they are kept, since printing takes most of the time."""
    return FOR.write(program), LAMBDA.write(translate(program))


class _Filling:
    """Draws distinct programs until all splits are full, and keeps the split of every program.

    Args:
        options: what to draw.
        advance: called once a program.
        name: of a generator of random numbers of its own.
        shares: how often a new program goes to each split; None for what the splits still need.
    """

    def __init__(
        self,
        options: For2LamOptions,
        advance: Callable[[], None],
        name: str = "",
        shares: dict[str, float] | None = None,
    ) -> None:
        self.options, self.advance, self.shares = options, advance, shares
        self.rng = random.Random(f"{options.seed} {name}" if name else options.seed)
        self.homes: dict[Tree, str] = {}

    def mixed(self, some: list[Tree], others: list[Tree]) -> list[Tree]:
        """Two lists as one, in random order."""
        both = [*some, *others]
        self.rng.shuffle(both)
        return both

    def fill(
        self,
        wanted: dict[str, int],
        draw: Draw,
        repeats: bool = False,
    ) -> dict[str, list[Tree]]:
        """The wanted number of programs for each split; no program is in two splits.

        With ``repeats``, or if the options say so, a program may come up again in its split.
        """
        missing = dict(wanted)
        splits: dict[str, list[Tree]] = {split: [] for split in missing}
        barren = 0
        while any(missing.values()):
            tree, before = draw(self.rng), len(self.homes)
            home = "" if tree is None else self.home(tree, missing, repeats)
            if tree is not None and missing.get(home):
                splits[home].append(tree)
                missing[home] -= 1
                barren = 0
                self.advance()
            elif len(self.homes) > before:  # new, but of a split that is full
                barren = 0
            else:
                barren += 1
                if barren == MAX_BARREN_DRAWS:
                    raise _too_few(sum(wanted.values()), len(self.homes), self.options)
        return splits

    def home(self, tree: Tree, missing: dict[str, int], repeats: bool) -> str:
        """The split to add a program to, "" for none."""
        if tree not in self.homes:
            if len(tree) < self.options.min_nodes:
                return ""
            shares = self.shares or missing
            self.homes[tree] = self.rng.choices(list(shares), list(shares.values()))[0]
            return self.homes[tree]
        return self.homes[tree] if self.options.repeats or repeats else ""


def _too_few(wanted: int, distinct: int, options: For2LamOptions) -> OptionError:
    return OptionError(
        f"{wanted} programs are asked for, but only {distinct} distinct ones of at least "
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

"""Data sets of random FOR programs, and their translation to LAMBDA."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from treesyntax.errors import OptionError, TreeError
from treesyntax.formats.for2lam import FOR
from treesyntax.formats.grammar import Node, to_tree
from treesyntax.generate.programs import Style, draw_program
from treesyntax.tree import Tree

SPLITS = ("train", "valid", "test")
MAX_BARREN_DRAWS = 10_000
MAX_LENGTH = 500
TOLERANCE = 0.1
SAMPLE = 500

_ARITIES = {"<SEQ>": 2, "<ASSIGN>": 2, "<IF>": 3, "<FOR>": 5}
_UNIT, _TERM, _FUNCTION = Node("<UNIT>"), Node("a8"), Node("a9")


@dataclass(frozen=True)
class Options:
    """What to generate.

    Attributes:
        style: the distribution of programs.
        size: the size to draw programs with, see `draw_program`; 15 and drissi are the published
            set.
        length: instead of `size`, for the style chen only: the mean length in tokens, met
            within 10 %. SYN-S has 20, SYN-L 50.
        min_nodes: smaller programs are drawn again. A single assignment has 5 nodes and 3 more
            for each operator (of which drissi has one at most), any other program 11 or more: 9
            leaves out the single assignments of drissi and nothing else.
        repeats: whether a program may come up again within its split.
        seed: 0, 1, 2, …; the same seed gives the same programs on every machine.

    Raises:
        OptionError: for a value out of range, or a length for the style drissi.
    """

    style: Style = Style.DRISSI
    size: int = 15
    length: int | None = None
    min_nodes: int = 0
    repeats: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("size", "min_nodes", "seed"):
            if getattr(self, name) < 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if self.length is not None and self.style is not Style.CHEN:
            raise OptionError(f"the style {self.style} takes a size; only chen takes a length")
        if self.length is not None and not 10 <= self.length <= MAX_LENGTH:
            raise OptionError(f"length is {self.length}; it must be 10 to {MAX_LENGTH} tokens")


def generate_splits(
    train: int,
    valid: int,
    test: int,
    options: Options,
    advance: Callable[[], None] = lambda: None,
) -> dict[str, list[Tree]]:
    """FOR programs for three splits, none of which shares a program with another.

    Each distinct program goes to one split, drawn in proportion to what the splits still need
    when it first turns up, so that all three have the same distribution. Large sets without
    repeats soon exhaust the short programs: of 120,000 programs of the style drissi 0.4 % are
    single assignments and the mean is 32 nodes, where the bare draws have 40 % and 21.6. With
    repeats they keep those figures, but a frequent program counts in one split only, so the
    splits then differ in their share of short ones.

    Args:
        train: number of programs, like `valid` and `test`.
        valid: see `train`.
        test: see `train`.
        options: how to draw them.
        advance: called once a program, for a progress bar.

    Raises:
        OptionError: for a negative number, or if there are too few distinct programs.
    """
    missing = dict(zip(SPLITS, (train, valid, test), strict=True))
    for split, number in missing.items():
        if number < 0:
            raise OptionError(f"{split} is {number}; it must be 0 or more")
    rng, size = random.Random(options.seed), fitted_size(options)
    splits: dict[str, list[Tree]] = {split: [] for split in SPLITS}
    homes: dict[Tree, str] = {}
    barren = 0
    while any(missing.values()):
        tree = draw_program(rng, options.style, size)
        new = len(tree) >= options.min_nodes and tree not in homes
        if new:
            homes[tree] = rng.choices(SPLITS, list(missing.values()))[0]
        home = homes.get(tree)
        if home and missing[home] and (new or options.repeats):
            splits[home].append(tree)
            missing[home] -= 1
            barren = 0
            advance()
        else:
            barren += 1
            if barren == MAX_BARREN_DRAWS:
                raise _too_few(train + valid + test, len(homes), options)
    return splits


def _too_few(wanted: int, found: int, options: Options) -> OptionError:
    return OptionError(
        f"{wanted} programs are asked for, but only {found} distinct ones of at least "
        f"{options.min_nodes} nodes turned up before {MAX_BARREN_DRAWS} vain draws; "
        "ask for fewer or smaller programs, or raise the size"
    )


@cache
def fitted_size(options: Options) -> int:
    """The size to draw with: the one given, or the one whose mean length is nearest to `length`.

    It does not depend on the seed, so data sets of several seeds have one distribution.
    Measured on 120,000 distinct programs of seed 1: length 20 gives 19.8 tokens (sd 4.3), length
    50 gives 48.8 (sd 9.5); their translations have 32.0 and 81.4.

    Raises:
        OptionError: if no size comes within 10 % of the length; `min_nodes` can prevent it.
    """
    wanted = options.length
    if wanted is None:
        return options.size
    low, high = 1, 2 * wanted
    while high - low > 1:
        middle = (low + high) // 2
        short = _mean_length(middle, options) < wanted
        low, high = (middle, high) if short else (low, middle)
    means = {size: _mean_length(size, options) for size in (low, high)}
    best = min(means, key=lambda size: abs(means[size] - wanted))
    if abs(means[best] - wanted) > TOLERANCE * wanted:
        raise OptionError(
            f"no size gives a mean length of {wanted} tokens, the nearest is {means[best]:.1f} "
            f"with at least {options.min_nodes} nodes; lower the minimum or change the length"
        )
    return best


def _mean_length(size: int, options: Options) -> float:
    """Mean length in tokens of a sample of the programs that `generate_splits` would keep."""
    rng = random.Random(0)
    sample = {draw_program(rng, options.style, size): None for _ in range(SAMPLE)}
    lengths = [len(FOR.write(tree).split()) for tree in sample if len(tree) >= options.min_nodes]
    return fmean(lengths) if lengths else 0.0


def translate(program: Tree) -> Tree:
    """The LAMBDA program that does what a FOR program does (Drissi et al. 2018).

    - ``v = e`` becomes ``let v = e in unit``
    - ``s ; t`` becomes ``let v = e in T(t)`` if s is ``v = e``, else ``let a8 = T(s) in T(t)``
    - ``if c then s else t endif`` becomes ``if c then T(s) else T(t)``
    - ``for v = e ; c ; f do s endfor`` becomes
      ``letrec a9 v = if c then let a8 = T(s) in a9 f else unit in a9 e``
    - expressions and comparisons stay, and so does the empty tree

    Raises:
        TreeError: if a statement has not the children it needs.
    """
    if not len(program):
        return program
    done: list[Node] = [_UNIT] * len(program)
    children = program.children()
    # Children have higher numbers than their parents, so they are done first.
    for node in reversed(range(len(program))):
        label, parts = program.labels[node], tuple(done[child] for child in children[node])
        if len(parts) != _ARITIES.get(label, len(parts)):
            raise TreeError(
                f"node {node}, {label!r}, has {len(parts)} children instead of {_ARITIES[label]}",
                "only FOR programs can be translated",
            )
        after_assignment = bool(parts) and program.labels[children[node][0]] == "<ASSIGN>"
        done[node] = _translate_node(label, parts, after_assignment)
    return to_tree(done[0])


def _translate_node(label: str, parts: tuple[Node, ...], after_assignment: bool) -> Node:
    if label == "<ASSIGN>":
        return Node("<LET>", (*parts, _UNIT))
    if label == "<SEQ>":
        first, rest = parts
        if after_assignment:
            variable, value, _ = first.children
            return Node("<LET>", (variable, value, rest))
        return Node("<LET>", (_TERM, first, rest))
    if label == "<FOR>":
        name, start, test, step, body = parts
        again = Node("<LET>", (_TERM, body, Node("<APP>", (_FUNCTION, step))))
        loop = Node("<IF>", (test, again, _UNIT))
        return Node("<LETREC>", (_FUNCTION, name, loop, Node("<APP>", (_FUNCTION, start))))
    return Node(label, parts)

"""For2Lam: FOR programs to LAMBDA programs, with five kinds of test set.

The programs are those of ``treesyntax generate for2lam``; only the zero-shot set is made here: in each of its
test programs, one name is replaced everywhere by one that no training program has (after Soulos et al. 2024).
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from treesyntax.data.sets.base import DataSet, Part, Texts
from treesyntax.data.sets.for2lam import For2LamOptions, generate_splits
from treesyntax.data.sets.for_programs import Style
from treesyntax.data.sets.for_to_lambda import translate
from treesyntax.data.sets.split import SPLITS
from treesyntax.trees.formats.for2lam import FOR, LAMBDA
from treesyntax.trees.tree import Tree

NUMBERS = {"train": 10_000, "valid": 1_000, "test": 1_000}
HELD_OUT = 5
NEW_NAMES = tuple(f"a{number}" for number in range(900, 910))
_SHORT, _LONG = 20, 50
_SHORT_PROGRAMS = For2LamOptions(style=Style.CHEN, length=_SHORT)


def _examples(programs: list[Tree]) -> Part:
    examples = Part()
    for program in programs:
        examples.add(FOR.write(program), LAMBDA.write(translate(program)), "", _category(program))
    return examples


def _category(program: Tree) -> str:
    """How many loops and branches a program has."""
    number = sum(label in ("<FOR>", "<IF>") for label in program.labels)
    return f"blocks_{min(number, 4)}" + ("+" if number > 4 else "")


def _make(options: For2LamOptions, new_name: bool, _: Texts, seed: int) -> dict[str, Part]:
    train, valid, test = (NUMBERS[name] for name in SPLITS)
    splits = generate_splits(train, valid, test, replace(options, seed=seed))
    if new_name:
        splits["test"] = renamed(splits["test"], seed)
    return {name: _examples(programs) for name, programs in splits.items()}


def renamed(programs: list[Tree], seed: int) -> list[Tree]:
    """Each program with one of its names replaced by a new one, the same wherever it stands."""
    rng = random.Random(seed)
    return [_renamed(program, rng) for program in programs]


def _renamed(program: Tree, rng: random.Random) -> Tree:
    old = rng.choice(sorted({label for label in program.labels if label.startswith("a")}))
    new = rng.choice(NEW_NAMES)
    labels = [new if label == old else label for label in program.labels]
    return Tree(program.parents, labels, program.words)


def _set(
    name: str, title: str, options: For2LamOptions = _SHORT_PROGRAMS, new_name: bool = False
) -> DataSet:
    return DataSet(
        f"for2lam_{name}", f"FOR programs to LAMBDA programs: {title}", "ours",
        "after Chen, Liu & Song 2018, Tree-to-tree Neural Networks for Program Translation",
        partial(_make, options, new_name), (), "categories count loops and branches",
    )  # fmt: skip


FOR2LAM = (
    _set("short", f"{_SHORT} tokens on average"),
    _set("long", f"{_LONG} tokens on average", replace(_SHORT_PROGRAMS, length=_LONG)),
    _set("length", "test is longer than all of train", replace(_SHORT_PROGRAMS, test_length=_LONG)),
    _set("lexical", "test has names in new places", replace(_SHORT_PROGRAMS, held_out=HELD_OUT)),
    _set("zero_shot", "test has names that train lacks", new_name=True),
)

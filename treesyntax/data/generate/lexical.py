"""The lexical split: names and constants that training programs use rarely.

The held-out words are K names beyond the first `SEEN_NAMES` and the K constants after 10. In train
and valid they occur in single assignments only (``a22 = 11``), at most a tenth of the programs; a
model can learn that they are a name and a constant, but never sees one as a loop variable, in a
comparison, or anywhere in a longer program. Every test program is a longer one that has both.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from treesyntax.data.generate.for_programs import (
    LARGEST_CONSTANT,
    Style,
    draw_program,
    variable_name,
)
from treesyntax.errors import OptionError
from treesyntax.trees.tree import Tree

SEEN_NAMES = 20
EXPOSED = 0.1
# Programs of this size are single assignments in every style.
_SINGLE = 0


def held_out_words(number: int) -> tuple[list[str], list[str]]:
    """The names and the constants that are held out."""
    names = [variable_name(SEEN_NAMES + index) for index in range(number)]
    return names, [str(LARGEST_CONSTANT + 1 + index) for index in range(number)]


def draw_train_program(rng: random.Random, style: Style, size: int, held_out: int) -> Tree | None:
    """A program for train or valid, None where there are more variables than names.

    ``held_out`` names, and as many constants, are held out: 1 or more.
    """
    if rng.random() >= EXPOSED:
        return _renamed(rng, draw_program(rng, style, size), 0)
    while True:
        program = _renamed(rng, draw_program(rng, style, _SINGLE), held_out)
        if program and any(_held_out(program, held_out)):
            return program


def draw_test_program(rng: random.Random, style: Style, size: int, held_out: int) -> Tree | None:
    """A program for test, None if it is a single assignment or lacks held-out words."""
    program = _renamed(rng, draw_program(rng, style, size), held_out)
    if program is None or program.labels[0] == "<ASSIGN>":
        return None
    return program if all(_held_out(program, held_out)) else None


def check_exposed(name: str, programs: Sequence[str], held_out: int) -> None:
    """Check that the training set of that name has every held-out word at least once."""
    names, constants = held_out_words(held_out)
    seen = {token for program in programs for token in program.split()}
    lacking = [word for word in (*names, *constants) if word not in seen]
    if lacking:
        raise OptionError(
            f"{name} never shows the held-out {', '.join(lacking)}, so that no model could know "
            "them; ask for more training programs or hold out less"
        )


def _held_out(program: Tree, held_out: int) -> tuple[bool, bool]:
    """Whether a program has held-out names, and constants."""
    names, constants = held_out_words(held_out)
    labels = set(program.labels)
    return not labels.isdisjoint(names), not labels.isdisjoint(constants)


def _renamed(rng: random.Random, program: Tree, held_out: int) -> Tree | None:
    """The program with other names and constants, half of them held-out ones."""
    names, constants = held_out_words(held_out)
    seen_names = [variable_name(index) for index in range(SEEN_NAMES)]
    seen_constants = [str(value) for value in range(LARGEST_CONSTANT + 1)]
    # In the order of the program, so that a seed gives the same words everywhere.
    labels = list(dict.fromkeys(program.labels))
    used_names = [label for label in labels if label.startswith("a")]
    if len(used_names) > SEEN_NAMES:
        return None
    words = _drawn(rng, used_names, seen_names, names)
    words |= _drawn(rng, list(filter(str.isdecimal, labels)), seen_constants, constants)
    return Tree(program.parents, [words.get(label, label) for label in program.labels])


def _drawn(
    rng: random.Random, used: list[str], seen: list[str], held_out: list[str]
) -> dict[str, str]:
    """Another word for each, no two the same."""
    rng.shuffle(seen)
    rng.shuffle(held_out)
    return {word: held_out.pop() if held_out and rng.randrange(2) else seen.pop() for word in used}

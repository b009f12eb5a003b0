"""The lexical split: names and constants that training programs show, but never use.

The held-out words are K names beyond the first `SEEN_NAMES` and the K constants after 10. In train
and valid they occur in single assignments without a sum only (``a22 = 11``), which are a tenth of
the programs. A model can learn that they are a name and a constant, but never sees one as a loop
variable, in a comparison or a sum, or anywhere in a longer program. Every test program is a longer one
that has a held-out name and a held-out constant in such a new place.

There are few such assignments (405 with five words of each kind), so they come up again and again.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from treesyntax.data.sets.for_programs import (
    LARGEST_CONSTANT,
    Style,
    draw_program,
    variable_name,
)
from treesyntax.errors import OptionError
from treesyntax.trees.tree import Tree

SEEN_NAMES = 20
EXPOSED = 0.1
"""Share of train and valid that shows held-out words."""
SINGLE_ASSIGNMENT = 5
"""Nodes of an assignment without a sum."""
# Programs of this size are single assignments in every style.
_SINGLE = 0


def held_out_words(number: int) -> tuple[list[str], list[str]]:
    """The names and the constants that are held out."""
    names = [variable_name(SEEN_NAMES + index) for index in range(number)]
    return names, [str(LARGEST_CONSTANT + 1 + index) for index in range(number)]


def draw_plain_program(rng: random.Random, style: Style, size: int) -> Tree | None:
    """A program without held-out words, None where there are more variables than names."""
    return _renamed(rng, draw_program(rng, style, size), 0)


def draw_exposing_program(rng: random.Random, style: Style, held_out: int) -> Tree | None:
    """A single assignment that shows held-out words, of which there are 1 or more; or None."""
    program = _renamed(rng, draw_program(rng, style, _SINGLE), held_out)
    shows = program is not None and not set().union(*held_out_words(held_out)).isdisjoint(
        program.labels
    )
    return program if shows and program is not None and len(program) == SINGLE_ASSIGNMENT else None


def draw_test_program(rng: random.Random, style: Style, size: int, held_out: int) -> Tree | None:
    """A program for test, None if it lacks a held-out name or constant in a new place."""
    program = _renamed(rng, draw_program(rng, style, size), held_out)
    if program is None:
        return None
    new = _in_new_places(program)
    return program if all(new.intersection(words) for words in held_out_words(held_out)) else None


def _in_new_places(program: Tree) -> set[str]:
    """The words of a program that do not stand right under an assignment, as a variable or constant."""
    parents, labels = program.parents.tolist(), program.labels
    return {
        label
        for node, label in enumerate(labels)
        if node
        and (labels[parents[node]] == "<FOR>" or labels[parents[parents[node]]] != "<ASSIGN>")
    }


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

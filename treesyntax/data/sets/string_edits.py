"""String edits in the manner of PCFG SET (Hupkes et al. 2020), drawn anew.

``append reverse A B , repeat C`` is ``B A C C``: functions stand before their arguments, a comma before the second
argument. Training has up to 4 functions. In ``gen``, *productivity* has 5 to 7 functions; *systematicity* has
up to 4, among them a pair of functions, one right inside the other, that training never has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from treesyntax.data.sets.drawing import Example, drawn_set, word, words_of
from treesyntax.trees.formats.notation import Node

Words = list[str]
ONE: dict[str, Callable[[Words], Words]] = {
    "copy": lambda x: x,
    "reverse": lambda x: x[::-1],
    "shift": lambda x: [*x[1:], x[0]],
    "swap": lambda x: [x[-1], *x[1:-1], x[0]] if len(x) > 1 else x,
    "repeat": lambda x: x + x,
    "echo": lambda x: [*x, x[-1]],
}
TWO: dict[str, Callable[[Words, Words], Words]] = {
    "append": lambda x, y: x + y,
    "prepend": lambda x, y: y + x,
    "remove_first": lambda _, y: y,
    "remove_second": lambda x, _: x,
}
LETTERS = tuple("ABCDEFGHIJKLMNOPQRST")
NEW_PAIRS = {
    ("swap", "repeat"),
    ("append", "remove_second"),
    ("repeat", "remove_second"),
    ("append", "swap"),
}
"""Outer and inner function, as in the paper's systematicity test."""
KNOWN, LONGEST, MOST_WORDS, TRIES = 4, 7, 40, 200


def apply(name: str, arguments: Sequence[Words]) -> Words:
    """What a function makes of its arguments."""
    return ONE[name](arguments[0]) if name in ONE else TWO[name](*arguments)


def _command(rng: random.Random, functions: int) -> tuple[Node, Words, set[tuple[str, str]]]:
    """The tree of a command with so many functions, its value, and its pairs of functions."""
    if not functions:
        letters = [rng.choice(LETTERS) for _ in range(rng.randint(1, 4))]
        return Node("L", tuple(word("C", letter) for letter in letters)), letters, set()
    name = rng.choice([*ONE, *TWO])
    first = functions - 1 if name in ONE else rng.randint(0, functions - 1)
    shares = [first] if name in ONE else [first, functions - 1 - first]
    pairs: set[tuple[str, str]] = set()
    below: list[Node] = []
    values: list[Words] = []
    for share in shares:
        tree, value, inner = _command(rng, share)
        below += [word("SEP", ","), tree] if below else [tree]
        values.append(value)
        pairs |= inner | ({(name, tree.children[0].children[0].label)} if share else set())
    return Node("F", (word("FN", name), *below)), apply(name, values), pairs


def _known(rng: random.Random) -> Example | None:
    functions = rng.randint(1, KNOWN)
    tree, value, pairs = _command(rng, functions)
    if pairs & NEW_PAIRS or len(value) > MOST_WORDS:
        return None
    return Example(" ".join(words_of(tree)), " ".join(value), tree, f"functions_{functions}")


def _new(rng: random.Random) -> Example | None:
    systematic = rng.random() < 0.5
    for _ in range(TRIES):
        functions = rng.randint(2, KNOWN) if systematic else rng.randint(KNOWN + 1, LONGEST)
        tree, value, pairs = _command(rng, functions)
        if bool(pairs & NEW_PAIRS) is systematic and len(value) <= MOST_WORDS:
            category = "systematicity" if systematic else f"productivity_{functions}"
            return Example(" ".join(words_of(tree)), " ".join(value), tree, category)
    return None


STRING_EDITS = drawn_set(
    "string_edits", "nested string functions to their result",
    "after Hupkes et al. 2020, Compositionality Decomposed (PCFG SET)",
    "train: up to 4 functions; gen: 5 to 7, or pairs of functions that train lacks", _known, _new,
)  # fmt: skip

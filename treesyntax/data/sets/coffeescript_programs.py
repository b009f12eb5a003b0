"""Random CoffeeScript programs after the generator of Drissi et al. (2018).

Programs are token lines as in that data set: `<NL>` between statements, `<IND>` and `<DED>` around
an indented block. The published set has size 32 and draws new variables in the order a0, a1, …
without end; with a number of `variables` a new one is any that is not declared yet, as in Chen et
al. (2018), whose sets A and B have a small and a large vocabulary.

Functions recurse over a size that shrinks by a factor, so their depth is logarithmic in it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from treesyntax.errors import OptionError

# The precedence of operators, and their relative frequencies.
_LEVELS = {"==": 0, "+": 1, "*": 2}
_OPERATORS = ("+", "+", "*", "*", "==")
_ATOM = 3


@dataclass(frozen=True)
class Vocabulary:
    """What names and constants programs have.

    Attributes:
        variables: number of names, a0, a1, …; None for no limit.
        constants: number of constants, 0, 1, ….
    """

    variables: int | None = None
    constants: int = 10

    def __post_init__(self) -> None:
        for name in ("variables", "constants"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name} is {value}; it must be 1 or more")


def draw_tokens(rng: random.Random, size: int, vocabulary: Vocabulary) -> list[str]:
    """The tokens of a random program that starts with n = ``size``."""
    return _Drawing(rng, vocabulary).block(size, ())[0]


Names = tuple[str, ...]
Drawn = tuple[list[str], Names]
"""Tokens, and the variables declared after them."""


class _Drawing:
    """One rule of the generator a method."""

    def __init__(self, rng: random.Random, vocabulary: Vocabulary) -> None:
        self.rng, self.vocabulary = rng, vocabulary

    def block(self, size: int, names: Names) -> Drawn:
        if size <= 2 or self.rng.randrange(3) == 0:
            return self.statement(size, names)
        first, names = self.block(size // 2, names)
        second, names = self.statement(size // 2, names)
        return [*first, "<NL>", *second], names

    def statement(self, size: int, names: Names) -> Drawn:
        kind = self.rng.choice(("short", "short", "if", "while", "else", "then"))
        if size <= 2 or kind == "short":
            return self.short(size, names)
        share = size // 3 if kind in ("else", "then") else size // 2
        test = self.expression(share, names)[0]
        if kind == "then":
            yes, no = (self.short(share, names)[0] for _ in range(2))
            return ["if", *test, "then", *yes, "else", *no], names
        opening = "while" if kind == "while" else "if"
        tokens = [opening, *test, *self.indented(share, names)]
        if kind == "else":
            tokens += ["<NL>", "else", *self.indented(share, names)]
        return tokens, names

    def indented(self, size: int, names: Names) -> list[str]:
        return ["<IND>", *self.block(size, names)[0], "<DED>"]

    def short(self, size: int, names: Names) -> Drawn:
        kind = self.rng.choice(("simple", "simple", "if", "while"))
        if size <= 3 or kind == "simple":
            return self.simple(size, names)
        return self.postfix(kind, size, names), names

    def postfix(self, kind: str, size: int, names: Names) -> list[str]:
        """``statement if test``; the statement may have the same form."""
        if size > 3 and self.rng.randrange(2):
            body = self.postfix(kind, size // 2, names)
        else:
            body, _ = self.simple(size // 2, names)
        return [*body, kind, *self.expression(size // 2, names)[0]]

    def simple(self, size: int, names: Names) -> Drawn:
        if size <= 0:
            return self.expression(size, names)[0], names
        new = self.new_name(names)
        kinds = ["new"] * 3 * bool(new) + ["old"] * bool(names) + ["expression"]
        kind = self.rng.choice(kinds)
        value = self.expression(size - 1, names)[0]
        if kind == "expression":
            return value, names
        if kind == "old":
            return [self.rng.choice(names), "=", *value], names
        return [new, "=", *value], (*names, new)

    def new_name(self, names: Names) -> str:
        """A name that is not declared yet; "" if all are."""
        if self.vocabulary.variables is None:
            return f"a{len(names)}"
        free = [f"a{index}" for index in range(self.vocabulary.variables)]
        free = [name for name in free if name not in names]
        return self.rng.choice(free) if free else ""

    def expression(self, size: int, names: Names) -> tuple[list[str], int]:
        """Tokens, and the precedence of their operator."""
        kinds = [*(["name"] if names else []), "constant", *(_OPERATORS if size > 0 else ())]
        kind = self.rng.choice(kinds)
        if kind == "name":
            return [self.rng.choice(names)], _ATOM
        if kind == "constant":
            return [str(self.rng.randrange(self.vocabulary.constants))], _ATOM
        level = _LEVELS[kind]
        left = self.expression(size // 2 - 1, names)
        right = self.expression(size // 2 - 2, names)
        # Comparisons would chain, other operators group to the left.
        least = level + (kind == "==")
        return [*_bracketed(left, least), kind, *_bracketed(right, level + 1)], level


def _bracketed(expression: tuple[list[str], int], least: int) -> list[str]:
    tokens, level = expression
    return tokens if level >= least else ["(", *tokens, ")"]

"""What a word of the source is when the target repeats it: the same token, or a leaf.

Where target tokens say which slots their node has, a copied word has no children: ``a22`` becomes
``a22/0``. In left-child-right-sibling forms a leaf may have a next sibling, so there are two
forms, ``a22/0`` and ``a22/R``. Beside brackets, words that look like one are escaped (`leaf_token`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableSequence, Sequence

import numpy as np
from numpy.typing import NDArray

from treesyntax.trees.binary import FIRST_CHILD, NEXT_SIBLING
from treesyntax.trees.symbols import CLOSE, ESCAPE, OPEN, annotate, leaf_token, split_symbol

NO_COPY = -1
_PLACEHOLDER = re.compile("^<unk_([1-9][0-9]{0,5})>")
SPECIALS = 4
"""Symbols at the start of every dictionary, which are no words."""
CHILDREN, SIBLINGS = "nary_", "lcrs_"
"""How the names begin of linearizations whose tokens have slots."""
BRACKETS = "bracketed"
"""How those begin whose inner nodes open and close with a bracket."""


def copied_label(symbol: str, linearization: str) -> str | None:
    """The word that a source symbol stands for; None for a node with children or a bracket."""
    if linearization.startswith(BRACKETS):
        bracket = symbol.startswith(OPEN) or symbol == CLOSE
        return None if bracket else symbol.removeprefix(ESCAPE)
    if not linearization.startswith((CHILDREN, SIBLINGS)):
        return symbol
    label, slots = split_symbol(symbol) or (symbol, ())
    return None if FIRST_CHILD in slots else label


def copied_forms(label: str, linearization: str) -> list[str]:
    """The symbols of a copied word in a target of a linearization, 1 or 2."""
    if linearization.startswith(SIBLINGS):
        return [annotate(label, slots, binary=True) for slots in ((), (NEXT_SIBLING,))]
    if linearization.startswith(CHILDREN):
        return [annotate(label, ())]
    return [leaf_token(label) if linearization.startswith(BRACKETS) else label]


def copy_table(
    source: Sequence[str], target: Sequence[str], linearizations: tuple[str, str]
) -> NDArray[np.int64]:
    """The target ids of every source symbol.

    Args:
        source: the V symbols of the source dictionary by id.
        target: those of the target dictionary.
        linearizations: of source and target, "" where it is not known.

    Returns:
        [F, V], F the number of forms of a word; -1 where the target has no such symbol.
    """
    ids = {symbol: index for index, symbol in enumerate(target) if index >= SPECIALS}
    forms = len(copied_forms("", linearizations[1]))
    table = np.full((forms, len(source)), NO_COPY, dtype=np.int64)
    for index, symbol in enumerate(source):
        label = copied_label(symbol, linearizations[0])
        if label is not None and label not in source[:SPECIALS]:
            copied = copied_forms(label, linearizations[1])
            table[:, index] = [ids.get(form, NO_COPY) for form in copied]
    return table


def copy_forms_of(symbols: Sequence[str], linearization: str) -> NDArray[np.int64]:
    """Which form of its word each symbol is, [V]; 0 for what is no word."""
    form_numbers = np.zeros(len(symbols), dtype=np.int64)
    for index, symbol in enumerate(symbols):
        label = copied_label(symbol, linearization)
        forms = [] if label is None else copied_forms(label, linearization)
        form_numbers[index] = forms.index(symbol) if symbol in forms else 0
    return form_numbers


def placeholder(number: int) -> str:
    """What stands for the unknown word ``number`` of a source, counted from 0: ``<unk_1>``, …"""
    return f"<unk_{number + 1}>"


def is_placeholder(label: str) -> bool:
    """Whether a label stands for an unknown word, see `placeholder`."""
    return _PLACEHOLDER.fullmatch(label) is not None


def placeholder_table(symbols: Sequence[str], linearization: str) -> NDArray[np.int64]:
    """The ids of the placeholders of a dictionary, [F, N] for F forms; N is 0 where it has none."""
    ids = {symbol: index for index, symbol in enumerate(symbols)}
    rows: list[list[int]] = []
    for number in range(len(symbols)):
        forms = copied_forms(placeholder(number), linearization)
        if any(form not in ids for form in forms):
            break
        rows.append([ids[form] for form in forms])
    forms_of_word = len(copied_forms("", linearization))
    return np.array(rows, dtype=np.int64).reshape(-1, forms_of_word).T


def with_words(tokens: Sequence[str], words: Sequence[str], linearization: str) -> list[str]:
    """Target tokens of a linearization with the words that their placeholders stand for; others stay."""

    def word(match: re.Match[str]) -> str:
        number = int(match[1]) - 1
        if number >= len(words):
            return match[0]
        return leaf_token(words[number]) if linearization.startswith(BRACKETS) else words[number]

    return [_PLACEHOLDER.sub(word, token) for token in tokens]


class Placeholders:
    """Puts placeholders in the place of the unknown words of sentences.

    The k-th different unknown word of a source becomes ``<unk_k>``, and the same word as a leaf of the
    target that is unknown there too becomes its form, ``<unk_k>/0``.

    Args:
        symbols: those of the dictionary by id.
        unknown: ids that stand for unknown symbols.
        linearization: of the side.
    """

    def __init__(self, symbols: Sequence[str], unknown: Iterable[int], linearization: str) -> None:
        self.table, self.linearization = placeholder_table(symbols, linearization), linearization
        self.unknown = frozenset(unknown)

    def number(
        self,
        ids: MutableSequence[int],
        symbols: Sequence[str],
        words: list[str],
        new: bool,
    ) -> None:
        """Change the ids of a sentence in place.

        Args:
            ids: of its tokens.
            symbols: of its tokens, as the data has them.
            words: the words with a number; with ``new`` more are appended.
            new: whether words may be: in a source, not in its target.
        """
        for position, index in enumerate(ids):
            if index not in self.unknown:
                continue
            label = copied_label(symbols[position], self.linearization)
            if label is None:
                continue
            if label not in words and new and len(words) < self.table.shape[1]:
                words.append(label)
            if label in words:
                form = copied_forms(label, self.linearization).index(symbols[position])
                ids[position] = int(self.table[form, words.index(label)])

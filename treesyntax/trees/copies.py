"""What a word of the source is when the target repeats it: the same token, or a leaf.

Where target tokens say which slots their node has, a copied word has no children: ``a22`` becomes
``a22/0``. In left-child-right-sibling forms a leaf may have a next sibling, so there are two
forms, ``a22/0`` and ``a22/R``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treesyntax.trees.binary import FIRST_CHILD, NEXT_SIBLING
from treesyntax.trees.symbols import annotate, split_symbol

NO_COPY = -1
SPECIALS = 4
"""Symbols at the start of every dictionary, which are no words."""
CHILDREN, SIBLINGS = "nary_", "lcrs_"
"""How the names begin of linearizations whose tokens have slots."""


def copied_label(symbol: str, linearization: str) -> str | None:
    """The word that a source symbol stands for; None for a node with children or a bracket."""
    if linearization == "bracketed" and (symbol.startswith("(") or symbol == ")"):
        return None
    if not linearization.startswith((CHILDREN, SIBLINGS)):
        return symbol
    label, slots = split_symbol(symbol) or (symbol, ())
    return None if FIRST_CHILD in slots else label


def copied_forms(label: str, linearization: str) -> list[str]:
    """The symbols of a copied word in a target of a linearization, 1 or 2."""
    if linearization.startswith(SIBLINGS):
        return [annotate(label, slots, binary=True) for slots in ((), (NEXT_SIBLING,))]
    return [annotate(label, ())] if linearization.startswith(CHILDREN) else [label]


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
            found = copied_forms(label, linearizations[1])
            table[:, index] = [ids.get(form, NO_COPY) for form in found]
    return table

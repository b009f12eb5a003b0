"""The grammar of the trees that a format can hold, from its rules for labels and children."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from treesyntax.data.dictionary import UNKNOWN
from treesyntax.decoding.grammar import NO_ROW, TreeGrammar
from treesyntax.nn.growth import GrowingTrees
from treesyntax.trees.binary import FIRST_CHILD
from treesyntax.trees.controls import child_order
from treesyntax.trees.formats.base import Children, Format, Labels, any_label
from treesyntax.trees.symbols import split_symbol

ITSELF = -2
ANY_NUMBER = Children((any_label,), more=True, optional=True)


def notation_grammar(
    symbols: Sequence[str],
    trees: GrowingTrees,
    notation: Format,
    shuffle_seed: int | None = None,
) -> TreeGrammar:
    """The grammar of what ``notation.root`` and ``notation.children`` say.

    Args:
        symbols: the V symbols of the dictionary by id. Unknown ones, such as ``<unk>/2``, may stand
            wherever a node may, with any children.
        trees: how they grow trees.
        notation: the format of the trees.
        shuffle_seed: of ``shuffled`` control trees, their seed; None for the trees themselves.
    """
    nodes = [split_symbol(symbol) for symbol in symbols]
    labels = [None if node is None else node[0] for node in nodes]
    children = {
        label: (None if label == UNKNOWN else notation.children(label)) or ANY_NUMBER
        for label in {label for label in labels if label is not None}
    }
    symbol_children = [None if label is None else children[label] for label in labels]
    if trees.binary:
        rows = _Rows(labels, _fit_siblings(symbol_children, trees))
        return _of_siblings(rows, symbol_children, trees, notation.root, shuffle_seed)
    counts = trees.counts.tolist()
    fit = [
        of is not None and of.may_be(count)
        for of, count in zip(symbol_children, counts, strict=True)
    ]
    return _of_slots(_Rows(labels, fit), symbol_children, trees, notation.root, shuffle_seed)


class _Rows:
    """Collects the rows of a grammar, equal ones once.

    Args:
        labels: of the symbols, None for those that are not nodes.
        fit: whether a symbol has a number of children that its label may have.
    """

    def __init__(self, labels: Sequence[str | None], fit: Sequence[bool]) -> None:
        self.labels, self.fit = labels, torch.tensor(fit)
        self.fills: list[Tensor] = []
        self.following: list[int] = []
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._those: dict[Labels, Tensor] = {}

    def those(self, wanted: Labels) -> Tensor:
        """Bool [V], the symbols with such a label."""
        if wanted not in self._those:
            matches = [
                label is not None and (label == UNKNOWN or wanted(label)) for label in self.labels
            ]
            self._those[wanted] = torch.tensor(matches) & self.fit
        return self._those[wanted]

    def add(self, fills: Tensor, following: int = NO_ROW) -> int:
        """The index of the row of these symbols whose next siblings have that row, maybe `ITSELF`."""
        key = (fills.numpy().tobytes(), following)
        if key not in self._numbers:
            self._numbers[key] = number = len(self.fills)
            self.fills.append(fills)
            self.following.append(number if following == ITSELF else following)
        return self._numbers[key]


def _of_slots(
    rows: _Rows,
    children: Sequence[Children | None],
    trees: GrowingTrees,
    root: Labels,
    shuffle_seed: int | None,
) -> TreeGrammar:
    rows.add(rows.those(root))
    row_of_slot = torch.full_like(trees.branches, NO_ROW)
    nodes = zip(row_of_slot, children, rows.labels, trees.counts.tolist(), strict=True)
    for row, of, label, count in nodes:
        if of is None or label is None or not of.child_labels:
            continue
        child_labels = [
            of.child_labels[min(slot, len(of.child_labels) - 1)] for slot in range(count)
        ]
        if shuffle_seed is not None:
            child_labels = [
                child_labels[index] for index in child_order(label, count, shuffle_seed)
            ]
        for slot, labels in enumerate(child_labels):
            row[slot] = rows.add(rows.those(labels))
    return TreeGrammar(torch.stack(rows.fills), row_of_slot)


def _fit_siblings(children: Sequence[Children | None], trees: GrowingTrees) -> list[bool]:
    """A left-child-right-sibling symbol only says whether there are children at all."""
    parents = (trees.branches == FIRST_CHILD).any(1).tolist()
    return [
        of is not None and (bool(of.child_labels) if parent else of.may_be(0))
        for of, parent in zip(children, parents, strict=True)
    ]


def _of_siblings(
    rows: _Rows,
    children: Sequence[Children | None],
    trees: GrowingTrees,
    root: Labels,
    shuffle_seed: int | None,
) -> TreeGrammar:
    has_next = trees.has_sibling
    rows.add(rows.those(root) & ~has_next)
    first: dict[tuple[Children, str], int] = {}
    keys = []
    for of, label in zip(children, rows.labels, strict=True):
        shuffles = shuffle_seed is not None and of is not None and len({*of.child_labels}) > 1
        key = None if of is None else (of, (label or "") if shuffles else "")
        keys.append(key)
        if key is None or of is None or key in first or not of.child_labels:
            continue
        child_labels = of.child_labels
        if shuffles and of.more:
            # A symbol does not tell how many siblings follow, on which their order depends.
            anywhere = torch.stack([rows.those(labels) for labels in child_labels]).any(0)
            first[key] = rows.add(anywhere, ITSELF)
            continue
        if shuffles and shuffle_seed is not None:
            order = child_order(key[1], len(child_labels), shuffle_seed)
            child_labels = tuple(child_labels[index] for index in order)
        last = rows.those(child_labels[-1])
        row = rows.add(last, ITSELF) if of.more else rows.add(last & ~has_next)
        for labels in reversed(child_labels[:-1]):
            row = rows.add(rows.those(labels) & has_next, row)
        first[key] = row
    row_of_first = [NO_ROW if key is None else first.get(key, NO_ROW) for key in keys]
    row_of_slot = torch.where(
        trees.branches == FIRST_CHILD, torch.tensor(row_of_first).unsqueeze(1), NO_ROW
    )
    fills = torch.stack(rows.fills)
    if rows.following[1:] == [1]:  # one row for all children, whichever they are
        return TreeGrammar(fills, torch.where(trees.branches >= 0, 1, NO_ROW))
    return TreeGrammar(fills, row_of_slot, torch.tensor(rows.following))

"""Attention to chosen relations only."""

from __future__ import annotations

import re
from typing import NamedTuple

import torch
from torch import Tensor

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import depth, last_descendant, root
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.kernels.lookup import as_bytes
from treesyntax.nn.pairs import RelationOf
from treesyntax.nn.relations import by_rows
from treesyntax.nn.tree_batch import TreeBatch

RELATIONS = (
    "ancestors",
    "descendants",
    "siblings",
    "left_siblings",
    "right_siblings",
    "stack",
    "other_trees",
    "all",
)
WITHOUT_LIMIT = ("stack", "other_trees", "all")
TERM = re.compile(r"(\w+)\s*(?:<=\s*(\d+))?")
MOST_VIEWS = 7
"""Different views of a model: each takes a bit of an id of one byte."""


class _Tokens(NamedTuple):
    """Coordinates of the nodes of some tokens; all of one shape."""

    node: Tensor
    last: Tensor
    depth: Tensor
    parent: Tensor
    branch: Tensor
    parent_last: Tensor
    root: Tensor


class _View(NamedTuple):
    """What a head sees: (relation, most steps or None) each."""

    terms: tuple[tuple[str, int | None], ...]

    @classmethod
    def parse(cls, text: str) -> _View:
        return cls(tuple(_term(term.strip(), text) for term in text.split("|")))

    def sees(self, query: _Tokens, key: _Tokens) -> Tensor:
        """Bool, of the shape to which queries and keys broadcast."""
        # A token always sees itself, so no row is empty; one without a node sees and is seen by all.
        seen = (query.node == key.node) | (query.node < 0) | (key.node < 0)
        for relation, most in self.terms:
            related, steps = _related(relation, query, key)
            seen = seen | (related if most is None else related & (steps <= most))
        return seen


def _term(term: str, text: str) -> tuple[str, int | None]:
    match = TERM.fullmatch(term)
    if not match or match[1] not in RELATIONS:
        raise OptionError(
            f"constrained_mask: unknown relation {term!r} in {text.strip()!r}; the relations are "
            f"{', '.join(RELATIONS)}, as in ancestors<=5|siblings"
        )
    if match[2] is not None and (match[1] in WITHOUT_LIMIT or int(match[2]) < 1):
        raise OptionError(
            f"constrained_mask: {term!r} has no such limit; limits are 1 or more, and "
            f"{', '.join(WITHOUT_LIMIT[:-1])} and {WITHOUT_LIMIT[-1]} take none"
        )
    return match[1], None if match[2] is None else int(match[2])


def _related(relation: str, query: _Tokens, key: _Tokens) -> tuple[Tensor, Tensor]:
    """Whether the key is that to the query, and how many steps away."""
    if relation == "all":
        return query.node == query.node, query.depth
    if relation == "other_trees":
        return query.root != key.root, query.depth
    if relation == "stack":
        return (key.node < query.node) & (query.node <= key.parent_last), query.depth
    if relation == "ancestors":
        above = (key.node < query.node) & (query.node <= key.last)
        return above, query.depth - key.depth
    if relation == "descendants":
        below = (query.node < key.node) & (key.node <= query.last)
        return below, key.depth - query.depth
    apart = query.branch - key.branch  # above 0 where the key stands to the left
    siblings = (query.parent == key.parent) & (query.parent >= 0)
    if relation == "left_siblings":
        return siblings & (apart > 0), apart
    if relation == "right_siblings":
        return siblings & (apart < 0), -apart
    return siblings, apart.abs()


@register("constrained_mask")
class ConstrainedMask(Injection):
    """Each head attends to some relations of the tree alone: ``softmax(QK' / sqrt(d) + log M)``.

    M is 1 where the key is one of the chosen relations to the query. A view is what a head sees:
    relations joined by ``|``, each with a limit of steps if wanted, as in
    ``ancestors<=5|siblings<=2``. Several views, with a comma between them, are dealt out to the
    heads in turn, the same in all layers.

    The relations of a key to its query are ``ancestors`` and ``descendants`` (steps are edges), and
    ``siblings``, ``left_siblings`` and ``right_siblings`` (steps are branches). ``stack`` is below.
    ``other_trees`` are all nodes of the other trees of a forest, and ``all`` leaves a head as it is.

    No row is empty: a token always sees itself and all tokens of its own node. A token without a
    node (EOS, start symbol) sees all tokens and is seen by all. Trees of one input do not see each
    other, unless a view says so by ``other_trees`` or ``all``. There is nothing to learn.

    Relations of two nodes do not change as a tree grows, so decoders can use it. There all
    ``descendants`` and ``right_siblings`` lie in the future, where nothing is seen anyway.

    AST-Trans (Tang et al. 2022) is ``ancestors<=k|descendants<=k`` for some heads and
    ``siblings<=k`` for the others; its vectors by distance are not built here. Its encoder has no
    absolute positions, which is ``absolute=False``.

    ``stack`` is what Transformer Grammars (Sartran et al. 2022) keep on their stack: the ancestors, and
    the previous siblings of the node and of its ancestors, which are complete. Each stands on its own
    node. Their closing tokens, which compose a constituent, are ``transformer_grammar``.

    Args:
        site: where the method is built in.
        views: what the heads see.
        absolute: keep absolute positions beside it.

    Attributes:
        seen: bool [heads, R], the ids that a head sees.
    """

    paper = "Tang et al. 2022 (AST-Trans); Sartran et al. 2022 (Transformer Grammars), its stack"
    equation = "softmax(QK'/sqrt(d) + log M), M = 1 for chosen relations, else 0"
    cost = (
        "relation ids once a batch, a table lookup a pair and layer; "
        "a whole step of width 128 took 0.88 times the plain one at 64 tokens, 1.11 at 512"
        " (the price of these lookups)"
    )

    seen: Tensor

    def __init__(
        self, site: Site, views: str = "ancestors|descendants, siblings", absolute: bool = True
    ) -> None:
        """Raises OptionError for unknown relations, wrong limits, or more views than heads."""
        super().__init__(site)
        self.replaces_positions = not absolute
        by_head = [_View.parse(text) for text in views.split(",")]
        self.views = list(dict.fromkeys(by_head))
        if len(by_head) > site.heads or len(self.views) > MOST_VIEWS:
            raise OptionError(
                f"constrained_mask: {len(by_head)} views, {len(self.views)} of them different, for "
                f"{site.heads} heads; at most one a head, and {MOST_VIEWS} different ones"
            )
        bits = [self.views.index(by_head[head % len(by_head)]) for head in range(site.heads)]
        seen = torch.arange(1 << len(self.views)) >> torch.tensor(bits).unsqueeze(1) & 1
        self.register_buffer("seen", seen.bool(), persistent=False)

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """uint8 [B, T, T]: bit v is set where view v sees the key."""
        tokens = _coordinates(tree)
        keys = _Tokens(*(coordinate.unsqueeze(1) for coordinate in tokens))

        def ids(rows: slice) -> Tensor:
            queries = _Tokens(*(coordinate[:, rows].unsqueeze(2) for coordinate in tokens))
            row_ids = torch.zeros((), dtype=torch.uint8, device=tree.parent.device)
            for bit, view in enumerate(self.views):
                row_ids = row_ids + as_bytes(view.sees(queries, keys)) * (1 << bit)
            return row_ids

        return by_rows(tree, ids)

    def relation_of_pair(self, tree: TreeBatch) -> RelationOf:
        """:meth:`relation_ids` pair by pair, from seven coordinates a token."""
        tokens, views = _coordinates(tree), self.views

        def relation(b: Tensor, i: Tensor, j: Tensor) -> Tensor:
            query, key = (_Tokens(*(coordinate[b, at] for coordinate in tokens)) for at in (i, j))
            pair_ids = torch.zeros_like(query.node)
            for bit, view in enumerate(views):
                pair_ids = pair_ids + view.sees(query, key).int() * (1 << bit)
            return pair_ids

        return relation

    def bias_table(self, layer: int) -> Tensor:
        """[H, R], the same for all layers."""
        # Finite, since infinities of several tables may meet; far below what a logit can be.
        table = torch.zeros(self.seen.shape, device=self.seen.device)
        return table.masked_fill(~self.seen, torch.finfo(table.dtype).min)


def _coordinates(tree: TreeBatch) -> _Tokens:
    last = last_descendant(tree)
    # A root lies on the stack until the end of its own tree.
    parent_last = torch.where(tree.parent < 0, last, last.gather(1, tree.parent.clamp(min=0)))
    at_tokens = (last, depth(tree), tree.parent, tree.branch, parent_last, root(tree))
    return _Tokens(tree.token_node.int(), *(tree.at_tokens(values).int() for values in at_tokens))

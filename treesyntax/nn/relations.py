"""Relations between the nodes of two tokens, as small integers: relation ids.

The nine relations of McDonald & Chiang (2021) partition all pairs of nodes, so one id a pair says
everything that nine 0/1 masks say, in a ninth of the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from treesyntax.nn.coordinates import depth, in_one_tree, last_descendant, root
from treesyntax.nn.kernels.lookup import as_bytes
from treesyntax.nn.pairs import RelationOf
from treesyntax.nn.tree_batch import TreeBatch

RELATIONS = (
    "self",
    "parent",
    "child",
    "left_sibling",
    "right_sibling",
    "ancestor",
    "descendant",
    "left_other",
    "right_other",
)
"""Names by id: RELATIONS[ids[i, j]] says what i is to j, as in "i is the parent of j"."""

NO_RELATION = len(RELATIONS)
"""Id of pairs in which a token has no node (EOS, padding), or the nodes are of different trees."""


def tree_relations(tree: TreeBatch, rows: slice = slice(None)) -> Tensor:
    """What the node of token i is to the node of token j.

    Dominance comes from the tree, left and right from the order of the tokens, so the ids serve
    constituency trees in preorder as well as dependency trees in word order. An ancestor is one
    that is not the parent, a descendant one that is not a child.

    Returns:
        For the tokens i of ``rows``, uint8 [B, rows, T] of indices into :data:`RELATIONS`, or
        :data:`NO_RELATION`.
    """
    # Ids are put together from 0/1 bytes: selecting with torch.where takes ten times as long.
    most = max(tree.parent.shape[1], tree.token_node.shape[1])
    small = torch.int16 if most < torch.iinfo(torch.int16).max - 2 else torch.int32
    coordinates = (
        tree.token_node,
        tree.at_tokens(tree.parent, fill=-2),
        tree.at_tokens(last_descendant(tree)),
    )
    node, parent, last = (x.to(small).unsqueeze(1) for x in coordinates)
    first, first_parent, first_last = (x[:, :, rows].transpose(1, 2) for x in (node, parent, last))
    positions = torch.arange(tree.token_node.shape[1], dtype=small, device=node.device)
    above = _less(first, node) * (1 - _less(first_last, node))
    below = _less(node, first) * (1 - _less(last, first))
    adjacent = _equal(first, parent) + _equal(first_parent, node)
    left = _less(positions[rows].unsqueeze(1), positions)

    aside = (8 - left - 4 * _equal(first_parent, parent)) * (1 - above - below)
    ids = (aside + 5 * above + 6 * below - 4 * adjacent) * (1 - _equal(first, node))
    covered = as_bytes(in_one_tree(tree, rows))
    return ids * covered + NO_RELATION * (1 - covered)


def _less(x: Tensor, y: Tensor) -> Tensor:
    """Bytes, 1 where x < y. On a CPU a comparison of two tensors takes four times as long as this."""
    return (x - y).lt_(0).byte()


def _equal(x: Tensor, y: Tensor) -> Tensor:
    """Bytes, 1 where x = y."""
    return (x - y).eq_(0).byte()


def relation_of_pair(tree: TreeBatch) -> RelationOf:
    """:func:`tree_relations` pair by pair, from four coordinates a token."""
    node, roots = tree.token_node, tree.at_tokens(root(tree))
    parent = tree.at_tokens(tree.parent, fill=-2)
    last = tree.at_tokens(last_descendant(tree))

    def relation(b: Tensor, i: Tensor, j: Tensor) -> Tensor:
        first, second = node[b, i], node[b, j]
        above = (first < second) & (second <= last[b, i])
        below = (second < first) & (first <= last[b, j])
        same_parent = (parent[b, i] == parent[b, j]).int()
        aside = 8 - (i < j).int() - 4 * same_parent
        upward = torch.where(first == parent[b, j], 1, 5)
        downward = torch.where(parent[b, i] == second, 2, 6)
        pair_ids = torch.where(above, upward, torch.where(below, downward, aside))
        pair_ids = torch.where(first == second, 0, pair_ids)
        related = (first >= 0) & (roots[b, i] == roots[b, j])
        return torch.where(related, pair_ids, NO_RELATION)

    return relation


PAIRS_AT_ONCE = 1 << 20
"""Pairs whose ids are computed together. On the way to an id of one byte a pair takes several
64-bit numbers: 18 GB for a tree of 16,384 nodes all at once."""


@dataclass(frozen=True)
class QueriedTrees(TreeBatch):
    """Trees in which only some tokens are queries, as the last one is step by step.

    Methods need not know: :func:`by_rows` computes these rows alone.

    Attributes:
        rows: the tokens that are queries.
    """

    _: KW_ONLY
    rows: slice

    @classmethod
    def of(cls, tree: TreeBatch, rows: slice) -> QueriedTrees:
        """A batch in which some rows are queries."""
        return cls(tree.parent, tree.branch, tree.token_node, tree.label, check=False, rows=rows)

    def query_rows(self, pairs: Tensor) -> Tensor:
        """The queries' rows of [B or 1, …, T, T]; [B or 1, …, rows, T] stays as it is."""
        count = len(range(*self.rows.indices(self.token_node.shape[1])))
        return pairs if pairs.shape[-2] == count else pairs[..., self.rows, :]


def by_rows(tree: TreeBatch, compute: Callable[[slice], Tensor]) -> Tensor:
    """What ``compute`` makes of all pairs, a few query rows r at a time, [B or 1, r, T] each.

    Returns:
        [B or 1, T, T]; of :class:`QueriedTrees`, the queries' rows alone, in O(rows * T).
    """
    batch, width = tree.token_node.shape
    rows = tree.rows if isinstance(tree, QueriedTrees) else slice(None)
    start, stop, _ = rows.indices(width)
    step = max(PAIRS_AT_ONCE // max(batch * width, 1), 1)
    first = compute(slice(start, min(start + step, stop)))
    if start + step >= stop:
        return first
    total = first.new_empty(len(first), stop - start, width)
    total[:, :step] = first
    for row in range(start + step, stop, step):
        chunk = slice(row, min(row + step, stop))
        total[:, row - start : chunk.stop - start] = compute(chunk)
    return total


def path_lengths(
    tree: TreeBatch, rows: slice = slice(None), queries: Tensor | None = None
) -> Tensor:
    """Edges on the path between the nodes of two tokens.

    In preorder all nodes from i + 1 to j are below the lowest common ancestor of nodes i < j, and one is its child.
    So it lies one above the least depth among them, which is that of two rows of a sparse table for minima of
    ranges: two lookups a pair.

    Args:
        tree: the batch.
        rows: the first tokens of the pairs.
        queries: LongTensor [B, T], nodes to take for those of the first tokens, -1 for none.

    Returns:
        Integers [B, rows, T] for the first tokens in ``rows``, -1 where a token has no node or the
        nodes are of different trees.
    """
    depths, (batch, count) = depth(tree), tree.parent.shape
    # Row 0 serves a node and itself, row k + 1 the nodes of which the second is 2 ** k to 2 ** (k + 1) - 1 further.
    least = [depths, (depths - 1).roll(-1, 1)]
    while 1 << len(least) - 1 < count:
        least.append(torch.minimum(least[-1], least[-1].roll(-(1 << len(least) - 2), 1)))
    # In as small integers as hold them: on a CPU numbers of 64 bits take four times as long.
    small = torch.int16 if 2 * count < torch.iinfo(torch.int16).max else torch.int32
    index_type = (
        torch.int32 if batch * len(least) * count < torch.iinfo(torch.int32).max else torch.int64
    )
    table = torch.cat(least, 1).to(small).flatten()
    spans = torch.arange(count, device=depths.device)
    reach = 1 << torch.arange(len(least) - 1, device=depths.device)
    level = (spans.unsqueeze(1) >= reach).sum(1)
    from_first = (level * count).to(index_type)
    to_second = (level * count - (1 << level >> 1)).to(index_type)
    starts = torch.arange(batch, device=depths.device).unsqueeze(1) * (len(least) * count)
    queried = tree.token_node if queries is None else queries
    node, first = (x.clamp(min=0) for x in (tree.token_node, queried[:, rows]))
    ends = (first + starts).to(index_type).unsqueeze(2), (node + starts).to(index_type).unsqueeze(1)
    shape = (batch, first.shape[1], node.shape[1])
    lower, upper = torch.minimum(*ends).flatten(), torch.maximum(*ends).flatten()
    span = upper - lower
    common = torch.minimum(
        table.index_select(0, lower.add_(from_first.index_select(0, span))),
        table.index_select(0, upper.add_(to_second.index_select(0, span))),
    ).view(shape)
    depths, roots = depths.to(small), root(tree).int()
    lengths = depths.gather(1, first).unsqueeze(2) + depths.gather(1, node).unsqueeze(1)
    of_first = roots.gather(1, first).masked_fill(queried[:, rows] < 0, -2)
    apart = of_first.unsqueeze(2) != tree.at_tokens(roots).unsqueeze(1)
    return lengths.sub_(common, alpha=2).masked_fill_(apart, -1)

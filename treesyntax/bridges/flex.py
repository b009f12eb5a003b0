"""Methods as a ``score_mod`` of FlexAttention (``torch.nn.attention.flex_attention``)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from treesyntax.bridges.bridge import BIASES, ENCODINGS, read_batch, refuse_unknown
from treesyntax.model.composition import Composition
from treesyntax.nn.kernels.lookup import clamped
from treesyntax.nn.pairs import RelationOf
from treesyntax.nn.tree_batch import TreeBatch

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""From a logit, sentence, head, query position and key position to the logit, all scalars."""


def score_mods(methods: Composition, tree: TreeBatch) -> Callable[[int], ScoreMod]:
    """Return the ``score_mod`` of each layer, by the index of the layer.

    Relations that can be computed from coordinates of single nodes are, without a tensor of T x T;
    others are looked up in one of small integers. Encodings of nodes are no part of it: add
    ``methods.encode(tree)`` to the embeddings. Combine it with a ``block_mask`` for padding.

    FlexAttention has no backward pass on a CPU. On a GPU it sums gradients of tables by atomic additions,
    so they are not the same to the last bit from run to run.

    Args:
        methods: as of :func:`treesyntax.model.composition.compose`.
        tree: the trees of the batch, on the device of the attention.

    Raises:
        OptionError: for methods that add more than biases to pairs, and for what is no TreeBatch.
    """
    tree = read_batch(tree)
    refuse_unknown(methods, (*ENCODINGS, *BIASES), "FlexAttention")
    related = []
    for method in methods.methods:
        relation_of = method.relation_of_pair(tree)
        if relation_of is None and (ids := method.relation_ids(tree)) is not None:
            relation_of = _stored(ids.int().expand(len(tree.token_node), -1, -1))
        if relation_of is not None:
            related.append((method, relation_of))

    def of_layer(layer: int) -> ScoreMod:
        tables = [(relation_of, method.bias_table(layer)) for method, relation_of in related]
        known = [(of, clamped(table, table.dtype)) for of, table in tables if table is not None]

        def score(logit: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            for relation_of, table in known:
                logit = logit + table[h, relation_of(b, i, j)]
            return logit

        return score

    return of_layer


def _stored(ids: Tensor) -> RelationOf:
    return lambda b, i, j: ids[b, i, j]

"""Relations to parent and children that know the label of the arc."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Site, register
from treesyntax.nn.relations import RELATIONS, by_rows, tree_relations
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.nn.vectors import PairVectors

MOST_LABELS = 16_000  # beyond, there are more ids than a 16-bit integer holds
PARENT, CHILD = RELATIONS.index("parent"), RELATIONS.index("child")


@register("labelled_relation")
class LabelledRelation(PairVectors):
    """A bias, or vectors, for parent and children by the label of the arc between them.

    ``softmax(q_i (k_j + r^K_ij)' / sqrt(d) + b_ij) (v_j + r^V_ij)``, where r_ij and b_ij belong to
    ``parent by label(i)`` if j is the parent of i, to ``child by label(j)`` if i is the parent of j,
    and else to the relation of the two nodes (the other seven of McDonald & Chiang 2021, or none).
    The label of a node is that of the arc to its head in a dependency tree, else its category or
    symbol, which is the label of the child's end of the arc.

    The vectors are those of RAT-SQL (Wang et al. 2020), shared by the heads, there for labelled
    relations of schemas; the bias, a number per head, is our form of the number per edge type that
    GREAT (Hellendoorn et al. 2020) adds to logits, there times the sum of the key. The Code Transformer (Zügner et al. 2021) adds distances to labels: compose with
    ``tree_distance``. Labels are numbered by their frequency in the training data; label 0 is an
    unknown one, those beyond the table share its last row.

    Args:
        site: where the method is built in.
        labels: rows of the tables for labels, the unknown one included.
        bias: add to the logits.
        keys: add vectors to the keys.
        values: add vectors to the values.

    Attributes:
        bias_rows: [layers, heads, 2 * labels + 10], starts at 0: parents, children, then the ten ids
            of :func:`treesyntax.nn.relations.tree_relations`.
        key_table: [layers, 2 * labels + 10, d].
        value_table: the same.
    """

    paper = "Wang et al. 2020 (RAT-SQL); Hellendoorn et al. 2020 (GREAT), as a bias"
    equation = (
        "softmax(q(k + r_ij)'/sqrt(d) + b_ij) (v + r'_ij), ij by relation and label of the arc"
    )
    cost = (
        "relation ids once a batch, a table lookup a pair and layer; with vectors two gathers more; "
        "a whole step of width 128 took 0.99 times the plain one at 64 tokens, 1.19 at 512"
        " (the price of these lookups)"
    )

    needs_labels = True
    bias_rows: nn.Parameter | None

    def __init__(
        self,
        site: Site,
        labels: int = 64,
        bias: bool = True,
        keys: bool = False,
        values: bool = False,
    ) -> None:
        """Raises OptionError for a number of labels out of range or nothing to add."""
        super().__init__(site)
        if not 1 <= labels <= MOST_LABELS:
            raise OptionError(f"labelled_relation: labels must be 1 to {MOST_LABELS}, not {labels}")
        if not (bias or keys or values):
            raise OptionError("labelled_relation: bias, keys and values are all off")
        self.labels, size = labels, 2 * labels + len(RELATIONS) + 1
        zeros = nn.Parameter(torch.zeros(site.layers, site.heads, size)) if bias else None
        self.register_parameter("bias_rows", zeros)
        shape = (site.layers, size, site.d_model // site.heads)
        self.make_tables(shape, keys, values)

    def leaks_future(self) -> str:
        """Not for its relations: the partial trees of a decoder carry no labels."""
        return "reads labels of nodes, which partial trees do not have"

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """Integers [B, T, T], the rows of the tables.

        Raises OptionError for trees without labels.
        """
        if tree.label is None:
            raise OptionError(
                "labelled_relation needs the labels of nodes, but the data has none; binarize it with "
                "--source-labels (in Python: batch_trees(..., labels=...))"
            )
        label = tree.at_tokens(tree.label, 0).clamp(0, self.labels - 1).short()

        def ids(rows: slice) -> Tensor:
            relation = tree_relations(tree, rows).short()
            others = relation + 2 * self.labels
            found = torch.where(relation == CHILD, label[:, rows].unsqueeze(2), others)
            return torch.where(relation == PARENT, label.unsqueeze(1) + self.labels, found)

        return by_rows(tree, ids)

    def bias_table(self, layer: int) -> Tensor | None:
        """[H, 2 * labels + 10]."""
        return None if self.bias_rows is None else self.bias_rows[layer]

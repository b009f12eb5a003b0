"""Relations to parent and children that know the label of the arc."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Site, register
from treesyntax.nn.relations import RELATIONS, by_rows, tree_relations
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.nn.vectors import PairVectors

MOST_ROWS = 16_000  # beyond, there are more ids than a 16-bit integer holds
PARENT, CHILD = RELATIONS.index("parent"), RELATIONS.index("child")


@register("labelled_relation")
class LabelledRelation(PairVectors):
    """A bias, or vectors, for parent and children by the label of the arc between them.

    ``softmax(q_i (k_j + r^K_ij)' / sqrt(d) + b_ij) (v_j + r^V_ij)``, where r_ij and b_ij belong to

    - ``parent by label(i)`` if j is the parent of i,
    - ``child by label(j)`` if i is the parent of j,
    - else the relation of the two nodes, the other seven of McDonald & Chiang 2021, or none.

    The label of a node is that of the arc to its head in a dependency tree, else its category or
    symbol. With ``parent_labels`` above 1 the label of the parent counts as well: there is a row for
    each pair of a child's and a parent's label.

    The vectors are those of RAT-SQL (Wang et al. 2020), shared by the heads, there for labelled
    relations of schemas. The bias is a number per head. GREAT (Hellendoorn et al. 2020) adds a number per
    edge type to logits, there times the sum of the key.

    The Code Transformer (Zügner et al. 2021) adds distances to labels: compose with ``tree_distance``.

    Labels are numbered by their frequency in the training data. Label 0 is an unknown one, such as
    those below ``--source-label-threshold``, and those beyond a table share its last row. In a
    decoder the label of a node is that of its own token, without the slots, and all leaves have one.

    Args:
        site: where the method is built in.
        labels: rows of the tables for labels of children, the unknown one included.
        parent_labels: rows for those of their parents; 1 does not tell parents apart.
        bias: add to the logits.
        keys: add vectors to the keys.
        values: add vectors to the values.

    Attributes:
        bias_rows: [layers, heads, R] with R = 2 * labels * parent_labels + 10, starts at 0: parents
            and children, by the child's and then by the parent's label, and the ten ids of
            :func:`treesyntax.nn.relations.tree_relations`.
        key_table: [layers, R, d].
        value_table: the same.
    """

    paper = "Wang et al. 2020 (RAT-SQL); Hellendoorn et al. 2020 (GREAT), as a bias"
    equation = (
        "softmax(q(k + r_ij)'/sqrt(d) + b_ij) (v + r'_ij), ij by relation and label of the arc, "
        "or labels of child and parent"
    )
    cost = (
        "relation ids once a batch, a table lookup a pair and layer; with vectors two gathers more; "
        "backward a number for each row of the tables, query and head; keep labels times "
        "parent_labels in the hundreds; "
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
        parent_labels: int = 1,
    ) -> None:
        """Raises OptionError for a number of labels out of range or nothing to add."""
        super().__init__(site)
        if min(labels, parent_labels) < 1 or labels * parent_labels > MOST_ROWS:
            raise OptionError(
                "labelled_relation: labels and parent_labels must be 1 or more, their product at most "
                f"{MOST_ROWS}, not {labels} and {parent_labels}"
            )
        if not (bias or keys or values):
            raise OptionError("labelled_relation: bias, keys and values are all off")
        self.labels, self.parent_labels = labels, parent_labels
        size = 2 * labels * parent_labels + len(RELATIONS) + 1
        zeros = nn.Parameter(torch.zeros(site.layers, site.heads, size)) if bias else None
        self.register_parameter("bias_rows", zeros)
        shape = (site.layers, size, site.d_model // site.heads)
        self.make_tables(shape, keys, values)

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """Integers [B, T, T], the rows of the tables.

        Raises OptionError for trees without labels.
        """
        if tree.label is None:
            raise OptionError(
                "labelled_relation needs the labels of nodes, but the data has none; binarize it with "
                "--source-labels (in Python: batch_trees(…, labels=…), TreeCollator(…, node_labels=…))"
            )
        # An arc belongs to its child, so one number a token says the labels at both of its ends.
        above = tree.label.gather(1, tree.parent.clamp(min=0)).clamp(0, self.parent_labels - 1)
        arc = tree.label.clamp(0, self.labels - 1) * self.parent_labels + above
        arc, arcs = tree.at_tokens(arc, 0).short(), self.labels * self.parent_labels

        def ids(rows: slice) -> Tensor:
            relation = tree_relations(tree, rows).short()
            others = relation + 2 * arcs
            row_ids = torch.where(relation == CHILD, arc[:, rows].unsqueeze(2), others)
            return torch.where(relation == PARENT, arc.unsqueeze(1) + arcs, row_ids)

        return by_rows(tree, ids)

    def bias_table(self, layer: int) -> Tensor | None:
        """[H, R]."""
        return None if self.bias_rows is None else self.bias_rows[layer]

"""Learnable tree-relation attention masks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.masks import CAUSAL_RELATIONS, Masks
from treesyntax.nn.pairs import RelationOf
from treesyntax.nn.relations import by_rows, relation_of_pair, tree_relations
from treesyntax.nn.tree_batch import TreeBatch

FORMS = ("exp", "additive")
FORBIDDEN = 80.0
"""Strengths beyond it change nothing: exp(80) leaves no attention. exp(89) is infinite in 32 bits, and
has no gradient."""


@register("relation_mask")
class RelationMask(Injection):
    """Tree relations, each with a learned strength per layer and head.

    ``softmax(QK' / sqrt(d) - exp(sum_m s_m M_m))`` with fixed 0/1 masks M_m and learned s_m,
    initialised to 0 (McDonald & Chiang 2021). A large s forbids a relation, a
    small one leaves it alone. Pairs that no mask covers (special tokens among them) get
    ``-exp(0)``, as in the formula.

    The nine relations partition all pairs, so the sum is one
    table lookup; unions of relations (``up=parent|ancestor``) only change the table.

    Args:
        site: where the method is built in.
        relations: ``all`` nine, or masks such as ``'parent, child, near=left_sibling|self'``,
            over the nine and those of :func:`treesyntax.nn.masks.register_relation`.
        form: ``exp`` is the paper's; ``additive`` adds ``sum_m s_m M_m`` itself to the logits.
        initial: the strengths' start value.
        learned: False freezes the strengths.
        per_layer: False shares the strengths between layers.
        per_head: False shares them between heads.

    Attributes:
        strengths: [layers or 1, heads or 1, masks], in the order of ``masks.names``.
    """

    paper = "McDonald & Chiang 2021"
    equation = "softmax(QK'/sqrt(d) - exp(sum_m s_m M_m))"
    cost = (
        "relation ids once a batch, a table lookup a pair and layer; "
        "a whole step of width 128 took 0.99 times the plain one at 64 tokens, 1.23 at 512"
        " (the price of these lookups)"
    )

    membership: Tensor

    def __init__(
        self,
        site: Site,
        relations: str = "all",
        form: str = "exp",
        initial: float = 0.0,
        learned: bool = True,
        per_layer: bool = True,
        per_head: bool = True,
    ) -> None:
        """Raises OptionError for unknown relations or another form."""
        super().__init__(site)
        if form not in FORMS:
            raise OptionError(f"relation_mask: unknown form {form!r}; it is {' or '.join(FORMS)}")
        self.masks, self.form = Masks.parse(relations), form
        layers, heads = site.layers if per_layer else 1, site.heads if per_head else 1
        start = torch.full((layers, heads, len(self.masks.names)), float(initial))
        self.strengths = nn.Parameter(start, requires_grad=learned)
        self.register_buffer("membership", self.masks.membership(), persistent=False)

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """uint8 [B, T, T]: the relation of the query's node to the key's node."""
        if self.masks.user:
            return self.masks.relation_ids(tree)
        return by_rows(tree, lambda rows: tree_relations(tree, rows))

    def relation_of_pair(self, tree: TreeBatch) -> RelationOf | None:
        """The nine relations can be computed pair by pair, a user's are matrices."""
        return None if self.masks.user else relation_of_pair(tree)

    def leaks_future(self) -> str | None:
        """The nine relations never change as a tree grows; a user's may."""
        open_ones = [name for name in self.masks.user if name not in CAUSAL_RELATIONS]
        if not open_ones:
            return None
        return (
            f"has the relation {open_ones[0]}, which may depend on nodes that come later; if it "
            "does not, register it with causal=True"
        )

    def bias_table(self, layer: int) -> Tensor:
        """[H, R]: what each relation adds to the logits of each head."""
        strengths = self.strengths[layer if len(self.strengths) > 1 else 0]
        # exp(12) is beyond half precision; a matrix product would be in half precision under autocast.
        strengths = strengths.to(torch.promote_types(strengths.dtype, torch.float32)).unsqueeze(2)
        summed = (strengths * self.membership.to(strengths.dtype)).sum(1)
        table = -summed.clamp(max=FORBIDDEN).exp() if self.form == "exp" else summed
        return table.expand(self.site.heads, -1)

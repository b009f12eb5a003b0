"""Relative random walk probabilities."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Site, register
from treesyntax.nn.relations import QueriedTrees
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.nn.vectors import PairVectors
from treesyntax.nn.walks import landing_probabilities


@register("random_walk_pairs")
class RandomWalkPairs(PairVectors):
    """Vectors of pairs, linear in the probabilities to walk from one node to the other.

    ``P_ij = [I, M, …, M^(k - 1)]_ij`` with ``M = D^-1 A`` of the tree is what GRIT feeds as relative
    random walk probabilities (Ma et al. 2023). Here, as in GRIT, they give a bias to each head's
    logits and a vector to the values, ``b_h P_ij`` and ``W_V P_ij``. With ``keys``, not in GRIT,
    they give one to the keys as well, ``q_i (k_j + W_K P_ij)``, as of Shaw et al. (2018).

    GRIT also multiplies the sum of query and key by a projection of P_ij, takes signed square roots and
    updates the pairs from layer to layer. It encodes nodes by P_ii (here ``+random_walk``). None of
    that is built.

    Pairs in which a token has no node have zeros. All heads share the vectors, no layers do.

    Args:
        site: where the method is built in.
        powers: number k of powers, that of I included.
        bias: add to the logits.
        keys: add vectors to the keys.
        values: add vectors to the values.

    Attributes:
        bias_weight: [layers, heads, powers], starts at 0.
        key_table: [layers, powers, d].
        value_table: the same.
    """

    paper = "Ma et al. 2023 (GRIT), its RRWP"
    equation = "softmax(qk'/sqrt(d) + b P_ij) (v + W_V P_ij), P_ij = [I, M, …, M^(k-1)]_ij"
    cost = (
        "k numbers a pair, n x n x k and not n x n x d, made once a batch in O(k n^2); per layer two "
        "products with them a head; a whole step of width 128 with all three parts took "
        "1.1 times the plain one at 64 tokens and 1.9 times at 512"
    )

    bias_weight: nn.Parameter | None

    def __init__(
        self,
        site: Site,
        powers: int = 8,
        bias: bool = True,
        keys: bool = False,
        values: bool = True,
    ) -> None:
        """Raises OptionError for fewer than 2 powers or nothing to add."""
        super().__init__(site)
        if powers < 2:
            raise OptionError(f"random_walk_pairs: powers must be 2 or more, not {powers}")
        if not (bias or keys or values):
            raise OptionError("random_walk_pairs: bias, keys and values are all off")
        self.powers = powers
        zeros = nn.Parameter(torch.zeros(site.layers, site.heads, powers)) if bias else None
        self.register_parameter("bias_weight", zeros)
        shape = (site.layers, powers, site.d_model // site.heads)
        self.make_tables(shape, keys, values)

    def leaks_future(self) -> str:
        """Where a walk can go changes with each new node."""
        return "walks over nodes that come later"

    def pair_features(self, tree: TreeBatch) -> Tensor:
        """[B, powers, T, T], the queries' rows alone of :class:`QueriedTrees`."""
        rows = tree.rows if isinstance(tree, QueriedTrees) else slice(None)
        dtype = next(self.parameters()).dtype
        return landing_probabilities(tree, self.powers, rows, dtype)

    def bias_table(self, layer: int) -> Tensor | None:
        """[H, powers]."""
        return None if self.bias_weight is None else self.bias_weight[layer]

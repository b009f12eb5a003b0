"""Rotary positions of tokens."""

from __future__ import annotations

from treesyntax.nn.injection import Site, register
from treesyntax.nn.rotary import Rotary


@register("rotary")
class RotaryPosition(Rotary):
    """Queries and keys turned by their token's position, in place of absolute positions.

    Channels 2i and 2i + 1 of every head turn by ``position * base^(-2i / d)``, so that
    ``(R_i q_i)'(R_j k_j) = q_i' R_(j-i) k_j`` depends on the distance alone (RoPE: Su et al. 2021).
    It needs no tree: the strong sequence baseline. In the paper frequencies are
    fixed and shared by all heads; learned ones are an option of ours.

    Args:
        site: where the method is built in.
        base: of the frequencies, the paper's is 10,000.
        learned: True learns the frequencies, shared by all layers.
        per_head: with learned frequencies, those of each head apart.
    """

    name = "rotary"
    paper = "Su et al. 2021"
    equation = (
        "softmax((R_i q_i)'(R_j k_j) / sqrt(d)), R_t turns channels 2i, 2i+1 by t base^(-2i/d)"
    )
    cost = (
        "a complex product a query and key; no number for a pair; "
        "a whole step of width 128 took 0.87 times the plain one at 64 tokens, 1.06 at 512"
    )
    linearization = "words"
    needs_tree = False

    def __init__(
        self, site: Site, base: float = 10000.0, learned: bool = False, per_head: bool = False
    ) -> None:
        """As its base."""
        super().__init__(site, ["position"], base, learned, per_head)

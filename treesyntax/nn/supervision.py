"""What losses from trees share: some heads of one layer, supervised in training."""

from __future__ import annotations

from torch import Tensor

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Injection, Site

UNREACHABLE = -1000.0
"""Logarithm below which a weight is 0 in every precision; masks are at -4,000 in half precision."""


def out_of_reach(log_attention: Tensor) -> Tensor:
    """Bool of the same shape: pairs that a mask keeps from each other."""
    return log_attention < UNREACHABLE


class HeadLoss(Injection):
    """Base of methods that supervise the attention of the first heads of a layer.

    Args:
        site: where the method is built in.
        layer: which layer, counted from 1.
        heads: how many of its heads, from the first.
        weight: factor of the loss.
    """

    cost = (
        "the weights of a few heads once more in training; a whole step of width 128 took 0.9 to 1.0 "
        "times the plain one at 64 tokens, 1.03 to 1.05 at 512; nothing afterwards"
    )
    training_only = True

    def __init__(self, site: Site, layer: int = 1, heads: int = 1, weight: float = 1.0) -> None:
        """Raises OptionError for numbers out of range."""
        super().__init__(site)
        if not (1 <= layer <= site.layers and 1 <= heads <= site.heads and weight > 0):
            raise OptionError(
                f"a loss from trees takes a layer of 1 to {site.layers}, 1 to {site.heads} heads and "
                f"a weight above 0, not layer={layer}, heads={heads}, weight={weight}"
            )
        self.layer, self.heads, self.weight = layer - 1, heads, weight

    def leaks_future(self) -> str:
        """It is about whole trees."""
        return "supervises attention with the whole tree"

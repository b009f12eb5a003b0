"""The plain sequence baseline."""

from __future__ import annotations

from treesyntax.nn.injection import Injection, register


@register("sequence")
class Sequence(Injection):
    """The Transformer as it is, over the words alone: the baseline of every comparison."""

    paper = "Vaswani et al. 2017"
    equation = "x_t = sqrt(d) E[w_t] + PE_t"
    cost = "none"
    linearization = "words"
    needs_tree = False

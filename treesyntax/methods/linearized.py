"""The linearized-tree baseline."""

from __future__ import annotations

from treesyntax.nn.injection import Injection, register


@register("linearized")
class Linearized(Injection):
    """The Transformer as it is, over the tree written with brackets.

    The structure reaches the model through the tokens only: ``(S (NP the cat ) sleeps )``. This
    is the *Linearized* baseline of McDonald & Chiang 2021.
    """

    paper = "Vinyals et al. 2015; McDonald & Chiang 2021"
    equation = "x = (X … ) tokens; nothing is added"
    cost = "none, but about twice the tokens; a step over as many tokens is the plain one"
    linearization = "bracketed"
    needs_tree = False

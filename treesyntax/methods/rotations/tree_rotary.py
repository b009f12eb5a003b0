"""Rotary encodings of a node's depth, sibling index and place in the sentence."""

from __future__ import annotations

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Site, register
from treesyntax.nn.rotary import COORDINATES, Rotary


@register("tree_rotary")
class TreeRotary(Rotary):
    """Queries and keys turned by coordinates of their node, in place of absolute positions.

    RoPE (Su et al. 2021) on several coordinates: each turns pairs of channels of its own. So a logit
    depends on the differences of depth, of sibling index and of position.

    It is the commuting case of ``TreeRotation`` (Kogkalidis et al. 2024, who build grids in this way).
    The steps of a path can change places, so not every two paths differ. Coordinates of a tree and their
    shares are options of ours; no paper has this model.

    Tokens without a node (end of sentence, padding, start symbol) have depth, branch and preorder
    0, as the root has: no turn. In a decoder depth, branch and position never change as a tree
    grows; preorder numbers do breadth-first, so they are refused there.

    Args:
        site: where the method is built in.
        coordinates: dealt to the pairs of channels in turn, so one that is named twice has twice
            the share: ``depth`` (edges from the root), ``branch`` (index among siblings),
            ``position`` (of the token), ``preorder`` (number of the node). Where a token is a node
            and nodes come depth-first, position and preorder differ by a constant.
        base: of the frequencies of each coordinate.
        learned: True learns the frequencies, shared by all layers.
        per_head: with learned frequencies, those of each head apart.
    """

    name = "tree_rotary"
    paper = "Su et al. 2021, on coordinates of nodes"
    equation = "softmax((R_i q_i)'(R_j k_j) / sqrt(d)), R_t turns by depth_t, branch_t, position_t"
    cost = (
        "a complex product a query and key; no number for a pair; "
        "a whole step of width 128 took 0.89 times the plain one at 64 tokens, 1.02 at 512"
    )

    def __init__(
        self,
        site: Site,
        coordinates: str = "depth, branch, position",
        base: float = 10000.0,
        learned: bool = False,
        per_head: bool = False,
    ) -> None:
        """Raises OptionError for unknown coordinates, or none of a tree."""
        dealt = [name.strip() for name in coordinates.split(",")]
        unknown = next((name for name in dealt if name not in COORDINATES), None)
        if unknown is not None:
            raise OptionError(
                f"tree_rotary: unknown coordinate {unknown!r}; they are {', '.join(COORDINATES)}"
            )
        if set(dealt) == {"position"}:
            raise OptionError("tree_rotary: position alone needs no tree; use the method rotary")
        super().__init__(site, dealt, base, learned, per_head)

    def leaks_future(self) -> str | None:
        """Breadth-first, nodes get other preorder numbers as the tree grows."""
        if "preorder" not in self.coordinates:
            return None
        return "numbers nodes in preorder, which changes as a tree grows; use position instead"

"""Algebraic encodings of nodes: an orthogonal matrix for each path from the root."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import BINARY_FORMS
from treesyntax.nn.devices import full_precision
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.node_maps import Blocks, at_nodes, path_products
from treesyntax.nn.tree_batch import TreeBatch

STARTS = ("rotary", "published", "random")


@register("tree_rotation")
class TreeRotation(Injection):
    """Queries and keys mapped by the product of orthogonal matrices along their node's path.

    ``(P_i q_i)'(P_j k_j) = q_i' (P_i' P_j) k_j`` with ``P_node = P_parent W_branch`` and P_root = 1. What
    two paths have in common cancels, and the logit depends on the path between the two nodes
    (Kogkalidis, Bernardy & Garg 2024, "Algebraic Positional Encodings"). ``W_b = exp(A_b - A_b')``
    is orthogonal by construction.

    As in the paper there is one W for each branch, learned, shared by all layers, in place of absolute
    positions. As in the authors' published program for trees, heads share it, and every W starts as the
    same rotation.

    There its angles are ``10000^(-2 floor(j / 2) / (d / 2))`` for the pairs j = 0, 1, … of channels, so
    two pairs have one angle: that is ``start='published'``. By default all are RoPE's for one position,
    ``10000^(-2 j / d)``.

    Ours: ``block``. The paper's W is a full matrix of a head's width d. A product of d x d for every node,
    and one more for its query and key in every layer, cost more than the attention. Blocks of
    4 do not commute either, at a small price; ``tree_rotation_paper`` has full matrices.

    Left out is the published program's fixed damping of attention by 0.98^(path length), a number for
    each pair, and its maps in the attention from decoder to encoder.

    Tokens without a node (end of sentence, padding, start symbol) are not mapped, as the root is
    not. A decoder can use it: the path of a node never changes as a tree grows, but in factored
    trees (``left``, ``right``), which are refused there.

    Args:
        site: where the method is built in.
        degree: branches with a W of their own; children beyond the last one share it.
        block: width of the blocks of which W consists, 0 for one of the whole head.
        tree: the form in which paths are read: ``lcrs`` (left-child-right-sibling), ``left`` or
            ``right`` (factored binary trees), or ``nary``, the tree itself.
        start: ``rotary`` or ``published`` as above, the same for each branch, or ``random``, other
            rotations for each.
        learned: False keeps W as it starts.
        per_head: a W for each head.

    Attributes:
        generators: [degree, heads or 1, d / block, block, block], A before its transpose is taken off.
    """

    paper = "Kogkalidis, Bernardy & Garg 2024"
    equation = "softmax((P_i q_i)'(P_j k_j) / sqrt(d)), P_node = P_parent W_branch, W_b'W_b = 1"
    cost = (
        "a product of block x block matrices a query and key, and log(depth) a node once a batch; "
        "a whole step of width 128 took 1.08 times the plain one at 64 tokens, 1.35 at 512"
        " (the price of these products); on a GPU, which waits for a matrix exponential, 1.6 times at width 512"
    )
    replaces_positions = True

    def __init__(
        self,
        site: Site,
        degree: int = 2,
        block: int = 4,
        tree: str = "lcrs",
        start: str = "rotary",
        learned: bool = True,
        per_head: bool = False,
    ) -> None:
        """Raises OptionError for sizes or names that do not fit."""
        super().__init__(site)
        width = site.d_model // site.heads
        block = block or width
        for option, value, valid in (
            ("tree", tree, (*BINARY_FORMS, "nary")),
            ("start", start, STARTS),
        ):
            if value not in valid:
                raise OptionError(
                    f"tree_rotation: unknown {option} {value!r}; it is one of {', '.join(valid)}"
                )
        if block < 2 or width % block:
            raise OptionError(
                f"tree_rotation: block must be 0, or at least 2 and a divisor of the {width} "
                f"channels of a head, not {block}"
            )
        least = 2 if tree in BINARY_FORMS else 1
        if degree < least:
            raise OptionError(f"tree_rotation: tree={tree!r} needs degree={least} or more")
        if tree in BINARY_FORMS and degree > least:
            raise OptionError(f"tree_rotation: tree={tree!r} has two branches, so degree=2")
        if start != "random" and not learned:
            raise OptionError(
                f"tree_rotation: with learned=False and start={start!r} no branch differs from "
                "another; give start='random'"
            )
        self.degree, self.tree = degree, tree
        shape = (degree, site.heads if per_head else 1, width // block, block, block)
        begin = _random(shape) if start == "random" else _turns(width, block, start).expand(shape)
        self.generators = nn.Parameter(begin.contiguous(), requires_grad=learned)

    def leaks_future(self) -> str | None:
        """A factored tree puts a node at a depth that depends on its later siblings."""
        if self.tree in ("left", "right"):
            return f"with tree={self.tree!r} depends on later siblings; use lcrs or nary"
        return None

    def branch_matrices(self) -> Tensor:
        """[degree, heads or 1, d / block, block, block]: W of each branch, in 32 bits at least."""
        raw = self.generators.to(torch.promote_types(self.generators.dtype, torch.float32))
        return torch.linalg.matrix_exp(raw - raw.transpose(-1, -2))

    def node_map(self, tree: TreeBatch) -> Blocks:
        """P of the node of each token, the identity where there is none."""
        shaped = BINARY_FORMS[self.tree](tree) if self.tree in BINARY_FORMS else tree
        branch = shaped.branch.clamp(max=self.degree - 1)
        with full_precision(tree.parent.device):
            steps = self.branch_matrices()
            clamped = TreeBatch(shaped.parent, branch, shaped.token_node, check=False)
            products = path_products(clamped, steps)
        unit = torch.eye(steps.shape[-1], dtype=steps.dtype, device=steps.device)
        placed = (tree.token_node >= 0).view(*tree.token_node.shape, 1, 1, 1, 1)
        matrices = at_nodes(products, tree.token_node.clamp(min=0))
        return Blocks(torch.where(placed, matrices, unit)).widened()


def _random(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape) * shape[-1] ** -0.5


def _turns(width: int, block: int, start: str) -> Tensor:
    """[width / block, block, block]: generators of the rotation that is each W at the start."""
    generators = torch.zeros(width // block, block, block)
    for pair in range(block // 2):
        first = torch.arange(width // block) * block + 2 * pair
        if start == "published":
            first = first // 4 * 4
        generators[:, 2 * pair + 1, 2 * pair] = 10000.0 ** (-first / width)
    return generators

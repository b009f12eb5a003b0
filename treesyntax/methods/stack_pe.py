"""Stack tree positional encodings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.batch import TreeBatch
from treesyntax.coordinates import branch_path, left_child_right_sibling
from treesyntax.errors import OptionError
from treesyntax.injection import Injection, Site, register

TREES = ("lcrs", "nary")


@register("stack_pe")
class StackEncoding(Injection):
    """The path from the root as a stack of one-hot branches, weighted and projected.

    A node's encoding is the stack of its last ``depth`` steps, newest first, each a one-hot of
    ``degree`` branches (Shiv & Quirk 2019, Eqs. 1-3). Each of several copies is weighted by its
    own learned p: step l by ``p^l * sqrt(1 - p^2) * sqrt(d_model / 2)`` with ``p = tanh(raw)``
    (section 3.2), and the concatenation, of ``degree * depth * parameters`` numbers, goes
    through a dense layer with bias to d_model. Root and tokens without a node have the empty
    stack, so they get the bias alone.

    The wide vector is never built. The projection of weighted one-hots is a sum of at most
    ``depth`` rows of a table with ``depth * degree`` rows, made once a step.

    Args:
        site: where the method is built in.
        degree: branches n per node. A child beyond the last branch takes the last one.
        depth: steps k of the stack; deeper paths lose the steps nearest the root.
        parameters: number of learned p.
        tree: ``lcrs`` reads paths in the left-child-right-sibling form of the tree, ``nary`` in
            the tree itself.

    Attributes:
        raw: [parameters], p before tanh; starts at U(-a, a) with a = sqrt(3 / parameters), the
            choice of the authors' published implementation.
        projection: linear layer from degree * depth * parameters to d_model, over a depth-major,
            then branch, then parameter layout.
    """

    paper = "Shiv & Quirk 2019"
    equation = "x_t = sqrt(d) E[w_t] + W [p_j^l sqrt((1-p_j^2) d/2) e(branch_l)]_{l,j} + b"
    replaces_positions = True

    def __init__(
        self,
        site: Site,
        degree: int = 2,
        depth: int = 32,
        parameters: int = 32,
        tree: str = "lcrs",
    ) -> None:
        """Raises OptionError for sizes below 1, an unknown tree, or lcrs with degree below 2."""
        super().__init__(site)
        if min(degree, depth, parameters) < 1:
            raise OptionError("stack_pe: degree, depth and parameters must be 1 or more")
        if tree not in TREES:
            raise OptionError(f"stack_pe: unknown tree {tree!r}; it is one of {', '.join(TREES)}")
        if tree == "lcrs" and degree < 2:
            raise OptionError("stack_pe: tree='lcrs' needs degree=2")
        self.degree, self.depth, self.tree = degree, depth, tree
        spread = (3 / parameters) ** 0.5
        self.raw = nn.Parameter(torch.empty(parameters).uniform_(-spread, spread))
        self.projection = nn.Linear(degree * depth * parameters, site.d_model)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def weights(self) -> Tensor:
        """[depth, parameters]: what step l is multiplied by, in float32 at least."""
        p = torch.tanh(self.raw.float() if self.raw.dtype.itemsize < 4 else self.raw)
        levels = torch.arange(self.depth, device=p.device, dtype=p.dtype)
        norm = torch.sqrt((1 - p**2) * self.site.d_model / 2)
        return p ** levels.unsqueeze(1) * norm

    def table(self) -> Tensor:
        """[depth * degree, d_model]: what each (step, branch) adds to the encoding."""
        blocks = self.projection.weight.unflatten(1, (self.depth, self.degree, -1))
        rows = torch.einsum("dlnj,lj->lnd", blocks, self.weights().to(blocks.dtype))
        return rows.flatten(0, 1)

    def node_encoding(self, tree: TreeBatch) -> Tensor:
        """[B, T, d_model]."""
        shaped = left_child_right_sibling(tree) if self.tree == "lcrs" else tree
        path = branch_path(shaped, self.depth)
        levels = torch.arange(self.depth, device=path.device) * self.degree
        empty = self.depth * self.degree
        rows = torch.where(path >= 0, path.clamp(max=self.degree - 1) + levels, empty)
        placed = tree.token_node.clamp(min=0).unsqueeze(2).expand(-1, -1, self.depth)
        rows = rows.gather(1, placed).masked_fill(tree.token_node.unsqueeze(2) < 0, empty)
        table = self.table()
        padded = torch.cat([table, table.new_zeros(1, table.shape[1])])
        encoding = F.embedding_bag(rows.flatten(0, 1), padded, mode="sum", padding_idx=empty)
        return encoding.unflatten(0, rows.shape[:2]) + self.projection.bias

"""Stack tree positional encodings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import BINARY_FORMS, branch_path
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.kernels.subnormal import without_subnormal, without_subnormal_squares
from treesyntax.nn.projection import Projection
from treesyntax.nn.tree_batch import TreeBatch

PROJECTIONS = ("bias", "plain", "none")
NORMS = ("d_model", "none")


@register("stack_pe")
class StackEncoding(Injection):
    """The path from the root as a stack of one-hot branches, weighted and projected.

    A node's encoding is the stack of its last ``depth`` steps, newest first, each a one-hot of
    ``degree`` branches (Shiv & Quirk 2019). Each of several copies is weighted by its own p: step l by
    ``p^l * sqrt(1 - p^2) * sqrt(d_model / 2)`` with ``p = tanh(raw)``. The concatenation, of
    ``degree * depth * parameters`` numbers, goes through a dense layer with bias to d_model.

    Root and tokens without a node have the empty stack, so they get the bias alone. Paths deeper than
    ``depth`` lose the steps nearest the root.

    The wide vector is never built. The projection of weighted one-hots is a sum of at most
    ``depth`` rows of a table with ``depth * degree`` rows, made once a step.
    Weights below 1e-30 and gradients of the projection below 1e-16 count as 0: processors are slow with such numbers.

    Args:
        site: where the method is built in.
        degree: branches n per node. Children beyond the last branch share it.
        depth: steps k of the stack.
        parameters: number of weights p; 0 is the plain stack without weights.
        tree: the form in which paths are read: ``lcrs`` (left-child-right-sibling, the paper's),
            ``left`` or ``right`` (factored binary trees), or ``nary``, the tree itself.
        start: where p begins: ``icecaps`` draws raw from U(-a, a), a = sqrt(3 / parameters), as
            the authors' published implementation does; ``high`` draws p from [0.60, 0.76], as
            later reimplementations do; a number in quotes sets every p.
        learned: False keeps p as it starts.
        norm: ``d_model`` is the factor above, ``none`` leaves the bare powers of p.
        projection: ``bias``, ``plain`` (without bias), or ``none``, for which
            ``degree * depth * parameters`` must be d_model.

    Attributes:
        raw: [parameters], p before tanh.
        projection: linear layer over a depth-major, then branch, then parameter layout.
    """

    paper = "Shiv & Quirk 2019"
    equation = "x_t = sqrt(d) E[w_t] + W [p_j^l sqrt((1-p_j^2) d/2) e(branch_l)]_{l,j} + b"
    cost = (
        "a table of depth * degree rows a step, and a product of one-hot rows with it, once a batch; "
        "a whole step of width 128 took 0.87 times the plain one at 64 tokens, 1.05 at 512"
    )
    replaces_positions = True

    def __init__(
        self,
        site: Site,
        degree: int = 2,
        depth: int = 32,
        parameters: int = 32,
        tree: str = "lcrs",
        start: str = "icecaps",
        learned: bool = True,
        norm: str = "d_model",
        projection: str = "bias",
    ) -> None:
        """Raises OptionError for sizes or names that do not fit."""
        super().__init__(site)
        if min(degree, depth) < 1 or parameters < 0:
            raise OptionError("stack_pe: degree and depth must be 1 or more, parameters 0 or more")
        _check("tree", tree, (*BINARY_FORMS, "nary"))
        _check("norm", norm, NORMS)
        _check("projection", projection, PROJECTIONS)
        if tree in BINARY_FORMS and degree != 2:
            raise OptionError(f"stack_pe: tree={tree!r} has two branches, so degree=2")
        self.degree, self.depth, self.tree, self.norm = degree, depth, tree, norm
        # A parameter without numbers is in no loss, which stops distributed training.
        learned = learned and parameters > 0
        self.raw = nn.Parameter(_start_values(start, parameters), requires_grad=learned)
        width = degree * depth * max(parameters, 1)
        self.projection = None
        if projection != "none":
            self.projection = Projection(width, site.d_model, bias=projection == "bias")
            nn.init.xavier_uniform_(self.projection.weight)
            if self.projection.bias is not None:
                nn.init.zeros_(self.projection.bias)
        elif width != site.d_model:
            raise OptionError(
                f"stack_pe: without a projection degree * depth * parameters = {width} must be "
                f"the model's width {site.d_model}"
            )

    def leaks_future(self) -> str | None:
        """A factored tree puts a node at a depth that depends on its later siblings."""
        if self.tree in ("left", "right"):
            return f"with tree={self.tree!r} depends on later siblings; use lcrs or nary"
        return None

    def weights(self) -> Tensor:
        """[depth, parameters]: what step l is multiplied by, in float32 at least."""
        if not len(self.raw):
            return self.raw.new_ones(self.depth, 1)
        raw = self.raw.float() if self.raw.dtype.itemsize < 4 else self.raw
        p = torch.tanh(raw)
        levels = torch.arange(self.depth, device=p.device, dtype=p.dtype)
        powers = p ** levels.unsqueeze(1)
        if self.norm == "d_model":
            # sqrt(1 - tanh^2) = 1 / cosh, whose gradient stays finite where p is 1 to the last digit.
            powers = powers / torch.cosh(raw.clamp(-40, 40)) * (self.site.d_model / 2) ** 0.5
        return without_subnormal(powers)

    def table(self) -> Tensor:
        """[depth * degree, d_model]: what each (step, branch) adds to the encoding."""
        weights = self.weights()
        if self.projection is None:
            eye = torch.eye(self.depth * self.degree, dtype=weights.dtype, device=weights.device)
            repeated = weights.repeat_interleave(self.degree, 0)
            return (eye.unsqueeze(2) * repeated.unsqueeze(1)).flatten(1)
        projection = without_subnormal_squares(self.projection.weight)
        blocks = projection.unflatten(1, (self.depth, self.degree, -1))
        rows = torch.einsum("dlnj,lj->lnd", blocks, weights.to(blocks.dtype))
        return rows.flatten(0, 1)

    def node_encoding(self, tree: TreeBatch) -> Tensor:
        """[B, T, d_model]."""
        shaped = BINARY_FORMS[self.tree](tree) if self.tree in BINARY_FORMS else tree
        path = branch_path(shaped, self.depth, tree.token_node)
        levels = torch.arange(self.depth, device=path.device) * self.degree
        empty = self.depth * self.degree
        rows = torch.where(path >= 0, path.clamp(max=self.degree - 1) + levels, empty)
        table = self.table()
        # A product of matrices is a third of the time of embedding_bag, whose gradient sorts the rows.
        chosen = rows.new_zeros(*rows.shape[:2], empty + 1, dtype=table.dtype).scatter_(2, rows, 1)
        encoding = chosen[..., :empty] @ table
        bias = None if self.projection is None else self.projection.bias
        return encoding if bias is None else encoding + bias


def _check(option: str, value: str, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise OptionError(f"stack_pe: unknown {option} {value!r}; it is one of {', '.join(valid)}")


def _start_values(start: str, parameters: int) -> Tensor:
    raw = torch.empty(parameters)
    if start == "icecaps":
        spread = (3 / max(parameters, 1)) ** 0.5
        return raw.uniform_(-spread, spread)
    if start == "high":
        return torch.atanh(raw.uniform_(0.60, 0.76))
    try:
        p = float(start)
    except ValueError:
        raise OptionError(
            f"stack_pe: start={start!r} is not icecaps, high or a number in quotes"
        ) from None
    if not -1 < p < 1:
        raise OptionError(f"stack_pe: p must lie between -1 and 1, not {start}")
    return torch.atanh(raw.fill_(p))

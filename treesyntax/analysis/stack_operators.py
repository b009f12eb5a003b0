"""The traversal operators of stack encodings as explicit affine maps (Shiv & Quirk 2019).

A stack of depth k over n branches is a vector of n·k numbers, newest step first. Going down to
child i pushes: ``D_i x = (e_i ; x[:-n])``. Going up pops: ``U x = (x[n:] ; 0_n)``. Every path is
a composition of these, so it is one affine map, and ``U D_i = I`` as long as no step falls off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

UP = -1
"""The step from a node to its parent; steps 0, 1, … go down to that child."""


@dataclass(frozen=True)
class Affine:
    """The map ``x -> matrix @ x + offset`` on stacks [n·k]."""

    matrix: Tensor
    offset: Tensor

    def __call__(self, stacks: Tensor) -> Tensor:
        """Apply to stacks [..., n·k]."""
        return stacks @ self.matrix.T + self.offset

    def after(self, first: Affine) -> Affine:
        """This map after another one."""
        return Affine(self.matrix @ first.matrix, self.matrix @ first.offset + self.offset)


def push(child: int, degree: int, depth: int) -> Affine:
    """D_child: the newest step becomes ``child``, the oldest one is forgotten."""
    size = degree * depth
    offset = torch.zeros(size)
    offset[child] = 1
    return Affine(torch.diag(torch.ones(size - degree), -degree), offset)


def pop(degree: int, depth: int) -> Affine:
    """U: the newest step is taken off, the oldest place becomes empty."""
    size = degree * depth
    return Affine(torch.diag(torch.ones(size - degree), degree), torch.zeros(size))


def walk(steps: Iterable[int], degree: int, depth: int) -> Affine:
    """The composition of the steps of a path, in the order in which they are walked.

    Args:
        steps: children to go down to, or :data:`UP`.
        degree: branches n.
        depth: steps k that a stack remembers.
    """
    size = degree * depth
    total = Affine(torch.eye(size), torch.zeros(size))
    for step in steps:
        operator = pop(degree, depth) if step == UP else push(step, degree, depth)
        total = operator.after(total)
    return total

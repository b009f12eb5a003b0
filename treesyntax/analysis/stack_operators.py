"""The traversal operators of stack encodings (Shiv & Quirk 2019).

A stack of depth k over n branches is a vector of n·k numbers, newest step first. Going down to
child i pushes: ``D_i x = (e_i ; x[:-n])``. Going up pops: ``U x = (x[n:] ; 0_n)``. Both are affine
maps, and ``U D_i`` is the identity as long as no step is forgotten.
"""

from __future__ import annotations

import torch
from torch import Tensor


def push(stacks: Tensor, child: int, degree: int) -> Tensor:
    """D_child of stacks [..., n·k]: ``child`` becomes the newest step, the oldest is forgotten."""
    newest = torch.zeros_like(stacks[..., :degree])
    newest[..., child] = 1
    return torch.cat([newest, stacks[..., :-degree]], dim=-1)


def pop(stacks: Tensor, degree: int) -> Tensor:
    """U of stacks [..., n·k]: the newest step is removed."""
    return torch.cat([stacks[..., degree:], torch.zeros_like(stacks[..., :degree])], dim=-1)

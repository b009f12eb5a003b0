"""A softmax that is not slow over short rows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LANES = 16
"""Numbers of 32 bits that a processor's widest instructions treat at once."""


def softmax(logits: Tensor) -> Tensor:
    """Softmax over the last dimension, [..., K].

    On a CPU, PyTorch computes rows shorter than the widest instructions number by number: a row of 15 takes ten
    times as long as one of 16. Sentences are often that short, so that rows are filled up with what has no chance.
    """
    size = logits.shape[-1]
    if logits.device.type != "cpu" or size >= LANES or torch.compiler.is_compiling():
        return torch.softmax(logits, -1)
    return F.pad(logits, (0, LANES - size), value=-torch.inf).softmax(-1)[..., :size]

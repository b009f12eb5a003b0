"""Mixed precision on a CPU: fairseq's ``--amp`` reaches CUDA alone, and changes nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from fairseq.optim import AMPOptimizer

Criterion = Callable[[Any, Any], tuple[Any, Any, dict[str, Any]]]


def has_bfloat16() -> bool:
    """Whether an x86 processor multiplies numbers in bfloat16 by itself; True of others, which nobody asked."""
    known = torch.cpu.get_capabilities()
    if known.get("architecture") != "x86_64":
        return True
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


def in_mixed_precision(criterion: Criterion, optimizer: Any) -> Criterion:
    """The same loss; with ``--amp`` on a CPU the products of linear layers are of numbers in bfloat16.

    Their sums are of 32 bits, as are attention, norms, losses, parameters and the optimizer. bfloat16 has the
    range of 32 bits, so that no loss is scaled. Models are validated and tested in single precision.

    Args:
        criterion: of a model and a batch.
        optimizer: fairseq's, by whose class it tells what was asked for.
    """
    if not isinstance(optimizer, AMPOptimizer):
        return criterion

    def run(model: Any, sample: Any) -> tuple[Any, Any, dict[str, Any]]:
        on_cpu = next(model.parameters()).device.type == "cpu"
        with torch.autocast("cpu", torch.bfloat16, enabled=on_cpu):
            return criterion(model, sample)

    return run

"""The linear layer of methods that encode nodes."""

from __future__ import annotations

from torch import nn


class Projection(nn.Linear):
    """A linear layer of which a method reads the weight.

    PyTorch's dynamic quantization replaces ``nn.Linear`` by a layer whose weight is no tensor; it leaves other classes.
    """

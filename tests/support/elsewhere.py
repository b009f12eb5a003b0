"""Another device than the CPU, where there is no GPU either.

Tensors are fake: they have shapes, types and a device, but no numbers. An operation between two devices raises, and
so does any number that is read back to the host. PyTorch without CUDA can fake gradients on no other kind of device
than this one, for which it has no kernels here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensor, FakeTensorMode

from treesyntax.nn.tree_batch import TreeBatch

DEVICE = torch.device("lazy", 0)


class Elsewhere(FakeTensorMode):
    """Within it, what :meth:`moved` gave is on another device than what is made without a name of one."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)  # such as constants

    def moved(self, tensor: Tensor) -> Tensor:
        return FakeTensor(self, torch.empty_like(tensor.detach(), device="meta"), DEVICE)

    def moved_model(self, model: nn.Module) -> nn.Module:
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                setattr(module, name, nn.Parameter(self.moved(parameter)))
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, self.moved(buffer))
        return model

    def moved_trees(self, batch: TreeBatch) -> TreeBatch:
        parts = {name: self.moved(tensor) for name, tensor in batch.to_dict().items()}
        return TreeBatch(**parts, check=False)

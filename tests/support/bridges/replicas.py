"""``nn.DataParallel`` on a CPU: torch's own ``replicate``, one thread a replica."""

from __future__ import annotations

import importlib
import threading
from typing import Any
from unittest import mock

import torch
from torch import nn

# The package has a function of this name, which hides the module.
replicate = importlib.import_module("torch.nn.parallel.replicate")


def copied(tensors: Any, devices: list[int], detach: bool = False) -> list[list[torch.Tensor]]:
    """In place of a broadcast to GPUs: a view of each tensor for each replica."""
    return [[one.detach() if detach else one.view_as(one) for one in tensors] for _ in devices]


def part(value: Any, number: int, count: int) -> Any:
    """What a replica gets of an argument: its rows of tensors, also of those in dicts; else all."""
    if isinstance(value, torch.Tensor):
        return value.chunk(count)[number]
    if isinstance(value, dict):
        return {name: part(one, number, count) for name, one in value.items()}
    return value


def in_replicas(model: nn.Module, kwargs: dict[str, Any], count: int = 2) -> list[Any]:
    """The outputs of replicas, each over its own rows."""
    with mock.patch.object(replicate, "_broadcast_coalesced_reshape", copied):
        replicas = replicate.replicate(model, list(range(count)))
    found: list[Any] = [None] * count
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            own = {name: part(value, number, count) for name, value in kwargs.items()}
            found[number] = replicas[number](**own)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found

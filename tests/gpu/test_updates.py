"""The plugin's steps of Adam are fairseq's on a GPU too."""

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq.optim.adam import Adam

from fairseq_plugins.training.updates import in_one_pass, one_pass

FAIRSEQS = getattr(Adam.step, "__wrapped__", Adam.step)


def train(device, step, later=3):
    """Weights after seven steps, with one parameter that learns later."""
    generator = torch.Generator().manual_seed(1)
    sizes = [(5, 3), (7,), (2, 2, 2)]
    weights = [torch.randn(size, generator=generator) for size in sizes]
    parameters = [torch.nn.Parameter(weight.to(device)) for weight in weights]
    optimizer = Adam(parameters, lr=0.01, betas=(0.9, 0.98), weight_decay=0.1)
    for update in range(7):
        for place, parameter in enumerate(parameters):
            gradient = torch.randn(sizes[place], generator=generator) * 10.0**-update
            parameter.grad = None if place == 1 and update < later else gradient.to(device)
        step(optimizer)
    return parameters


def test_adam_is_that_of_fairseq(device):
    taken = []

    def fairseqs(optimizer, closure=None):
        taken.append(optimizer)
        return FAIRSEQS(optimizer, closure)

    torch.testing.assert_close(train(device, in_one_pass(fairseqs)), train(device, FAIRSEQS))
    assert len(taken) == 2  # the first step of each parameter, which makes its moments


def test_steps_read_nothing_back(device):
    weight = torch.nn.Parameter(torch.ones(4, device=device))
    optimizer = Adam([weight], lr=0.1)
    weight.grad = torch.ones_like(weight)
    FAIRSEQS(optimizer)
    try:
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("error")
        one_pass(optimizer)
    finally:
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
    assert (weight < 0.85).all()

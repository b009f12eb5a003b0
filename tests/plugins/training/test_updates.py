"""Updates take the same steps as fairseq's own."""

import copy

import pytest
import torch
from fairseq import utils
from fairseq.optim.adam import Adam
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, MissingMandatoryValue

from fairseq_plugins.training import updates

FAIRSEQS = Adam.step.__wrapped__
"""The step that the plugin has replaced."""


def train(step, betas, decay, eps, count=7):
    """Weights after some steps, with one parameter that learns later and one group that decays less."""
    torch.manual_seed(1)
    sizes = [(5, 3), (7,), (2, 2, 2)]
    parameters = [torch.nn.Parameter(torch.randn(size)) for size in sizes]
    groups = [{"params": parameters[:2]}, {"params": parameters[2:], "weight_decay": 0.0}]
    optimizer = Adam(groups, lr=0.01, betas=betas, eps=eps, weight_decay=decay)
    for update in range(count):
        for place, parameter in enumerate(parameters):
            later = place == 1 and update < 3
            parameter.grad = None if later else torch.randn(parameter.shape) * 10.0**-update
        step(optimizer)
    return parameters, optimizer.state_dict()


@pytest.mark.parametrize("betas", [(0.9, 0.98), (0.9, 0.999)])
@pytest.mark.parametrize(("decay", "eps"), [(0.0, 1e-8), (0.1, 1e-8), (0.1, 0.5)])
def test_adam_is_that_of_fairseq(betas, decay, eps):
    wanted, wanted_state = train(FAIRSEQS, betas, decay, eps)
    found, state = train(updates.in_one_pass(FAIRSEQS), betas, decay, eps)
    torch.testing.assert_close(found, wanted)
    assert state["param_groups"] == wanted_state["param_groups"]
    for one, other in zip(state["state"].values(), wanted_state["state"].values(), strict=True):
        assert one["step"] == other["step"]
        torch.testing.assert_close(one["exp_avg"], other["exp_avg"])
        torch.testing.assert_close(one["exp_avg_sq"], other["exp_avg_sq"])


def test_what_the_kernel_has_not_goes_fairseqs_way():
    seen = []
    step = updates.in_one_pass(lambda self, closure: seen.append(self))
    plain, double = torch.zeros(3, 2), torch.zeros(3, 2, dtype=torch.float64)
    for weights, extra in ((double, {}), (plain, {"amsgrad": True}), (plain.t(), {})):
        parameter = torch.nn.Parameter(weights)
        optimizer = Adam([parameter], **extra)
        moments = {"step": 1, "exp_avg": torch.zeros_like(parameter)}
        optimizer.state[parameter] = {**moments, "exp_avg_sq": copy.copy(moments["exp_avg"])}
        parameter.grad = torch.ones_like(parameter)
        step(optimizer)
        assert seen.pop() is optimizer


def test_a_seed_gives_the_numbers_that_it_always_gave_and_ends_with_its_block():
    before = torch.get_rng_state()
    with utils.set_torch_seed(5):
        found = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(5)
    assert torch.equal(found, torch.rand(3))


def test_options_are_those_that_omegaconf_gives():
    read = updates.read_directly(DictConfig.__getattr__.__wrapped__)
    values = {"yes": True, "number": 1, "rate": 0.5, "name": "adam", "nothing": None, "list": [1]}
    options = OmegaConf.create({**values, "part": values, "other": "${part.number}", "need": "???"})
    for key in (*values, "part", "other"):
        wanted = options[key]
        assert read(options, key) == wanted
        assert type(read(options, key)) is type(wanted)
    options.number = 2  # and no value is kept
    assert read(options, "number") == 2
    with pytest.raises(MissingMandatoryValue):
        read(options, "need")
    OmegaConf.set_struct(options, True)
    with pytest.raises(ConfigAttributeError, match="not in struct"):
        read(options, "absent")

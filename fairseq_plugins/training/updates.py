"""What fairseq does once an update, in less time: Adam, the seed of random numbers, and looking at options.

With small models, whose studies have hundreds of trainings, all together are a fifth of an update on a CPU. On a GPU
fairseq's Adam launches some ten kernels for each parameter, this one two for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from fairseq import utils
from omegaconf import DictConfig
from torch import Tensor
from torch.optim.adamw import adamw


def in_one_pass(fairseq_step: Callable[..., Any]) -> Callable[..., Any]:
    """Take the quicker step of this file where it gives the same."""

    @wraps(fairseq_step)
    def step(self: Any, closure: Callable[[], Any] | None = None) -> Any:
        learning = _learning(self)
        devices = {p.device for _, p in learning}
        if len(devices) == 1 and all(_is_plain(group, p, self.state[p]) for group, p in learning):
            return one_pass(self, closure)
        return fairseq_step(self, closure)

    return step


def one_pass(self: Any, closure: Callable[[], Any] | None = None) -> Any:
    """Do the step of fairseq's Adam by PyTorch's kernel that goes through each parameter once.

    fairseq's formula is theta - a sqrt(1 - b2^t)/(1 - b1^t) m / (sqrt(v) + e), PyTorch's has sqrt(v / (1 - b2^t)) + e
    below the line (Kingma & Ba 2015, Algorithm 1 and the end of section 2): the same with e / sqrt(1 - b2^t).
    """
    loss = None if closure is None else closure()
    for group in self.param_groups:
        beta1, beta2 = group["betas"]
        by_age: dict[int, list[Tensor]] = defaultdict(list)
        for parameter in group["params"]:
            if parameter.grad is not None:
                by_age[self.state[parameter]["step"]].append(parameter)
        for age, parameters in by_age.items():
            states = [self.state[parameter] for parameter in parameters]
            with torch.no_grad():
                adamw(
                    parameters,
                    [p.grad for p in parameters if p.grad is not None],
                    [state["exp_avg"] for state in states],
                    [state["exp_avg_sq"] for state in states],
                    [],
                    _ages(parameters, age),
                    fused=True,
                    amsgrad=False,
                    beta1=beta1,
                    beta2=beta2,
                    lr=group["lr"],
                    weight_decay=group["weight_decay"],
                    eps=group["eps"] / (1 - beta2 ** (age + 1)) ** 0.5,
                    maximize=False,
                )
            for state in states:
                state["step"] = age + 1
    return loss


def _ages(parameters: list[Tensor], age: int) -> list[Tensor]:
    """The steps that are done, a number for each parameter and beside it: the kernel adds one to each."""
    device = parameters[0].device
    return [*torch.full((len(parameters),), float(age), device=device).unbind()]


def _learning(optimizer: Any) -> list[tuple[dict[str, Any], Tensor]]:
    groups = optimizer.param_groups
    return [(group, p) for group in groups for p in group["params"] if p.grad is not None]


def _is_plain(group: dict[str, Any], parameter: Tensor, state: dict[str, Any]) -> bool:
    """Whether a parameter and its moments, which its first step makes, are float32 beside each other, on a CPU or GPU."""
    if not state or group.get("amsgrad"):
        return False
    tensors = (parameter, parameter.grad, state["exp_avg"], state["exp_avg_sq"])
    return all(
        x is not None
        and (x.dtype, x.layout) == (torch.float32, torch.strided)
        and x.device.type in ("cpu", "cuda")
        and x.is_contiguous()
        for x in tensors
    )


def seeding_a_cpu(fairseq_seed: Callable[..., None]) -> Callable[..., None]:
    """Queue no seed for a GPU where there is none, with the place in the code that asked for it."""

    @wraps(fairseq_seed)
    def seed_all(self: Any, seed: int) -> None:
        if torch.cuda.is_available():
            fairseq_seed(self, seed)
        else:
            self.rng_state = utils.get_rng_state()
            torch.default_generator.manual_seed(seed)

    return seed_all


def read_directly(omegaconf_getattr: Callable[..., Any]) -> Callable[..., Any]:
    """Return a section or a plain value of the options at once, and leave all else to omegaconf.

    fairseq reads 70 options an update, and omegaconf looks each time for rules, references and missing values.
    """

    @wraps(omegaconf_getattr)
    def getattr_(self: Any, key: str) -> Any:
        content = self.__dict__.get("_content")
        node = content.get(key) if type(content) is dict else None
        if type(node) is DictConfig:
            if type(node.__dict__["_content"]) is dict:
                return node
        elif node is not None:
            value = node.__dict__.get("_val", node)
            if type(value) in (bool, int, float) or (type(value) is str and not {*"$?"} & {*value}):
                return value
        return omegaconf_getattr(self, key)

    return getattr_

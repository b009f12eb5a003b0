"""U and D_i on stacks."""

from collections.abc import Iterable

import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from treesyntax.analysis.tree_nodes import pop, push


def stack_of(steps: Iterable[int], degree: int, depth: int) -> Tensor:
    stack = torch.zeros(degree * depth)
    for step in steps:
        stack = push(stack, step, degree)
    return stack


def test_the_oldest_step_is_what_is_forgotten():
    full = stack_of([1, 0, 1], 2, 3)
    returned = pop(push(full, 0, 2), 2)
    assert torch.equal(returned[:4], full[:4])
    assert returned[4:].eq(0).all()
    assert full[4:].tolist() == [0, 1]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 2), max_size=8), st.integers(1, 5))
def test_a_path_pushes_its_steps(steps, depth):
    assert stack_of(steps, 3, depth).tolist() == oracles.stack(steps, 3, depth)

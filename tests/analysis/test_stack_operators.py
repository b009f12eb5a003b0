"""U and D_i as affine maps."""

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.analysis.stack_operators import UP, pop, push, walk


@pytest.mark.parametrize(("degree", "depth"), [(2, 3), (3, 3), (4, 1)])
def test_going_up_undoes_going_down_while_nothing_is_forgotten(degree, depth):
    for child in range(degree):
        round_trip = pop(degree, depth).after(push(child, degree, depth))
        remembered = degree * (depth - 1)
        expected = torch.diag(torch.tensor([1.0] * remembered + [0.0] * degree))
        assert torch.equal(round_trip.matrix, expected)
        assert round_trip.offset.eq(0).all()
        stack = torch.zeros(degree * depth)
        stack[:remembered] = torch.rand(remembered)
        assert torch.equal(round_trip(stack), stack)


def test_the_oldest_step_is_what_is_forgotten():
    full = walk([1, 0, 1], 2, 3)(torch.zeros(6))
    returned = walk([0, UP], 2, 3)(full)
    assert torch.equal(returned[:4], full[:4])
    assert returned[4:].eq(0).all()
    assert full[4:].tolist() == [0, 1]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 2), max_size=8), st.integers(1, 5))
def test_a_path_is_one_affine_map_that_pushes_its_steps(steps, depth):
    found = walk(steps, 3, depth)(torch.zeros(3 * depth))
    assert found.tolist() == oracles.stack(steps, 3, depth)


def test_the_map_from_one_node_to_another_does_not_depend_on_where_it_is_applied():
    """From any left child to its right sibling: U, then D_1."""
    to_sibling = walk([UP, 1], 2, 4)
    for prefix in ([], [0], [1, 0]):
        left = walk([*prefix, 0], 2, 4)(torch.zeros(8))
        right = walk([*prefix, 1], 2, 4)(torch.zeros(8))
        assert torch.equal(to_sibling(left), right)


def test_golden_stack():
    """n = k = 3: z = D_1 y for y = root -> 0 -> 2, and U z = y."""
    y = walk([0, 2], 3, 3)(torch.zeros(9))
    z = push(1, 3, 3)(y)
    assert y.tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert z.tolist() == [0, 1, 0, 0, 0, 1, 1, 0, 0]
    assert torch.equal(pop(3, 3)(z), y)

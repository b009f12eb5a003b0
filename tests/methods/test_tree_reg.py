"""TreeReg, against its formula written as loops over spans and splits in double precision."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import trees
from torch import Tensor

from treesyntax.model.composition import Composition
from treesyntax.nn.injection import LayerStates, Site
from treesyntax.nn.tree_batch import batch_trees
from treesyntax.testing.methods import TREES, make_encoder, make_sentences
from treesyntax.trees.formats import parse_tree
from treesyntax.trees.tree import Tree

SITE = Site(d_model=12, heads=3, layers=1)


def states_of(h: Tensor) -> LayerStates:
    """For a loss that is about what a layer gives alone."""
    return LayerStates(torch.empty(0), lambda heads: torch.empty(heads), h)


def norm_apart(x: Tensor, y: Tensor) -> Tensor:
    return (x - (x @ y) / (y @ y) * y).norm()


def slow_loss(tree: Tree, nodes: list[int], h: Tensor) -> Tensor:
    """Of the states [T, d] of tokens with these nodes."""

    def chain(token: int) -> list[int]:
        above = [nodes[token]]
        while tree.parents[above[-1]] >= 0:
            above.append(int(tree.parents[above[-1]]))
        return above

    total = h.sum() * 0
    for top in range(len(tree)):
        under = [token for token in range(len(nodes)) if top in chain(token)]
        if len(under) < 3 or under != [*range(under[0], under[-1] + 1)]:
            continue
        first, last = under[0], under[-1]
        # Below which child of the node a token is: two tokens part where that differs.
        part = {
            token: chain(token)[chain(token).index(top) - 1]
            for token in under
            if nodes[token] != top
        }
        scores, right = [], []
        for b in range(first, last):
            score = norm_apart(h[b + 1], h[b]) + norm_apart(h[last], h[b])
            if first > 0:
                score = score + norm_apart(h[b], h[first - 1])
            if last + 1 < len(h):
                score = score + norm_apart(h[last + 1], h[last])
            scores.append(score)
            right.append(part.get(b, -1) != part.get(b + 1, -1))
        if any(right):
            shares = torch.stack(scores).softmax(0)
            total = total - shares[torch.tensor(right)].sum().log()
    return total


@settings(deadline=None, max_examples=15)
@given(
    forest=st.lists(trees(max_nodes=12), min_size=1, max_size=3),
    words=st.booleans(),
    left_pad=st.booleans(),
    data=st.data(),
)
def test_values_and_gradients_are_those_of_the_formula(forest, words, left_pad, data):
    leaves = [[node for node, below in enumerate(tree.children()) if not below] for tree in forest]
    rows = leaves if words else [data.draw(st.permutations(range(len(tree)))) for tree in forest]
    width = max(map(len, rows)) + 1
    batch = batch_trees(forest, rows, width, left_pad)
    h = torch.randn(len(forest), width, 12, dtype=torch.float64, requires_grad=True)
    (method,) = Composition("tree_reg(heads=2, weight=0.7)", SITE).methods
    mine = method.loss(0, states_of(h), batch)
    slow = h.sum() * 0
    for row, (tree, nodes) in enumerate(zip(forest, rows, strict=True)):
        start = width - len(nodes) if left_pad else 0
        slow = slow + 0.7 * slow_loss(tree, nodes, h[row, start : start + len(nodes), :8])
    torch.testing.assert_close(mine, slow, rtol=1e-9, atol=1e-9)
    gradients = (torch.autograd.grad(loss, h)[0] for loss in (mine, slow))
    torch.testing.assert_close(*gradients, rtol=1e-7, atol=1e-9)


def test_states_that_keep_a_phrase_apart_cost_less():
    """he (is (very happy)): each word of the phrase turned away from what comes before it, or not."""
    tree = parse_tree("(S he (VP is (AP very happy)))", "ptb")
    batch = batch_trees([tree], [tree.word_nodes()])
    (method,) = Composition("tree_reg", SITE).methods
    apart, alike = torch.zeros(2, 1, 4, 12)
    apart[0, :, :4] = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0.1]])
    alike[0, :, :4] = torch.tensor([[1.0, 0, 0, 0], [1, 0.1, 0, 0], [1, 0.2, 0, 0], [0, 0, 0, 1]])
    losses = [method.loss(0, states_of(h), batch) for h in (apart, alike)]
    assert losses[0] < losses[1]


def test_equal_and_empty_states_give_finite_gradients():
    tree = parse_tree("(S he (VP is (AP very happy)))", "ptb")
    (method,) = Composition("tree_reg", SITE).methods
    for h in (torch.ones(1, 4, 12), torch.zeros(1, 4, 12), torch.ones(1, 1, 12)):
        nodes = [tree.word_nodes()[: h.shape[1]]]
        loss = method.loss(0, states_of(h.requires_grad_()), batch_trees([tree], nodes))
        loss.backward()
        assert loss.isfinite()
        assert h.grad.isfinite().all()


@pytest.mark.parametrize("layer", [1, 2])
def test_it_is_about_what_the_layer_gives(layer):
    encoder = make_encoder(f"tree_reg(layer={layer})", dropout=0.0).train()
    given = []
    encoder.layers[layer - 1].register_forward_hook(lambda _, __, output: given.append(output))
    tokens, batch = make_sentences(TREES)
    loss = encoder.encode(tokens, batch).loss
    method = encoder.injections["tree_reg"]
    again = method.loss(layer - 1, states_of(given[0]), batch)
    assert torch.equal(loss, again)
    assert loss > 0


def test_training_lowers_it():
    encoder = make_encoder("tree_reg(heads=4, layer=2)", dropout=0.0).train()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.03)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        losses.append(encoder.encode(*make_sentences(TREES)).loss)
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.8 * losses[0]

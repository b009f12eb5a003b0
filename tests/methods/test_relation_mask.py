"""Strengths of relations, against the paper's masks pair by pair."""

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, expect_attention
from support.strategies import trees

from treesyntax.errors import OptionError
from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import Site
from treesyntax.nn.masks import Masks, register_relation
from treesyntax.nn.pairs import total_bias
from treesyntax.nn.relations import NO_RELATION, RELATIONS
from treesyntax.trees.tree import Tree

SITE = Site(d_model=8, heads=2, layers=3)


def composition(strengths=None):
    built = Composition("relation_mask", SITE).double()
    if strengths is not None:
        built["relation_mask"].strengths.data.copy_(strengths)
    return built


def bias_of(built, tree, layer):
    (term,) = built.relate(batch_of([tree]))(layer)
    like = torch.empty(1, 2, term.ids.shape[1], 4, dtype=built["relation_mask"].strengths.dtype)
    return total_bias([term], like)[0]


@settings(deadline=None, max_examples=20)
@given(
    st.lists(trees(max_nodes=8), min_size=1, max_size=2),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from(["", "form='additive'", "per_layer=False", "per_head=False"]),
)
def test_attention_and_its_gradients_are_those_of_nine_dense_masks(forest, left_pad, layer, option):
    """The paper's formula, pair by pair and mask by mask: ``- exp(sum_m s_m M_m)``."""
    built = Composition(f"relation_mask({option})", SITE).double()
    strengths = built["relation_mask"].strengths

    def logit(row, head, i, j, product):
        s = strengths[layer if len(strengths) > 1 else 0]
        s = s[head if len(s) > 1 else 0]
        real = max(i, j) < len(forest[row])
        held = oracles.relation(forest[row], i, j, i, j) if real else None
        summed = sum(s[m] * (name == held) for m, name in enumerate(RELATIONS))
        return product + (summed if "additive" in option else -torch.exp(summed))

    batch, sizes = batch_of(forest, left_pad), [len(tree) + 1 for tree in forest]
    expect_attention(built, batch, sizes, left_pad, logit, layer)


def test_uncovered_pairs_stay_at_minus_one_whatever_is_learned():
    built = composition(torch.full((3, 2, 9), 2.0))
    table = built["relation_mask"].bias_table(1)
    assert table[:, NO_RELATION].eq(-1).all()
    assert torch.allclose(table[:, :NO_RELATION], -torch.tensor(2.0).double().exp())


def test_strengths_are_per_layer_and_head():
    """Set one strength of one head of one layer, and see just that in the bias."""
    strengths = torch.zeros(3, 2, 9, dtype=torch.float64)
    strengths[1, 1, RELATIONS.index("parent")] = 1.5
    built = composition(strengths)
    tree = Tree([-1, 0, 0], ["a", "b", "c"])
    for layer in range(3):
        changed = (bias_of(built, tree, layer) != -1).nonzero().tolist()
        assert changed == ([[1, 0, 1], [1, 0, 2]] if layer == 1 else [])


@settings(deadline=None, max_examples=20)
@given(
    trees(max_nodes=8),
    st.sampled_from(["exp", "additive"]),
    st.sampled_from(
        ["parent, child", "up=parent|ancestor, parent, all_left=left_sibling|left_other"]
    ),
)
def test_overlapping_masks_equal_their_dense_sum(tree, form, relations):
    built = Composition(f"relation_mask(relations={relations!r}, form={form!r})", SITE).double()
    covers = [mask.rpartition("=")[2].split("|") for mask in relations.split(", ")]

    def logit(_, head, i, j, product):
        held = oracles.relation(tree, i, j, i, j) if max(i, j) < len(tree) else None
        s = built["relation_mask"].strengths[2, head]
        summed = sum(s[mask] * (held in cover) for mask, cover in enumerate(covers))
        return product + (-torch.exp(summed) if form == "exp" else summed)

    expect_attention(built, batch_of([tree]), [len(tree) + 1], False, logit, layer=2)


@pytest.mark.usefixtures("same_depth")
def test_a_relation_from_a_python_function_overlaps_the_nine():
    built = Composition("relation_mask(relations='left_sibling, level=same_depth')", SITE)
    built["relation_mask"].strengths.data[:] = torch.tensor([2.0, 3.0])
    tree = Tree([-1, 0, 1, 0, 3], list("abcde"))
    summed = (-bias_of(built, tree, 0)[0]).log().detach()
    assert summed[1, 3] == pytest.approx(5)
    assert summed[3, 1] == pytest.approx(3)
    assert summed[2, 4] == pytest.approx(3)
    assert summed[0, 1] == pytest.approx(0)
    assert summed[5, 5] == pytest.approx(0)


@pytest.mark.parametrize(
    ("options", "shape", "learned"),
    [
        ("", (3, 2, 9), True),
        ("per_layer=False", (1, 2, 9), True),
        ("per_head=False, learned=False, initial=1", (3, 1, 9), False),
        ("relations='self, parent'", (3, 2, 2), True),
    ],
)
def test_strengths_shared_frozen_or_started_elsewhere(options, shape, learned):
    method = Composition(f"relation_mask({options})", SITE)["relation_mask"]
    assert method.strengths.shape == shape
    assert method.strengths.requires_grad is learned
    assert method.strengths.eq(1.0 if "initial" in options else 0.0).all()
    assert all(method.bias_table(layer).shape[0] == 2 for layer in range(3))


@pytest.mark.parametrize("name", ["parent", "same depth", "all"])
def test_names_that_a_relation_cannot_have(name):
    with pytest.raises(OptionError, match="cannot be named"):
        register_relation(name)


def test_a_relation_is_not_replaced_by_another_of_its_name(same_depth):
    with pytest.raises(OptionError, match="cannot be named 'same_depth': it is taken"):
        register_relation("same_depth")(lambda tree: tree.token_node >= 0)


def test_more_user_relations_than_fit(monkeypatch):
    monkeypatch.setattr("treesyntax.nn.masks.USER_RELATIONS", {f"r{i}": None for i in range(5)})
    with pytest.raises(OptionError, match="5 user relations; at most 4"):
        Masks.parse("a=r0|r1|r2|r3|r4")


@pytest.mark.parametrize("strength", [12.0, 89.0, 1e4])
@pytest.mark.parametrize("half", [False, True])
def test_strengths_beyond_any_number_have_gradients(strength, half):
    built = composition().float()
    torch.nn.init.constant_(built["relation_mask"].strengths, strength)
    q, k, v = (torch.randn(1, 2, 4, 4) for _ in range(3))
    with torch.autocast("cpu", torch.float16, enabled=half):
        (term,) = built.relate(batch_of([Tree([-1, 0, 0], list("abc"))]))(0)
        assert term.bias.dtype == torch.float32
        attend(q, k, v, None, [term]).sum().backward()
    assert built["relation_mask"].strengths.grad.isfinite().all()


def test_autocast_leaves_the_bias_its_digits():
    built = composition(torch.randn(3, 2, 9)).float()
    exact = built["relation_mask"].bias_table(1)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(built["relation_mask"].bias_table(1), exact)

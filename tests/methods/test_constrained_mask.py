"""Attention to chosen relations, against loops over nodes and softmax over what is visible."""

import math

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, first_column, stored
from support.strategies import trees

from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import Site
from treesyntax.nn.tree_batch import collate
from treesyntax.trees.tree import Tree

SITE = Site(d_model=12, heads=3, layers=2)
RELATIONS = ("ancestors", "descendants", "siblings", "left_siblings", "right_siblings", "stack")
PARTS = st.tuples(st.sampled_from((*RELATIONS, "all")), st.sampled_from((None, 1, 2, 5)))
VIEWS = st.lists(st.lists(PARTS, min_size=1, max_size=3), min_size=1, max_size=3)


def steps(tree: Tree, relation: str, query: int, key: int) -> int | None:
    """Steps from the query to the key if the key is that to it, straight from the docstring."""
    above, below = oracles.ancestors(tree, query), oracles.ancestors(tree, key)
    siblings = above and below and above[0] == below[0] and query != key
    apart = int(tree.branches[query]) - int(tree.branches[key])
    complete = {node for node in range(key + 1, len(tree)) if key in oracles.ancestors(tree, node)}
    left_of_path = key < query and query not in complete and bool(below) and below[0] in above
    holds = {
        "ancestors": key in above,
        "descendants": query in below,
        "siblings": siblings,
        "left_siblings": siblings and key < query,
        "right_siblings": siblings and key > query,
        "stack": key in above or left_of_path,
        "all": True,
    }
    if not holds[relation]:
        return None
    return abs(apart) if "siblings" in relation else sum(oracles.steps(tree, query, key))


def visible(tree: Tree, view: list, query: int, key: int) -> bool:
    if query == key or max(query, key) >= len(tree):  # itself, or a token without a node
        return True
    found = ((steps(tree, relation, query, key), most) for relation, most in view)
    return any(far is not None and (most is None or far <= most) for far, most in found)


def spec_of(views: list) -> str:
    """Limits are left out where a relation takes none."""
    texts = (
        "|".join(r if m is None or r in ("stack", "all") else f"{r}<={m}" for r, m in view)
        for view in views
    )
    return f"constrained_mask(views='{', '.join(texts)}')"


def without_needless_limits(views: list) -> list:
    return [[(r, None if r in ("stack", "all") else m) for r, m in view] for view in views]


@settings(deadline=None, max_examples=50)
@given(st.lists(trees(max_nodes=12), min_size=1, max_size=3), VIEWS, st.booleans())
def test_attention_is_a_softmax_over_what_is_visible(forest, views, left_pad):
    views, method = without_needless_limits(views), Composition(spec_of(views), SITE)
    batch = batch_of(forest, left_pad)
    rows, width = batch.token_node.shape
    generator = torch.Generator().manual_seed(rows * width)
    shape = (3, rows, 3, width, 4)
    ours = torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
    slow = ours.detach().clone().requires_grad_()
    real = torch.zeros(rows, 1, 1, width, dtype=torch.bool)
    for row, tree in enumerate(forest):
        start = first_column(tree, width, left_pad)
        real[row, ..., start : start + len(tree) + 1] = True
    attended = attend(*ours, real, method.relate(batch)(1))
    total, wanted = 0.0, 0.0
    for row, tree in enumerate(forest):
        start = first_column(tree, width, left_pad)
        for head in range(3):
            view = views[head % len(views)]
            for i in range(len(tree) + 1):
                keys = [j for j in range(len(tree) + 1) if visible(tree, view, i, j)]
                at = [start + j for j in keys]
                q, k, v = (part[row, head] for part in slow)
                weights = torch.softmax(k[at] @ q[start + i] / math.sqrt(4), 0)
                expected = weights @ v[at]
                found = attended[row, head, start + i]
                torch.testing.assert_close(found, expected)
                total, wanted = total + found.square().sum(), wanted + expected.square().sum()
    total.backward()
    wanted.backward()
    torch.testing.assert_close(ours.grad, slow.grad)


def test_tokens_of_one_node_see_each_other():
    """Subwords that are copies of their word's node."""
    tree = Tree([-1, 0, 0], list("abc"))
    method = Composition("constrained_mask(views='ancestors')", SITE)["constrained_mask"]
    ids = method.relation_ids(collate([stored(tree, [0, 1, 1, 2])], 5))[0]
    assert ids.tolist() == [
        [1, 0, 0, 0, 1], [1, 1, 1, 0, 1], [1, 1, 1, 0, 1], [1, 0, 0, 1, 1], [1] * 5
    ]  # fmt: skip


def test_the_stack_holds_ancestors_and_what_is_complete_below_them():
    #        0
    #    1       4
    #  2   3   5   6
    tree = Tree([-1, 0, 1, 1, 0, 4, 4], list("abcdefg"))
    method = Composition("constrained_mask(views='stack')", SITE)["constrained_mask"]
    ids = method.relation_ids(batch_of([tree]))[0, :7, :7]
    assert [row.nonzero().flatten().tolist() for row in ids] == [
        [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 4], [0, 1, 4, 5], [0, 1, 4, 5, 6]
    ]  # fmt: skip


def test_other_biases_do_not_make_what_is_masked_visible():
    """A strength that forbids all that a head sees leaves it with that, not with the rest."""
    composition = Composition("constrained_mask(views='ancestors')+relation_mask", SITE)
    torch.nn.init.constant_(composition["relation_mask"].strengths, 30.0)
    batch = batch_of([Tree([-1, 0, 0, 0], list("abcd"))])
    q, k, v = torch.randn(3, 1, 3, 5, 4)
    v = torch.eye(5, 5).expand(1, 3, 5, 5)
    weights = attend(q, k, v, None, composition.relate(batch)(0))
    assert weights[..., 1, [2, 3]].eq(0).all()
    assert weights.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_masks_as_well(dtype):
    composition = Composition("constrained_mask(views='ancestors')", SITE).to(dtype)
    batch = batch_of([Tree([-1, 0, 0], list("abc"))])
    q, k = torch.randn(2, 1, 3, 4, 4).to(dtype) * 10
    v = torch.eye(4, dtype=dtype).expand(1, 3, 4, 4)
    weights = attend(q, k, v, None, composition.relate(batch)(0))
    assert weights[..., 1, 2].eq(0).all()
    assert weights[..., 0, [1, 2]].eq(0).all()


@settings(deadline=None, max_examples=20)
@given(st.lists(trees(max_nodes=12), min_size=1, max_size=3), VIEWS)
def test_the_id_of_a_pair_is_the_stored_one(forest, views):
    method = Composition(spec_of(views), SITE)["constrained_mask"]
    batch = batch_of(forest)
    ids, relation_of = method.relation_ids(batch).long(), method.relation_of_pair(batch)
    b, i, j = (
        one.flatten() for one in torch.meshgrid(*map(torch.arange, ids.shape), indexing="ij")
    )
    assert torch.equal(relation_of(b, i, j).long(), ids.flatten())


def test_absolute_positions_may_be_left_out():
    assert not Composition("constrained_mask", SITE).replaces_positions
    assert Composition("ast_trans_mask(absolute=False)", SITE).replaces_positions

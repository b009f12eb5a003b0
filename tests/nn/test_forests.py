"""Several trees in one row: each is what it is alone, and they do not see each other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import constituency_trees

from treesyntax.errors import TreeError
from treesyntax.model.composition import Composition
from treesyntax.nn.coordinates import in_one_tree, root
from treesyntax.nn.injection import METHODS
from treesyntax.nn.relations import path_lengths
from treesyntax.nn.tree_batch import TreeBatch, batch_trees
from treesyntax.testing.methods import (
    EOS,
    SITE,
    TREES,
    a_tree_is_the_same_beside_another,
    make_encoder,
)
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

FIRST = Tree([-1, 0, 1, 1, 0], list("abcde"))
SECOND = Tree([-1, 0, 0], list("fgh"))
ROW = [-1, 0, 1, 2, 3, 4, -1, 5, 6, 7, -1]
"""Two trees, each token a node, between tokens without one."""
MASKS = ("constrained_mask", "hierarchical_accumulation", "transformer_grammar")
"""Methods that hide what they do not name."""
LABELS = {"a": 1, "f": 2, "g": 3}


def forest() -> TreeBatch:
    return batch_trees([[FIRST, SECOND]], [ROW], labels=LABELS)


def test_the_nodes_of_a_forest_are_numbered_through():
    batch = batch_trees([[FIRST, SECOND], SECOND, [], [None, [SECOND]]], labels=LABELS)
    parents = [[-1, 0, 1, 1, 0, -1, 5, 5], [-1, 0, 0], [], [-1, 0, 0]]
    assert batch.parent.tolist() == [row + [-1] * (8 - len(row)) for row in parents]
    assert batch.branch[0].tolist() == [0, 0, 0, 1, 1, 0, 0, 1]
    assert batch.label is not None
    assert batch.label[0].tolist() == [1, 0, 0, 0, 0, 2, 3, 0]
    assert batch.token_node[0].tolist() == [*range(8)]
    assert batch.token_node[2].tolist() == [-1] * 8


def test_what_is_no_list_of_trees_is_refused():
    with pytest.raises(ValueError, match=r"a tree for each row, not one tree; give \[tree\]"):
        batch_trees(FIRST)  # type: ignore[arg-type]
    with pytest.raises(TreeError, match="a str is no tree; give a Tree, such as parse_tree"):
        batch_trees(["(S a)"])  # type: ignore[list-item]
    with pytest.raises(
        ValueError, match="tree 0: the node of token 0 is none of its 8 nodes but 8"
    ):
        batch_trees([[FIRST, SECOND]], [[8]])


@settings(deadline=None, max_examples=60)
@given(st.lists(constituency_trees(), min_size=1, max_size=4))
def test_relations_and_paths_stay_within_a_tree(trees: list[Tree]):
    batch = batch_trees([trees])
    parents, width = batch.parent[0].tolist(), batch.parent.shape[1]

    def above(node: int) -> list[int]:
        return [node, *above(parents[node])] if node >= 0 else []

    lengths, joined = path_lengths(batch)[0], in_one_tree(batch)[0]
    for i in range(width):
        assert root(batch)[0, i] == above(i)[-1]
        for j in range(width):
            common = {*above(i)} & {*above(j)}
            assert joined[i, j] == bool(common)
            wanted = len({*above(i)} ^ {*above(j)}) if common else -1
            assert lengths[i, j] == wanted


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_pair_of_two_trees_is_one_in_which_a_token_has_no_node(name: str):
    batch, methods = forest(), Composition(name, SITE)
    (method,) = methods.eval().methods
    first, second = slice(1, 6), slice(7, 10)
    ids, features = method.relation_ids(batch), method.pair_features(batch)
    if features is not None:
        assert not features[..., first, second].any()
        assert not features[..., second, first].any()
    if ids is None or name == "relative_position":
        return
    across = torch.cat([ids[0, first, second].flatten(), ids[0, second, first].flatten()])
    if name in MASKS:
        table = method.bias_table(0)
        assert table is not None
        assert (table[:, across.long()] < -1e30).all()
    else:
        assert (across == ids[0, 6, 2]).all()  # of a token without a node
        assert ids[0, 6, 2] == ids[0, 2, 6]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("linearization", ["bracketed_twice", "bracketed", "preorder"])
def test_each_tree_has_a_stack_of_its_own(linearization: str, backwards: bool):
    """Over brackets, with and without a mark between trees, whichever tree's tokens come first."""
    read, trees = get_linearization(linearization), [FIRST, SECOND, TREES[0]]
    starts = [0, len(FIRST), len(FIRST) + len(SECOND)]
    (method,) = Composition("transformer_grammar", SITE).methods
    rows, owner = [-1], [-1]
    for number in reversed(range(3)) if backwards else range(3):
        nodes = read.token_nodes(trees[number])
        rows += [starts[number] + node for node in nodes] + [-1] * number
        owner += [number] * len(nodes) + [-1] * number
    together = method.relation_ids(batch_trees([trees], [rows]))
    owners = torch.tensor(owner)
    for number, tree in enumerate(trees):
        here = owners == number
        row = [node - starts[number] if one == number else -1
               for node, one in zip(rows, owner, strict=True)]  # fmt: skip
        alone = method.relation_ids(batch_trees([tree], [row]))
        for queries in (here, owners < 0):  # tokens without a node see the tree as they did
            assert torch.equal(together[0][queries][:, here], alone[0][queries][:, here])
        assert not together[0][here][:, (owners >= 0) & ~here].any()


@pytest.mark.parametrize("view", ["other_trees", "siblings|all", "ancestors|other_trees"])
def test_trees_see_each_other_where_a_view_says_so(view: str):
    (method,) = Composition(f"constrained_mask(views='{view}')", SITE).methods
    ids = method.relation_ids(forest())
    assert ids is not None
    assert ids[0, 1:6, 7:10].all()
    assert ids[0, 7:10, 1:6].all()
    assert bool(ids[0, 2, 5]) == ("all" in view)  # siblings are no ancestors


@pytest.mark.parametrize("name", sorted(METHODS))
def test_relations_pair_by_pair_are_those_of_all_pairs(name: str):
    (method,), batch = Composition(name, SITE).methods, forest()
    of_pair, ids = method.relation_of_pair(batch), method.relation_ids(batch)
    if of_pair is None or ids is None:
        return
    at = torch.arange(len(ROW))
    singly = of_pair(torch.zeros_like(at)[:, None], at[:, None], at[None])
    assert torch.equal(singly, ids[0].to(singly.dtype))


@pytest.mark.parametrize(
    "spec",
    [
        "stack_pe(tree='left')",
        "stack_pe(tree='nary', degree=4)",
        "tree_rotation(tree='right')",
        "tree_rotary(coordinates='preorder, branch')",
        "labelled_relation(keys=True, values=True, parent_labels=3)",
        "constrained_mask(views='stack, siblings<=1|descendants')",
        "laplacian(vectors=20)",
    ],
)
def test_options_keep_trees_apart_as_defaults_do(spec: str):
    a_tree_is_the_same_beside_another(spec)


@pytest.mark.parametrize("spec", ["relation_mask+stack_pe", "laplacian+tree_rotation+up_down"])
@pytest.mark.parametrize("left_pad", [False, True])
def test_a_forest_beside_other_rows_is_what_it_is_alone(spec: str, left_pad: bool):
    encoder, width = make_encoder(spec), len(ROW) + 3
    tokens = torch.full((2, width), 1)
    columns = slice(3, None) if left_pad else slice(0, len(ROW))
    tokens[0, columns] = torch.arange(4, 4 + len(ROW))
    tokens[1] = EOS
    mixed = batch_trees([[FIRST, SECOND], TREES[0]], [ROW, range(8)], width, left_pad)
    beside = encoder(tokens, mixed).memory[0, columns]
    alone = encoder(tokens[:1, columns], batch_trees([[FIRST, SECOND]], [ROW])).memory[0]
    torch.testing.assert_close(beside, alone, atol=1e-5, rtol=1e-4)

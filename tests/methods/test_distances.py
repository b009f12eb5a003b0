"""Vectors by distances of tokens and of depths, against a vector for every pair."""

import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import expect_same, stored
from support.strategies import dependency_trees

from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import Site
from treesyntax.nn.tree_batch import TreeBatch, collate

SITE = Site(d_model=8, heads=2, layers=2)
METHODS = ("relative_position", "relative_depth")


def built(spec):
    torch.manual_seed(0)
    composition = Composition(spec, SITE).double()
    for parameter in composition.parameters():
        torch.nn.init.normal_(parameter)
    return composition


def expected_vectors(method, layer, head, distances, side):
    """The vector of every pair by the paper's definition, [T, T, d]; none for None."""
    table = getattr(method, f"{side}_table")
    rows = torch.zeros(len(distances), len(distances), 4, dtype=torch.float64)
    if table is None:
        return rows
    table = table[layer][head] if table.dim() == 4 else table[layer]
    for i, row in enumerate(distances):
        for j, distance in enumerate(row):
            if distance is not None:
                rows[i, j] = table[min(max(distance, -method.clip), method.clip) + method.clip]
    return rows


def distances_of(name, tree, width):
    if name == "relative_position":
        return [[j - i for j in range(width)] for i in range(width)]
    depths = [int(tree.depths[node]) for node in tree.word_nodes()] + [None]
    return [[None if None in (a, b) else b - a for b in depths] for a in depths]


@settings(deadline=None, max_examples=25)
@given(
    dependency_trees(max_words=7),
    st.sampled_from([*METHODS, "relative_position+relative_depth"]),
    st.sampled_from(["", "keys=False", "values=False", "per_head=True"]),
    st.integers(1, 3),
)
def test_values_and_gradients_are_those_of_the_literal_formula(tree, names, option, clip):
    options = ", ".join([f"clip={clip}", *([option] if option else [])])
    composition = built("+".join(f"{name}({options})" for name in names.split("+")))
    width = len(tree) + 1
    batch = collate([stored(tree, tree.word_nodes())], width)
    terms_of = composition.relate(batch)
    inputs = torch.randn(3, 1, 2, width, 4, dtype=torch.float64, requires_grad=True)
    q, k, v = inputs
    for layer in range(2):
        found, wanted = attend(q, k, v, None, terms_of(layer)), []
        for head in range(2):
            sides = [
                sum(
                    expected_vectors(method, layer, head, distances_of(name, tree, width), side)
                    for name, method in composition.items()
                )
                for side in ("key", "value")
            ]
            wanted.append(
                oracles.attention_with_pair_vectors(q[0, head], k[0, head], v[0, head], *sides)
            )
        expect_same(found[0], torch.stack(wanted), [inputs, *composition.parameters()])


def test_positions_need_no_tree():
    method = built("relative_position(clip=2)")["relative_position"]
    tokens = torch.zeros(3, 4, dtype=torch.long)
    codes = method.relation_ids(TreeBatch.without_trees(tokens))
    assert codes.tolist() == [[[2, 3, 4, 4], [1, 2, 3, 4], [0, 1, 2, 3], [0, 0, 1, 2]]]

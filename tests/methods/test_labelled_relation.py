"""Parents and children by the label of the arc, against loops over pairs of nodes."""

import math

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, encoded, first_column, stored
from support.strategies import trees

from treesyntax.errors import OptionError
from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.growth import GROWING_LINEARIZATIONS, GrowingTrees
from treesyntax.nn.injection import Site
from treesyntax.nn.relations import RELATIONS
from treesyntax.nn.tree_batch import TreeBatch, batch_trees
from treesyntax.testing import check_method
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.symbols import label_table
from treesyntax.trees.tree import Tree

SITE = Site(d_model=8, heads=2, layers=2)
LABELS = 3  # of the 5 that the helper gives, so that some share the last row


def row_of(
    tree: Tree, labels: list[int], parents: int, nodes: tuple[int, int], tokens: tuple[int, int]
) -> int:
    """Straight from the docstring, for the nodes of a query and a key and where their tokens are."""
    query, key = nodes

    def arc(child: int, parent: int) -> int:
        return min(labels[child], LABELS - 1) * parents + min(labels[parent], parents - 1)

    arcs = LABELS * parents
    if max(query, key) >= len(tree):
        return 2 * arcs + 9
    if tree.parents[query] == key:
        return arc(query, key)
    if tree.parents[key] == query:
        return arcs + arc(key, query)
    return 2 * arcs + RELATIONS.index(oracles.relation(tree, *nodes, *tokens))


@settings(deadline=None, max_examples=15)
@given(
    st.lists(trees(max_nodes=10), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
    st.integers(1, 4),
)
def test_attention_with_biases_and_vectors_by_label(forest, left_pad, vectors, parents):
    torch.set_default_dtype(torch.float64)
    try:
        spec = f"labelled_relation(labels={LABELS}, keys={vectors}, values={vectors}, parent_labels={parents})"
        compare(forest, left_pad, Composition(spec, SITE), parents)
    finally:
        torch.set_default_dtype(torch.float32)


def compare(forest: list[Tree], left_pad: bool, composition: Composition, parents: int) -> None:
    for parameter in composition.parameters():
        torch.nn.init.normal_(parameter)
    batch = batch_of(forest, left_pad)
    rows, width = batch.token_node.shape
    ours = torch.randn(3, rows, 2, width, 4, requires_grad=True)
    inputs = ours.detach().clone().requires_grad_()
    real = torch.zeros(rows, 1, 1, width, dtype=torch.bool)
    for row, tree in enumerate(forest):
        start = first_column(tree, width, left_pad)
        real[row, ..., start : start + len(tree) + 1] = True
    attended = attend(*ours, real, composition.relate(batch)(1))
    tables = dict(composition["labelled_relation"].named_parameters())
    slow = {name: one.detach().clone().requires_grad_() for name, one in tables.items()}
    none = torch.zeros(2, 2 * LABELS * parents + 10, 4)
    keys, values = (slow.get(name, none)[1] for name in ("key_table", "value_table"))
    total, wanted = 0.0, 0.0
    for row, tree in enumerate(forest):
        start, size = first_column(tree, width, left_pad), len(tree) + 1
        labels = stored(tree).labels.tolist()
        for head in range(2):
            q, k, v = inputs[:, row, head, start : start + size]
            for i in range(size):
                ids = torch.tensor(
                    [row_of(tree, labels, parents, (i, j), (i, j)) for j in range(size)]
                )
                logits = (k + keys[ids]) @ q[i] / math.sqrt(4) + slow["bias_rows"][1, head, ids]
                expected = torch.softmax(logits, 0) @ (v + values[ids])
                found = attended[row, head, start + i]
                torch.testing.assert_close(found, expected)
                total, wanted = total + found.square().sum(), wanted + expected.square().sum()
    total.backward()
    wanted.backward()
    torch.testing.assert_close(ours.grad, inputs.grad)
    for name, one in tables.items():
        torch.testing.assert_close(one.grad, slow[name].grad)


def test_the_public_check_has_labels():
    check_method("labelled_relation(labels=3, keys=True, values=True, parent_labels=2)")


@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
@settings(deadline=None, max_examples=15)
@given(st.lists(trees(max_nodes=9), min_size=1, max_size=3), st.integers(1, 3))
def test_a_decoder_reads_the_labels_of_its_own_tokens(linearization, forest, parents):
    tokens, symbols = encoded(forest, linearization)
    spec = f"labelled_relation(labels={LABELS}, parent_labels={parents})"
    method = Composition(spec, SITE)["labelled_relation"]
    ids = method.relation_ids(GrowingTrees(symbols, linearization).grow(tokens).tree)
    # Inner nodes by the first symbol with their label; the leaves together are number 1.
    text = [symbol.rpartition("/") for symbol in symbols]
    inner = [label for label, _, slots in text if slots.strip("0R")]
    order = list(dict.fromkeys(inner))
    for row, tree in enumerate(forest):
        leaf = [not children for children in tree.children()]
        labels = [
            1 if leaf[node] else 2 + order.index(tree.labels[node]) for node in range(len(tree))
        ]
        nodes = get_linearization(linearization).token_nodes(tree)
        for i, query in enumerate(nodes):
            for j, key in enumerate(nodes[: i + 1]):
                wanted = row_of(tree, labels, parents, (query, key), (i, j))
                assert ids[row, i + 1, j + 1] == wanted


def test_labels_of_a_target_dictionary():
    """By first occurrence, whatever the slots; leaves together, and nothing for what is no node."""
    symbols = ["<pad>", "S/2", "a/0", "NP/1", "S/1", "b/0", "madeupword0000"]
    assert label_table(symbols).tolist() == [0, 2, 1, 3, 2, 1, 0]
    assert label_table(["a/R", "S/LR", "b/0", "S/L"]).tolist() == [1, 2, 1, 2]


def test_tables_of_earlier_checkpoints_fit():
    method = Composition("labelled_relation(labels=5, keys=True)", SITE)["labelled_relation"]
    assert method.bias_rows.shape == (2, 2, 20)
    assert method.key_table.shape == (2, 20, 4)


def test_labels_matter():
    method = Composition("labelled_relation", SITE)["labelled_relation"]
    first, second = (batch_of([Tree([-1, 0], list(labels))]) for labels in ("ab", "ac"))
    assert not torch.equal(method.relation_ids(first), method.relation_ids(second))


def test_trees_without_labels_are_refused():
    composition = Composition("labelled_relation", SITE)
    batch = batch_of([Tree([-1, 0], list("ab"))])
    bare = TreeBatch(batch.parent, batch.branch, batch.token_node)
    with pytest.raises(OptionError, match="needs the labels of nodes.*--source-labels"):
        composition.relate(bare)


def test_labels_of_trees_in_python():
    """Relations of dependency trees, categories of constituents, one label for words."""
    known = {"nsubj": 1, "S": 2, "<word>": 3}
    dependencies = Tree.from_heads([2, 0], ["she", "runs"], ["nsubj", "root"])
    constituents = Tree([-1, 0, 0], ["S", "she", "runs"], [-1, 0, 1])
    batch = batch_trees([dependencies, constituents], labels=known)
    assert batch.label.tolist() == [[0, 1, -1], [2, 3, 3]]
    assert torch.equal(TreeBatch.from_dict(batch.to_dict()).label, batch.label)
    assert batch_trees([constituents]).label is None
    with pytest.raises(ValueError, match="has a label for each"):
        TreeBatch(batch.parent, batch.branch, batch.token_node, batch.label[:, :1])

"""Random walks and Laplacian eigenvectors, against dense matrices in 64 bits."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, expect_same, first_column
from support.strategies import trees

from treesyntax.errors import OptionError
from treesyntax.methods.encodings import laplacian
from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import Site
from treesyntax.nn.walks import return_probabilities
from treesyntax.trees.tree import Tree

SITE = Site(d_model=8, heads=2, layers=2)
some = settings(deadline=None, max_examples=25)
forests = st.lists(trees(max_nodes=12), min_size=1, max_size=3)


@pytest.fixture(autouse=True)
def _in_64_bits():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def adjacency(tree: Tree) -> torch.Tensor:
    matrix = torch.zeros(len(tree), len(tree))
    for node, parent in enumerate(tree.parents.tolist()):
        if parent >= 0:
            matrix[node, parent] = matrix[parent, node] = 1
    return matrix


def walk(tree: Tree) -> torch.Tensor:
    """M = D^-1 A."""
    matrix = adjacency(tree)
    return matrix / matrix.sum(1, keepdim=True).clamp(min=1)


@some
@given(forests, st.integers(1, 6))
def test_returns_are_the_diagonals_of_even_powers(forest, steps):
    found = return_probabilities(batch_of(forest), steps, torch.float64)
    for row, tree in enumerate(forest):
        power = torch.eye(len(tree))
        for step in range(steps):
            power = power @ walk(tree)
            assert power.diagonal().eq(0).all()
            power = power @ walk(tree)
            torch.testing.assert_close(found[row, : len(tree), step], power.diagonal())


def test_returns_of_a_deep_tree_are_right_with_few_rounds():
    chain = Tree([-1, *range(40)], ["a"] * 41)
    powers = torch.stack([torch.linalg.matrix_power(walk(chain), 2 * m).diagonal() for m in (1, 4)])
    found = return_probabilities(batch_of([chain]), 4, torch.float64)[0]
    torch.testing.assert_close(found[:, [0, 3]].T, powers)


@some
@given(forests, st.booleans(), st.integers(2, 7))
def test_node_encodings_are_projections_of_returns(forest, left_pad, steps):
    """Values and gradients; the model has 64 bits, whatever new tensors have."""
    torch.set_default_dtype(torch.float32)
    method = Composition(f"random_walk(steps={steps})", SITE).double()["random_walk"]
    for parameter in method.parameters():
        torch.nn.init.normal_(parameter)
    found = method.node_encoding(batch_of(forest, left_pad))
    torch.set_default_dtype(torch.float64)
    wanted = torch.zeros_like(found)
    for row, tree in enumerate(forest):
        start = first_column(tree, found.shape[1], left_pad)
        even = [torch.linalg.matrix_power(walk(tree), power) for power in range(2, steps + 1, 2)]
        for node in range(len(tree)):
            features = torch.stack([power[node, node] for power in even])
            weight, bias = method.projection.weight, method.projection.bias
            wanted[row, start + node] = weight @ features + bias
    expect_same(found, wanted, method.parameters())


@some
@given(
    forests,
    st.booleans(),
    st.sampled_from(["", "bias=False", "keys=True", "values=False, keys=True"]),
)
def test_pairs_have_vectors_linear_in_powers(forest, left_pad, off):
    """softmax(q (k + W_K P)' / sqrt(d) + b P) (v + W_V P), by loops over heads and queries."""
    spec = f"random_walk_pairs(powers=4{', ' * bool(off)}{off})"
    torch.set_default_dtype(torch.float32)  # the model has 64 bits, whatever new tensors have
    method = Composition(spec, SITE).double()
    generator = torch.manual_seed(0)
    for parameter in method.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    batch = batch_of(forest, left_pad)
    rows, width = batch.token_node.shape
    inputs = torch.randn(3, rows, 2, width, 4, dtype=torch.float64, generator=generator)
    real = (batch.token_node >= 0)[:, None, None]
    attended = attend(*inputs.requires_grad_(), real, method.relate(batch)(1))
    torch.set_default_dtype(torch.float64)
    tables = dict(method["random_walk_pairs"].named_parameters())
    bias = tables.get("bias_weight", torch.zeros(2, 2, 4))[1]
    keys, values = (tables.get(f"{one}_table", torch.zeros(2, 4, 4))[1] for one in ("key", "value"))
    found, wanted = [], []
    for row, tree in enumerate(forest):
        start = first_column(tree, width, left_pad)
        part = slice(start, start + len(tree))
        powers = [torch.linalg.matrix_power(walk(tree), power) for power in range(4)]
        pairs = torch.stack(powers, 2)
        for head in range(2):
            q, k, v = inputs[:, row, head, part]
            for i in range(len(tree)):
                logits = (k + pairs[i] @ keys) @ q[i] / math.sqrt(4) + pairs[i] @ bias[head]
                wanted.append(torch.softmax(logits, 0) @ (v + pairs[i] @ values))
                found.append(attended[row, head, start + i])
    expect_same(torch.stack(found), torch.stack(wanted), [inputs, *tables.values()])


def laplacian_of(tree: Tree) -> torch.Tensor:
    matrix = adjacency(tree)
    root = matrix.sum(1).clamp(min=1).rsqrt()
    return torch.diag(matrix.any(1).double()) - root[:, None] * matrix * root


@some
@given(forests, st.integers(1, 14))
def test_eigenvectors_span_what_the_first_eigenvalues_span(forest, count):
    found = laplacian.eigenvectors(batch_of(forest), count)
    for row, tree in enumerate(forest):
        size = len(tree)
        most = min(count, size - 1)
        vectors = found[row, :size, :most]
        torch.testing.assert_close(vectors.T @ vectors, torch.eye(most))
        values = torch.linalg.eigvalsh(laplacian_of(tree))[1 : most + 1]
        torch.testing.assert_close(laplacian_of(tree) @ vectors, vectors * values)
        assert found[row, size:].eq(0).all()
        assert found[row, :, most:].eq(0).all()


@some
@given(forests)
def test_eigenvectors_do_not_depend_on_padding_or_the_solver(forest):
    """Also where an eigenvalue comes more than once: those are spaces without vectors."""
    together = laplacian.eigenvectors(batch_of(forest), 6)
    for row, tree in enumerate(forest):
        alone = laplacian.eigenvectors(batch_of([tree]), 6)[0]
        torch.testing.assert_close(together[row, : len(tree)], alone, atol=1e-8, rtol=0)
        first = (together[row].abs() > 2e-3).byte().argmax(0, keepdim=True)
        assert together[row].gather(0, first).ge(0).all()


def slow_eigenvectors(tree: Tree, count: int) -> list[torch.Tensor]:
    """By the rule of the docstring: in each eigenspace, node by node what is left of its projection."""
    values, basis = torch.linalg.eigh(laplacian_of(tree))
    found: list[torch.Tensor] = []
    for value in values[1:]:
        if any(abs(value - other) < 1e-6 for other, _ in found):
            continue
        space = basis[:, (values - value).abs() < 1e-6]
        vectors: list[torch.Tensor] = []
        for node in range(len(tree)):
            left = space @ space[node]
            for vector in vectors:
                left = left - vector * vector[node]
            if len(vectors) < space.shape[1] and left[node] > 1e-6:
                vectors.append(left / left.norm())
        found += [(value, vector) for vector in vectors]
    return [vector for _, vector in found][:count]


@some
@given(forests, st.booleans(), st.integers(1, 6))
def test_node_encodings_are_projections_of_eigenvectors(forest, left_pad, count):
    spec = f"laplacian(vectors={count}, signs='fixed')"
    method = Composition(spec, SITE).double()["laplacian"]
    for parameter in method.parameters():
        torch.nn.init.normal_(parameter)
    found = method.node_encoding(batch_of(forest, left_pad))
    wanted = torch.zeros_like(found)
    for row, tree in enumerate(forest):
        start = first_column(tree, found.shape[1], left_pad)
        vectors = slow_eigenvectors(tree, count)
        for node in range(len(tree)):
            total = method.projection.bias
            for number, vector in enumerate(vectors):
                total = total + method.projection.weight[:, number] * vector[node]
            wanted[row, start + node] = total
    expect_same(found, wanted, method.parameters())


def test_eigenvectors_of_twin_leaves():
    """A star: eigenvalue 0, then 1 for all vectors that sum to 0 over the leaves, then 2."""
    found = laplacian.eigenvectors(batch_of([Tree([-1, 0, 0, 0], list("abcd"))]), 4)[0]
    expected = [[0, 0, 0.5**0.5], [(2 / 3) ** 0.5, 0, -(6**-0.5)],
                [-(6**-0.5), 0.5**0.5, -(6**-0.5)], [-(6**-0.5), -(0.5**0.5), -(6**-0.5)]]  # fmt: skip
    torch.testing.assert_close(found[:4, :3], torch.tensor(expected))
    assert found[:, 3].eq(0).all()


def test_signs_are_random_in_training_alone():
    tree = batch_of([Tree([-1, 0, 1, 1, 0], list("abcde"))] * 4)
    torch.manual_seed(1)
    method = Composition("laplacian(vectors=3)", SITE)["laplacian"]
    torch.nn.init.eye_(method.projection.weight)
    trained = method.node_encoding(tree)
    fixed = method.eval().node_encoding(tree)
    assert torch.equal(trained.abs(), fixed.abs())
    assert not torch.equal(trained, fixed)
    assert torch.equal(fixed, method.node_encoding(tree))
    absolute = Composition("laplacian(vectors=3, signs='absolute')", SITE)["laplacian"]
    absolute.load_state_dict(method.state_dict())
    assert torch.equal(absolute.node_encoding(tree), fixed.abs())


def test_a_tree_too_large_for_a_decomposition_is_refused(monkeypatch):
    monkeypatch.setattr(laplacian, "MOST_NODES", 3)
    with pytest.raises(OptionError, match="a tree of 4 nodes; at most 3"):
        laplacian.eigenvectors(batch_of([Tree([-1, 0, 0, 0], list("abcd"))]), 2)


@pytest.mark.parametrize("spec", ["random_walk", "random_walk_pairs", "laplacian"])
def test_decoders_are_refused(spec):
    assert f"{spec} " in Composition(spec, SITE).leaks_future()

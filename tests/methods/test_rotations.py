"""Maps of queries and keys by node, against products of matrices built node by node."""

import math

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, encoded
from support.strategies import trees
from torch import nn

from treesyntax.model.composition import Composition
from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.attention import attend
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.injection import Site
from treesyntax.trees.tree import Tree

HEADS, WIDTH = 2, 8
SITE = Site(HEADS * WIDTH, HEADS, 2)
few = settings(deadline=None, max_examples=8)
forests = st.lists(trees(max_nodes=9), min_size=1, max_size=2)


def built(spec):
    """The one method of a spec in double precision, away from its start."""
    torch.manual_seed(0)
    (method,) = Composition(spec, SITE).double().methods
    for parameter in method.parameters():
        nn.init.normal_(parameter, std=0.5)
    return method


def block_diagonal(blocks):
    return torch.block_diag(*blocks)


def plane(angle):
    """The rotation of a plane by an angle."""
    cos, sin = torch.cos(angle), torch.sin(angle)
    return torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])])


def path_in(form, tree, node):
    if form in ("left", "right"):
        return oracles.factored_path(tree, node, form)
    return (oracles.lcrs_path if form == "lcrs" else oracles.path)(tree, node)


def path_matrix(method, head, tree, node):
    """W of the first branch times W of the second, and on, straight from the definition."""
    product = torch.eye(WIDTH, dtype=torch.float64)
    for branch in path_in(method.tree, tree, node):
        raw = method.generators[min(branch, method.degree - 1)]
        raw = raw[head if len(raw) > 1 else 0]
        product = product @ block_diagonal([torch.matrix_exp(one - one.T) for one in raw])
    return product


def turning_matrix(method, head, values):
    """RoPE's matrix for a token with these values of the method's coordinates."""
    pairs = WIDTH // 2
    angles = [torch.zeros((), dtype=torch.float64) for _ in range(pairs)]
    for k, owner in enumerate(method.owner.tolist()):
        if method.frequencies is not None:
            rate = method.frequencies[head if len(method.frequencies) > 1 else 0, k]
        else:
            mine = [one for one, other in enumerate(method.owner.tolist()) if other == owner]
            rate = torch.tensor(method.base ** (-mine.index(k) / len(mine)), dtype=torch.float64)
        angles[k % pairs] = angles[k % pairs] + values[method.coordinates[owner]] * rate
    return block_diagonal([plane(angle) for angle in angles])


def coordinates(tree, column):
    if column >= len(tree):
        return {"depth": 0, "branch": 0, "preorder": 0, "position": column}
    depth = len(oracles.ancestors(tree, column))
    branch = int(tree.branches[column])
    return {"depth": depth, "branch": branch, "preorder": column, "position": column}


def expected(method, forest, width):
    """The map of every head, sentence and token, [B, H, T, d, d]."""

    def one(tree, head, column):
        if method.__class__.__name__ != "TreeRotation":
            return turning_matrix(method, head, coordinates(tree, column))
        if column >= len(tree):
            return torch.eye(WIDTH, dtype=torch.float64)
        return path_matrix(method, head, tree, column)

    return torch.stack([
        torch.stack([
            torch.stack([one(tree, head, column) for column in range(width)])
            for head in range(HEADS)
        ]) for tree in forest
    ])  # fmt: skip


SPECS = [
    "tree_rotation",
    "tree_rotation(block=0, tree='nary', degree=3)",
    "tree_rotation(block=2, tree='left', per_head=True)",
    "tree_rotation(block=8, tree='right')",
    "tree_rotation(block=4, tree='nary', degree=2, per_head=True, start='random')",
    "rotary",
    "rotary(base=50.0, learned=True, per_head=True)",
    "tree_rotary",
    "tree_rotary(coordinates='preorder, depth, branch, depth, position', learned=True)",
]


@pytest.mark.parametrize("spec", SPECS)
@few
@given(forest=forests)
def test_attention_and_its_gradients_are_those_of_the_definition(spec, forest):
    method, batch = built(spec), batch_of(forest)
    width = batch.token_node.shape[1]
    mask = torch.tensor([[column <= len(tree) for column in range(width)] for tree in forest])
    mask = mask[:, None, None]
    generator = torch.Generator().manual_seed(1)
    shape = (len(forest), HEADS, width, WIDTH)
    given_ = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(3)
    ]
    leaves = [*given_, *method.parameters()]
    node_map = method.node_map(batch)
    q, k, v = given_
    found = attend(node_map(q), node_map(k), v, mask)

    matrices = expected(method, forest, width)
    mapped_q, mapped_k = ((matrices @ x.unsqueeze(4)).squeeze(4) for x in (q, k))
    logits = torch.einsum("bhid,bhjd->bhij", mapped_q, mapped_k) / math.sqrt(WIDTH)
    wanted = logits.masked_fill(~mask, -math.inf).softmax(3) @ v
    torch.testing.assert_close(found, wanted, atol=1e-9, rtol=1e-9)
    weights = torch.randn(shape, generator=generator, dtype=torch.float64)
    gradients = [
        torch.autograd.grad((one * weights).sum(), leaves, allow_unused=True, retain_graph=True)
        for one in (found, wanted)
    ]
    for mine, theirs in zip(*gradients, strict=True):
        # No path may have a branch: then nothing of the definition holds its matrix.
        theirs = torch.zeros_like(mine) if theirs is None else theirs
        torch.testing.assert_close(mine, theirs, atol=1e-8, rtol=1e-8)


@few
@given(trees(min_nodes=2, max_nodes=12), st.data())
def test_what_two_paths_have_in_common_cancels(tree, data):
    """A tree below other nodes has the same logits among its own."""
    method = built("tree_rotation(tree='nary', degree=12)")
    below = Tree([-1, 0, 0, *(parent + 3 if parent >= 0 else 2 for parent in tree.parents.tolist())],
                 ["a"] * (len(tree) + 3))  # fmt: skip
    q, k = torch.randn(2, 1, HEADS, len(tree), WIDTH, dtype=torch.float64)

    def logits(one, start):
        node_map = method.node_map(batch_of([one])).of(slice(start, start + len(tree)))
        return node_map(q) @ node_map(k).transpose(2, 3)

    torch.testing.assert_close(logits(tree, 0), logits(below, 3), atol=1e-9, rtol=1e-9)


def test_rotary_is_that_of_the_paper():
    """Su et al. 2021, Eq. 34, and a logit that depends on the distance alone."""
    method = built("rotary")
    batch = batch_of([Tree([-1, 0, 0, 0], list("abcd"))])
    x = torch.randn(1, HEADS, 5, WIDTH, dtype=torch.float64)
    found = method.node_map(batch)(x)
    for m in range(5):
        for i in range(WIDTH // 2):
            angle = m * 10000.0 ** (-2 * i / WIDTH)
            first, second = x[0, 1, m, 2 * i], x[0, 1, m, 2 * i + 1]
            turned = found[0, 1, m, 2 * i : 2 * i + 2]
            assert math.isclose(
                turned[0], first * math.cos(angle) - second * math.sin(angle), abs_tol=1e-12
            )
            assert math.isclose(
                turned[1], first * math.sin(angle) + second * math.cos(angle), abs_tol=1e-12
            )
    same = method.node_map(batch)(x[:, :, :1].expand(-1, -1, 5, -1))
    logits = same @ same.transpose(2, 3)
    assert torch.allclose(logits[..., 0, 2], logits[..., 2, 4], atol=1e-12)
    assert not torch.allclose(logits[..., 0, 2], logits[..., 0, 3], atol=1e-3)


def test_every_branch_starts_as_a_turn_by_one_position():
    start = Composition("tree_rotation", SITE).double()["tree_rotation"]
    chain = batch_of([Tree([-1, 0, 1, 2], list("abcd"))])
    by_path = start.node_map(chain).of(slice(0, 4))
    by_position = built("rotary").node_map(chain).of(slice(0, 4))
    x = torch.randn(1, HEADS, 4, WIDTH, dtype=torch.float64)
    torch.testing.assert_close(by_path(x), by_position(x), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("block", [4, 0])
def test_every_branch_may_start_as_in_the_published_program(block):
    """Angles 10000^(-2 (j // 2) / dim) with dim = d / 2, for the pairs j of a head's channels."""
    site = Site(2 * 16, 2, 1)
    method = Composition(f"tree_rotation(start='published', block={block})", site).double()
    matrices = method["tree_rotation"].branch_matrices()
    for branch in matrices[:, 0]:
        whole = torch.block_diag(*branch)
        for j in range(8):
            angle = 10000.0 ** (-2 * (j // 2) / 8)
            turn = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
            pair = slice(2 * j, 2 * j + 2)
            found = whole[pair, pair]
            torch.testing.assert_close(found, torch.tensor(turn).double(), atol=1e-6, rtol=0)
            whole[pair, pair] = 0
        assert whole.abs().max() < 1e-12


@pytest.mark.parametrize("spec", SPECS)
def test_tokens_without_a_node_and_roots_are_not_mapped_by_trees(spec):
    method = built(spec)
    x = torch.randn(2, HEADS, 6, WIDTH, dtype=torch.float64)
    mapped = method.node_map(batch_of([Tree([-1, 0, 1, 1], list("abcd"))] * 2, width=6))(x)
    if "position" not in getattr(method, "coordinates", ""):
        torch.testing.assert_close(mapped[:, :, [0, 4, 5]], x[:, :, [0, 4, 5]])
    assert not torch.allclose(mapped[:, :, 2], x[:, :, 2])


@pytest.mark.parametrize("spec", SPECS)
def test_autocast_and_half_precision_leave_the_maps_their_digits(spec):
    torch.manual_seed(0)
    (method,) = Composition(spec, SITE).methods
    batch = batch_of([Tree([-1, *range(60)], ["a"] * 61)])
    x = torch.randn(1, HEADS, 62, WIDTH)
    plain = method.node_map(batch)(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(method.node_map(batch)(x), plain)
    if not list(method.parameters()):
        mapped = method.half().node_map(batch)(x.half())
        assert mapped.dtype == torch.float16
        torch.testing.assert_close(mapped, method.node_map(batch)(x.half().float()).half())
        torch.testing.assert_close(mapped.float(), plain, atol=5e-3, rtol=5e-3)


def test_maps_follow_one_another_in_the_order_of_the_spec_and_positions_come_last():
    batch = batch_of([Tree([-1, 0, 1, 1], list("abcd"))])
    x = torch.randn(1, HEADS, 5, WIDTH, dtype=torch.float64)
    found = []
    turned = "tree_rotary(coordinates='depth, branch')"
    for spec in (f"tree_rotation+{turned}", f"{turned}+tree_rotation", "rotary+tree_rotation"):
        composition = Composition(spec, SITE).double()
        nn.init.normal_(composition["tree_rotation"].generators, generator=torch.manual_seed(2))
        first, second = (method.node_map(batch) for method in composition.methods)
        first, second = (second, first) if spec.startswith("rotary") else (first, second)
        found.append(composition.node_map(batch)(x))
        assert torch.equal(found[-1], second(first(x)))
        last = composition.node_map(batch, slice(-1, None))(x[:, :, -1:])
        torch.testing.assert_close(last, found[-1][:, :, -1:])
    assert not torch.allclose(*found[:2])


def test_the_cache_holds_mapped_keys_so_a_map_of_all_tokens_is_not_undone_by_more():
    """Each of these would be wrong if a key were mapped anew, or never, as the tree grows."""
    forest = [Tree([-1, 0, 1, 1, 0, 4], list("abcdef"))]
    tokens, symbols = encoded(forest, "nary_bfs")
    chosen = TransformerConfig(16, 32, 2, 2, injection="tree_rotation+tree_rotary")
    decoder = Decoder(chosen, nn.Embedding(len(symbols), 16, 1), False,
                      GrowingTrees(symbols, "nary_bfs"))  # fmt: skip
    trees_of = [decoder.trees.grow(tokens[:, :size]).tree for size in range(1, tokens.shape[1] + 1)]
    x = torch.randn(1, HEADS, 1, WIDTH)
    for column in range(tokens.shape[1]):
        maps = [
            decoder.injections.node_map(tree, slice(column, column + 1))
            for tree in trees_of[column:]
        ]
        assert all(torch.allclose(one(x), maps[0](x), atol=1e-5) for one in maps)


def test_they_compile():
    torch.manual_seed(0)
    spec = "tree_rotation+tree_rotary(learned=True)"
    encoder = Encoder(TransformerConfig(16, 32, 2, 1, dropout=0.0, injection=spec),
                      nn.Embedding(9, 16, 1))  # fmt: skip
    tokens = torch.tensor([[4, 5, 6, 7, 2]])
    batch = batch_of([Tree([-1, 0, 1, 1], list("abcd"))])
    plain = encoder.encode(tokens, batch).memory
    compiled = torch.compile(encoder.encode, backend="aot_eager")(tokens, batch).memory
    torch.testing.assert_close(compiled, plain)
    compiled.sum().backward()
    assert all(one.grad is not None for one in encoder.injections.parameters())

"""What every method promises, tested for each one in the registry and for compositions."""

import copy
import io

import pytest
import torch
from support.helpers import batch_of, stored
from torch import nn

from treesyntax.errors import OptionError
from treesyntax.methods import METHODS
from treesyntax.model.composition import Composition
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.injection import Site
from treesyntax.nn.pairs import PairTerm, total_bias
from treesyntax.nn.relations import QueriedTrees
from treesyntax.nn.tree_batch import collate
from treesyntax.trees.tree import Tree

PADDING = 1
SITE = Site(d_model=16, heads=4, layers=2)
TREES = [
    Tree([-1, 0, 1, 1, 0, 4, 4, 4], list("abcdefgh")),
    Tree([-1, 0, 0], list("abc")),
    Tree([-1], ["a"]),
    Tree([-1, 0, 1, 2, 3], list("abcde")),
]
SPECS = [
    *METHODS,
    "stack_pe+relation_mask",
    "relative_position+relative_depth",
    "stack_pe+relation_mask+relative_depth",
    "rotary+relation_mask",
    "tree_rotation+relative_depth",
    "tree_rotary+tree_rotation+stack_pe",
    "none",
]


def build(spec, **options):
    torch.manual_seed(0)
    settings = TransformerConfig(d_model=16, d_ff=32, heads=4, layers=2, injection=spec, **options)
    encoder = Encoder(settings, nn.Embedding(20, 16, PADDING))
    for name, parameter in encoder.named_parameters():
        if name.startswith("injections"):
            # Away from the start values, at which a method may still be the identity.
            nn.init.normal_(parameter, std=0.3)
    return encoder.eval()


def sentences(trees, left_pad=False, seed=3):
    """Tokens (with a final mark) and trees, padded to one batch."""
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(4, 20, (len(tree) + 1,), generator=generator) for tree in trees]
    width = max(len(row) for row in rows)
    tokens = torch.full((len(rows), width), PADDING)
    for index, row in enumerate(rows):
        start = width - len(row) if left_pad else 0
        tokens[index, start : start + len(row)] = row
    return tokens, batch_of(trees, left_pad)


def real_outputs(encoder, trees, left_pad=False, seed=3):
    tokens, batch = sentences(trees, left_pad, seed)
    memory = encoder.encode(tokens, batch).memory
    return [memory[row][tokens[row] != PADDING] for row in range(len(trees))]


def test_the_empty_composition_is_the_plain_transformer_bit_for_bit():
    plain, empty = build("none"), build("sequence")
    empty.load_state_dict(plain.state_dict(), strict=True)
    tokens, batch = sentences(TREES)
    with_trees = empty.encode(tokens, batch).memory
    assert torch.equal(plain.encode(tokens, None).memory, with_trees)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("left_pad", [False, True])
def test_a_batch_of_one_equals_the_mixed_batch(spec, left_pad):
    encoder = build(spec)
    together = real_outputs(encoder, TREES, left_pad)
    tokens, _ = sentences(TREES)
    for row, tree in enumerate(TREES):
        alone_tokens = tokens[row : row + 1, : len(tree) + 1]
        alone = encoder.encode(alone_tokens, batch_of([tree])).memory[0]
        assert torch.allclose(together[row], alone, atol=1e-5)


@pytest.mark.parametrize("spec", [name for name in METHODS if METHODS[name].needs_tree])
def test_the_tree_matters(spec):
    """The same tokens under another tree give another output."""
    encoder = build(spec)
    tokens, _ = sentences([TREES[0]])
    other = Tree([-1, 0, 1, 2, 3, 4, 5, 6], list("abcdefgh"))
    first = encoder.encode(tokens, batch_of([TREES[0]])).memory
    second = encoder.encode(tokens, batch_of([other])).memory
    assert (first - second).abs().max() > 1e-3


@pytest.mark.parametrize("spec", [name for name in METHODS if METHODS[name].needs_tree])
def test_a_method_without_its_trees_is_refused(spec):
    tokens, _ = sentences(TREES)
    with pytest.raises(OptionError, match=rf"{spec} needs trees.*treesyntax binarize"):
        build(spec).encode(tokens, None)


@pytest.mark.parametrize("spec", SPECS)
def test_the_head_layout(spec):
    """What a method adds for one head of one sentence changes that head of that sentence alone."""
    terms_of = Composition(spec, SITE).relate(batch_of(TREES))
    for term in terms_of(1):
        if term.bias is None:
            continue
        alone = torch.zeros_like(term.bias)
        alone[2] = 1
        ids = term.ids.clone().expand(len(TREES), -1, -1).clone()
        alone[2, int(ids[1, 0, 0])] = 5
        ids[[0, 2, 3]] = (int(ids[1, 0, 0]) + 1) % term.bias.shape[1]
        read = total_bias([PairTerm(ids, alone)], torch.empty(len(TREES), 4, ids.shape[1], 4))
        assert (read == 5).nonzero()[:, :2].unique(dim=0).tolist() == [[1, 2]]
        assert read[:, [0, 1, 3]].eq(0).all()


@pytest.mark.parametrize("spec", METHODS)
@pytest.mark.parametrize("rows", [slice(-1, None), slice(2, 5), slice(0, 0), slice(None)])
@pytest.mark.parametrize("at_once", [1 << 20, 80])
def test_what_some_rows_add_is_computed_for_these_alone(spec, rows, at_once, monkeypatch):
    """As step-by-step decoding does it, for the last row; also where rows come in several parts."""
    monkeypatch.setattr("treesyntax.nn.relations.PAIRS_AT_ONCE", at_once)
    composition = Composition(spec, SITE).eval()
    batch = batch_of(TREES)
    queried = QueriedTrees.of(batch, rows)
    (method,) = composition.methods
    for hook in (method.relation_ids, method.pair_scale):
        every, some = hook(batch), hook(queried)
        assert (every is None) == (some is None)
        if every is not None:
            assert torch.equal(some, every[:, rows])
    every, some = (composition.relate(trees, rows=rows)(0) for trees in (batch, queried))
    for one, other in zip(every, some, strict=True):
        for mine, theirs in ((one.ids, other.ids), (one.scale, other.scale)):
            assert (mine is None) == (theirs is None)
            assert mine is None or torch.equal(mine, theirs)


@pytest.mark.parametrize("spec", SPECS)
def test_the_gradient_reaches_every_parameter(spec):
    encoder = build(spec).train()
    memory = encoder.encode(*sentences(TREES)).memory
    weights = torch.randn(memory.shape, generator=torch.Generator().manual_seed(5))
    (memory * weights).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        if "k_proj.bias" not in name:  # adding a constant to all keys changes no softmax
            assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("spec", SPECS)
def test_saved_equals_loaded(spec):
    encoder = build(spec)
    stream = io.BytesIO()
    torch.save(encoder.state_dict(), stream)
    stream.seek(0)
    fresh = Encoder(encoder.settings, nn.Embedding(20, 16, PADDING)).eval()
    fresh.load_state_dict(torch.load(stream, weights_only=True), strict=True)
    for mine, theirs in zip(real_outputs(fresh, TREES), real_outputs(encoder, TREES), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_agrees_to_tolerance(spec, dtype):
    encoder = build(spec)
    half = copy.deepcopy(encoder).to(dtype)
    pairs = zip(real_outputs(encoder, TREES), real_outputs(half, TREES), strict=True)
    for full, rounded in pairs:
        assert rounded.dtype == dtype
        assert torch.allclose(full, rounded.float(), atol=0.15)


@pytest.mark.parametrize("spec", SPECS)
def test_special_tokens_alone_are_finite(spec):
    """An empty sentence is its end mark alone, with an empty tree."""
    tokens, batch = torch.tensor([[2]]), collate([stored(Tree([], []))], 1)
    assert build(spec).encode(tokens, batch).memory.isfinite().all()


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("rows", "width"), [(0, 5), (2, 0), (0, 0)])
def test_no_sentences_and_no_tokens_give_empty_tensors(spec, rows, width):
    tokens = torch.full((rows, width), 4)
    batch = collate([stored(Tree([], []))] * rows, width, specials=0)
    assert build(spec).encode(tokens, batch).memory.shape == (rows, width, 16)


@pytest.mark.parametrize("spec", SPECS)
def test_double_precision_stays_double(spec):
    torch.set_default_dtype(torch.float64)
    try:
        outputs = real_outputs(build(spec), TREES)
    finally:
        torch.set_default_dtype(torch.float32)
    assert {output.dtype for output in outputs} == {torch.float64}


@pytest.mark.parametrize("spec", SPECS)
def test_training_uses_dropout_and_evaluation_does_not(spec):
    encoder = build(spec, dropout=0.3, attention_dropout=0.3)
    tokens, batch = sentences(TREES)
    assert torch.equal(encoder.encode(tokens, batch).memory, encoder.encode(tokens, batch).memory)
    encoder.train()
    first, second = (encoder.encode(tokens, batch).memory for _ in range(2))
    assert not torch.allclose(first, second)
    assert first.isfinite().all()


@pytest.mark.parametrize("spec", SPECS)
def test_activations_that_are_computed_again_give_the_same_gradients(spec):
    tokens, batch = sentences(TREES)
    gradients = []
    for recompute in (False, True):
        encoder = build(spec, recompute=recompute).train()
        torch.manual_seed(5)
        encoder.encode(tokens, batch).memory.square().sum().backward()
        gradients.append([one.grad for one in encoder.parameters() if one.grad is not None])
    assert all(map(torch.equal, *gradients))


@pytest.mark.parametrize("spec", SPECS)
def test_no_key_of_padding_gets_weight_even_when_all_relations_are_forbidden(spec):
    """Strengths of 20 push every real key to the edge of half precision; padding stays below."""
    encoder = build(spec)
    for name, parameter in encoder.named_parameters():
        if name.startswith("injections"):
            nn.init.constant_(parameter, 20.0)
    encoder = encoder.half()
    tokens, batch = sentences(TREES)
    alone = encoder.encode(tokens[1:2, :4], batch_of(TREES[1:2])).memory[0]
    assert torch.allclose(encoder.encode(tokens, batch).memory[1, :4], alone, atol=2e-2)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("constrained_mask(views='parents')", "unknown relation 'parents' .* are ancestors, desc"),
        ("constrained_mask(views='')", "unknown relation ''"),
        ("constrained_mask(views='siblings<=0')", "'siblings<=0' has no such limit; limits are 1"),
        ("constrained_mask(views='stack<=2')", "stack and all take none"),
        ("constrained_mask(views='all, all, all, all, all')", "5 views, 1 of them diff.* 4 heads"),
        ("depth_sibling(depths=0)", "depths and siblings must be 1 or more"),
        ("parent_scaled(sd=0.0)", "sd must be above 0"),
        ("parent_scaled(ignore=1.0)", "ignore from 0 to below 1"),
        ("parent_scaled(layers=0)", "layers must be 1 to 2, not 0"),
        ("parent_scaled(layers=3)", "layers must be 1 to 2, not 3"),
        ("relation_mask(relations='parents')", "unknown relation 'parents' .* are self, parent"),
        ("relation_mask(relations='parent, parent')", "a mask is defined twice"),
        ("relation_mask(form='sigmoid')", "unknown form 'sigmoid'; it is exp or additive"),
        ("relative_depth(clip=0)", "relative_depth: clip must be 1 or more"),
        ("relative_depth(keys=False, values=False)", "relative_depth: .* leaves nothing"),
        ("relative_position(clip=0)", "relative_position: clip must be 1 or more"),
        ("relative_position(keys=False, values=False)", "relative_position: .* leaves nothing"),
        ("stack_pe(depth=0)", "degree and depth must be 1 or more"),
        ("stack_pe(tree='heap')", "unknown tree 'heap'; it is one of lcrs, left, right, nary"),
        ("stack_pe(degree=1)", "needs degree=2"),
        ("stack_pe(start='low')", "start='low' is not icecaps, high or a number"),
        ("stack_pe(start='1.5')", "p must lie between -1 and 1, not 1.5"),
        ("stack_pe(norm='l2')", "unknown norm 'l2'; it is one of d_model, none"),
        ("stack_pe(projection='wide')", "unknown projection 'wide'"),
        ("stack_pe(projection='none')", "parameters = 2048 must be the model's width 16"),
        ("tree_distance(clip=0)", "clip must be 1 to 253"),
        ("tree_distance(clip=254)", "clip must be 1 to 253"),
        ("up_down(clip=0)", "clip must be 1 to 180"),
        ("up_down(clip=181)", "clip must be 1 to 180"),
    ],
)
def test_arguments_that_cannot_be_built(spec, message):
    with pytest.raises(OptionError, match=message):
        Composition(spec, SITE)

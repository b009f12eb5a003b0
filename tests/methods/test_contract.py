"""What every method promises, tested for each one in the registry and for compositions."""

import pytest
import torch
from reliability.figures import SOAK
from support.helpers import batch_of

from treesyntax.errors import OptionError
from treesyntax.methods import METHODS
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import methods_of
from treesyntax.nn.pairs import PairTerm, total_bias
from treesyntax.nn.relations import QueriedTrees
from treesyntax.testing.methods import (
    PROMISES,
    SITE,
    TREES,
    a_decoder_sees_no_future,
    it_is_ready_for_a_gpu,
    make_encoder,
    make_sentences,
    promises_of,
)

SPECS = [
    *methods_of("encoder"),
    "stack_pe+relation_mask",
    "relative_position+relative_depth",
    "stack_pe+relation_mask+relative_depth",
    "rotary+relation_mask",
    "rotary+relative_position",
    "tree_rotary+relative_depth",
    "tree_rotation+relative_depth",
    "tree_rotary+tree_rotation+stack_pe",
    "none",
]

ELSEWHERE = [name for name in METHODS if name not in SPECS]
KEPT = [
    pytest.param(promise, spec, id=f"{promise.__name__}-{spec}")
    for promise in PROMISES
    for spec in (*SPECS, *ELSEWHERE)
    # tests/model/test_decoder.py has more of what a decoder sees.
    if promise in promises_of(spec)
    and promise is not a_decoder_sees_no_future
    # It takes a second a spec. A method that cannot run on a GPU cannot alone either, so pairs are for make soak.
    and (SOAK or promise is not it_is_ready_for_a_gpu or spec.count("+") != 1)
]


@pytest.mark.parametrize(("promise", "spec"), KEPT)
def test_every_method_keeps_the_promise(promise, spec):
    promise(spec)


def test_the_empty_composition_is_the_plain_transformer_bit_for_bit():
    plain, empty = make_encoder("none"), make_encoder("sequence")
    empty.load_state_dict(plain.state_dict(), strict=True)
    tokens, batch = make_sentences(TREES)
    with_trees = empty.encode(tokens, batch).memory
    assert torch.equal(plain.encode(tokens, None).memory, with_trees)


def test_a_method_without_its_trees_says_where_they_come_from():
    tokens, _ = make_sentences(TREES)
    with pytest.raises(OptionError, match="relation_mask needs trees.*treesyntax binarize"):
        make_encoder("relation_mask").encode(tokens, None)


def terms_with_tables(spec):
    terms = Composition(spec, SITE).relate(batch_of(TREES))(1)
    return [term for term in terms if term.bias is not None and term.ids is not None]


@pytest.mark.parametrize("spec", [spec for spec in SPECS if terms_with_tables(spec)])
def test_the_head_layout(spec):
    """What a method adds for one head of one sentence changes that head of that sentence alone."""
    for term in terms_with_tables(spec):
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
    for hook in (method.relation_ids, method.pair_scale, method.pair_features):
        every, some = hook(batch), hook(queried)
        assert (every is None) == (some is None)
        if every is not None:
            assert torch.equal(some, every[..., rows, :])
    every, some = (composition.relate(trees, rows=rows)(0) for trees in (batch, queried))
    for one, other in zip(every, some, strict=True):
        for part in ("ids", "scale", "features"):
            mine, theirs = getattr(one, part), getattr(other, part)
            assert (mine is None) == (theirs is None)
            assert mine is None or torch.equal(mine, theirs)


@pytest.mark.parametrize("spec", SPECS)
def test_training_uses_dropout_and_evaluation_does_not(spec):
    encoder = make_encoder(spec, dropout=0.3, attention_dropout=0.3)
    tokens, batch = make_sentences(TREES)
    assert torch.equal(encoder.encode(tokens, batch).memory, encoder.encode(tokens, batch).memory)
    encoder.train()
    first, second = (encoder.encode(tokens, batch).memory for _ in range(2))
    assert not torch.allclose(first, second)
    assert first.isfinite().all()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("constrained_mask(views='parents')", "unknown relation 'parents' .* are ancestors, desc"),
        ("constrained_mask(views='')", "unknown relation ''"),
        ("constrained_mask(views='siblings<=0')", "'siblings<=0' has no such limit; limits are 1"),
        ("constrained_mask(views='stack<=2')", "stack, other_trees and all take none"),
        ("constrained_mask(views='all, all, all, all, all')", "5 views, 1 of them diff.* 4 heads"),
        ("depth_sibling(depths=0)", "depths and siblings must be 1 or more"),
        ("labelled_relation(labels=0)", "must be 1 or more, their product at most 16000"),
        ("labelled_relation(labels=200, parent_labels=200)", "at most 16000, not 200 and 200"),
        ("labelled_relation(bias=False)", "bias, keys and values are all off"),
        ("laplacian(vectors=0)", "vectors must be 1 or more"),
        ("laplacian(signs='plus')", "unknown signs 'plus'; they are flip, fixed, absolute"),
        ("parent_scaled(sd=0.0)", "sd must be above 0"),
        ("parent_scaled(ignore=1.0)", "ignore from 0 to below 1"),
        ("parent_scaled(layers=0)", "layers must be 1 to 2, not 0"),
        ("parent_scaled(layers=3)", "layers must be 1 to 2, not 3"),
        ("random_walk(steps=1)", "steps must be 2 or more"),
        ("random_walk_pairs(powers=1)", "powers must be 2 or more"),
        ("random_walk_pairs(bias=False, values=False)", "are all off"),
        ("relation_mask(relations='parents')", "unknown relation 'parents' .* are self, parent"),
        ("relation_mask(relations='parent, parent')", "a mask is defined twice"),
        ("relation_mask(form='sigmoid')", "unknown form 'sigmoid'; it is exp or additive"),
        ("relative_depth(clip=0)", "relative_depth: clip must be 1 or more"),
        ("relative_depth(keys=False, values=False)", "relative_depth: .* leaves nothing"),
        ("relative_position(clip=0)", "relative_position: clip must be 1 or more"),
        ("relative_position(keys=False, values=False)", "relative_position: .* leaves nothing"),
        ("stack_pe(depth=0)", "degree and depth must be 1 or more"),
        ("stack_pe(tree='heap')", "unknown tree 'heap'; it is one of lcrs, left, right, nary"),
        ("stack_pe(degree=1)", "two branches, so degree=2"),
        ("stack_pe(degree=3)", "tree='lcrs' has two branches, so degree=2"),
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

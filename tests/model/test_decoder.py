"""Methods on the decoder, over the tree that the target has grown so far."""

from __future__ import annotations

import copy
import random
from itertools import combinations

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reliability.figures import SOAK
from support.helpers import SPECIALS, encoded
from support.strategies import trees
from torch import nn

from treesyntax.model.bracket_growth import BRACKETS, growing_trees
from treesyntax.model.decoder import Decoder, KVCache
from treesyntax.model.encoder import EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GROWING_LINEARIZATIONS
from treesyntax.nn.injection import METHODS, Site, methods_of
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

linearizations = st.sampled_from(list(GROWING_LINEARIZATIONS))
forests = st.lists(trees(max_nodes=14), min_size=1, max_size=4)
PADDING = 1
SITE = Site(d_model=16, heads=4, layers=2)
CAUSAL = [name for name in methods_of("decoder") if METHODS[name](SITE).leaks_future() is None]
EFFECTIVE = [name for name in CAUSAL if name not in ("sequence", "linearized")]
SINGLES = [(spec, linearization) for spec in CAUSAL for linearization in GROWING_LINEARIZATIONS]
COMPOSITIONS = [
    ("+".join(chosen), list(GROWING_LINEARIZATIONS)[number % len(GROWING_LINEARIZATIONS)])
    for size in (2, 3)
    for number, chosen in enumerate(combinations(EFFECTIVE, size))
    if number % (9 if size == 3 else 1) == 0  # all pairs, and triples that hold every method
][:: 1 if SOAK else 6]
BRACKETED = [(spec, BRACKETS) for spec in CAUSAL if not METHODS[spec].needs_slots]
BRACKETED += [("transformer_grammar+relative_depth", BRACKETS)]
NEXT_SLOT = [
    (f"next_slot:{spec}", linearization) for spec, linearization in SINGLES if "stack_pe" in spec
]
NEXT_SLOT += [
    ("next_slot:depth_sibling+stack_pe+relation_mask", linearization)
    for linearization in GROWING_LINEARIZATIONS
]
EVERYTHING = [*SINGLES, *BRACKETED, *COMPOSITIONS, *NEXT_SLOT]


def random_tree(size, generator):
    parents, path = [], []
    for node in range(size):
        parents.append(path[-1] if path else -1)
        path.append(node)
        del path[generator.randint(1, len(path)) :]
    return Tree(parents, [generator.choice("abc") for _ in parents])


def sample_trees(seed=0, sizes=(9, 7, 1, 4)):
    generator = random.Random(seed)
    return [random_tree(size, generator) for size in sizes]


def build(spec, linearization, symbols, **options):
    """An untrained decoder whose methods are away from their start values."""
    next_slot = spec.startswith("next_slot:")
    torch.manual_seed(0)
    chosen = TransformerConfig(
        d_model=16, d_ff=32, heads=4, layers=2,
        injection=spec.removeprefix("next_slot:"), next_slot=next_slot,
        normalize_before=linearization.endswith("bfs"), **options,  # norms in both places
    )  # fmt: skip
    embedding = nn.Embedding(len(symbols), 16, PADDING)
    decoder = Decoder(chosen, embedding, False, growing_trees(symbols, linearization))
    for name, parameter in decoder.named_parameters():
        if name.startswith(("injections", "next_slot")):
            nn.init.normal_(parameter, std=0.3)
    return decoder.eval()


def source_of(rows):
    generator = torch.Generator().manual_seed(4)
    keep = torch.ones(rows, 5, dtype=torch.bool)
    keep[0, 3:] = False
    return EncoderOutput(torch.randn(rows, 5, 16, generator=generator), keep)


def prepared(spec, linearization, **options):
    tokens, symbols = encoded(sample_trees(), linearization)
    return build(spec, linearization, symbols, **options), tokens, source_of(len(tokens))


def test_compositions_have_every_method_and_every_linearization():
    assert {name for spec, _ in COMPOSITIONS for name in spec.split("+")} == {*EFFECTIVE}
    assert {linearization for _, linearization in COMPOSITIONS} == {*GROWING_LINEARIZATIONS}


@pytest.mark.parametrize(("spec", "linearization"), EVERYTHING)
@torch.no_grad()
def test_step_by_step_equals_teacher_forcing_also_after_reordering(spec, linearization):
    decoder, tokens, source = prepared(spec, linearization)
    full = decoder.decode(tokens, source)
    cache, order = KVCache(), torch.arange(len(tokens))
    for step in range(1, tokens.shape[1] + 1):
        last = decoder.decode(tokens[order, :step], source, cache)
        torch.testing.assert_close(last[:, 0], full[order, step - 1], atol=1e-5, rtol=0)
        if step in (2, 5):
            chosen = torch.tensor([3, 0, 0, 1])
            cache.reorder(chosen)
            source.memory, source.attention_mask = (
                source.memory[chosen],
                source.attention_mask[chosen],
            )
            order = order[chosen]


@torch.no_grad()
def test_steps_beyond_the_rows_that_positions_have_are_those_of_all_at_once():
    """The table of sinusoids grows with the tokens, of which a step computes the last alone."""
    decoder, tokens, source = prepared("sequence", "lcrs_dfs")
    full, cache = decoder.decode(tokens, source), KVCache()
    decoder.embed_positions.table = decoder.embed_positions.table[:3]
    for step in range(1, tokens.shape[1] + 1):
        last = decoder.decode(tokens[:, :step], source, cache)
        torch.testing.assert_close(last[:, 0], full[:, step - 1], atol=1e-5, rtol=0)


@pytest.mark.usefixtures("same_depth")
@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
def test_so_does_a_relation_that_a_user_computes_for_all_pairs(linearization):
    spec = "relation_mask(relations='parent, level=same_depth')"
    test_step_by_step_equals_teacher_forcing_also_after_reordering(spec, linearization)


@pytest.mark.parametrize(("spec", "linearization"), SINGLES + BRACKETED + NEXT_SLOT)
@torch.no_grad()
def test_a_later_target_token_never_changes_an_earlier_output(spec, linearization):
    """Whatever comes later: other trees, ends, symbols that make no tree.

    For compositions the test above says it of the tokens of trees.
    """
    decoder, tokens, source = prepared(spec, linearization)
    before = decoder.decode(tokens, source)
    generator = torch.Generator().manual_seed(1)
    for column in range(1, tokens.shape[1]):
        other = tokens.clone()
        later = (len(tokens), tokens.shape[1] - column)
        other[:, column:] = torch.randint(2, decoder.embed_tokens.num_embeddings, later,
                                          generator=generator)  # fmt: skip
        after = decoder.decode(other, source)
        torch.testing.assert_close(after[:, :column], before[:, :column], atol=1e-5, rtol=0)
    assert (after[:, -1] - before[:, -1]).abs().max() > 1e-3


@pytest.mark.parametrize(("spec", "linearization"), SINGLES + NEXT_SLOT)
@torch.no_grad()
def test_a_batch_of_one_equals_the_mixed_batch(spec, linearization):
    decoder, tokens, source = prepared(spec, linearization)
    together = decoder.decode(tokens, source)
    for row, length in enumerate(tokens.ne(PADDING).sum(1).tolist()):
        own = EncoderOutput(source.memory[row : row + 1], source.attention_mask[row : row + 1])
        alone = decoder.decode(tokens[row : row + 1, :length], own)[0]
        torch.testing.assert_close(alone, together[row, :length], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("spec", "linearization"), SINGLES + NEXT_SLOT)
def test_the_gradient_reaches_every_parameter(spec, linearization):
    decoder, tokens, source = prepared(spec, linearization)
    features = decoder.train().decode(tokens, source)
    weights = torch.randn(features.shape, generator=torch.Generator().manual_seed(5))
    (features * weights).sum().backward()
    for name, parameter in decoder.named_parameters():
        if name.startswith("output_projection"):
            continue
        assert parameter.grad is not None, name
        if "k_proj.bias" not in name:  # adding a constant to all keys changes no softmax
            assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("spec", [*CAUSAL, "next_slot:stack_pe+relation_mask+relative_depth"])
@torch.no_grad()
def test_half_precision_agrees_to_tolerance(spec, dtype):
    decoder, tokens, source = prepared(spec, "lcrs_bfs")
    full = decoder.decode(tokens, source)
    half = copy.deepcopy(decoder).to(dtype)
    source.memory = source.memory.to(dtype)
    rounded = half.decode(tokens, source)
    assert rounded.dtype == dtype
    real = tokens.ne(PADDING)
    torch.testing.assert_close(rounded[real].float(), full[real], atol=0.15, rtol=0)


@pytest.mark.parametrize("spec", [name for name in EFFECTIVE if METHODS[name].needs_tree])
@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
@torch.no_grad()
def test_the_grown_tree_matters(spec, linearization):
    """Tables whose symbols have other slots give other outputs for the same tokens."""
    decoder, tokens, source = prepared(spec, linearization)
    before = decoder.decode(tokens, source)
    decoder.trees.counts.copy_(torch.where(decoder.trees.counts >= 0, 1, -1))
    decoder.trees.branches[4:, 0] = 0
    assert (decoder.decode(tokens, source) - before).abs().max() > 1e-3


@torch.no_grad()
def test_a_decoder_without_methods_is_the_plain_one_bit_for_bit():
    tokens, symbols = encoded(sample_trees(), "lcrs_dfs")
    torch.manual_seed(0)
    plain = Decoder(TransformerConfig(d_model=16, d_ff=32, heads=4, layers=2),
                    nn.Embedding(len(symbols), 16, PADDING)).eval()  # fmt: skip
    empty = build("sequence", "lcrs_dfs", symbols)
    assert list(plain.state_dict()) == list(empty.state_dict())
    source = source_of(len(tokens))
    assert torch.equal(plain.decode(tokens, source), empty.decode(tokens, source))


def nodes_of(tree, linearization):
    return get_linearization(linearization).token_nodes(tree)


@settings(deadline=None, max_examples=15)
@given(forests, linearizations, st.sampled_from(["lcrs", "nary"]))
@torch.no_grad()
def test_stack_encodings_are_those_of_the_tree_and_start_and_root_have_the_bias(
    forest, linearization, form
):
    tokens, symbols = encoded(forest, linearization)
    degree = 3 if form == "nary" else 2
    spec = f"stack_pe(tree={form!r}, degree={degree}, depth=4, parameters=2)"
    decoder = build(spec, linearization, symbols)
    method = decoder.injections["stack_pe"]
    encoding = decoder.injections.encode(decoder.trees.grow(tokens).tree)
    p = torch.tanh(method.raw).tolist()
    path = oracles.lcrs_path if form == "lcrs" else oracles.path
    for row, tree in enumerate(forest):
        steps = [
            [],
            *(
                [min(step, degree - 1) for step in path(tree, n)]
                for n in nodes_of(tree, linearization)
            ),
        ]
        stacks = torch.tensor([oracles.weighted_stacks(each, degree, 4, p, 16) for each in steps])
        expected = method.projection(stacks)
        torch.testing.assert_close(encoding[row, : len(steps)], expected, atol=1e-5, rtol=1e-5)
        assert torch.equal(encoding[row, 0], method.projection.bias)


@settings(deadline=None, max_examples=15)
@given(forests, linearizations)
@torch.no_grad()
def test_the_next_slot_has_the_encoding_of_the_node_that_fills_it(forest, linearization):
    tokens, symbols = encoded(forest, linearization)
    decoder = build("next_slot:stack_pe+relation_mask", linearization, symbols)
    assert list(decoder.next_slot) == ["stack_pe"]
    method = decoder.next_slot["stack_pe"]
    assert method.raw is not decoder.injections["stack_pe"].raw
    of_nodes = method.node_encoding(decoder.trees.grow(tokens).tree)
    of_slots = method.node_encoding(decoder.trees.grow(tokens).next_slots)
    for row, tree in enumerate(forest):
        found, expected = of_slots[row, : len(tree)], of_nodes[row, 1 : len(tree) + 1]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        assert torch.equal(of_slots[row, len(tree)], method.projection.bias)


def test_positions_are_left_out_where_a_method_takes_their_place():
    symbols = [*SPECIALS, "a/0"]
    for spec, positions, wanted in (
        ("stack_pe", "auto", False),
        ("stack_pe", "absolute", True),
        ("relation_mask", "auto", True),
        ("relation_mask", "none", False),
    ):
        decoder = build(spec, "nary_dfs", symbols, positions=positions)
        assert (decoder.embed_positions is not None) is wanted


@pytest.mark.parametrize(("spec", "linearization"), SINGLES)
@pytest.mark.parametrize("rows", [0, 2])
def test_no_columns_give_empty_features(spec, linearization, rows):
    decoder = build(spec, linearization, SPECIALS)
    memory = EncoderOutput(torch.zeros(rows, 3, 16), None)
    assert decoder.decode(torch.zeros(rows, 0, dtype=torch.long), memory).shape == (rows, 0, 16)

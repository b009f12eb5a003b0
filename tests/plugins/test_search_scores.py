"""The scores of beam search are those that the models give to whole hypotheses."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from support.random_search import (
    BEAM,
    BINARY,
    FORMS,
    NARY,
    ORDERS,
    constraints_of,
    dictionary_of,
    generator_of,
    random_model,
    sources,
)

from fairseq_plugins.generator import ConstrainedGenerator
from fairseq_plugins.model import TreeTransformer, TreeTransformerConfig
from treesyntax.nn.growth import GrowingTrees


@pytest.mark.parametrize("order", ORDERS)
def test_a_wide_beam_finds_every_tree_with_the_models_own_scores(order):
    dictionary = dictionary_of(["a/0", "f/1", "g/2"])
    model = random_model(dictionary)
    sample = sources(3, dictionary)
    constraints = constraints_of(dictionary, order)
    generator = generator_of(model, dictionary, constraints, limit=3, beam=6)
    encoded = model.encoder(**sample["net_input"])
    for row, sentence in enumerate(generator.generate([model], sample)):
        found = {}
        for hypothesis in sentence:
            tokens = hypothesis["tokens"]
            found[" ".join(dictionary[token] for token in tokens[:-1].tolist())] = hypothesis
            prefix = torch.cat([tokens[-1:], tokens[:-1]])
            own = {"encoder_out": encoded["encoder_out"][row : row + 1]}
            expected = [
                model.decoder(prefix[None, : step + 1], own)[0][0, -1].log_softmax(-1)[token]
                for step, token in enumerate(tokens[:-1])
            ]
            expected = torch.stack([*expected, torch.tensor(0.0)])
            torch.testing.assert_close(hypothesis["positional_scores"], expected)
        assert set(found) == {"a/0", "f/1 a/0", "f/1 f/1 a/0", "g/2 a/0 a/0"}


def tree_model(dictionary, linearization, seed, spec="stack_pe(depth=4)+relation_mask"):
    """A small model of ours with methods over the grown tree."""
    config = TreeTransformerConfig()
    config.decoder_injection, config.decoder_next_slot = spec, True
    sizes = {"embed_dim": 16, "ffn_embed_dim": 16, "layers": 1, "attention_heads": 2}
    for side, name in product(("encoder", "decoder"), sizes):
        setattr(config, f"{side}_{name}", sizes[name])
    task = SimpleNamespace(
        source_dictionary=dictionary, target_dictionary=dictionary, target_linearization=linearization,
        cfg=SimpleNamespace(left_pad_target=False),
    )  # fmt: skip
    torch.manual_seed(seed)
    return TreeTransformer.build_model(config, task).eval()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", FORMS)
def test_an_ensemble_and_its_search_share_one_placed_prefix(order, form, monkeypatch):
    """Each step places its prefix once; the scores are those of each model on the whole tree."""
    dictionary = dictionary_of(BINARY if form == "lcrs" else NARY)
    models = [tree_model(dictionary, f"{form}_{order}", seed) for seed in (0, 1)]
    constraints = constraints_of(dictionary, order, form)
    generator = ConstrainedGenerator(
        models, dictionary, tree_constraints=constraints, max_len_b=8, beam_size=BEAM
    )
    placed, grow = [], GrowingTrees.grow

    def count(trees, tokens):
        placed.append(tokens.shape[1])
        return grow(trees, tokens)

    monkeypatch.setattr(GrowingTrees, "grow", count)
    sample = sources(5, dictionary)
    generated = generator.generate(models, sample)
    assert placed == list(range(1, len(placed) + 1))
    for row, sentence in enumerate(generated):
        own = {key: part[row : row + 1] for key, part in sample["net_input"].items()}
        for hypothesis in sentence:
            tokens = hypothesis["tokens"]
            prefix = torch.cat([tokens[-1:], tokens[:-1]])[None]
            probabilities = [
                model(prev_output_tokens=prefix, **own)[0][0].softmax(-1) for model in models
            ]
            expected = torch.stack(probabilities).mean(0).log()[range(len(tokens)), tokens]
            expected[-1] = 0.0
            torch.testing.assert_close(
                hypothesis["positional_scores"], expected.detach(), atol=1e-4, rtol=0
            )


@pytest.mark.parametrize("linearization", ["nary_bfs", "lcrs_dfs"])
def test_scores_without_constraints_and_padding_on_the_left(linearization):
    """The end of a sentence has its score, too."""
    dictionary = dictionary_of(BINARY if "lcrs" in linearization else NARY)
    spec = "stack_pe+relation_mask+relative_depth+tree_distance+parent_scaled"
    model = tree_model(dictionary, linearization, 3, spec)
    for name, parameter in model.named_parameters():
        if "injections" in name or "next_slot" in name or "output" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    generator = SequenceGenerator([model], dictionary, beam_size=4, max_len_b=9)
    sample = sources(5, dictionary)
    tokens = sample["net_input"]["src_tokens"]
    tokens[1:, :2] = dictionary.pad()
    sample["net_input"]["src_lengths"] = tokens.ne(dictionary.pad()).sum(1)
    lengths = set()
    for row, sentence in enumerate(generator.generate([model], sample)):
        own = {key: part[row : row + 1] for key, part in sample["net_input"].items()}
        for hypothesis in sentence:
            tokens = hypothesis["tokens"]
            prefix = torch.cat([tokens[-1:], tokens[:-1]])[None]
            output = model(prev_output_tokens=prefix, **own)[0][0].log_softmax(-1).detach()
            expected = output[range(len(tokens)), tokens]
            torch.testing.assert_close(
                hypothesis["positional_scores"], expected, atol=1e-5, rtol=1e-5
            )
            lengths.add(len(tokens))
    assert max(lengths) > 4

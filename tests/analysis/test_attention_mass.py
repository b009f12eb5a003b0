"""Attention mass by relation against loops over pairs, and its command on files."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
import support.oracles as oracles
import torch
from support.analysis_helpers import analyse, flags_of, refused, save, write_data
from support.helpers import stored
from torch import nn

from treesyntax.analysis.attention_mass import COLUMNS, attention_weights, compute_attention_mass
from treesyntax.analysis.sentences import AnalysedSentence
from treesyntax.data.dictionary import EOS, PAD
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.relations import RELATIONS
from treesyntax.nn.tree_batch import collate
from treesyntax.trees.tree import Tree

SYMBOLS = 12
TREES = [
    (Tree([-1, 0, 1, 1, 0, 4], list("abcdef")), [0, 1, 2, 3, 4, 5]),
    (Tree([-1, 0, 0, 2], list("abcd")), [2, -1, 0, 3, 3]),  # word order, a word without a node
    (Tree([-1], ["a"]), [0]),
]
INJECTIONS = (
    "none", "sequence", "relation_mask", "relative_depth", "relative_depth(keys=False)",
    "relative_depth(per_head=True)+relation_mask", "stack_pe(parameters=2, depth=4)",
)  # fmt: skip
SIZES = {"d_model": 8, "d_ff": 16, "heads": 2, "layers": 2}


def encoder(injection: str, **settings) -> Encoder:
    torch.manual_seed(3)
    model = Encoder(
        TransformerConfig(**SIZES, injection=injection, **settings), nn.Embedding(SYMBOLS, 8, PAD)
    )
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model.eval()


def sentence(tree: Tree, nodes: list[int]) -> AnalysedSentence:
    ids = [4 + (3 * position) % 8 for position in range(len(nodes))] + [EOS]
    batch = collate([stored(tree, nodes)], len(ids))
    return AnalysedSentence(0, torch.tensor([ids]), batch, tuple(map(str, ids)))


def sentences() -> list[AnalysedSentence]:
    return [sentence(tree, nodes) for tree, nodes in TREES]


def name_of(tree: Tree, nodes: list[int], i: int, j: int) -> str:
    """The relation of token i to token j; the end of sentence has no node."""
    nodes = [*nodes, -1]
    return "no_node" if nodes[j] < 0 else oracles.relation(tree, nodes[i], nodes[j], i, j)


def logit_addends(model: Encoder, layer: int, head: int, q: torch.Tensor, pair: tuple) -> tuple:
    """What is added to q·k and to the whole logit of a pair (tree, nodes, i, j), from the formulas."""
    tree, nodes, i, j = pair
    nodes = [*nodes, -1]
    vector, bias = 0.0, 0.0
    if "relation_mask" in model.injections:
        strengths = model.injections["relation_mask"].strengths[layer, head]
        both = nodes[i] >= 0 and nodes[j] >= 0
        strength = strengths[RELATIONS.index(name_of(tree, nodes[:-1], i, j))] if both else 0.0
        bias = -math.exp(strength)
    if "relative_depth" in model.injections and nodes[i] >= 0 and nodes[j] >= 0:
        table = model.injections["relative_depth"].key_table
        if table is not None:
            rows = table[layer, head] if table.dim() == 4 else table[layer]
            below = [len(oracles.ancestors(tree, nodes[token])) for token in (i, j)]
            vector = float(q @ rows[min(max(below[1] - below[0], -2), 2) + 2])
    return vector, bias


@torch.no_grad()
def slow_weights(
    model: Encoder, item: AnalysedSentence, tree: Tree, nodes: list[int]
) -> np.ndarray:
    """[layers, heads, T, T], number by number, from what enters each layer."""
    entering: list[torch.Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, given: entering.append(given[0][0]))
        for layer in model.layers
    ]
    model.encode(item.tokens, item.tree)
    for hook in hooks:
        hook.remove()
    size, width = item.tokens.shape[1], 4
    weights = np.zeros((2, 2, size, size))
    for layer, x in enumerate(entering):
        attention = model.layers[layer].self_attn
        if model.settings.normalize_before:
            x = model.layers[layer].self_attn_layer_norm(x)
        queries, keys = attention.q_proj(x), attention.k_proj(x)
        for head in range(2):
            part = slice(head * width, (head + 1) * width)
            for i in range(size):
                logits = []
                for j in range(size):
                    q = queries[i, part]
                    vector, bias = logit_addends(model, layer, head, q, (tree, nodes, i, j))
                    logits.append((float(q @ keys[j, part]) + vector) / math.sqrt(width) + bias)
                powers = [math.exp(logit - max(logits)) for logit in logits]
                weights[layer, head, i] = [power / sum(powers) for power in powers]
    return weights


@pytest.mark.parametrize("injection", INJECTIONS)
@pytest.mark.parametrize("before", [False, True])
def test_mass_is_what_loops_over_all_pairs_find(injection: str, before: bool):
    model = encoder(injection, normalize_before=before)
    mass, chance, queries = np.zeros((2, 2, len(COLUMNS))), np.zeros(len(COLUMNS)), 0
    for item, (tree, nodes) in zip(sentences(), TREES, strict=True):
        weights = slow_weights(model, item, tree, nodes)
        for layer, found in enumerate(attention_weights(model, item.tokens, item.tree)):
            assert np.allclose(found[0].numpy(), weights[layer], atol=1e-5)
        for i, node in enumerate(nodes):
            if node < 0:
                continue
            queries += 1
            for j in range(len(nodes) + 1):
                column = COLUMNS.index(name_of(tree, nodes, i, j))
                mass[:, :, column] += weights[:, :, i, j]
                chance[column] += 1 / (len(nodes) + 1)
    found = compute_attention_mass(model, sentences())
    assert np.allclose(found.mass, mass / queries, atol=1e-5)
    assert np.allclose(found.chance, chance / queries)
    assert (found.queries, found.sentences) == (queries, 3) == (11, 3)


def test_the_weights_are_those_that_the_encoder_uses():
    model = encoder("relation_mask+relative_depth(values=False)+parent_scaled")
    item = sentences()[0]
    seen = []
    hook = model.layers[0].self_attn.register_forward_hook(
        lambda module, given, output: seen.append((given[1].values, output))
    )
    with torch.no_grad():
        weights = attention_weights(model, item.tokens, item.tree)[0]
    hook.remove()
    values, output = seen[0]
    expected = model.layers[0].self_attn.out_proj((weights @ values).transpose(1, 2).flatten(2))
    assert torch.allclose(output, expected, atol=1e-5)


def test_padding_gets_no_weight():
    model, item = encoder("relation_mask"), sentences()[0]
    (tree, nodes), columns = TREES[0], item.tokens.shape[1]
    tokens = nn.functional.pad(item.tokens, (0, 3), value=PAD)
    batch = collate([stored(tree, nodes)], columns)
    wide = type(batch)(
        batch.parent, batch.branch, nn.functional.pad(batch.token_node, (0, 3), value=-1)
    )
    alone = attention_weights(model, item.tokens, item.tree)
    for found, expected in zip(attention_weights(model, tokens, wide), alone, strict=True):
        assert found[:, :, :columns, columns:].abs().max() == 0
        assert torch.allclose(found[:, :, :columns, :columns], expected, atol=1e-6)


def test_shares_sum_to_one_and_equal_weights_are_chance():
    model = encoder("none")
    for layer in model.layers:
        nn.init.zeros_(layer.self_attn.q_proj.weight)
        nn.init.zeros_(layer.self_attn.q_proj.bias)
    found = compute_attention_mass(model, sentences())
    assert np.allclose(found.mass, found.chance)
    assert found.chance.sum() == pytest.approx(1)
    assert np.allclose(found.doublings[..., found.chance > 0], 0)


def test_a_relation_that_never_occurs_has_no_ratio():
    found = compute_attention_mass(encoder("none"), [sentences()[2]])
    absent = [COLUMNS.index(name) for name in ("parent", "left_other")]
    assert np.isnan(found.doublings[..., absent]).all()
    assert np.isfinite(found.doublings[..., COLUMNS.index("self")]).all()


def write_files(folder: Path, symbols: int = SYMBOLS, trees: bool = True) -> None:
    ids = [item.tokens[0, :-1].tolist() for item in sentences()]
    write_data(folder, ids, TREES if trees else [], [f"w{n}" for n in range(symbols - 4)])


def write_checkpoint(path: Path, model: Encoder, **flags) -> None:
    config = model.settings
    state = {f"encoder.{name}": tensor for name, tensor in model.state_dict().items()}
    own = {
        "encoder_learned_pos": config.learned_positions,
        "max_source_positions": config.max_positions,
    }
    save(path, state, flags_of(config.injection, **{**own, **flags}))


@pytest.mark.parametrize("injection", ["none", "relation_mask"])
def test_the_command_writes_figures_and_numbers(tmp_path: Path, injection: str):
    model, out = encoder(injection), tmp_path / "new" / "figures"
    write_files(tmp_path)
    write_checkpoint(tmp_path / "c.pt", model)
    assert analyse("attention_mass", tmp_path / "c.pt", tmp_path, "--out", out) == 0
    assert {file.name for file in out.iterdir()} == {
        "attention_mass.svg", "attention_mass.json", "attention_mass_against_chance.svg",
    }  # fmt: skip
    numbers = json.loads((out / "attention_mass.json").read_text())
    expected = compute_attention_mass(model, sentences())
    assert np.allclose(numbers["mass"], expected.mass)
    assert np.allclose(numbers["chance"], expected.chance)
    assert numbers["relations"] == list(COLUMNS)
    assert (numbers["sentences"], numbers["queries"]) == (3, 11)
    drawing = (out / "attention_mass.svg").read_text()
    for text in ("layer 2", "head", "chance", "right sibling", "no node", "share of the attention"):
        assert text in drawing


def test_a_limit_and_the_longest_source_choose_sentences(tmp_path: Path):
    write_files(tmp_path)
    for limit, longest, sentences_read, queries in ((2, 1024, 2, 10), (9, 6, 2, 5)):
        model = encoder("none", learned_positions=True, max_positions=longest)
        write_checkpoint(tmp_path / "c.pt", model)
        words = (tmp_path / "c.pt", tmp_path, "--limit", limit)
        assert analyse("attention_mass", *words, "--out", tmp_path / "out") == 0
        numbers = json.loads((tmp_path / "out" / "attention_mass.json").read_text())
        assert (numbers["sentences"], numbers["queries"]) == (sentences_read, queries)


def test_parameters_in_half_precision_are_read(tmp_path: Path):
    write_files(tmp_path)
    write_checkpoint(tmp_path / "c.pt", encoder("relation_mask").half())
    words = (tmp_path / "c.pt", tmp_path, "--out", tmp_path / "out")
    assert analyse("attention_mass", *words) == 0


def refusal(tmp_path: Path, capsys: pytest.CaptureFixture, *options: str) -> str:
    words = (tmp_path / "c.pt", tmp_path, *options)
    return refused(capsys, tmp_path / "out", "attention_mass", *words)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"model": {}}, "does not hold the sizes of its encoder; give one of fairseq-train"),
        ({"model": {}, "cfg": None}, "does not hold the sizes of its encoder"),
        ({"x": 1}, "holds no model"),
    ],
)
def test_a_foreign_checkpoint_is_one_clear_line(tmp_path, capsys, state, message):
    torch.save(state, tmp_path / "c.pt")
    assert message in refusal(tmp_path, capsys)


def test_an_encoder_that_does_not_fit_is_one_clear_line(tmp_path, capsys):
    write_files(tmp_path)
    write_checkpoint(tmp_path / "c.pt", encoder("none"), encoder_layers=3)
    assert "its encoder cannot be rebuilt (Missing key" in refusal(tmp_path, capsys)
    write_checkpoint(tmp_path / "c.pt", encoder("none"), encoder_injection="unheard_of")
    assert "unknown method 'unheard_of'" in refusal(tmp_path, capsys)
    save(tmp_path / "c.pt", {}, flags_of("none"))
    assert "has no token embedding in its encoder" in refusal(tmp_path, capsys)


def test_a_model_that_weighs_nothing_is_one_clear_line(tmp_path, capsys):
    write_files(tmp_path)
    model = encoder("none")
    nn.init.constant_(model.layers[0].self_attn.q_proj.weight, math.nan)
    write_checkpoint(tmp_path / "c.pt", model)
    assert "its attention weights are not numbers" in refusal(tmp_path, capsys)
    write_checkpoint(tmp_path / "c.pt", encoder("none", max_positions=1))
    assert "none of the 0 sentences has a token with a node" in refusal(tmp_path, capsys)


def test_data_that_does_not_serve_is_one_clear_line(tmp_path, capsys):
    write_checkpoint(tmp_path / "c.pt", encoder("none"))
    assert "no single valid split" in refusal(tmp_path, capsys)
    write_files(tmp_path, trees=False)
    assert "has no trees beside valid.en-de.en; binarize the source" in refusal(tmp_path, capsys)
    write_files(tmp_path, symbols=SYMBOLS + 2)
    assert "dict.en.txt: has 14 symbols, the model has 12" in refusal(tmp_path, capsys)
    assert "--limit must be 1 or more, not 0" in refusal(tmp_path, capsys, "--limit", "0")


def test_another_dictionary_of_the_same_size_is_refused(tmp_path, capsys):
    """Dictionaries of subwords all have 8,000 symbols: a model would read other words, and say nothing."""
    model, words = encoder("none"), ["<s>", "<pad>", "</s>", "<unk>"]
    words += [f"w{number}" for number in range(SYMBOLS - 4)]
    write_files(tmp_path)
    for symbols, fits in ((words, True), ([*words[:-1], "other"], False)):
        write_checkpoint(tmp_path / "c.pt", model)
        state = torch.load(tmp_path / "c.pt", weights_only=False)
        digest = hashlib.sha256("\n".join(symbols).encode()).hexdigest()
        state["task_state"] = {"data": {"source": {"dictionary": digest}}}
        torch.save(state, tmp_path / "c.pt")
        if fits:
            out = tmp_path / "figures"
            assert analyse("attention_mass", tmp_path / "c.pt", tmp_path, "--out", out) == 0
        else:
            message = f"{tmp_path}: has another source dictionary than the model; give the data"
            assert message in refusal(tmp_path, capsys)

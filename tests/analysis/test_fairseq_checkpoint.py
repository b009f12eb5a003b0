"""Attention weights of a checkpoint of fairseq's own Transformer, against fairseq's."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import fairseq.data
import torch
from fairseq.models import transformer
from torch import nn

from treesyntax.analysis.attention_mass import attention_weights
from treesyntax.analysis.loading import build_encoder
from treesyntax.data.dictionary import EOS
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.nn.tree_batch import TreeBatch


def test_a_model_of_fairseq_itself_has_the_weights_that_fairseq_computes(tmp_path: Path):
    torch.manual_seed(1)
    dictionary = fairseq.data.Dictionary()
    for number in range(8):
        dictionary.add_symbol(f"w{number}")
    flags = Namespace(
        encoder_embed_dim=8, encoder_ffn_embed_dim=16, encoder_layers=2, encoder_attention_heads=2,
        decoder_embed_dim=8, decoder_layers=1, decoder_attention_heads=2,
        max_source_positions=32, max_target_positions=32,
    )  # fmt: skip
    transformer.transformer_legacy.base_architecture(flags)
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    theirs = transformer.TransformerModel.build_model(flags, task).eval()
    torch.save({"model": theirs.state_dict(), "cfg": {"model": flags}}, tmp_path / "c.pt")
    tokens, expected = torch.tensor([[4, 7, 10, 5, 8, 11, EOS]]), []

    def ask(module: nn.Module, given: tuple, named: dict) -> None:
        if not named.get("need_head_weights"):
            expected.append(module(**{**named, "need_weights": True, "need_head_weights": True})[1])

    for layer in theirs.encoder.layers:
        layer.self_attn.register_forward_pre_hook(ask, with_kwargs=True)
        # Away from torch's kernel, which knows the mean over heads only.
        layer.can_use_fastpath, layer.self_attn.skip_embed_dim_check = False, True
    with torch.no_grad():
        theirs.encoder(tokens, torch.tensor([7]))
    model = build_encoder(load_checkpoint(tmp_path / "c.pt"), tmp_path / "c.pt")
    found = attention_weights(model, tokens, TreeBatch.without_trees(tokens))
    assert len(found) == len(expected) == 2
    for ours, reference in zip(found, expected, strict=True):
        assert torch.allclose(ours, reference.transpose(0, 1), atol=1e-5)

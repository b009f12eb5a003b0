"""Tiny models of transformers, made from configurations on the spot, and two sentences with trees."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.helpers import batch_of
from torch import nn

import treesyntax as ts

transformers = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 40, "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2,
    "intermediate_size": 24, "pad_token_id": 0,
}  # fmt: skip
SEQ2SEQ = {
    "vocab_size": 40, "d_model": 16, "encoder_layers": 2, "decoder_layers": 1,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24, "pad_token_id": 0, "eos_token_id": 2, "bos_token_id": 1,
}  # fmt: skip
MODERN = {
    "local_attention": 4, "eos_token_id": 2, "bos_token_id": 1, "cls_token_id": 1, "sep_token_id": 2,
}  # fmt: skip
T5 = {
    "vocab_size": 40, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
MODELS = {
    "Bert": SIZES, "Roberta": SIZES, "XLMRoberta": SIZES, "ModernBert": {**SIZES, **MODERN},
    "T5": T5, "MT5": T5, "Bart": SEQ2SEQ, "MBart": SEQ2SEQ,
}  # fmt: skip
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA = {**SIZES, **SPECIAL, "num_key_value_heads": 2, "head_dim": 4}
WINDOW = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
DECODERS = {
    "GPT2": {"vocab_size": 40, "n_embd": 16, "n_head": 4, "n_layer": 2, "n_positions": 64, **SPECIAL},
    "Llama": LLAMA, "Mistral": {**LLAMA, "sliding_window": 4}, "Qwen2": LLAMA, "Qwen3": LLAMA,
    "Gemma": LLAMA, "Gemma2": {**LLAMA, **WINDOW, "attn_logit_softcapping": None},
    "Gemma3Text": {**LLAMA, **WINDOW},
}  # fmt: skip
"""Models that see nothing but what is before, with trees over a prefix."""
TREES = [ts.Tree([-1, 0, 1, 1, 0, 4], list("abcdef")), ts.Tree([-1, 0, 0], list("abc"))]
BATCH = batch_of(TREES)
TOKENS = torch.tensor([[4, 5, 6, 7, 8, 9, 2], [4, 5, 6, 2, 0, 0, 0]])
INPUTS = {"input_ids": TOKENS, "attention_mask": TOKENS.ne(0).long()}


def make(name: str, head: str = "Model") -> nn.Module:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**MODELS, **DECODERS}[name])
    if head != "Model":
        name = name.removesuffix("Text")
    return getattr(transformers, name + head)(config).eval()


def inputs_for(name: str) -> dict[str, torch.Tensor]:
    decoder = {"decoder_input_ids": TOKENS[:, :3]}
    return {**INPUTS, **(decoder if "d_model" in MODELS[name] else {})}


def encoded(model: nn.Module, name: str, **tree: ts.TreeBatch) -> torch.Tensor:
    output = model(**inputs_for(name), **tree)
    found = getattr(output, "encoder_last_hidden_state", None)
    states = output.last_hidden_state if found is None else found
    return states[INPUTS["attention_mask"].bool()]


SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def tokenizer(texts: list[str]) -> Any:
    """A tokenizer of 40 pieces of the words of some texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.pre_tokenizer = pre_tokenizers.Whitespace()
    pieces.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=40, special_tokens=SPECIAL_TOKENS)
    )
    pieces.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "eos_token")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces, **dict(zip(names, SPECIAL_TOKENS, strict=True))
    )


def set_tables(bridge: nn.Module, spread: float) -> None:
    torch.manual_seed(1)
    for parameter in bridge.injections.parameters():
        nn.init.normal_(parameter, std=spread) if spread else nn.init.zeros_(parameter)

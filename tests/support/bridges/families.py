"""One tiny model with a head for each family of transformers, and the same tokens for all."""

from __future__ import annotations

from typing import Any

import torch
from support.bridges.tiny_models import (
    BATCH,
    INPUTS,
    TOKENS,
    TREES,
    make,
)
from torch import Tensor, nn

import treesyntax as ts
from treesyntax.bridges.huggingface import HuggingFaceBridge

FAMILIES = {
    "BERT": ("Bert", "ForTokenClassification"),
    "RoBERTa": ("Roberta", "ForTokenClassification"),
    "ModernBERT": ("ModernBert", "ForTokenClassification"),
    "T5": ("T5", "ForConditionalGeneration"),
    "BART": ("Bart", "ForConditionalGeneration"),
    "GPT-2": ("GPT2", "LMHeadModel"),
    "Llama": ("Llama", "ForCausalLM"),
}
"""The families of the matrix in docs/huggingface.md that a bridge leads into."""
SPEC = "relation_mask+relative_depth+depth_sibling"
"""A bias, vectors and an encoding."""


def plain(family: str) -> Any:
    """The model of a family, without a bridge."""
    return make(*FAMILIES[family])


def bridge(family: str, spread: float = 0.5, spec: str = SPEC) -> Any:
    """The model of a family with methods whose parameters are random."""
    made = HuggingFaceBridge(plain(family), spec)
    torch.manual_seed(1)
    for parameter in made.injections.parameters():
        nn.init.normal_(parameter, std=spread) if spread else nn.init.zeros_(parameter)
    return made.eval()


def decodes(family: str) -> bool:
    """Whether it is a decoder alone."""
    return family in ("GPT-2", "Llama")


def inputs(family: str) -> dict[str, Any]:
    """Tokens, masks, labels and trees: padded on the right, over all tokens but the last."""
    labels = TOKENS % 2 if "Token" in FAMILIES[family][1] else TOKENS
    labels = labels.masked_fill(TOKENS == 0, -100)
    if decodes(family):  # what is predicted is not in the tree
        labels = labels.masked_fill(BATCH.token_node >= 0, -100)
    return {**INPUTS, "labels": labels, "tree": BATCH}


PROMPTS = torch.tensor([[4, 5, 6, 7, 8, 9, 2], [0, 0, 0, 4, 5, 6, 2]])
"""The same tokens, padded on the left."""
PROMPT_TREES = ts.batch_trees(TREES, [[*range(6), -1], [-1, -1, -1, 0, 1, 2, -1]])


def prompts(family: str) -> dict[str, Any]:
    """What to generate from."""
    if not decodes(family):
        return {**INPUTS, "tree": BATCH}
    return {"input_ids": PROMPTS, "attention_mask": PROMPTS.ne(0).long(), "tree": PROMPT_TREES}


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all gradients by name; none are left."""
    found = {
        name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None
    }
    model.zero_grad()
    return found


def loss_and_gradients(model: nn.Module, given: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
    """Of one call."""
    loss = model(**given).loss
    loss.backward()
    return loss.detach(), gradients(model)

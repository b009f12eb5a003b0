"""Tiny models of transformers with random numbers, and data that they can learn."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

NOUNS, VERBS = ["cat", "dog", "bird", "fish"], ["sat", "barked", "sang", "swam"]
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "</s>"]
SIZES = {"bert": "Bert", "t5": "T5", "gpt2": "GPT2"}


def row(draw: random.Random) -> dict[str, Any]:
    """A sentence with its tree, the class of its subject, tags, and its words backwards."""
    noun, verb = draw.choice(NOUNS), draw.choice(VERBS)
    words = ["the", noun, verb] if draw.random() < 0.5 else ["the", noun, "that", verb, verb]
    inner = "" if len(words) == 3 else f" (SBAR (IN that) (VBD {verb}))"
    return {
        "text": " ".join(words),
        "tokens": words,
        "tree": f"(S (NP (DT the) (NN {noun}){inner}) (VP (VBD {verb})))",
        "label": "furry" if noun in ("cat", "dog") else "other",
        "tags": ["O", "B-N", *["O"] * (len(words) - 3), "B-V"],
        "target": f"{verb} {noun}",
    }


def write_rows(folder: Path, train: int = 24, others: int = 8) -> None:
    """Write train, valid and test."""
    draw = random.Random(3)
    for name, size in (("train", train), ("valid", others), ("test", others)):
        lines = [json.dumps(row(draw)) for _ in range(size)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def write_model(folder: Path, kind: str = "bert") -> Path:
    """Save a model with random numbers and its tokenizer."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = [*MARKS, "the", "that", *NOUNS, *VERBS]
    one = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
    one.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    marks = {"bert": "[CLS] $A [SEP]", "t5": "$A </s>"}.get(kind)
    if marks:
        special = [(mark, words.index(mark)) for mark in MARKS]
        pair = f"{marks} $B:1 [SEP]:1" if kind == "bert" else f"{marks} $B </s>"
        one.post_processor = processors.TemplateProcessing(
            single=marks, pair=pair, special_tokens=special
        )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=one,
        pad_token="[PAD]",
        unk_token="[UNK]",
        eos_token="</s>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
        model_input_names=["input_ids", "attention_mask"],
    )
    size, ids = len(words), {"pad_token_id": 0, "eos_token_id": 4, "bos_token_id": 4}
    torch.manual_seed(0)
    if kind == "bert":
        config = transformers.BertConfig(
            vocab_size=size, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=64,
        )  # fmt: skip
        model: Any = transformers.BertModel(config)
    elif kind == "t5":
        config = transformers.T5Config(
            vocab_size=size, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2,
            decoder_start_token_id=0, **ids,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config)
    else:
        config = transformers.GPT2Config(
            vocab_size=size, n_embd=16, n_layer=2, n_head=2, n_positions=64, **ids
        )
        model = transformers.GPT2LMHeadModel(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder

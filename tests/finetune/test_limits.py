"""Targets that no output can equal are refused before anything is trained."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is no part of the base")
pytest.importorskip("accelerate", reason="accelerate is no part of the base")

import torch
from transformers import GenerationConfig
from transformers.generation import logits_process

from treesyntax.__main__ import main
from treesyntax.errors import InputError
from treesyntax.finetune.data import Example
from treesyntax.finetune.job import Job
from treesyntax.finetune.limits import (
    lines_of_tokens,
    refuse_unwritable,
    remark_language,
    settings_of_model,
)
from treesyntax.finetune.models import collator_of, load_model, load_tokenizer
from treesyntax.finetune.outputs import predict

END, IGNORED = 4, -100


def arguments(pretrained: Path, folder: Path, target: str, **settings: Any) -> list[str]:
    """A training of a T5 that comes with settings of generation; the third of its targets is given."""
    shutil.copytree(pretrained / "t5", folder / "t5")
    file = folder / "t5/generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **settings}), "utf-8")
    tokenizer = folder / "t5/tokenizer_config.json"
    text = tokenizer.read_text("utf-8").replace('"model_max_length": 32', '"model_max_length": 999')
    tokenizer.write_text(text, "utf-8")
    rows = [
        json.loads(line)
        for line in (pretrained / "train.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    rows[2]["target"] = target
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return [
        "finetune", "--model", str(folder / "t5"), "--task", "seq2seq", "--tree-format", "ptb",
        f"--train={folder / 'train.jsonl'}", f"--valid={pretrained / 'valid.jsonl'}", "--columns", "text=text",
        "--out", str(folder / "out"), "--max-steps", "1", "--set", "use_cpu=true",
    ]  # fmt: skip


def test_longer_targets_than_outputs_get_are_refused_unless_that_is_meant(
    pretrained: Path, tmp_path: Path, capsys
):
    """Outputs ended after 128 tokens without a word, so such targets counted as wrong whatever was learnt."""
    words = arguments(pretrained, tmp_path, "cat " * 129)
    assert main(words) == 2
    message = "train.jsonl:3: has a target of 129 tokens, but outputs end after 128; say how many"
    assert message in capsys.readouterr().err
    assert main([*words, "--generate", "max_new_tokens=200"]) == 0


def test_what_the_settings_of_a_model_forbid_is_refused_unless_they_are_meant(
    pretrained: Path, tmp_path: Path, capsys
):
    words = arguments(pretrained, tmp_path, "cat " * 4, no_repeat_ngram_size=2, num_beams=2)
    assert main(words) == 2
    message = "train.jsonl:3: has a target that the model cannot write: its generation_config.json has no_repeat"
    assert message in capsys.readouterr().err
    assert main([*words, "--generate", "no_repeat_ngram_size=2"]) == 0
    assert "too, unless --generate says otherwise: num_beams=2\n" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["seq2seq", "causal"])
@pytest.mark.parametrize(
    ("setting", "value", "make"),
    [
        ("no_repeat_ngram_size", 2, lambda n, prompt: logits_process.NoRepeatNGramLogitsProcessor(n)),
        ("min_length", 4, lambda n, prompt: logits_process.MinLengthLogitsProcessor(n, END)),
        ("min_new_tokens", 3, lambda n, prompt: logits_process.MinNewTokensLengthLogitsProcessor(prompt, n, END)),
    ],
)  # fmt: skip
def test_refused_is_what_transformers_gives_no_chance(task: str, setting: str, value: int, make):
    draw = random.Random(1)
    refused = 0
    for _ in range(200):
        source = draw.choices(range(5, 8), k=3)
        target = [*draw.choices(range(5, 8), k=draw.randrange(6)), END]
        prompt = source if task == "causal" else [0]
        row = {"input_ids": source, "labels": target}
        if task == "causal":
            row = {"input_ids": source + target, "labels": [IGNORED] * 3 + target}
        processor = make(value, len(prompt))
        chances = [
            processor(torch.tensor([[*prompt, *target[:at]]]), torch.zeros(1, 9))[0, token].item()
            for at, token in enumerate(target)
        ]
        model: Any = SimpleNamespace(
            generation_config=GenerationConfig(**{setting: value}),
            config=SimpleNamespace(decoder_start_token_id=0),
        )
        given = Job(model="", task=task), model, [END], [Example({}, "", 1)], [row], Path("x")
        if min(chances) == 0:
            refuse_unwritable(*given)
            continue
        refused += 1
        with pytest.raises(InputError, match=rf"x:1: .* has {setting}={value}; give --generate"):
            refuse_unwritable(*given)
    assert 20 < refused < 180


def test_settings_that_a_job_gives_are_no_longer_those_of_the_model():
    model: Any = SimpleNamespace(
        generation_config=GenerationConfig(num_beams=4, length_penalty=2.0, temperature=0.5, eos_token_id=4)
    )  # fmt: skip
    job = Job(model="", task="causal", generate={"num_beams": 1})
    assert settings_of_model(job, model) == {"length_penalty": 2.0}


@pytest.mark.parametrize("end", [None, 5, [5, 6]])
def test_outputs_end_with_the_token_that_ends_targets(pretrained: Path, end: Any, monkeypatch):
    """A model may name another end than its tokenizer: the model learnt to end, and was made to go on."""
    job = Job(
        model=str(pretrained / "gpt2"), task="causal", generate={"suppress_tokens": [*range(4)]}
    )
    trained = load_model(job)
    trained.model.generation_config.eos_token_id = end
    for parameter in trained.model.parameters():
        torch.nn.init.zeros_(
            parameter
        )  # so the first token that may be written is, which is the tokenizer's end
    lengths, generate = [], trained.model.generate

    def write(**given: Any) -> torch.Tensor:
        ids = generate(**given)
        lengths.append(ids.shape[1] - given["input_ids"].shape[1])
        return ids

    monkeypatch.setattr(trained.model, "generate", write)
    assert predict(job, trained, [Example({"text": "the cat", "tree": None}, None, 1)], 1) == [""]
    assert lengths == [1]


@pytest.mark.parametrize("family", ["MBart", "M2M100"])
def test_outputs_begin_after_the_token_that_targets_begin_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str
):
    """That of mBART is the language of its tokenizer, whatever its configuration names; M2M100 shifts by itself."""
    import transformers

    words = ["<s>", "<pad>", "</s>", "<unk>", "▁the", "▁cat"]
    tokenizer = transformers.MBartTokenizer(vocab=[(word, -1.0) for word in words])
    tokenizer.tgt_lang = "de_DE"
    tokenizer.save_pretrained(tmp_path)
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(tokenizer), d_model=8, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8,
        decoder_start_token_id=2,
    )  # fmt: skip
    getattr(transformers, f"{family}ForConditionalGeneration")(config).save_pretrained(tmp_path)
    job = Job(model=str(tmp_path), task="seq2seq", generate={"max_new_tokens": 1})
    trained = load_model(job)
    begun, generate = [], trained.model.generate

    def write(**given: Any) -> torch.Tensor:
        ids = generate(**given)
        begun.append(int(ids[0, 0]))
        return ids

    monkeypatch.setattr(trained.model, "generate", write)
    example = {"text": "the cat", "tree": None}
    predict(job, trained, [Example(example, None, 1)], 1)
    collator = collator_of(job, trained)
    batch = collator([{**example, "target": "the"}, {**example, "target": "the cat"}])
    assert begun == batch["decoder_input_ids"][0, :1].tolist()
    del batch["tree"]
    given, inputs = trained.model(**batch).loss, batch.pop("decoder_input_ids")
    assert inputs.shape == batch["labels"].shape
    torch.testing.assert_close(trained.model(**batch).loss, given)


def test_a_tokenizer_without_a_language_of_targets_is_told():
    """mBART's then begins them as sources, whatever language they are in."""
    import transformers

    words = ["<s>", "<pad>", "</s>", "<unk>", "▁the"]
    tokenizer = transformers.MBartTokenizer(vocab=[(word, -1.0) for word in words])
    tokenizer(text_target="the")
    assert remark_language(tokenizer).startswith("the tokenizer has en_XX as the language of sour")
    tokenizer.tgt_lang = "de_DE"
    assert remark_language(tokenizer) == remark_language(object()) == ""


def test_targets_that_begin_otherwise_than_a_model_must_are_refused(
    pretrained: Path, tmp_path: Path, capsys
):
    """Models of many languages come with the first token of an output, which a tokenizer may not know."""
    words = arguments(pretrained, tmp_path, "sat cat", forced_bos_token_id=3)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert (
        "train.jsonl:1: has a target that the model cannot write: it begins with the token" in said
    )
    assert "forced_bos_token_id=3; save the tokenizer with the language of the targets" in said


def test_targets_without_an_end_are_refused(pretrained: Path, tmp_path: Path, capsys):
    """The tokenizer of a T5 that puts nothing behind a text: outputs had as many tokens as they could."""
    words = arguments(pretrained, tmp_path, "cat")
    file = tmp_path / "t5/tokenizer.json"
    file.write_text(
        json.dumps({**json.loads(file.read_text("utf-8")), "post_processor": None}), "utf-8"
    )
    assert main(words) == 2
    message = "train.jsonl: has no target with a token that ends it, so outputs would not end; let the tokenizer put"
    assert message in capsys.readouterr().err


def test_targets_that_the_tokens_of_a_model_do_not_spell_are_counted(
    pretrained: Path, tmp_path: Path, capsys
):
    """T5 has no braces, so a form with some counted as wrong, whatever was learnt."""
    words = arguments(pretrained, tmp_path, "{ cat }")
    assert main(words) == 0
    message = "1 of 24 targets of {} are spelt otherwise by the tokens of the model, so no output is exactly right there; the first, "
    error = capsys.readouterr().err
    assert message.format(tmp_path / "train.jsonl") + "on line 3, as 'cat'\n" in error


def test_a_space_before_a_full_stop_stays_whatever_the_tokenizer_does_to_text(pretrained: Path):
    """Those of Llama 3 take it away, and no form with one was right."""
    tokenizer = load_tokenizer(str(pretrained / "gpt2"))
    tokenizer.add_tokens(["."])
    tokenizer.clean_up_tokenization_spaces = True
    ids = tokenizer("cat . dog")["input_ids"]
    assert tokenizer.decode(ids) == "cat. dog"
    assert lines_of_tokens(tokenizer, [ids]) == ["cat . dog"]

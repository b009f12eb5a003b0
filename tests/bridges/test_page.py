"""docs/huggingface.md works as printed, with tiny models in the folders that it names."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support import ROOT
from support.bridges.families import SPEC, bridge, inputs
from support.bridges.tiny_models import DECODERS, MODELS, make, tokenizer

import treesyntax as ts
from treesyntax.bridges.huggingface import HuggingFaceBridge

transformers = pytest.importorskip("transformers")

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/huggingface.md").read_text("utf-8"), re.S)
SCRIPT = next(block for block in BLOCKS if block.startswith('"""'))
TEXTS = ["the cat sat", "a dog barked"]
TREES = [
    "(S (NP (DT the) (NN cat)) (VBD sat))",
    "(S (NP (DT a) (NN dog)) (VBD barked))",
]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the models ``bert``, ``t5`` and ``gpt2``, in which one works."""
    monkeypatch.chdir(tmp_path)
    for folder, name, head in (
        ("bert", "Bert", "ForSequenceClassification"),
        ("t5", "T5", "ForConditionalGeneration"),
        ("gpt2", "GPT2", "LMHeadModel"),
    ):
        config = getattr(transformers, f"{name}Config")(**{**MODELS, **DECODERS}[name])
        torch.manual_seed(0)
        getattr(transformers, name + head)(config).save_pretrained(folder)
        tokenizer(TEXTS).save_pretrained(folder)
    lines = [f"{number}\t{TEXTS[number]}\t{TREES[number]}" for number in (1, 0) * 8]
    Path("train.tsv").write_text("\n".join(lines), "utf-8")
    return tmp_path


def main_of(script: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "train"}
    exec(compile(script, "the script of docs/huggingface.md", "exec"), names)
    return names["main"]


def test_the_first_example_is_short():
    assert len(BLOCKS[0].splitlines()) <= 12


def test_the_script_trains_evaluates_saves_and_goes_on(
    folders: Path, capsys: pytest.CaptureFixture[str]
):
    main = main_of(SCRIPT)
    main("bert", "train.tsv", "train.tsv", "out", "2")
    assert "eval_loss" in capsys.readouterr().out
    before = HuggingFaceBridge.from_pretrained("out/final")
    assert isinstance(before, transformers.BertForSequenceClassification)
    main("bert", "train.tsv", "train.tsv", "out", "4")
    assert sorted(path.name for path in Path("out").glob("checkpoint-*")) == [
        "checkpoint-2", "checkpoint-4",
    ]  # fmt: skip
    after = HuggingFaceBridge.from_pretrained("out/checkpoint-4")
    tables = [one.injections["tree_distance"].table for one in (before, after)]
    assert 0 < (tables[0] - tables[1]).abs().max() < 1e-3  # two more steps of 5e-5, no new start


def test_the_other_examples_work_as_printed(folders: Path):
    main_of(SCRIPT)("bert", "train.tsv", "train.tsv", "out", "1")
    names: dict[str, Any] = {}
    for number, code in enumerate(block for block in BLOCKS if block != SCRIPT):
        exec(compile(code, f"block {number} of docs/huggingface.md", "exec"), names)
    assert names["loss"].isfinite()
    assert names["predictions"].shape[0] == 2
    assert names["written"].shape[0] == 2
    assert sys.modules["treesyntax"] is ts


@pytest.mark.parametrize("name", ["T5", "Bart"])
def test_a_translation_is_evaluated_by_its_outputs_and_taken_up_again(name: str, tmp_path: Path):
    reader = tokenizer(TEXTS)
    rows = [
        {"text": text, "tree": tree, "target": text}
        for text, tree in zip(TEXTS, TREES, strict=True)
    ] * 2
    written: list[Any] = []

    def lines(prediction: Any) -> dict[str, float]:
        written.append(prediction.predictions)
        return {"lines": len(prediction.predictions)}

    def trainer() -> Any:
        model = HuggingFaceBridge(make(name, "ForConditionalGeneration"), SPEC)
        return transformers.Seq2SeqTrainer(
            model=model,
            args=transformers.Seq2SeqTrainingArguments(
                output_dir=str(tmp_path), max_steps=4, save_steps=2, learning_rate=0.01, seed=3,
                per_device_train_batch_size=2, predict_with_generate=True, generation_max_length=6,
                remove_unused_columns=False, use_cpu=True, report_to=[], disable_tqdm=True,
            ),
            train_dataset=rows,
            eval_dataset=rows,
            data_collator=ts.TreeCollator(reader, "ptb"),
            compute_metrics=lines,
        )  # fmt: skip

    whole = trainer()
    whole.train()
    scores = whole.evaluate()
    assert scores["eval_loss"] > 0
    assert scores["eval_lines"] == 4
    inputs = ts.TreeCollator(reader, "ptb")(rows)
    inputs.pop("labels")
    alone = whole.model.eval().generate(**inputs, max_length=6)
    assert (torch.from_numpy(written[0])[:, : alone.shape[1]] == alone).all()
    resumed = trainer()
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    for key, value in whole.model.state_dict().items():
        assert torch.allclose(resumed.model.state_dict()[key], value, atol=1e-6), key


def test_a_saved_bridge_says_what_it_is_and_is_not_loaded_by_halves(tmp_path: Path):
    made = bridge("BERT")
    made.save_pretrained(tmp_path)
    again = HuggingFaceBridge.from_pretrained(tmp_path, config=made.config)
    assert torch.equal(again(**inputs("BERT")).logits, made(**inputs("BERT")).logits)
    for wrong in (transformers.AutoModelForTokenClassification, "BertModel"):
        with pytest.raises(
            ts.OptionError, match="model_class is a class of one kind of model, such"
        ):
            HuggingFaceBridge.from_pretrained(tmp_path, model_class=wrong)
    own = transformers.BertForTokenClassification.from_pretrained(tmp_path)
    with pytest.raises(ts.OptionError, match=r"was saved with relation_mask\+.*from_pretrained"):
        HuggingFaceBridge(own, "relation_mask")
    made.model.save_pretrained(tmp_path / "old")
    made.save(tmp_path / "old")  # as before there was from_pretrained
    own = transformers.BertForTokenClassification.from_pretrained(tmp_path / "old")
    loaded = HuggingFaceBridge.load(own, tmp_path / "old").eval()
    assert torch.equal(loaded(**inputs("BERT")).logits, made(**inputs("BERT")).logits)
    config = transformers.BertConfig(**MODELS["Bert"])
    transformers.BertForTokenClassification(config).save_pretrained(tmp_path / "plain")
    with pytest.raises(ts.OptionError, match="has no methods: it is no saved bridge"):
        HuggingFaceBridge.from_pretrained(tmp_path / "plain")


def test_models_of_one_configuration_do_not_get_the_methods_of_one_another(tmp_path: Path):
    config = transformers.BertConfig(**MODELS["Bert"])
    specs = ("relation_mask", "tree_distance")
    made = [HuggingFaceBridge(transformers.BertModel(config), spec) for spec in specs]
    for one, spec in zip(made, specs, strict=True):
        one.save_pretrained(tmp_path / spec)
        assert HuggingFaceBridge.from_pretrained(tmp_path / spec).spec == spec
    transformers.BertModel(config).save_pretrained(tmp_path / "plain")
    assert "treesyntax" not in (tmp_path / "plain/config.json").read_text("utf-8")


@pytest.mark.parametrize("family", ["BERT", "T5"])
def test_what_a_trainer_wrote_of_a_bridge_of_before_is_read(family: str):
    """It stood around its model: its names began with ``model.`` and ``injections.``."""
    made = bridge(family)
    of_before = {
        (f"injections.{name.split('trees.')[1]}" if "trees." in name else f"model.{name}"): value
        for name, value in made.state_dict().items()
    }
    other = bridge(family, 0)
    told = other.load_state_dict(of_before)
    assert not told.missing_keys
    assert not told.unexpected_keys
    assert torch.equal(other(**inputs(family)).logits, made(**inputs(family)).logits)
    assert other.spec == SPEC

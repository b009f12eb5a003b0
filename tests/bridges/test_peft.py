"""LoRA of PEFT in a bridge: methods train beside it, are saved with it, and are merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.bridges.families import SPEC, bridge, inputs, plain, prompts

import treesyntax as ts

pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

TARGETS = {"BERT": ["query", "value"], "T5": ["q", "v"], "GPT-2": ["c_attn"], "Llama": ["q_proj"]}


def with_lora(made: Any, family: str, **options: Any) -> Any:
    """What docs/huggingface.md says."""
    config = peft.LoraConfig(target_modules=TARGETS[family], r=2, lora_dropout=0.0, **options)
    return peft.get_peft_model(made, config).eval()


@pytest.mark.parametrize("family", TARGETS)
def test_methods_train_beside_lora_and_are_saved_and_merged(family: str, tmp_path: Path):
    made, given = bridge(family), inputs(family)
    with torch.no_grad():
        expected = made(**given).logits
    model = with_lora(made, family, modules_to_save=[*made.injections])
    assert torch.allclose(model(**given).logits, expected, atol=1e-5)
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    before = {name: one.detach().clone() for name, one in trained.items()}
    assert all("lora_" in name or ".trees." in name for name in trained)
    optimizer = torch.optim.SGD(trained.values(), 0.5)
    for _ in range(2):  # LoRA's first step moves one of its two matrices alone
        optimizer.zero_grad()
        model(**given).loss.backward()
        optimizer.step()
    assert all(not torch.equal(one, before[name]) for name, one in trained.items())
    with torch.no_grad():
        expected = model(**given).logits
    with pytest.raises(ts.OptionError, match="needs trees; give tree="):
        model(**{name: part for name, part in given.items() if name != "tree"})

    model.save_pretrained(tmp_path / "adapter")
    loaded = peft.PeftModel.from_pretrained(bridge(family), tmp_path / "adapter").eval()
    assert torch.allclose(loaded(**given).logits, expected, atol=1e-5)
    merged = model.merge_and_unload()
    assert (type(merged), merged.spec) == (type(made), SPEC)
    merged.save_pretrained(tmp_path / "merged")
    whole = ts.HuggingFaceBridge.from_pretrained(tmp_path / "merged")
    assert torch.allclose(whole(**given).logits, expected, atol=1e-5)
    if whole.can_generate():
        options = {**prompts(family), "max_new_tokens": 3, "do_sample": False, "pad_token_id": 0}
        assert torch.equal(loaded.generate(**options), whole.generate(**options))


def test_a_bridge_is_made_before_the_wrapper_and_not_of_it():
    with pytest.raises(
        ts.OptionError, match="a PeftModel is no model of transformers; make the br"
    ):
        ts.HuggingFaceBridge(with_lora(plain("BERT"), "BERT"), SPEC)


def test_a_model_with_adapters_is_refused_as_it_would_save_them_alone():
    model = plain("BERT")
    model.add_adapter(peft.LoraConfig(target_modules=TARGETS["BERT"]))
    with pytest.raises(ts.OptionError, match="has adapters already, and would save them without"):
        ts.HuggingFaceBridge(model, SPEC)


def test_rows_of_several_adapters_are_refused():
    """All rows had the methods of the active adapter."""
    made, given = bridge("BERT"), inputs("BERT")
    model = with_lora(made, "BERT", modules_to_save=[*made.injections])
    model.add_adapter("second", model.peft_config["default"])
    assert model(**given, adapter_names=None).loss.isfinite()
    with pytest.raises(ts.OptionError, match="have the parameters of one adapter for all rows"):
        model(**given, adapter_names=["default", "second"])
    model = with_lora(bridge("BERT"), "BERT")  # methods that all adapters share
    assert model(**given, adapter_names=["default", "__base__"]).loss.isfinite()


def test_a_folder_of_an_adapter_is_no_bridge(tmp_path: Path):
    with_lora(bridge("BERT"), "BERT").save_pretrained(tmp_path)
    with pytest.raises(ts.OptionError, match="has an adapter alone; load it into a bridge like"):
        ts.HuggingFaceBridge.from_pretrained(tmp_path)


@pytest.mark.parametrize("config", ["PromptTuningConfig", "PrefixTuningConfig"])
def test_tokens_that_no_text_has_are_refused_with_what_to_take(config: str):
    settings = getattr(peft, config)(task_type="FEATURE_EXTRACTION", num_virtual_tokens=3)
    model = peft.get_peft_model(bridge("BERT"), settings)
    with pytest.raises(ts.OptionError, match="take LoRA"):
        model(**inputs("BERT"))

"""Bridges on a GPU: the numbers of the CPU, compiled and in bfloat16, without waiting, in the Trainer."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from gpu.test_methods import expect_the_same, moved, no_number_is_read_back
from support.bridges.families import FAMILIES, bridge, inputs, plain, prompts
from support.bridges.tiny_models import BATCH
from torch import Tensor, nn

import treesyntax as ts

transformers = pytest.importorskip("transformers")


def there(given: dict[str, Any], device: torch.device) -> dict[str, Any]:
    return {
        name: moved(value, device) if name == "tree" else value.to(device)
        for name, value in given.items()
    }


def numbers(model: nn.Module, given: dict[str, Any]) -> dict[str, Tensor]:
    output = model(**given)
    output.loss.backward()
    found = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return {"logits": output.logits.detach().float().cpu(), **found}


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_and_gradients_are_those_of_the_cpu(family: str, device: torch.device):
    model, given = bridge(family), inputs(family)
    wanted = numbers(copy.deepcopy(model), given)
    expect_the_same(numbers(model.to(device), there(given, device)), wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_trains_tables(family: str, device: torch.device):
    model, given = bridge(family).train().to(device), there(inputs(family), device)
    with torch.autocast(device.type, torch.bfloat16):
        found = numbers(model, given)
    assert all(value.isfinite().all() for value in found.values())
    tables = [value for name, value in found.items() if "strengths" in name]
    assert tables
    assert all(value.abs().sum() > 0 for value in tables)
    single = numbers(bridge(family).eval().to(device), given)["logits"]
    whole = bridge(family).eval().to(device, torch.bfloat16)
    assert (numbers(whole, given)["logits"] - single).abs().max() < 0.1 * single.abs().max() + 0.05


@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_is_eager(family: str, device: torch.device):
    model, given = bridge(family).to(device), there(inputs(family), device)
    wanted = numbers(model, given)
    torch._dynamo.reset()
    expect_the_same(numbers(torch.compile(model), given), {
        f"_orig_mod.{name}" if name != "logits" else name: value for name, value in wanted.items()
    })  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_tokens_are_those_of_the_cpu(family: str, device: torch.device):
    model = bridge(family)
    if not model.can_generate():
        pytest.skip("does not generate")
    options = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    wanted = model.generate(**prompts(family), **options)
    found = model.to(device).generate(**there(prompts(family), device), **options)
    assert torch.equal(found.cpu(), wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bridge_waits_no_more_than_the_model_does(family: str, device: torch.device):
    """Some models of transformers read numbers back themselves; a bridge adds nothing to that."""
    given = there(inputs(family), device)
    untouched = plain(family).train().to(device)
    without = {name: value for name, value in given.items() if name != "tree"}

    def step(model: nn.Module, given: dict[str, Any]) -> None:
        model(**given).loss.backward()

    step(untouched, without)
    try:
        with no_number_is_read_back(device):
            step(untouched, without)
    except RuntimeError:
        pytest.skip("the model without a bridge waits for the GPU")
    model = bridge(family).train().to(device)
    step(model, given)
    with no_number_is_read_back(device):
        step(model, given)


def test_pytorchs_encoder_is_that_of_the_cpu(device: torch.device):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 24, batch_first=True, dropout=0.0)
    made = ts.TransformerEncoderBridge(nn.TransformerEncoder(layer, 2), "stack_pe+relation_mask")
    for parameter in made.injections.parameters():
        nn.init.normal_(parameter, std=0.3)
    src, padding = torch.randn(2, 7, 32), BATCH.token_node.lt(-1)
    found = []
    for place in (torch.device("cpu"), device):
        model = copy.deepcopy(made).train().to(place)
        output = model(
            src.to(place), src_key_padding_mask=padding.to(place), tree=moved(BATCH, place)
        )
        output.square().mean().backward()
        gradients = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
        found.append({"output": output.detach().cpu(), **gradients})
    expect_the_same(found[1], found[0])


@pytest.mark.parametrize(
    ("family", "options"),
    [("BERT", {"bf16": True}), ("ModernBERT", {}), ("T5", {"bf16": True}), ("Llama", {"fp16": True}),
     ("BERT", {"gradient_checkpointing": True}), ("BERT", {"torch_compile": True})],
)  # fmt: skip
def test_the_trainer_uses_the_gpu(
    family: str, options: dict[str, Any], tmp_path: Path, device: torch.device
):
    if device.type == "cpu":
        if options.get("fp16"):
            pytest.skip("needs a CUDA GPU")
        options = {**options, "use_cpu": True}
    from bridges.test_matrix import Rows, collate

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=6, per_device_train_batch_size=2, save_steps=3,
        learning_rate=0.01, report_to=[], disable_tqdm=True, seed=3, **options,
    )  # fmt: skip

    def trainer() -> Any:
        return transformers.Trainer(
            model=bridge(family), args=arguments, data_collator=collate,
            train_dataset=Rows(family), eval_dataset=Rows(family),
        )  # fmt: skip

    made = trainer()
    first = made.evaluate()["eval_loss"]
    tables = {
        name: value.clone() for name, value in made.model.state_dict().items() if "trees." in name
    }
    made.train()
    assert next(made.model.parameters()).device.type == device.type
    assert made.evaluate()["eval_loss"] < first
    for name, value in made.model.state_dict().items():
        if name in tables:
            assert not torch.equal(value.cpu(), tables[name].cpu()), name
    resumed = trainer()
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert resumed.state.global_step == 6

"""The table of docs/huggingface.md, cell by cell: what people do with a model, in each family."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from reliability.fairseq_jobs import SOAK
from support import ROOT
from support.bridges.families import (
    FAMILIES,
    SPEC,
    bridge,
    decodes,
    gradients,
    inputs,
    loss_and_gradients,
    plain,
    prompts,
)
from support.bridges.replicas import in_replicas
from support.bridges.tiny_models import BATCH, SIZES
from torch import Tensor

import treesyntax as ts
from treesyntax.bridges.huggingface import HuggingFaceBridge

transformers = pytest.importorskip("transformers")

PAGE = (ROOT / "docs/huggingface.md").read_text("utf-8")


def same(found: Tensor, expected: Tensor, atol: float = 1e-6) -> None:
    assert torch.allclose(found.float(), expected.float(), atol=atol), (
        (found - expected).abs().max()
    )


def same_gradients(
    found: dict[str, Tensor], expected: dict[str, Tensor], atol: float = 1e-5
) -> None:
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        assert torch.allclose(found[name], one, atol=atol), name


def forward(family: str, folder: Path) -> str:
    """Zero tables are the untouched model; a sentence does not see those beside it."""
    given = inputs(family)
    real = given["attention_mask"].bool()
    with torch.no_grad():
        untouched = plain(family)(**{name: given[name] for name in given if name != "tree"})
        same(bridge(family, 0)(**given).logits[real], untouched.logits[real])
        made = bridge(family)
        both = made(**given).logits
        alone = {name: part[1:, :4] for name, part in given.items() if name != "tree"}
        tree = ts.TreeBatch(BATCH.parent[1:], BATCH.branch[1:], BATCH.token_node[1:, :4])
        same(made(**alone, tree=tree).logits[0], both[1, :4])
        assert (both - untouched.logits)[real].abs().max() > 1e-5
    return "equal"


class Rows(torch.utils.data.Dataset):
    """The two sentences, several times."""

    def __init__(self, family: str) -> None:
        self.given = inputs(family)
        self.tree = self.given.pop("tree").to_dict()

    def __len__(self) -> int:
        return 8

    def __getitem__(self, number: int) -> dict[str, Any]:
        row = {name: part[number % 2] for name, part in self.given.items()}
        tree = {f"tree_{name}": part[number % 2] for name, part in self.tree.items()}
        return {**row, "tree": tree}


def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
    batch = {
        name: torch.stack([row[name] for row in rows])
        for name in ("input_ids", "attention_mask", "labels")
    }
    tree = {
        name: torch.stack([row["tree"][f"tree_{name}"] for row in rows])
        for name in ("parent", "branch", "token_node")
    }
    return {**batch, "tree": tree}


def trainer_for(family: str, folder: Path, **options: Any) -> Any:
    generates = "ForConditionalGeneration" in FAMILIES[family]
    kind = "Seq2Seq" if generates else ""
    arguments = getattr(transformers, f"{kind}TrainingArguments")(
        output_dir=str(folder), max_steps=4, per_device_train_batch_size=2, save_steps=2,
        learning_rate=0.01, use_cpu=True, report_to=[], disable_tqdm=True, seed=3,
        **({"predict_with_generate": True, "generation_max_length": 5} if generates else {}),
        **options,
    )  # fmt: skip
    return getattr(transformers, f"{kind}Trainer")(
        model=bridge(family), args=arguments, data_collator=collate,
        train_dataset=Rows(family), eval_dataset=Rows(family),
    )  # fmt: skip


def trainer(family: str, folder: Path) -> str:
    """Trained in one go, and taken up again from a checkpoint; columns are removed by default."""
    whole = trainer_for(family, folder)
    whole.train()
    assert whole.evaluate()["eval_loss"] > 0
    expected = whole.model.state_dict()
    resumed = trainer_for(family, folder)
    start = {name: one.clone() for name, one in resumed.model.state_dict().items()}
    resumed.train(resume_from_checkpoint=str(folder / "checkpoint-2"))
    for name, one in resumed.model.state_dict().items():
        assert torch.allclose(one, expected[name], atol=1e-6), name
    changed = [name for name in start if not torch.equal(start[name], expected[name])]
    assert {name.split("trees.")[1].split(".")[0] for name in changed if "trees." in name} == {
        "relation_mask", "relative_depth", "depth_sibling",
    }  # fmt: skip
    if "ForConditionalGeneration" in FAMILIES[family]:
        assert whole.predict(Rows(family)).predictions.shape[0] == 8
    return "equal"


def generate(family: str, folder: Path) -> str:
    """With a cache as without one, for one output and for beams; zero tables are the untouched model."""
    model = bridge(family)
    if not model.can_generate():
        assert not hasattr(model, "generate")
        return "not applicable"
    given = prompts(family)
    options = {
        "max_new_tokens": 5, "do_sample": False, "eos_token_id": None, "pad_token_id": 0,
        "return_dict_in_generate": True, "output_logits": True,
    }  # fmt: skip
    found = model.generate(**given, **options)
    without = model.generate(**given, **options, use_cache=False)
    assert torch.equal(found.sequences, without.sequences)
    for one, other in zip(found.logits, without.logits, strict=True):
        same(one, other)
    beams = [
        model.generate(**given, **options, num_beams=3, use_cache=cache).sequences
        for cache in (True, False)
    ]
    assert torch.equal(*beams)
    if not decodes(family):  # step by step from the model's own forward
        forced = model(**given, decoder_input_ids=found.sequences[:, :-1]).logits
    else:
        lengthened = torch.nn.functional.pad(given["tree"].token_node, (0, 5), value=-1)
        tree = ts.TreeBatch(given["tree"].parent, given["tree"].branch, lengthened)
        mask = torch.nn.functional.pad(given["attention_mask"], (0, 5), value=1)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        forced = model(
            input_ids=found.sequences, attention_mask=mask, position_ids=positions, tree=tree
        ).logits[:, -6:-1]
    same(torch.stack(found.logits, 1), forced, 1e-5)
    given.pop("tree")
    untouched = plain(family).generate(**given, **options)
    zero = bridge(family, 0).generate(**given, **options, tree=prompts(family)["tree"])
    assert torch.equal(zero.sequences, untouched.sequences)
    return "equal"


def compile_(family: str, folder: Path) -> str:
    """One graph, with the gradients of the model that is not compiled."""
    torch._dynamo.reset()
    made, given = bridge(family), inputs(family)
    if decodes(family):
        given.pop("labels")  # the loss of transformers' GPT-2 writes to a log
    logits = made(**given).logits
    logits.square().mean().backward()
    wanted = gradients(made)
    found = torch.compile(made, backend="eager", fullgraph=True)(**given).logits
    same(found, logits)
    found.square().mean().backward()
    same_gradients(gradients(made), wanted)
    return "equal"


def replicate(family: str, folder: Path) -> str:
    """What nn.DataParallel does: a row a replica."""
    made, given = bridge(family), inputs(family)
    made(**given).logits.square().mean().backward()
    wanted = gradients(made)
    found = in_replicas(made, {**given, "tree": BATCH.to_dict()})
    torch.cat([one.logits for one in found]).square().mean().backward()
    same_gradients(gradients(made), wanted)
    return "equal"


def save(family: str, folder: Path) -> str:
    """Saved and loaded by the methods of any model; tied weights are in the file once."""
    from safetensors import safe_open

    made, given = bridge(family), inputs(family)
    made.save_pretrained(folder)
    with safe_open(folder / "model.safetensors", "pt") as file:
        names = [*file.keys()]
    tied = {one.data_ptr(): name for name, one in made.state_dict().items()}
    assert len(names) == len(tied)
    for load in (HuggingFaceBridge.from_pretrained, type(made).from_pretrained):
        loaded = load(folder)
        assert type(loaded) is type(made)
        assert loaded.spec == SPEC
        assert torch.equal(loaded(**given).logits, made(**given).logits)
    return "equal"


def checkpointing(family: str, folder: Path) -> str:
    """Layers that are computed again have the same trees."""
    made, given = bridge(family).train(), inputs(family)
    for part in made.modules():  # no dropout
        part.p = 0.0 if isinstance(part, torch.nn.Dropout) else getattr(part, "p", 0.0)
        for name in ("dropout", "attention_dropout", "activation_dropout", "dropout_rate"):
            if isinstance(vars(part).get(name), float):
                setattr(part, name, 0.0)
    loss, wanted = loss_and_gradients(made, given)
    made.activation_checkpointing_enable()
    assert made.is_activation_checkpointing
    found, gradient = loss_and_gradients(made, given)
    same(found, loss)
    same_gradients(gradient, wanted)
    return "equal"


def bf16(family: str, folder: Path) -> str:
    """Zero tables are the untouched model, and trees change what they change in single precision."""
    given = inputs(family)
    real = given["attention_mask"].bool()
    with torch.no_grad():
        exact = bridge(family)(**given).logits[real]
        half = bridge(family).to(torch.bfloat16)(**given).logits[real]
        assert half.dtype == torch.bfloat16
        assert (half - exact).abs().max() < 0.03 * exact.abs().max() + 0.03
        zero = bridge(family, 0).to(torch.bfloat16)(**given).logits[real]
        given.pop("tree")
        untouched = plain(family).to(torch.bfloat16)(**given).logits[real]
        assert (zero - untouched).abs().max() < 0.02 * untouched.abs().max() + 0.01
    return "equal"


COLUMNS: dict[str, Callable[[str, Path], str]] = {
    "forward": forward, "Trainer": trainer, "generate": generate, "compile": compile_,
    "replicate": replicate, "save/load": save, "checkpointing": checkpointing, "bf16": bf16,
}  # fmt: skip


def table() -> dict[str, dict[str, str]]:
    """The cells of the page, by family and column."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith("|") and line.count("|") == len(COLUMNS) + 2
    ]
    head, _, *body = rows
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


def test_the_table_has_all_families_and_columns():
    found = table()
    assert [*found] == [
        "BERT",
        "RoBERTa",
        "ModernBERT",
        "DeBERTa-v2",
        "T5",
        "BART",
        "GPT-2",
        "Llama",
    ]
    assert all([*row] == [*COLUMNS] for row in found.values())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("column", COLUMNS)
def test_the_table_is_right(family: str, column: str, tmp_path: Path):
    if column == "compile" and not SOAK:
        pytest.skip("test_calls.py compiles BERT; TREESYNTAX_SOAK=1 compiles all")
    assert COLUMNS[column](family, tmp_path) == table()[family][column]


def test_what_the_table_refuses_is_refused_with_the_line_of_the_page():
    assert set(table()["DeBERTa-v2"].values()) == {"refused"}
    model = transformers.DebertaV2ForTokenClassification(transformers.DebertaV2Config(**SIZES))
    with pytest.raises(ts.OptionError) as refusal:
        HuggingFaceBridge(model, SPEC)
    assert str(refusal.value) in re.sub(r"\s+", " ", PAGE)

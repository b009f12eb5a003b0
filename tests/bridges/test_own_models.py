"""A bridge within a user's own model of transformers, which transformers builds, fills, saves and loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.bridges.families import bridge
from support.bridges.tiny_models import BATCH, INPUTS, MODELS, set_tables
from torch import Tensor, nn

import treesyntax as ts
from treesyntax.bridges.huggingface import HuggingFaceBridge

transformers = pytest.importorskip("transformers")

CONFIG = transformers.BertConfig(**MODELS["Bert"])


class Tagger(transformers.BertPreTrainedModel):
    def __init__(self, config: Any, tables: float | None = None) -> None:
        super().__init__(config)
        spec = "relation_mask+relative_depth+stack_pe"
        self.bert = HuggingFaceBridge(transformers.BertModel(config), spec)
        if tables is not None:
            for parameter in self.bert.injections.parameters():
                nn.init.constant_(parameter, tables)
        self.post_init()

    def forward(self, **given: Any) -> Tensor:
        return self.bert(**given).last_hidden_state


@pytest.fixture
def full_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that is not zero where transformers takes some."""
    take = torch.empty_like
    monkeypatch.setattr(torch, "empty_like", lambda *args, **more: take(*args, **more).fill_(7))


@pytest.mark.usefixtures("full_memory")
def test_what_no_file_has_begins_as_it_was_built(tmp_path: Path):
    """Tables, and buffers that are never saved, were whatever stood in memory."""
    transformers.BertModel(CONFIG).save_pretrained(tmp_path / "bert")
    loaded = Tagger.from_pretrained(tmp_path / "bert").eval()
    methods = loaded.bert.injections
    for name, tensor in [*methods.named_parameters(), *methods.named_buffers()]:
        assert not tensor.eq(7).any(), name
    assert not methods["relation_mask"].strengths.any()
    membership = Tagger(CONFIG).bert.injections["relation_mask"].membership
    assert torch.equal(methods["relation_mask"].membership, membership)

    set_tables(loaded.bert, 0.5)
    loaded.save_pretrained(tmp_path / "tagger")
    again = Tagger.from_pretrained(tmp_path / "tagger").eval()
    assert torch.equal(again(**INPUTS, tree=BATCH), loaded(**INPUTS, tree=BATCH))


def test_what_a_model_sets_stays():
    """transformers fills a new model after it is built, apart from what it has filled before."""
    methods = Tagger(CONFIG, tables=0.25).bert.injections
    assert all(parameter.eq(0.25).all() for parameter in methods.parameters())


@pytest.mark.parametrize("kind", ["BERT", "encoder"])
def test_a_bridge_without_memory_is_filled_from_a_file(kind: str, tmp_path: Path):
    """By accelerate, which keeps the buffers of a model, as no file has them."""
    accelerate = pytest.importorskip("accelerate")

    def make_bridge() -> Any:
        if kind == "BERT":
            return bridge("BERT", spec="relation_mask")
        layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, dropout=0.0)
        return ts.TransformerEncoderBridge(nn.TransformerEncoder(layer, 2), "relation_mask").eval()

    made, given = make_bridge(), {**INPUTS, "tree": BATCH}
    if kind == "encoder":
        given = {"src": torch.randn(2, 7, 16), "tree": BATCH}
    torch.save(made.state_dict(), tmp_path / "pytorch_model.bin")
    with accelerate.init_empty_weights():
        empty = make_bridge()
    file, everywhere = str(tmp_path / "pytorch_model.bin"), {"": "cpu"}
    filled = accelerate.load_checkpoint_and_dispatch(empty, file, device_map=everywhere)
    expected, output = made(**given), filled(**given)
    same = (output, expected) if kind == "encoder" else (output.logits, expected.logits)
    assert torch.equal(*same)


def test_a_bridge_over_pytorchs_encoder_is_refused_where_its_tables_would_be_lost():
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True)
    with (
        torch.device("meta"),
        pytest.raises(ts.OptionError, match="cannot be made under the device meta, as from_pre"),
    ):
        ts.TransformerEncoderBridge(nn.TransformerEncoder(layer, 2), "relation_mask")

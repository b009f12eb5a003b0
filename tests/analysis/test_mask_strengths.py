"""Analyses of checkpoints: the facts of a training, the strengths of relation masks."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch

from treesyntax.analysis import mask_strengths
from treesyntax.analysis.mask_strengths import compute_strengths, draw_strengths
from treesyntax.nn.relations import RELATIONS
from treesyntax.study.run import facts as checkpoint_facts

LAYERS, HEADS = 4, 2


def checkpoint(values: torch.Tensor | None = None) -> dict:
    shared = torch.zeros(5, 3)
    model = {
        "encoder.version": torch.tensor([3.0]),
        "encoder.embed_tokens.weight": shared,
        "decoder.output_projection.weight": shared,
        "decoder.fc.weight": torch.zeros(2, 7),
        "decoder.fc.bias": torch.zeros(7),
    }
    if values is not None:
        model[mask_strengths.KEY.format(side="encoder")] = values
    return {
        "model": model,
        "cfg": {"model": Namespace(encoder_injection="relation_mask")},
        "optimizer_history": [{"num_updates": 3}, {"num_updates": 12}],
        "extra_state": {"val_loss": 2.5, "previous_training_time": 8.25},
    }


def strengths() -> torch.Tensor:
    return torch.randn(LAYERS, HEADS, len(RELATIONS), generator=torch.Generator().manual_seed(1))


def test_strengths_are_read_as_they_are():
    values = strengths()
    found = compute_strengths(checkpoint(values))
    assert np.allclose(found.values, values.numpy())
    assert found.relations == RELATIONS


def test_a_choice_of_masks_keeps_its_names_and_form():
    state = checkpoint(torch.ones(1, HEADS, 2))
    spec = "stack_pe+relation_mask(relations='parent, up=parent|ancestor', form='additive')"
    state["cfg"]["model"] = {"encoder_injection": spec}  # as fairseq stores it today
    found = compute_strengths(state)
    assert found.relations == ("parent", "up")
    labels = [axes.get_ylabel() for axes in draw_strengths(found).axes]
    assert "strength s   (adds s)" in labels


@pytest.mark.parametrize("values", [strengths(), torch.zeros(LAYERS, HEADS, len(RELATIONS))])
def test_a_panel_a_layer_on_one_scale_around_zero(values: torch.Tensor):
    figure = draw_strengths(compute_strengths(checkpoint(values)))
    panels = [axes for axes in figure.axes if axes.get_title().startswith("layer")]
    assert [axes.get_title() for axes in panels] == [f"layer {n + 1}" for n in range(LAYERS)]
    for layer, axes in enumerate(panels):
        (image,) = axes.collections
        assert np.allclose(image.get_array(), values[layer].numpy())
        low, high = image.get_clim()
        assert low == -high
        assert high == pytest.approx(float(values.abs().max()) or 1.0)
        names = [label.get_text() for label in axes.get_xticklabels()]
        assert names == [name.replace("_", " ") for name in RELATIONS]
        assert axes.get_xlabel()
    assert panels[0].get_ylabel() == "head"
    assert any("strength" in axes.get_ylabel() for axes in figure.axes)


def test_the_command_writes_figure_and_numbers(tmp_path: Path):
    values = strengths()
    path, out = tmp_path / "checkpoint_best.pt", tmp_path / "new" / "figures"
    torch.save(checkpoint(values), path)
    assert mask_strengths.main([str(path), "--out", str(out)]) == 0
    assert {file.name for file in out.iterdir()} == {
        "mask_strengths.svg", "mask_strengths.png", "mask_strengths.json",
    }  # fmt: skip
    numbers = json.loads((out / "mask_strengths.json").read_text())
    assert np.allclose(numbers["strengths"], values.numpy())
    assert numbers["relations"] == list(RELATIONS)
    assert "right sibling" in (out / "mask_strengths.svg").read_text()
    assert (out / "mask_strengths.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            checkpoint(),
            "has no relation masks in its encoder; give one of --encoder-injection relation_mask",
        ),
        ({"x": 1}, "holds no model"),
        (None, "cannot be read"),
    ],
)
def test_a_checkpoint_without_masks_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture, state: dict | None, message: str
):
    path = tmp_path / "c.pt"
    if state is not None:
        torch.save(state, path)
    assert mask_strengths.main([str(path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"mask_strengths: {path}")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_facts_of_a_training(tmp_path: Path, capsys: pytest.CaptureFixture):
    best, last = tmp_path / "best.pt", tmp_path / "last.pt"
    torch.save(checkpoint(), best)
    later = checkpoint()
    later["optimizer_history"].append({"num_updates": 20})
    later["extra_state"] = {"val_loss": 9.0, "previous_training_time": 10.5}
    torch.save(later, last)
    assert checkpoint_facts.main([str(best), "--last", str(last)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "parameters": 15 + 14 + 7, "valid_loss": 2.5, "best_update": 12, "updates": 20,
        "train_seconds": 10.5, "injection": "relation_mask",
    }  # fmt: skip


def test_views_of_one_tensor_that_differ_count_each():
    base = torch.zeros(10)
    assert checkpoint_facts.count_parameters({"a": base[:4], "b": base[4:], "c": base[:4]}) == 10


def test_a_checkpoint_without_training_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    torch.save({"model": {}}, tmp_path / "c.pt")
    assert checkpoint_facts.main([str(tmp_path / "c.pt")]) == 2
    assert "is no checkpoint of a training" in capsys.readouterr().err

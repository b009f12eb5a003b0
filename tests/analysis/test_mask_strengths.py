"""Analyses of checkpoints: the facts of a training, the strengths of relation masks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from support.analysis_helpers import analyse, flags_of, refused

from treesyntax.analysis.facts import count_parameters
from treesyntax.analysis.mask_strengths import (
    Strengths,
    draw_strengths,
    read_strengths,
    table_rows,
)
from treesyntax.nn.relations import RELATIONS

LAYERS, HEADS = 4, 2


def checkpoint(values: torch.Tensor | None = None, spec: str = "relation_mask") -> dict:
    shared = torch.zeros(5, 3)
    model = {
        "encoder.version": torch.tensor([3.0]),
        "encoder.embed_tokens.weight": shared,
        "decoder.output_projection.weight": shared,
        "decoder.fc.weight": torch.zeros(2, 7),
        "decoder.fc.bias": torch.zeros(7),
    }
    if values is not None:
        model["encoder.injections.relation_mask.strengths"] = values
    return {
        "model": model,
        "cfg": {"model": flags_of(spec, encoder_layers=LAYERS, encoder_attention_heads=HEADS)},
        "optimizer_history": [{"num_updates": 3}, {"num_updates": 12}],
        "extra_state": {"val_loss": 2.5, "previous_training_time": 8.25},
    }


def strengths() -> torch.Tensor:
    return torch.randn(LAYERS, HEADS, len(RELATIONS), generator=torch.Generator().manual_seed(1))


def read(folder: Path, state: dict) -> Strengths:
    torch.save(state, folder / "c.pt")
    return read_strengths(folder / "c.pt")


def test_strengths_are_read_as_they_are(tmp_path: Path):
    values = strengths()
    found = read(tmp_path, checkpoint(values))
    assert np.allclose(found.values, values.numpy())
    assert found.relations == RELATIONS


def test_the_table_has_the_ends_of_each_head_layer_and_the_model(tmp_path: Path):
    values = np.array([[[-1.0, 0.5], [2.0, -3.25]], [[0.0, 1.0], [4.0, -0.5]]])
    rows = table_rows(Strengths(values, ("parent", "left_sibling")))
    assert rows == [
        ["1", "1", "−1.00", "parent", "0.50", "left sibling", "1.50"],
        ["1", "2", "−3.25", "left sibling", "2.00", "parent", "5.25"],
        ["2", "1", "0.00", "parent", "1.00", "left sibling", "1.00"],
        ["2", "2", "−0.50", "left sibling", "4.00", "parent", "4.50"],
        ["1", "all", "−3.25", "left sibling", "2.00", "parent", "5.25"],
        ["2", "all", "−0.50", "left sibling", "4.00", "parent", "4.50"],
        ["all", "all", "−3.25", "left sibling", "4.00", "parent", "7.25"],
    ]
    assert len(table_rows(Strengths(values[:1, :1], ("parent", "left_sibling")))) == 1
    torch.save(
        checkpoint(torch.tensor(values).repeat(2, 1, 1), "relation_mask(relations='parent, self')"),
        tmp_path / "c.pt",
    )
    out = tmp_path / "out"
    assert analyse("mask_strengths", tmp_path / "c.pt", "--out", out) == 0
    markdown, latex = (
        (out / f"mask_strengths.{suffix}").read_text("utf-8").splitlines()
        for suffix in ("md", "tex")
    )
    assert markdown[0] == "| layer | head | smallest | of | largest | of | range |"
    assert markdown[-1] == "| all | all | −3.25 | self | 4.00 | parent | 7.25 |"
    assert r"\caption{Strengths of relation masks, encoder}" in latex
    assert r"all & all & $-$3.25 & self & 4.00 & parent & 7.25 \\" in latex


def test_a_choice_of_masks_keeps_its_names_and_form(tmp_path: Path):
    spec = "relation_mask(relations='parent, up=parent|ancestor', form='additive', per_layer=False)"
    state = checkpoint(torch.ones(1, HEADS, 2), spec)
    state["cfg"]["model"] = vars(state["cfg"]["model"])  # as fairseq stores it today
    found = read(tmp_path, state)
    assert found.relations == ("parent", "up")
    labels = [axes.get_ylabel() for axes in draw_strengths(found).axes]
    assert "strength s   (adds s)" in labels


@pytest.mark.parametrize("values", [strengths(), torch.zeros(LAYERS, HEADS, len(RELATIONS))])
def test_a_panel_a_layer_on_one_scale_around_zero(tmp_path: Path, values: torch.Tensor):
    figure = draw_strengths(read(tmp_path, checkpoint(values)))
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
    words = ("--out", out, "--format", "pdf", "png", "--width", 4)
    assert analyse("mask_strengths", path, *words) == 0
    assert {file.name for file in out.iterdir()} == {
        "mask_strengths.svg", "mask_strengths.pdf", "mask_strengths.png", "mask_strengths.json",
            "mask_strengths.md", "mask_strengths.tex",
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
            checkpoint(spec="none"),
            "has no relation_mask in its encoder; give one of --encoder-injection relation_mask",
        ),
        ({"x": 1}, "holds no model"),
        (None, "does not exist; there is no study here"),
    ],
)
def test_a_checkpoint_without_masks_is_one_clear_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    state: dict | None,
    message: str,
):
    monkeypatch.chdir(tmp_path)  # a checkout where make demo ran has a study
    path = tmp_path / "c.pt"
    if state is not None:
        torch.save(state, path)
    error = refused(capsys, tmp_path / "out", "mask_strengths", path)
    assert error.startswith(f"treesyntax analyse: {path}")
    assert message in error


def test_facts_of_a_training(tmp_path: Path, capsys: pytest.CaptureFixture):
    best, last = tmp_path / "best.pt", tmp_path / "last.pt"
    torch.save(checkpoint(), best)
    later = checkpoint()
    later["optimizer_history"].append({"num_updates": 20})
    later["extra_state"] = {"val_loss": 9.0, "previous_training_time": 10.5}
    torch.save(later, last)
    assert analyse("facts", best, "--last", last) == 0
    assert json.loads(capsys.readouterr().out) == {
        "parameters": 15 + 14 + 7, "valid_loss": 2.5, "best_update": 12, "updates": 20,
        "train_seconds": 10.5, "injection": "relation_mask",
    }  # fmt: skip


def test_views_of_one_tensor_that_differ_count_each():
    base = torch.zeros(10)
    assert count_parameters({"a": base[:4], "b": base[4:], "c": base[:4]}) == 10


def test_a_checkpoint_without_training_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    torch.save({"model": {}}, tmp_path / "c.pt")
    assert analyse("facts", tmp_path / "c.pt") == 2
    assert "is no checkpoint of a training" in capsys.readouterr().err

"""Figures of several runs on one scale."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.analysis_helpers import analyse, refused

from treesyntax.analysis.arguments import PANELS
from treesyntax.analysis.paper.panels import KINDS, Run, draw_panels, find_limits

RELATIONS = ["self", "left_sibling", "parent"]


def write_study(folder: Path, side: str = "encoder") -> dict[str, np.ndarray]:
    """Strengths of 2 layers, 3 heads and 3 relations for two rows with two seeds."""
    random, found = np.random.default_rng(1), {}
    for number, name in enumerate(("masks-1", "masks-2", "a-row-1", "a-row-2"), start=1):
        values = random.normal(0, number, (2, 3, 3))
        place = folder / "runs" / name / "analyses" / side
        place.mkdir(parents=True)
        content = {"relations": RELATIONS, "strengths": values.tolist()}
        (place / "mask_strengths.json").write_text(json.dumps(content))
        found[name] = values
    return found


def numbers_of(out: Path, kind: str = "mask_strengths") -> dict:
    return json.loads((out / f"panels_{kind}.json").read_text())


def test_all_kinds_can_be_asked_for():
    assert tuple(KINDS) == PANELS


def test_all_runs_share_one_scale_and_layers_and_heads_are_chosen(tmp_path: Path):
    values = write_study(tmp_path / "study")
    out = tmp_path / "out"
    assert analyse("panels", tmp_path / "study", "--out", out) == 0
    whole = numbers_of(out)
    assert sorted(whole["strengths"]) == sorted(values)
    largest = max(np.abs(one).max() for one in values.values())
    assert whole["scale"] == pytest.approx([-largest, largest])
    words = ("--rows", "masks", "--seeds", 2, "--layers", 2, "--heads", 3, 1, "--limit", 9)
    assert analyse("panels", tmp_path / "study", *words, "--out", out) == 0
    part = numbers_of(out)
    assert (part["layers"], part["heads"], part["scale"]) == ([2], [3, 1], [-9, 9])
    assert list(part["strengths"]) == ["masks-2"]
    assert np.allclose(part["strengths"]["masks-2"], values["masks-2"][[1]][:, [2, 0]])
    text = (out / "panels_mask_strengths.svg").read_text()
    for shown in ("layer 2", "masks-2", "left sibling"):
        assert shown in text
    assert "layer 1" not in text


def test_a_row_of_panels_is_a_run():
    runs = [Run(name, np.full((2, 2, 3), size), tuple(RELATIONS)) for name, size in
            (("one", 1.0), ("two", -4.0))]  # fmt: skip
    figure = draw_panels(runs, KINDS["mask_strengths"], [0, 1], [1], (-4.0, 4.0))
    panels = figure.axes[:4]
    assert [panel.get_title() for panel in panels] == ["layer 1", "layer 2", "", ""]
    assert [panel.get_ylabel() for panel in panels] == ["one\nhead", "", "two\nhead", ""]
    for panel, size in zip(panels, (1, 1, -4, -4), strict=True):
        assert panel.collections[0].get_clim() == (-4, 4)
        assert np.all(panel.collections[0].get_array() == size)
    assert [label.get_text() for label in panels[2].get_yticklabels()] == ["2"]


def test_masks_of_a_sentence_have_a_row_a_layer_and_a_column_a_head():
    values = np.arange(2 * 2 * 9, dtype=float).reshape(2, 2, 3, 3)
    tokens = ("a_1", "_", "c")
    figure = draw_panels([Run("r", values, tokens)], KINDS["sentence_masks"], [1], [0, 1], (-9, 9))
    panels = figure.axes[:2]
    for labels in (panels[0].get_yticklabels(), panels[1].get_xticklabels()):
        assert tuple(label.get_text() for label in labels) == tokens
    assert [panel.get_title() for panel in panels] == ["head 1", "head 2"]
    assert panels[0].get_ylabel() == "r, layer 2\nquery"
    assert np.allclose(panels[1].collections[0].get_array(), values[1, 1])


def test_scales_leave_out_what_is_no_number():
    blocks = [np.array([np.nan, 0.25]), np.array([np.nan, -0.5])]
    assert find_limits(blocks, KINDS["mask_strengths"].palette) == (-0.5, 0.5)
    assert find_limits(blocks, KINDS["attention_mass"].palette) == (0.0, 0.5)
    assert find_limits([np.array([np.nan])], KINDS["mask_strengths"].palette) == (-1.0, 1.0)


def test_single_files_are_drawn_and_null_is_hatched(tmp_path: Path):
    path = tmp_path / "plain" / "attention_mass.json"
    path.parent.mkdir()
    content = {"relations": ["self", "parent"], "log2_mass_over_chance": [[[1.5, None]]]}
    path.write_text(json.dumps(content))
    kind = "attention_against_chance"
    assert analyse("panels", path, "--kind", kind, "--out", tmp_path / "out") == 0
    found = numbers_of(tmp_path / "out", kind)
    assert found["log2_mass_over_chance"] == {"plain": [[[1.5, None]]]}
    assert found["scale"] == [-1.5, 1.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "nobody"], "none is chosen by --rows and --seeds"),
        (["--side", "decoder"], "no run has decoder/mask_strengths.json"),
        (["--layers", "3"], "--layers 3: there are layers 1 to 2"),
        (["--heads", "0"], "--heads 0: there are heads 1 to 3"),
        (["--limit", "0"], "--limit 0: give more than 0"),
        (["--limit", "nan"], "give more than 0"),
        (["--width", "900"], "--width 900: give 2 to 40 inches"),
    ],
)
def test_a_fault_is_one_clear_line(tmp_path, capsys, options, message):
    write_study(tmp_path / "study")
    assert message in refused(capsys, tmp_path / "out", "panels", tmp_path / "study", *options)


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", '{"relations": 3, "strengths": [[[1]]]}', '{"relations": ["a"], "strengths": "x"}',
     '{"relations": ["a"], "strengths": [[[1, 2]]]}', '{"relations": [], "strengths": []}', "{"],
)  # fmt: skip
def test_other_numbers_are_refused_by_name(tmp_path, capsys, content):
    write_study(tmp_path / "study")
    file = tmp_path / "study/runs/masks-1/analyses/encoder/mask_strengths.json"
    file.write_text(content)
    assert str(file) in refused(capsys, tmp_path / "out", "panels", tmp_path / "study")


def test_runs_of_other_sizes_are_refused(tmp_path, capsys):
    write_study(tmp_path / "study")
    file = tmp_path / "study/runs/masks-2/analyses/encoder/mask_strengths.json"
    file.write_text(json.dumps({"relations": RELATIONS, "strengths": [[[1, 2, 3]]]}))
    error = refused(capsys, tmp_path / "out", "panels", tmp_path / "study")
    assert "has other relations, layers or heads than" in error

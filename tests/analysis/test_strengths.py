"""Tables of relative distances, strengths of several studies, strengths over a training."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support import study_helpers
from support.analysis_helpers import HEADS, LAYERS, analyse, build_methods, refused, save_methods
from support.study_helpers import result, write_recipe
from torch import nn

from treesyntax.analysis.relative_tables import compute_tables, describe, draw_table
from treesyntax.analysis.strength_study import draw_rows, read_rows
from treesyntax.analysis.strength_trajectories import draw_trajectories, read_moment
from treesyntax.nn.relations import RELATIONS
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.results import write_results

SPEC = "relative_depth(clip=3, values=False)+relative_position(clip=2, per_head=True)+relation_mask"


def test_norms_and_cosines_vector_by_vector():
    built = build_methods(SPEC)
    found = compute_tables(built)
    assert list(found) == [
        "relative_depth_keys", "relative_position_keys", "relative_position_values",
    ]  # fmt: skip
    assert found["relative_depth_keys"].norms.shape == (LAYERS, 1, 7)
    assert found["relative_depth_keys"].distances == ["≤ −3", "−2", "−1", "0", "+1", "+2", "≥ +3"]
    table = found["relative_position_values"]
    vectors = built["relative_position"].value_table.tolist()
    assert table.norms.shape == (LAYERS, HEADS, 5)
    for layer, head, i, j in np.ndindex(LAYERS, HEADS, 5, 5):
        first, second = vectors[layer][head][i], vectors[layer][head][j]
        assert table.norms[layer, head, i] == pytest.approx(math.hypot(*first))
        product = sum(a * b for a, b in zip(first, second, strict=True))
        expected = product / math.hypot(*first) / math.hypot(*second)
        assert table.cosines[layer, head, i, j] == pytest.approx(expected)


def test_a_vector_of_zeros_has_no_cosine():
    built = build_methods("relative_depth(clip=1)")
    with torch.no_grad():
        built["relative_depth"].key_table[0, 1] = 0
    table = compute_tables(built)["relative_depth_keys"]
    assert table.distances == ["≤ −1", "0", "≥ +1"]
    assert table.norms[0, 0, 1] == 0
    assert np.isnan(table.cosines[0, 0, 1]).all()
    assert np.isfinite(table.cosines[1]).all()
    figure = draw_table(table, "depth keys")
    lines = figure.axes[0].get_lines()
    assert [
        np.allclose(line.get_ydata(), table.norms[layer, 0]) for layer, line in enumerate(lines)
    ]
    assert len(lines) == LAYERS
    assert figure.axes[0].get_ylabel() == "length of the vector"


@pytest.mark.parametrize(
    ("clip", "named"),
    [(2, "≤ −2|−1|0|+1|≥ +2"), (16, "≤ −16|−12|−8|−4|0|+4|+8|+12|≥ +16"), (9, "≤ −9|−6|−3|0|+3|+6|≥ +9")],
)  # fmt: skip
def test_axes_name_few_of_many_distances(clip: int, named: str):
    table = describe(np.random.default_rng(1).normal(size=(2, 1, 2 * clip + 1, 4)))
    lengths, first, second, _ = draw_table(table, "keys").axes
    for axis in (lengths.xaxis, first.xaxis, first.yaxis, second.xaxis):
        assert "|".join(label.get_text() for label in axis.get_ticklabels()) == named
        assert [table.distances[round(row)] for row in axis.get_ticklocs()] == named.split("|")
    assert not second.get_yticks().size  # its rows are those of the panel before it


def test_the_tables_command(tmp_path: Path, capsys: pytest.CaptureFixture):
    path, out = save_methods(tmp_path / "c.pt", build_methods(SPEC), SPEC), tmp_path / "out"
    assert analyse("relative_tables", path, "--out", out) == 0
    names = {"relative_depth_keys", "relative_position_keys", "relative_position_values"}
    assert {file.name for file in out.iterdir()} == {
        "relative_tables.json", *(f"{name}.svg" for name in names),
    }  # fmt: skip
    numbers = json.loads((out / "relative_tables.json").read_text())
    assert set(numbers["tables"]) == names
    assert np.shape(numbers["tables"]["relative_depth_keys"]["cosines"]) == (LAYERS, 1, 7, 7)
    assert "≥ +3" in (out / "relative_depth_keys.svg").read_text()
    path = save_methods(tmp_path / "c.pt", build_methods("relation_mask"), "relation_mask")
    error = refused(capsys, tmp_path / "other", "relative_tables", path)
    assert "has no vectors of relative distances in its encoder; give one of" in error


def write_study(folder: Path, strengths: dict[str, list], recipe: str = "demo") -> Path:
    results = [
        result("sequence", 1, "bleu", 20), result("sequence", 2, "bleu", 22),
        result("relation_mask", 1, "bleu", 24), result("relation_mask", 2, "bleu", 25),
        result("relation_mask", 1, "chrf", 99),
    ]  # fmt: skip
    methods = {name: {"arch": f"tree_{name}_tiny"} for name in ("sequence", "relation_mask")}
    path = write_recipe(folder.parent, score=["bleu", "chrf"], methods=methods)
    study_helpers.write_study(folder, read_recipe(path))
    write_results(folder / "runs.jsonl", [replace(item, recipe=recipe) for item in results])
    for run, values in strengths.items():
        place = folder / "runs" / run / "analyses" / "encoder"
        place.mkdir(parents=True)
        (place / "mask_strengths.json").write_text(json.dumps({"strengths": values}))
    return folder


RUNS = {"relation_mask-1": [[[-1.0, 0.0, 3.0]]], "relation_mask-2": [[[-2.0, 0.5, 2.0]]]}


def test_strengths_beside_gains_by_hand(tmp_path: Path):
    (task,) = read_rows(write_study(tmp_path / "s", RUNS), "sequence", "bleu")
    assert (task.task, task.method, task.seeds) == ("demo", "relation_mask", (1, 2))
    assert (task.minimum, task.maximum, task.spread) == (-1.5, 2.5, 4.0)
    assert (task.score, task.baseline, task.gain) == (24.5, 21.0, 3.5)


def test_the_study_command(tmp_path: Path):
    first = write_study(tmp_path / "a", RUNS, "en-vi")
    second = write_study(tmp_path / "b", {"relation_mask-1": [[[-4.0, 4.0]]]}, "en-de")
    out = tmp_path / "out"
    words = (first, second, "--metric", "bleu", "--baseline", "sequence")
    assert analyse("strength_study", *words, "--out", out) == 0
    numbers = json.loads((out / "strength_study.json").read_text())
    assert [task["task"] for task in numbers["tasks"]] == ["en-vi", "en-de"]
    assert [task["range"] for task in numbers["tasks"]] == [4.0, 8.0]
    assert [task["gain"] for task in numbers["tasks"]] == [3.5, 3.5]
    drawing = (out / "strength_study.svg").read_text()
    assert "bleu minus that of sequence" in drawing
    assert "strength s" in drawing
    assert (out / "strength_study.md").read_text("utf-8") == (
        "| task | row | smallest | largest | range | bleu | baseline | its score | difference | runs |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        "| en-de | relation_mask | −4.00 | 4.00 | 8.00 | 24.50 | sequence | 21.00 | +3.50 | 2, 2 |\n"
        "| en-vi | relation_mask | −1.50 | 2.50 | 4.00 | 24.50 | sequence | 21.00 | +3.50 | 2, 2 |\n"
    )
    assert r"en-vi & relation\_mask & $-$1.50 & 2.50" in (out / "strength_study.tex").read_text()


def test_the_widest_range_is_on_top(tmp_path: Path):
    tasks = read_rows(write_study(tmp_path / "a", RUNS, "narrow"), "sequence", "bleu")
    wide = {"relation_mask-1": [[[-9.0, 9.0]]]}
    tasks = [*read_rows(write_study(tmp_path / "b", wide, "wide"), "sequence", "bleu"), *tasks]
    left = draw_rows(tasks, "bleu").axes[0]
    assert [label.get_text() for label in left.get_yticklabels()] == ["narrow", "wide"]
    lows, highs = left.get_lines()[:2]
    assert list(lows.get_xdata()) == [-1.5, -9]
    assert list(highs.get_xdata()) == [2.5, 9]


@pytest.mark.parametrize(
    ("strengths", "options", "message"),
    [
        (None, [], "recipe.yaml: cannot be read (No such file or directory)"),
        ({}, [], "has no runs/*/analyses/*/mask_strengths.json; give a study with a method"),
        (RUNS, ["--metric", "ter"],
         "has no ter of sequence; it has relation_mask, sequence in bleu"),
        (RUNS, ["--baseline", "x"], "has no bleu of x; it has"),
        ({"other-1": [1.0]}, [], "has no runs/*/analyses/*/mask_strengths.json"),
        ({"relation_mask-1": []}, [],
         "holds no strengths; run treesyntax analyse mask_strengths again"),
        ({"relation_mask-1": "x"}, [], "holds no strengths"),
    ],
)  # fmt: skip
def test_a_study_that_does_not_serve_is_one_clear_line(
    tmp_path, capsys, strengths, options, message
):
    folder, out = tmp_path / "s", tmp_path / "out"
    if strengths is not None:
        write_study(folder, strengths)
    words = (folder, "--metric", "bleu", "--baseline", "sequence", *options)
    assert message in refused(capsys, out, "strength_study", *words)


def test_trajectories_are_sorted_and_have_one_moment_an_update(tmp_path: Path):
    paths, kept = [], {}
    for name, update, strength in (
        ("c", 30, 3.0),
        ("a", 10, 1.0),
        ("best", 30, 9.0),
        ("b", 20, 2.0),
    ):
        built = build_methods("relation_mask")
        nn.init.constant_(built["relation_mask"].strengths, strength)
        paths.append(save_methods(tmp_path / f"{name}.pt", built, "relation_mask", update=update))
        kept.setdefault(update, strength)
    out = tmp_path / "out"
    assert analyse("strength_trajectories", *paths, "--out", out) == 0
    numbers = json.loads((out / "strength_trajectories.json").read_text())
    assert numbers["updates"] == [10, 20, 30]
    assert numbers["masks"] == list(RELATIONS)
    assert np.shape(numbers["strengths"]) == (3, LAYERS, HEADS, 9)
    assert [np.unique(moment).tolist() for moment in numbers["strengths"]] == [[1.0], [2.0], [3.0]]
    drawing = (out / "strength_trajectories.svg").read_text()
    for text in ("layer 2", "update", "right other", "strength s"):
        assert text in drawing


def test_a_line_is_the_mean_over_heads(tmp_path: Path):
    spec = "relation_mask(relations='parent, near=left_sibling|self')"
    built = build_methods(spec)
    moment = read_moment(save_methods(tmp_path / "c.pt", built, spec, update=4))
    assert moment.masks == ("parent", "near")
    figure = draw_trajectories([moment])
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    expected = built["relation_mask"].strengths[0, :, 1].mean().item()
    assert lines["near"].get_ydata()[0] == pytest.approx(expected)
    assert list(lines["near"].get_xdata()) == [4]


def test_checkpoints_of_two_trainings_are_one_clear_line(tmp_path, capsys):
    out, paths = tmp_path / "out", []
    for number, spec in enumerate(("relation_mask", "relation_mask(per_head=False)")):
        paths.append(save_methods(tmp_path / f"{number}.pt", build_methods(spec), spec))
    error = refused(capsys, out, "strength_trajectories", *paths)
    assert "1.pt: has other masks or sizes than" in error


def test_two_checkpoints_are_no_line(tmp_path, capsys):
    paths = [
        save_methods(
            tmp_path / f"{update}.pt",
            build_methods("relation_mask"),
            "relation_mask",
            update=update,
        )
        for update in (10, 20)
    ]
    error = refused(capsys, tmp_path / "out", "strength_trajectories", *paths, *paths)
    assert "there are checkpoints of 2 updates, too few for a line; keep more with" in error


@pytest.mark.parametrize(
    ("spec", "update", "message"),
    [
        ("relation_mask", None, "does not say its number of updates"),
        ("up_down", 5, "has no relation_mask in its encoder"),
    ],
)
def test_a_checkpoint_of_no_moment_is_one_clear_line(tmp_path, capsys, spec, update, message):
    path = save_methods(tmp_path / "c.pt", build_methods(spec), spec, update=update)
    assert message in refused(capsys, tmp_path / "out", "strength_trajectories", path)

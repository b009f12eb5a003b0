"""All analyses of a run in one go: which are made, what is said of the others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from analysis.test_encodings import write_all
from analysis.test_strengths import RUNS, write_study
from support.analysis_helpers import analyse, refused

from treesyntax.analysis.dispatch import Analysis, write_analyses
from treesyntax.analysis.run import MOST_NODES, choose_levels, choose_sentence, find_trees
from treesyntax.errors import OptionError


def run_folder(folder: Path, spec: str, side: str = "encoder") -> Path:
    """A run's checkpoints beside data with trees."""
    path = write_all(folder, spec, side)
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir()
    state = torch.load(path, weights_only=False)
    for name, update in (("best", 30), ("1_10", 10), ("1_20", 20), ("last", 30)):
        state["optimizer_history"] = [{"num_updates": update}]
        torch.save(state, checkpoints / f"checkpoint_{name}.pt")
    return checkpoints


def analysed(folder: Path, checkpoints: Path, *words: str) -> dict:
    out = folder / "analyses"
    assert analyse("run", checkpoints, folder, *words, "--out", out) == 0
    listed = json.loads((out / "analyses.json").read_text())
    files = {name for entry in listed["drawn"] for name in (*entry["figures"], *entry["numbers"])}
    on_disk = {str(path.relative_to(out)) for path in out.glob("*/*") if path.suffix != ".png"}
    assert files == on_disk
    return listed


@pytest.mark.parametrize(
    ("spec", "side", "drawn"),
    [
        (
            "relation_mask", "encoder",
            ["mask_strengths", "sentence_masks", "strength_trajectories"],
        ),
        ("relation_mask", "decoder", ["mask_strengths", "strength_trajectories"]),
        (
            "stack_pe(depth=4, parameters=2)+relative_depth", "encoder",
            ["encoding_similarity", "relative_tables"],
        ),
        ("stack_pe(tree='nary', degree=8, depth=4)", "decoder", ["encoding_similarity"]),
        ("none", "encoder", []),
    ],
)  # fmt: skip
def test_what_fits_the_methods_is_drawn(tmp_path: Path, spec: str, side: str, drawn: list[str]):
    listed = analysed(tmp_path, run_folder(tmp_path, spec, side))
    assert [(entry["name"], entry["side"]) for entry in listed["drawn"]] == [
        (name, side) for name in drawn
    ]
    # The encoder of this checkpoint has nothing but its methods.
    (absent,) = listed["absent"]
    assert absent["name"] == "attention_mass"
    assert "its encoder cannot be rebuilt" in absent["why"]


def test_numbers_alone_are_the_same_numbers(tmp_path: Path):
    checkpoints = run_folder(tmp_path, "relation_mask")
    whole = analysed(tmp_path, checkpoints)["drawn"]
    numbers = {
        name: (tmp_path / "analyses" / name).read_bytes()
        for entry in whole
        for name in entry["numbers"]
    }
    alone = analysed(tmp_path, checkpoints, "--numbers-only")["drawn"]
    assert alone == [{**entry, "figures": []} for entry in whole]
    for name, content in numbers.items():
        assert (tmp_path / "analyses" / name).read_bytes() == content


def test_few_checkpoints_are_no_line(tmp_path: Path):
    checkpoints = run_folder(tmp_path, "relation_mask")
    (checkpoints / "checkpoint_1_10.pt").unlink()
    absent = {one["name"]: one["why"] for one in analysed(tmp_path, checkpoints)["absent"]}
    assert absent["strength_trajectories"] == (
        "there are checkpoints of 2 updates, too few for a line; keep more with "
        "fairseq-train --keep-interval-updates, or train.keep-interval-updates of a recipe"
    )


def test_a_run_without_checkpoint_is_one_clear_line(tmp_path: Path, capsys):
    error = refused(capsys, tmp_path / "out", "run", tmp_path, tmp_path)
    assert error.startswith(f"treesyntax analyse: {tmp_path} has no checkpoint_best.pt, and is")


def test_trees_of_other_data_serve_if_the_tokens_are_the_same(tmp_path: Path):
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    write_all(own, "relation_mask")
    shutil.copytree(own, other)
    assert find_trees(own, [other]) == own
    (own / "valid.en-de.en.tree").unlink()
    assert find_trees(own, [other]) == other
    (other / "dict.en.txt").write_text("x 1\n")
    with pytest.raises(OptionError, match="has no trees, and no other data of the study has the"):
        find_trees(own, [other])
    with pytest.raises(OptionError, match="^the source of its data has no trees$"):
        find_trees(own, [])


def test_the_sentence_is_one_that_can_be_drawn():
    class Lengths(list):
        def __getitem__(self, number: int):
            class Sentence:
                tokens = torch.zeros(1, list.__getitem__(self, number))

            return Sentence

    assert choose_sentence(Lengths([3, 40, 7, 8])) == 2
    assert choose_sentence(Lengths([40, 30, 50])) == 1


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 8, 100])
def test_levels_are_few_enough_to_be_named(degree: int):
    levels = choose_levels(degree)
    assert levels >= 2
    nodes = sum(degree**level for level in range(levels))
    assert nodes <= MOST_NODES or levels == 2
    assert nodes + degree**levels > MOST_NODES


def test_one_that_fails_takes_nothing_with_it(tmp_path: Path, capsys):
    def good(folder: Path) -> None:
        (folder / "good.svg").write_text("x")

    def bad(folder: Path) -> None:
        (folder / "half.svg").write_text("x")
        raise ZeroDivisionError("by nothing")

    analyses = [Analysis("one", "encoder", bad), Analysis("two", "encoder", good)]
    write_analyses(analyses, tmp_path / "out")
    listed = json.loads((tmp_path / "out/analyses.json").read_text())
    assert listed == {
        "drawn": [{
            "name": "two", "side": "encoder", "figures": ["encoder/good.svg"], "numbers": [],
        }],
        "absent": [{
            "name": "one", "side": "encoder",
            "why": "ZeroDivisionError: by nothing; its log has the details",
        }],
    }  # fmt: skip
    assert not (tmp_path / "out/encoder/half.svg").exists()
    assert "Traceback" in capsys.readouterr().err


def test_a_study_as_a_whole(tmp_path: Path):
    folder, out = write_study(tmp_path / "s", RUNS), tmp_path / "out"
    assert analyse("study", folder, "--metric", "bleu", "--out", out) == 0
    listed = json.loads((out / "analyses.json").read_text())
    assert [entry["figures"] for entry in listed["drawn"]] == [["strength_study.svg"]]
    assert analyse("study", folder, "--metric", "ter", "--out", out) == 0
    (absent,) = json.loads((out / "analyses.json").read_text())["absent"]
    assert "has no ter of sequence" in absent["why"]
    assert not (out / "strength_study.svg").exists()


def test_a_folder_with_files_of_others_is_not_replaced(tmp_path: Path, capsys):
    study, out = write_study(tmp_path / "s", RUNS), tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    assert analyse("study", study, "--metric", "bleu", "--out", out) == 2
    assert "out: holds thesis.tex, which would be deleted" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]
    before = sorted(study.rglob("*"))
    assert analyse("study", study, "--metric", "bleu", "--out", study) == 2
    assert sorted(study.rglob("*")) == before
    assert analyse("study", tmp_path / "none", "--metric", "bleu", "--out", out) == 2
    assert "none holds no study" in capsys.readouterr().err

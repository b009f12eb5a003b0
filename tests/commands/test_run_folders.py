"""``translate``, ``inspect`` and ``analyse`` take a study's or a run's folder and find the rest themselves."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pytest
import torch
from support import ROOT
from support.study_helpers import result, write_recipe, write_study
from support.translate_helpers import SEARCH, binarize, lines_of, save_model, write_texts

from treesyntax.__main__ import main
from treesyntax.commands import translate
from treesyntax.errors import OptionError
from treesyntax.files import write_json
from treesyntax.parsers import ParserConfig
from treesyntax.parsers.parse_task import parser_identity
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.results import write_results
from treesyntax.study.run.plan import make_plan
from treesyntax.study.trained import find_trained

PARSE = "treesyntax parse {data}/p/test.txt {data}/p/test.src --parser spacy --model models/en --lang sv"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study ``runs/my`` of three runs that are trained and scored, of four."""
    folder = tmp_path_factory.mktemp("folders")
    write_texts(folder)
    methods = {
        "sequence": {"arch": "tree_sequence_tiny"},
        "relation_mask": {
            "arch": "tree_relation_mask_tiny",
            "binarize": {"source-format": "sexpr"},
        },
    }
    recipe = read_recipe(
        write_recipe(folder, methods=methods, prepare=[PARSE], generate={"beam": 3})
    )
    study = folder / "runs/my"
    study.mkdir(parents=True)
    write_study(study, recipe)
    binarize(folder, "runs/my/binarized/sequence", "txt", "target")
    binarize(
        folder, "runs/my/binarized/relation_mask", "sexpr", "target", "--source-format", "sexpr"
    )
    scores = {("sequence", 1): 5.0, ("relation_mask", 1): 7.0, ("relation_mask", 2): 6.0}
    for (row, seed), _ in scores.items():
        path = study / f"runs/{row}-{seed}/checkpoints/checkpoint_best.pt"
        path.parent.mkdir(parents=True)
        save_model(study / "binarized" / row, path, "--arch", f"tree_{row}_tiny", seed=seed)
    write_results(
        study / "runs.jsonl",
        [result(row, seed, "exact", value) for (row, seed), value in scores.items()],
    )
    return folder


@pytest.fixture
def folder(whole: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(whole)
    return whole


def translated(*words: str) -> list[str]:
    assert main(["translate", *words, "--output", "out", "--cpu", *SEARCH]) == 0
    return lines_of(Path("out"))


def test_a_studys_folder_translates_with_its_best_run(folder: Path, capsys):
    data, model = "runs/my/binarized/relation_mask", "runs/my/runs/relation_mask-1/checkpoints"
    by_hand = translated(
        data, "--path", f"{model}/checkpoint_best.pt", "--parsed", "--input", "all.sexpr"
    )
    capsys.readouterr()
    assert translated("runs/my", "--parsed", "--input", "all.sexpr") == by_hand
    said = "runs/my/runs/relation_mask-1 translates (the best of 3 runs in exact on the test set)"
    assert said in capsys.readouterr().err
    assert translated("runs/my/runs/relation_mask-1", "--parsed", "--input", "all.sexpr") == by_hand
    other = translated(
        "runs/my/runs/relation_mask-2/checkpoints", "--parsed", "--input", "all.sexpr"
    )
    assert other != by_hand


def test_the_parser_is_that_of_the_recipe_unless_another_is_given(folder: Path):
    def taken(*words: str) -> argparse.Namespace:
        parser = argparse.ArgumentParser()
        translate.add_arguments(parser)
        args = parser.parse_args(["runs/my", *words])
        translate._take_run(args)
        return args

    args = taken()
    assert (args.parser, args.model, args.lang) == ("spacy", "models/en", "sv")
    assert taken("--parsed").parser is None
    other = taken("--parser", "stanza-dep", "--model", "m")
    assert (other.parser, other.model, other.lang) == ("stanza-dep", "m", "sv")
    again = taken("--parser", "spacy", "--lang", "en", "--max-words", "150")
    assert (again.model, again.lang, again.max_words) == ("models/en", "en", 150)
    moved = taken("--model", "elsewhere/en", "--pretokenized")
    assert (moved.parser, moved.model, moved.lang) == ("spacy", "elsewhere/en", "sv")
    assert moved.pretokenized


def test_another_parser_than_that_of_the_trees_is_remarked(folder: Path, capsys, tmp_path: Path):
    """Another model at the path of the first one, or a newer library, gives other trees than were learnt."""
    (tmp_path / "model").mkdir()
    identity = parser_identity(ParserConfig("spacy", str(tmp_path / "model"), "sv"))
    report = Path("runs/my/data/p/test.src.report.json")
    report.parent.mkdir(parents=True, exist_ok=True)
    write_json(report, {"identity": identity | {"input": "0"}})

    def remarks() -> list[str]:
        parser = argparse.ArgumentParser()
        translate.add_arguments(parser)
        translate._take_run(parser.parse_args(["runs/my", "--model", str(tmp_path / "model")]))
        return [line for line in capsys.readouterr().err.splitlines() if "trees may" in line]

    assert remarks() == []
    (tmp_path / "model/weights").touch()
    (remark,) = remarks()
    assert "test.src, which the study reads, was made with other model than the input" in remark
    write_json(report, {"identity": identity | {"versions": {"spacy": "1"}}})
    assert "other model and versions than" in remarks()[0]
    report.unlink()
    assert remarks() == []


def test_text_is_parsed_on_a_gpu_by_parsers_that_use_torch(monkeypatch):
    """spaCy needs cupy for one, which nobody has installed by chance."""
    configs = []
    monkeypatch.setattr(translate, "load_parser", configs.append)
    parser = argparse.ArgumentParser()
    translate.add_arguments(parser)
    for name in ("stanza-dep", "spacy"):
        args = parser.parse_args(["data", "--parser", name, "--model", "m"])
        translate._parsed_batches(args, Path("in"), "cuda")
    assert [config.gpu for config in configs] == [True, False]


def test_the_parser_uses_the_gpu_of_the_model(monkeypatch):
    """stanza and benepar ask for "cuda", which is the first GPU unless the process has chosen another."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    for name in ("cpu", "cuda", "cuda:1"):
        assert translate._find_device(name) == name
    assert chosen == ["cuda:1"]


def test_inspect_shows_what_each_row_reads(folder: Path, capsys):
    assert main(["inspect", "runs/my", "--index", "1"]) == 0
    text = capsys.readouterr().out
    for row in ("sequence", "relation_mask"):
        assert f"runs/my/binarized/{row}/train.src-tgt.src 1: " in text
    assert "node parent slot" in text
    assert main(["inspect", "runs/my/runs/sequence-1"]) == 0
    assert "node parent slot" not in capsys.readouterr().out


@pytest.mark.parametrize("analysis", ["mask_strengths", "attention_mass", "sentence_masks"])
def test_analyses_find_checkpoint_and_data(folder: Path, analysis: str, tmp_path: Path, capsys):
    assert main(["analyse", analysis, "runs/my", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "runs/my/runs/relation_mask-1 is analysed" in captured.err
    assert list(tmp_path.glob("*.svg"))


def test_all_analyses_of_a_run(folder: Path, tmp_path: Path):
    run = "runs/my/runs/relation_mask-2"
    assert main(["analyse", "run", run, "--out", str(tmp_path / "out")]) == 0
    assert list((tmp_path / "out").rglob("*.svg"))


def test_folders_that_exist_are_named(folder: Path, capsys, tmp_path: Path, monkeypatch):
    def refused(*words: str) -> str:
        assert main([*words]) == 2
        return capsys.readouterr().err

    studies = "studies: runs/my"
    assert studies in refused("translate", "runs/mine")
    assert studies in refused("inspect", "runs/mine")
    assert studies in refused("analyse", "mask_strengths", "runs/mine", "--out", "out")
    runs = "these are trained: runs/my/runs/sequence-1, runs/my/runs/relation_mask-1, "
    assert f"sequence-2 is no run; {runs}" in refused("translate", "runs/my/runs/sequence-2")
    data = "runs/my/binarized/sequence"
    assert "--path is missing" in refused("translate", data)
    model = "runs/my/runs/sequence-1/checkpoints/checkpoint_best.pt"
    shutil.copy(model, tmp_path / "a.pt")
    assert "DATA is missing" in refused(
        "analyse", "attention_mass", str(tmp_path / "a.pt"), "--out", "out"
    )
    monkeypatch.chdir(tmp_path)
    assert "there is no study here" in refused("translate", "nothing")


def test_a_study_of_hugging_face_models_says_where_they_are(tmp_path: Path, capsys):
    recipe = read_recipe(ROOT / "recipes/pretrained/first_sst.yaml")
    write_study(tmp_path, recipe)
    plan = make_plan(recipe)
    assert {plan.data_folder(row, tmp_path) for row in recipe.methods} == {tmp_path / "data"}
    assert main(["translate", str(tmp_path)]) == 2
    assert "checkpoints/model with transformers" in capsys.readouterr().err


def test_a_study_without_a_model_says_so(tmp_path: Path):
    write_study(tmp_path, read_recipe(write_recipe(tmp_path)))
    args = argparse.Namespace(data=str(tmp_path), path=None)
    with pytest.raises(OptionError, match="has no trained run yet"):
        translate._take_run(args)


def test_a_folder_of_checkpoints_is_told_from_that_of_a_run(tmp_path: Path):
    """It was said to have no checkpoint_best.pt, which lies in it."""
    (checkpoint := tmp_path / "checkpoint_best.pt").touch()
    with pytest.raises(
        OptionError, match=f"{tmp_path} is a folder of checkpoints .*; give {checkpoint}"
    ):
        find_trained(tmp_path)

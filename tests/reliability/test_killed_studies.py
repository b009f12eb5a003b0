"""Real trainings killed with -9: the same study again gives the results of an undisturbed one."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from reliability.figures import SOAK
from reliability.test_crash_safety import SEED, files, finish, kill_after
from support.tiny_studies import programs

from treesyntax.study.results.results import read_results


def same(folder: Path) -> dict[str, object]:
    """What must not depend on crashes: results but for times and dates, hypotheses, data."""
    # Somebody may commit while a long test runs.
    left_out = {"tokens_per_second", "pairs_per_second", "slow", "fast", "load", "commit"}
    left_out |= {"train_seconds", "seconds", "date", "peak_memory"}
    results = {
        one.key: {name: value for name, value in asdict(one).items() if name not in left_out}
        for one in read_results(folder / "runs.jsonl")
    }
    written = {
        name: content
        for name, content in files(folder).items()
        if fnmatch(name, "runs/*/hypotheses.txt")
        or (fnmatch(name, "binarized/*/*") and not name.endswith("/binarize.json"))  # names places
    }
    lines = (folder / "runs.jsonl").read_bytes().count(b"\n")
    return {"results": results, "lines": lines, "files": written}


PHASES = ("binarize", "train", "generate", "score")


def tiny_recipe(folder: Path) -> dict:
    """Real programs on made-up data; training is saved every four updates."""
    content = programs(folder)
    methods = {"paths": content["methods"]["paths"]}
    train = {**content["train"], "save-interval-updates": 4}
    return {**content, "methods": methods, "train": train}


@pytest.fixture(scope="module")
def finished(once: Callable[..., Path]) -> Path:
    """A folder with a tiny recipe and its study with the real programs, done undisturbed."""

    def make(folder: Path) -> None:
        (folder / "recipe.yaml").write_text(yaml.safe_dump(tiny_recipe(folder), sort_keys=False))
        finish(study_words(folder), folder / "log")

    return once("real", make)


def study_words(folder: Path) -> list[object]:
    return ["-m", "treesyntax", "study", folder / "recipe.yaml", "--out", folder / "out"]


def undo(out: Path, phase: str) -> float:
    """Take back a phase and all after it; the seconds that the phase took."""
    run = next((out / "runs").iterdir()).name
    names = ["train", "generate", "hypotheses", "score", "facts", "analyses"]
    later = names if phase == "binarize" else names[names.index(phase) :]
    marker = next(
        out.glob("done/binarize/*" if phase == "binarize" else f"done/{run}/{phase}.json")
    )
    seconds = float(json.loads(marker.read_text())["seconds"])
    for name in later:
        (out / "done" / run / f"{name}.json").unlink(missing_ok=True)
        (out / "logs" / run / f"{name}.log").unlink(missing_ok=True)
    if phase == "binarize":
        shutil.rmtree(out / "done" / "binarize")
        shutil.rmtree(out / "binarized")
    if phase in ("binarize", "train"):
        shutil.rmtree(out / "runs")
    (out / "runs.jsonl").unlink()
    return seconds


@pytest.mark.skipif(not SOAK, reason="real trainings are killed by make soak")
@pytest.mark.parametrize("phase", PHASES)
def test_a_killed_study_is_finished_by_the_same_command(phase: str, finished: Path, tmp_path: Path):
    draw, wanted = random.Random(f"{SEED} {phase}"), same(finished / "out")
    assert wanted["lines"] == 1
    shutil.copy(finished / "recipe.yaml", tmp_path)
    words, log = study_words(tmp_path), tmp_path / "log"
    for kill in range(7 if phase in ("train", "generate") else 4):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        shutil.copytree(finished / "out", tmp_path / "out", copy_function=shutil.copy2)
        seconds = undo(tmp_path / "out", phase)
        kill_after(words, log, 1.5 + draw.uniform(0, 1.1) * seconds)
        finish(words, log)
        assert same(tmp_path / "out") == wanted, f"kill {kill} of {phase}"
        assert not list((tmp_path / "out").rglob(".*.part"))

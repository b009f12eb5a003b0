"""How a training ended, as its log tells."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.study_helpers import make_study, result

from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.current import current_results
from treesyntax.study.results.endings import ending
from treesyntax.study.results.results import read_results, write_results
from treesyntax.study.run.logs import read_log

REST = "t | INFO | fairseq_cli.train | early stop since valid performance hasn't improved for last 2 runs"


def log(folder: Path, *values: float | str, metric: str = "loss") -> Path:
    """Numbers are validations, 10 updates apart, texts are lines."""
    lines, updates = [], 0
    for value in values:
        if isinstance(value, str):
            lines.append(value)
            continue
        updates += 10
        valid = {
            "valid_loss": "1",
            f"valid_{metric}": str(value),
            "valid_num_updates": str(updates),
        }
        lines.append(f"t | INFO | valid | {json.dumps(valid)}")
    path = folder / "train.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("values", "ended"),
    [
        ([3.0, 2.0, 2.5, 2.1, REST], "rested"),
        ([3.0, 2.0, 2.5], "cap"),
        ([3.0, 2.5, 2.0], "last"),
        ([3.0], "last"),
        ([3.0, 2.0, 2.0], "cap"),  # as patience counts: the first of equal ones is the best
        ([2.0, 2.5, 2.6, REST, "# trains on from update 30: patience 2 -> 4", 1.0], "last"),
        ([2.0, 2.5, 2.6, REST, 2.7], "cap"),
        ([float("nan"), 2.0], "last"),
        ([2.0, float("nan")], "cap"),
        ([], None),
    ],
)
def test_of_a_log(values: list, ended: str | None, tmp_path: Path):
    assert ending(read_log(log(tmp_path, *values)), {}) == ended


def test_by_the_metric_that_chooses_the_checkpoint(tmp_path: Path):
    flags = {"best_checkpoint_metric": "accuracy", "maximize-best-checkpoint-metric": True}
    assert ending(read_log(log(tmp_path, 1, 2, metric="accuracy")), flags) == "last"
    assert ending(read_log(log(tmp_path, 2, 1, metric="accuracy")), flags) == "cap"
    assert ending(read_log(log(tmp_path, 2, 1)), flags) is None


def test_who_did_not_rest_was_still_learning():
    known = {"rested": False, "cap": True, "last": True, None: None}
    assert {ended: replace(result(), ended=ended).still_learning for ended in known} == known


def test_results_of_an_older_version_are_completed_from_the_logs(tmp_path: Path):
    folder = make_study(tmp_path, seeds=[1], score=["exact"])
    recipe = read_recipe(folder / "recipe.yaml")
    older = [replace(one, ended=None) for one in read_results(folder / "runs.jsonl")]
    write_results(folder / "runs.jsonl", older)
    assert {result.ended for result in current_results(folder, recipe)[0]} == {None}
    (folder / "logs/sequence-1").mkdir(parents=True)
    log(tmp_path, 2.0, 3.0, 4.0, REST).rename(folder / "logs/sequence-1/train.log")
    (folder / "done/sequence-1").mkdir(parents=True)
    (folder / "done/sequence-1/generate.json").write_text('{"seconds": 7.5}')
    found = {result.method: result for result in current_results(folder, recipe)[0]}
    assert found["sequence"].ended == "rested"
    assert found["sequence"].seconds == {"generate": 7.5, "train": 1.0}
    assert found["relation_mask"].ended is None


def test_start_up_is_the_time_before_a_training_is_set_up(tmp_path: Path):
    path = tmp_path / "train.log"
    path.write_text(
        "# 2026-01-01T00:00:00Z fairseq-train x\n"
        + datetime.fromtimestamp(datetime(2026, 1, 1, tzinfo=UTC).timestamp() + 9).strftime(
            "%Y-%m-%d %H:%M:%S | INFO | fairseq_cli.train | training on 1 devices (GPUs/TPUs)\n"
        )
    )
    assert read_log(path).set_up == 9

"""The rough time that is told before anything is trained."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest
from support import ROOT
from support.study_helpers import plan_of

from treesyntax.study.estimate import PAIRS_A_SECOND, how_long
from treesyntax.study.results.results import read_results, results_file


@pytest.mark.parametrize(
    ("size", "studies"),
    [
        ("mini", ["demo", "for2lam_100k", "coffeescript_javascript_100k"]),
        ("compact", ["atis_strong", "geo_strong", "jobs_strong", "geo_what_helps"]),
    ],
)
def test_the_figures_are_those_of_studies(size: str, studies: list[str]):
    """No study on a CPU is slower than told, and half of them are no quicker."""
    speeds = []
    for study in studies:
        runs = read_results(results_file(ROOT / "docs/results" / study))
        assert {run.arch.rpartition("_")[2] for run in runs} == {size}
        speeds.append(median(run.pairs / run.train_seconds for run in runs))
    low, high = PAIRS_A_SECOND[size]
    assert low <= min(speeds)
    assert median(speeds) <= high


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (
            ["batch-size=64", "max-update=1500"],
            "a run of this size takes about 3 to 7 minutes on a CPU core, all 6 about 8 to 21 "
            "minutes with 2 at once, less on a GPU",
        ),
        (["batch-size=64", "max-update=150000"], "about 4 to 10 hours on a CPU core"),
        (["batch-size=8", "max-update=10"], "about 1 minute on a CPU core"),
        (["batch-size=64", "max-update=1500", "update-freq=2"], "takes about 5 to 13 minutes"),
        (["max-tokens=4096", "max-update=1500"], "--set seeds=[1] --only sequence"),
        (["batch-size=64", "max-update=1500", "encoder-layers=12"], "how long is told once"),
    ],
)
def test_what_is_told(tmp_path: Path, overrides: list[str], text: str):
    plan = plan_of(tmp_path, *(f"train.{override}" for override in overrides))
    assert text in how_long(plan, 2)


def test_other_sizes_are_not_known(tmp_path: Path):
    settings = ["train.batch-size=64", "train.max-update=1500"]
    plan = plan_of(tmp_path, *settings, "methods.stack_pe.arch=tree_stack_pe_base")
    assert how_long(plan, 2).startswith("how long is told once a training runs")
    assert "minutes" in how_long(plan.of_rows(["sequence"]), 2)

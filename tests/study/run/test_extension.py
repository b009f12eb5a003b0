"""A longer training goes on from the checkpoints of the shorter one, or is trained anew and says why."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from study.run.growing_studies import content, run, trained, updates
from support.fake_programs import study as study_here
from support.study_helpers import recipe_with
from support.study_runs import commands_in

from treesyntax.errors import OptionError
from treesyntax.files import read_object
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.advice import train_on_command
from treesyntax.study.results.results import read_results
from treesyntax.study.run.keys import Keys
from treesyntax.study.run.logs import read_log
from treesyntax.study.run.plan import make_plan
from treesyntax.study.search.trials import trial_recipe

pytestmark = pytest.mark.usefixtures("quick")

SHORT = {"max-update": 5, "save-interval-updates": 1, "lr": 0.001}


def once(folder: Path, *arguments: str, status: int = 0, **train: object) -> str:
    methods = {"sequence": content(folder)["methods"]["sequence"]}
    return run(
        folder, *arguments, status=status, seeds=[1], methods=methods, train={**SHORT, **train}
    )


@pytest.mark.parametrize(
    ("arguments", "train"), [([], {"max-update": 10}), (["--train-on", "2"], {})], ids=str
)
def test_a_larger_cap_trains_on_from_the_last_checkpoint(
    arguments: list[str], train: dict, tmp_path: Path, capsys: pytest.CaptureFixture
):
    once(tmp_path)
    before = read_object(tmp_path / "out/runs/sequence-1/begun.json")
    started = once(tmp_path, *arguments, **train)
    assert trained(started) == ["sequence-1"]
    assert started.count("fairseq-generate") == 1
    assert len(updates(tmp_path)) == 5  # all of the first training; the stand-in makes no more
    said = capsys.readouterr().out
    assert "sequence-1: trains on from update 5 (max-update 5 -> 10)" in said
    begun = read_object(tmp_path / "out/runs/sequence-1/begun.json")
    assert begun["extended"] == [{"key": before["key"], "updates": 5}]
    longer = recipe_with(
        tmp_path, **content(tmp_path, seeds=[1], train={**SHORT, "max-update": 10})
    )
    plan = make_plan(longer)
    assert begun["caps"] == {"--max-update": 10}
    assert begun["key"] != before["key"]
    assert begun["root"] == before["root"]
    assert plan.recipe.train["max-update"] == 10
    kept = next((tmp_path / "out/replaced").glob("sequence-1-*/runs/sequence-1"))
    assert (kept / "hypotheses.txt").is_file()
    assert not (kept / "checkpoints").exists()
    (result,) = read_results(tmp_path / "out/runs.jsonl")
    assert "--max-update 10" in result.commands[0]
    assert once(tmp_path, *arguments, **train) == ""


def test_a_run_of_an_older_version_is_known_by_the_recipe_in_its_folder(tmp_path: Path, capsys):
    once(tmp_path)
    file = tmp_path / "out/runs/sequence-1/begun.json"
    older = {
        key: value
        for key, value in read_object(file).items()
        if key not in ("root", "caps", "extended")
    }
    file.write_text(json.dumps(older))
    once(tmp_path, patience=3, **{"max-update": 10})
    assert "trained anew" not in (said := capsys.readouterr().out)
    assert "its training command or data have changed" in said  # patience is an earlier end
    file.write_text(
        json.dumps({key: value for key, value in read_object(file).items() if key != "root"})
    )
    once(tmp_path, patience=9, **{"max-update": 10})
    assert "trains on from update 5 (patience 3 -> 9)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (
            {"lr-scheduler": "cosine"},
            {"max-update": 10},
            "the learning rate (cosine) depends on where",
        ),
        (
            {"save-interval-updates": 2},
            {"max-update": 10},
            "it ended at update 5 with a validation",
        ),
    ],
    ids=str,
)
def test_what_would_be_another_training_is_trained_anew_and_says_why(
    before: dict, after: dict, why: str, tmp_path: Path, capsys
):
    once(tmp_path, **before)
    once(tmp_path, **before, **after)
    assert len(updates(tmp_path)) == 10
    assert f"sequence-1: it cannot be trained on, since {why}" in capsys.readouterr().out


@pytest.mark.parametrize("change", [{"max-update": 3}, {"max-update": 10, "lr": 0.002}], ids=str)
def test_an_earlier_end_or_another_rate_is_no_extension(change: dict, tmp_path: Path, capsys):
    once(tmp_path)
    once(tmp_path, **change)
    assert len(updates(tmp_path)) == 10
    assert "its training command or data have changed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("factor", "train", "message"),
    [
        ("0.5", {}, "train-on is 0.5; it must be a number from 1 on"),
        ("2", {"max-update": None}, "but there is no train.max-update and no train.max-epoch"),
        (
            "2",
            {"lr-scheduler": "polynomial_decay"},
            "(polynomial_decay) depends on where a training ends",
        ),
    ],
)
def test_train_on_is_refused_where_it_cannot_be(
    factor: str, train: dict, message: str, tmp_path: Path, capsys
):
    once(tmp_path, "--train-on", factor, status=2, **train)
    assert message in capsys.readouterr().err


def test_a_longer_training_that_was_there_before_is_taken_back(tmp_path: Path, capsys):
    once(tmp_path, **{"max-update": 10})
    once(tmp_path)
    assert len(updates(tmp_path)) == 10
    once(tmp_path, **{"max-update": 10})
    assert len(updates(tmp_path)) == 10
    assert "was trained before and is taken from" in capsys.readouterr().out


def test_the_log_of_an_extended_training_is_not_at_its_end(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text(
        "| INFO | fairseq_cli.train | done training in 1.0 seconds\n# trains on from update 5: x\n"
    )
    assert not read_log(log).finished


def test_roots_of_trainings_leave_out_their_ends_alone(tmp_path: Path):
    def root(**train: object) -> str:
        plan = make_plan(recipe_with(tmp_path, train={"lr": 0.1, **train}))
        from treesyntax.made.digests import Digests

        return Keys(plan, Digests(tmp_path), {}).roots["sequence-1/train"]

    assert root(**{"max-update": 3}) == root(**{"max-update": 9, "patience": 4}) == root()
    assert root(**{"max-update": 3}) != root(**{"max-update": 3, "clip-norm": 1})


def test_the_command_that_trains_on_goes_on_where_it_was_interrupted(tmp_path: Path, capsys):
    """It names the resolved recipe, which has the factor and not the longer caps."""
    once(tmp_path)
    resolved = str(tmp_path / "out/recipe.yaml")
    words = [resolved, "--out", str(tmp_path / "out"), "--train-on"]
    assert study_here(tmp_path / "journal", [*words, "2"]) == 0
    assert read_object(tmp_path / "out/runs/sequence-1/begun.json")["caps"] == {"--max-update": 10}
    before = len(commands_in(tmp_path, "start"))
    assert study_here(tmp_path / "journal", [*words, "2"]) == 0
    assert study_here(tmp_path / "journal", words[:-1]) == 0
    assert len(commands_in(tmp_path, "start")) == before
    assert train_on_command(read_recipe(resolved), tmp_path / "out").endswith("--train-on 4")
    assert study_here(tmp_path / "journal", [*words, "4"]) == 0
    assert read_object(tmp_path / "out/runs/sequence-1/begun.json")["caps"] == {"--max-update": 20}
    capsys.readouterr()
    assert once(tmp_path, status=2) == ""
    assert (
        "its trainings went on to 4 times the updates; add --train-on 4" in capsys.readouterr().err
    )
    (tmp_path / "out/recipe.yaml").write_text("{")  # damaged
    assert once(tmp_path, status=2) == ""
    assert "its trainings went on to more updates" in capsys.readouterr().err


def test_all_caps_of_a_recipe_are_raised(tmp_path: Path):
    recipe = recipe_with(
        tmp_path, "train-on=1.5", train={"max_update": 4}, axes={"end": {"train.max-epoch": [2, 8]}}
    )
    flags = [
        recipe.flags(method, "train") for method in recipe.methods if method.base == "sequence"
    ]
    assert flags == [{"max_update": 6, "max-epoch": epochs} for epochs in (3, 12)]
    assert recipe.content["train"] == {"max_update": 4}
    assert recipe.content["train-on"] == 1.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"search": {"over": {"train.lr": [1, 2]}}}, "the trials of the search have the same cap"),
        (
            {"train": {"max-update": "{size}"}},
            "max-update is '{size}'; set that to a larger number",
        ),
        ({"train": {"max-update": "soon"}}, "max-update is 'soon'; set that to a larger number"),
    ],
)
def test_caps_that_cannot_be_raised(changes: dict, message: str, tmp_path: Path):
    with pytest.raises(OptionError, match=re.escape(message)):
        recipe_with(tmp_path, "train-on=2", **changes)


def test_trials_of_a_search_are_not_trained_on(tmp_path: Path):
    search = {"over": {"train.lr": [1, 2]}, "train": {"max-update": 3}}
    recipes = [recipe_with(tmp_path, f"train-on={factor}", search=search) for factor in (1, 2)]
    trials = [trial_recipe(recipe, recipe.search) for recipe in recipes]
    ends = [{trial.flags(row, "train")["max-update"] for row in trial.methods} for trial in trials]
    assert ends == [{3}, {3}]
    assert [recipe.flags(recipe.methods[0], "train")["max-update"] for recipe in recipes] == [5, 10]


def test_a_study_without_patience_says_what_to_do(tmp_path: Path, capsys):
    told = "set train.patience (validations without a better score), or budget: fixed"
    once(tmp_path, "--plan")
    assert told in capsys.readouterr().out
    once(tmp_path, "--plan", patience=3)
    assert told not in capsys.readouterr().out
    once(tmp_path, "--plan", "--set", "budget=fixed")
    assert told not in capsys.readouterr().out
    once(tmp_path)
    assert told in capsys.readouterr().out

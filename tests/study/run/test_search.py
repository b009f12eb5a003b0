"""Settings found by search, over stand-ins whose loss falls with the rate and rises with dropout."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from study.run.growing_studies import content, run, trained
from support.fake_programs import study as study_here
from support.study_helpers import write_recipe
from support.study_runs import commands_in

from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.report import read_study
from treesyntax.study.search.records import read_records
from treesyntax.study.search.table import trial_table
from treesyntax.study.search.trials import Trials

pytestmark = pytest.mark.usefixtures("quick")

OVER = {"train.lr": [0.25, 0.5], "train.dropout": [0.1, 0.3]}
SEARCH = {"over": OVER, "seeds": [7], "train": {"max-update": 4}}
ROWS = ("sequence", "stack_pe")


def trials(*labels: str) -> list[str]:
    return sorted(f"{row}-search={label}-7" for row in ROWS for label in labels)


FOUR = trials("0.25-0.1", "0.25-0.3", "0.5-0.1", "0.5-0.3")


def rates(folder: Path, out: str = "out") -> list[object]:
    recipe = read_recipe(folder / out / "recipe.yaml")
    return [recipe.flags(method, "train")["lr"] for method in recipe.methods]


def test_all_rows_try_the_same_settings_and_the_runs_have_those_that_won(tmp_path: Path, capsys):
    started = run(tmp_path, search=SEARCH, seeds=[1])
    assert trained(started) == sorted([*FOUR, "sequence-1", "stack_pe-1"])
    before, _, after = started.partition("train:sequence-1")
    assert "fairseq-generate" not in before  # no trial reads the test set
    assert "binarize" not in after  # the data of the trials are those of the runs
    for command in commands_in(tmp_path, "start"):
        words = command.split("\x1f")
        if words[0] == "fairseq-train":
            own = "search=" not in command
            assert words[words.index("--max-update") + 1] == ("5" if own else "4")
            assert not own or words[words.index("--lr") + 1] == "0.5"
    said = capsys.readouterr().out
    learning = (
        "4 of 4 trainings were still learning when they ended, and longer ones may choose otherwise: raise "
        "search.train.max-update"
    )
    best = "search: sequence: lr 0.5, dropout 0.1 (valid loss 2.55, best of 4 trials"
    assert f"{best}; {learning})" in said.replace("\n", " ")
    out = tmp_path / "out"
    found = read_records(out)
    assert [one.ended for one in found] == ["last"] * 8
    assert [one.settings for one in found if one.chosen] == [{"lr": 0.5, "dropout": 0.1}] * 2
    assert not list((out / "search/runs").glob("*/checkpoints"))
    recipe = read_recipe(out / "recipe.yaml")
    (_, header, rows), notes = trial_table(recipe, recipe.search, out)
    assert header == ("row", "lr", "dropout", "valid loss", "")
    assert rows[2] == ["sequence", "0.5", "0.1", "2.55", "chosen, still learning"]
    assert [row[-1] for row in rows].count("still learning") == 6
    fixed = replace(recipe, budget="fixed")
    assert trial_table(fixed, recipe.search, out)[0].rows[2][-1] == "chosen"
    assert "found by search with 4 trials each, on validation (loss)" in notes[0]
    assert run(tmp_path, search=SEARCH, seeds=[1]) == ""
    _check_chosen(tmp_path)


def _check_chosen(tmp_path: Path) -> None:
    """The winners are a recipe that trains the same without a search."""
    chosen = tmp_path / "out/chosen.yaml"
    assert read_recipe(chosen).search is None
    for out in ("out", "other"):
        before = len(commands_in(tmp_path, "start"))
        words = [str(chosen), "--out", str(tmp_path / out)]
        assert study_here(tmp_path / "journal", words) == 0
        trainings = [
            one for one in commands_in(tmp_path, "start")[before:] if "fairseq-train" in one
        ]
        assert len(trainings) == (0 if out == "out" else 2)
    assert rates(tmp_path, "other") == [0.5, 0.5]


def test_more_values_and_another_metric_make_only_what_is_missing(tmp_path: Path):
    run(tmp_path, search=SEARCH, seeds=[1])
    wider = {**SEARCH, "over": {**OVER, "train.lr": [0.25, 0.5, 0.75]}}
    new = trials("0.75-0.1", "0.75-0.3")
    assert trained(run(tmp_path, search=wider, seeds=[1])) == sorted(
        [*new, "sequence-1", "stack_pe-1"]
    )
    assert rates(tmp_path) == [0.75, 0.75]
    # The former runs come back, since the former settings win.
    assert trained(run(tmp_path, search=SEARCH, seeds=[1])) == []
    assert rates(tmp_path) == [0.5, 0.5]
    assert len(read_records(tmp_path / "out")) == 12
    assert trained(run(tmp_path, search=wider, seeds=[1, 2])) == ["sequence-2", "stack_pe-2"]


def test_a_search_is_added_to_a_study_that_has_runs(tmp_path: Path):
    run(tmp_path, seeds=[1])
    started = run(tmp_path, search={"over": {"train.lr": [0.25, 0.5]}}, seeds=[1])
    assert "binarize" not in started
    assert len(trained(started)) == 6


def test_a_trial_that_was_trained_but_not_noted_before_a_kill_is_noted_then(
    tmp_path: Path, monkeypatch
):
    search = {"over": {"train.lr": [0.25, 0.5]}}

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trials, "record", killed)
        first = trained(run(tmp_path, "--jobs", "1", search=search, seeds=[1], status=130))
    assert first == ["sequence-search=0.25-1"]
    second = trained(run(tmp_path, search=search, seeds=[1]))
    assert len(second) == 5
    assert first[0] not in second
    assert len(read_records(tmp_path / "out")) == 4


def test_a_training_that_diverges_is_a_trial_that_lost(tmp_path: Path, capsys):
    search = {"over": {"train.lr": [0.5, 0.25], "train.broken": [True, False]}}
    started = run(tmp_path, search=search, seeds=[1])
    assert len(trained(started)) == 10
    assert "sequence: lr 0.5, broken False (valid loss 2.45, best of 4 trials; " in (
        capsys.readouterr().out
    )
    assert sum("diverged" in one.failed for one in read_records(tmp_path / "out")) == 4
    assert run(tmp_path, search=search, seeds=[1]) == ""


def test_a_row_whose_trials_all_fail_is_not_trained(tmp_path: Path, capsys):
    methods = content(tmp_path)["methods"]
    methods["stack_pe"]["train"] = {"broken": True}
    more = {"methods": methods, "differences": {"train.broken": "to see"}, "seeds": [1]}
    started = run(tmp_path, search=SEARCH, **more)
    assert trained(started) == sorted([*FOUR, "sequence-1"])
    assert "search: stack_pe: all 4 trials failed: training diverged" in capsys.readouterr().out


def test_the_plan_and_the_commands_show_the_trials_and_make_nothing(tmp_path: Path, capsys):
    assert run(tmp_path, "--plan", search=SEARCH, seeds=[1]) == ""
    said = capsys.readouterr().out
    assert "8 trials on validation (loss), 0 done; each row tries\n  lr 0.25, dropout 0.1\n" in said
    assert "  stack_pe: 0 of 4 trials are made\n" in said
    assert run(tmp_path, "--dry-run", search=SEARCH, seeds=[1]) == ""
    commands = [shlex.split(line, comments=True) for line in capsys.readouterr().out.splitlines()]
    assert sum(words[:1] == ["fairseq-train"] for words in commands) == 10
    assert not (tmp_path / "out").exists()


def test_rows_on_an_axis_have_settings_of_their_own_at_each_point(tmp_path: Path):
    found = content(tmp_path)
    found["methods"]["stack_pe"]["at"] = {"beam": [1]}
    axes = {"beam": {"binarize.workers": [1, 2]}}
    changes = {"axes": axes, "methods": found["methods"], "search": SEARCH, "seeds": [1]}
    started = trained(run(tmp_path, "--only", "sequence", **changes))
    assert len(started) == 10
    assert trained(run(tmp_path, **changes))[-1] == "stack_pe-beam=1-search=0.5-0.3-7"
    chosen = yaml.safe_load((tmp_path / "out/chosen.yaml").read_text())
    assert chosen["axes"]["beam"] == {
        "methods.sequence.train.lr": [0.5, 0.5], "methods.sequence.train.dropout": [0.1, 0.1],
        "methods.stack_pe.train.lr": [0.5, None], "methods.stack_pe.train.dropout": [0.1, None],
    }  # fmt: skip
    assert read_study(tmp_path / "out").table.rows[0].seeds == "1 of 1"


def test_random_settings_are_the_same_again_and_more_of_them_only_add(tmp_path: Path):
    over = {
        "train.lr": {"log": ["1e-4", 1e-2]},
        "train.warmup": {"uniform": [10, 90]},
        "train.x": [1, 2],
    }

    def settings(**changes: object) -> list[dict]:
        search = {"over": over, "kind": "random", "trials": 5, **changes}
        path = write_recipe(tmp_path, **content(tmp_path, search=search))
        return list(read_recipe(path).search.settings.values())

    first = settings()
    assert settings() == first == settings(trials=9)[:5]
    assert settings(seed=2) != first
    for one in settings(trials=40):
        assert 1e-4 <= one["lr"] <= 1e-2
        assert type(one["warmup"]) is int
        assert one["x"] in (1, 2)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({}, "search lacks the key 'over'"),
        ({"over": {}}, "search.over is empty"),
        ({"over": {"lr": [1]}}, "search.over varies 'lr'; name flags of training"),
        ({"over": {"train.lr": 1}}, "search.over.train.lr is 1; write a list"),
        ({"over": {"train.lr": [1, 1]}}, "search.over has lr 1 twice"),
        ({"over": {"train.seed": [1]}}, "search.over.seed is set by the study"),
        ({"over": {"train.lr": {"log": [1, 2]}}}, "train.lr is a range; write a list"),
        ({"over": OVER, "trials": 0}, "search.trials is 0"),
        ({"over": OVER, "trials": 3}, "search.trials is 3, but the grid has 4 settings"),
        ({"over": OVER, "kind": "random"}, "search lacks trials"),
        ({"over": OVER, "kind": "random", "trials": 5}, "there are only 4 different settings"),
        ({"over": {"train.lr": {"log": [0, 1]}}, "kind": "random", "trials": 1}, "both above 0"),
        ({"over": {"train.lr": {"log": [1]}}, "kind": "random", "trials": 1}, "[LOWEST, HIGHEST]"),
        ({"over": OVER, "metric": "bleu"}, "search.metric is 'bleu'; it must be one of loss"),
        ({"over": OVER, "seed": 3}, "search.seed belongs to search.kind: random"),
        ({"over": {"train.lr": {"uniform": [0, 1], "log": [0.1, 1]}}}, "write one of"),
        ({"over": OVER, "train": {"lr": 1}}, "search.train sets lr, which search.over varies"),
        ({"over": {"train.label-smoothing": [0, 0.1]}}, "set search.metric to accuracy"),
    ],
    ids=str,
)  # fmt: skip
def test_a_faulty_search_is_refused_before_anything_runs(
    tmp_path: Path, search: dict, message: str, capsys
):
    assert run(tmp_path, search=search, status=2) == ""
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_metric_that_training_does_not_report_is_told(tmp_path: Path, capsys):
    run(tmp_path, search={**SEARCH, "metric": "nll_loss"}, seeds=[1], status=1)
    told = "training reports no nll_loss of the validation set, but loss"
    assert told in capsys.readouterr().out


def test_a_damaged_line_of_the_trials_is_refused(tmp_path: Path, capsys):
    run(tmp_path, search=SEARCH, seeds=[1])
    lines = (tmp_path / "out/search.jsonl").read_text().splitlines()
    broken = {**json.loads(lines[1]), "figures": {"loss": ["low"]}}
    (tmp_path / "out/search.jsonl").write_text(f"{lines[0]}\n{json.dumps(broken)}\n")
    run(tmp_path, search=SEARCH, seeds=[1], status=2)
    assert "search.jsonl:2: is not a trial of a search" in capsys.readouterr().err

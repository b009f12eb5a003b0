"""Studies that grow, are edited, or whose files change, over stand-ins for the real programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from study.run.growing_studies import content, run, table, trained, updates
from support.fake_programs import study as study_here
from support.study_helpers import write_recipe

from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.current import current_results
from treesyntax.study.results.results import read_results
from treesyntax.study.run.plan import make_plan

pytestmark = pytest.mark.usefixtures("quick")


def test_a_study_grows_in_one_folder_and_trains_nothing_twice(tmp_path: Path, capsys):
    """The story of the acceptance: 2 seeds, then 5, then a metric and a row, then touched data."""
    assert len(trained(run(tmp_path))) == 4
    before = (tmp_path / "out/runs/sequence-1/hypotheses.txt").stat().st_mtime_ns
    more = run(tmp_path, seeds=[1, 2, 3, 4, 5], title="another title")
    assert trained(more) == [
        f"{row}-{seed}" for row in ("sequence", "stack_pe") for seed in (3, 4, 5)
    ]
    assert "binarize" not in more
    assert "recipe edited: seeds: + 3, 4, 5\n" in capsys.readouterr().out
    methods = content(tmp_path)["methods"]
    methods["new"] = {"arch": "tree_up_down_mini", "binarize": {"source-format": "for"}}
    grown = {"seeds": [1, 2, 3, 4, 5], "methods": methods, "score": ["exact", "bleu"]}
    last = run(tmp_path, **grown)
    assert trained(last) == [f"new-{seed}" for seed in (1, 2, 3, 4, 5)]
    assert last.split().count("score") == 15
    assert last.split().count("fairseq-generate") == 5
    assert "binarize" not in last  # the new row's data are those of stack_pe
    said = capsys.readouterr().out
    assert "recipe edited: score: + bleu" in said
    assert "recipe edited: methods.new: nothing -> " in said
    assert table(tmp_path) == dict.fromkeys(methods, "5 of 5")
    assert (tmp_path / "out/runs/sequence-1/hypotheses.txt").stat().st_mtime_ns == before
    assert len(updates(tmp_path)) == 15 * 5
    assert len(read_results(tmp_path / "out/runs.jsonl")) == 30
    assert run(tmp_path, **grown) == ""
    capsys.readouterr()
    (tmp_path / "files/test.tgt").write_text("y\nx\n")
    assert run(tmp_path, status=2, **grown) == ""
    told = f"data.target.test: {tmp_path}/files/test.tgt has changed since this study began; restore it"
    assert told in capsys.readouterr().err


def test_rows_at_points_of_axes_are_trained_anew_on_other_data(tmp_path: Path):
    """A study with an axis kept what it had trained on other data, and gave it to rows with other names."""
    methods = {"sequence": content(tmp_path)["methods"]["sequence"]}
    grown: dict = {"seeds": [1], "methods": methods, "axes": {"lr": {"train.lr": [1, 2]}}}
    rows = ["sequence-lr=1-1", "sequence-lr=2-1"]
    assert trained(run(tmp_path, **grown)) == rows
    assert run(tmp_path, **grown) == ""
    assert trained(run(tmp_path, **grown, binarize={"subword-vocab": 9})) == rows
    sizes = {"size": {"vars.size": [8, 9]}}
    assert trained(run(tmp_path, out="two", **{**grown, "axes": sizes})) == [
        "sequence-size=8-1",
        "sequence-size=9-1",
    ]


def test_a_new_metric_is_scored_before_new_rows_are_trained(tmp_path: Path):
    run(tmp_path, "--jobs", "1")
    methods = content(tmp_path)["methods"]
    methods["new"] = {"arch": "tree_up_down_mini", "binarize": {"source-format": "for"}}
    steps = run(tmp_path, "--jobs", "1", methods=methods, score=["exact", "bleu"]).split()
    first = next(place for place, step in enumerate(steps) if "new-" in step)
    assert steps[:first].count("score") == 4


def test_results_say_what_each_step_of_a_run_took(tmp_path: Path):
    run(tmp_path, seeds=[1])
    kinds = {"train", "generate", "hypotheses", "score", "facts", "analyses"}
    assert all(kinds == {*one.seconds} for one in read_results(tmp_path / "out/runs.jsonl"))


def test_the_default_folder_is_the_same_after_an_edit(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seeds, count in (([1], 2), ([1, 2], 2)):
        write_recipe(tmp_path, **content(tmp_path, seeds=seeds))
        before = len(updates(tmp_path))
        assert study_here(tmp_path / "journal", ["recipe.yaml"]) == 0
        assert len(updates(tmp_path)) - before == 5 * count
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["demo"]


@pytest.mark.parametrize("change", [{"generate": {"beam": 1}}, {"question": "?"}, {"score": ["bleu"]},
                                    {"baseline": "stack_pe"}], ids=str)  # fmt: skip
def test_search_metrics_and_texts_train_nothing(tmp_path: Path, change: dict):
    run(tmp_path, seeds=[1])
    started = run(tmp_path, seeds=[1], **change)
    assert trained(started) == []
    assert ("fairseq-generate" in started) == ("generate" in change)
    assert table(tmp_path) == {"sequence": "1 of 1", "stack_pe": "1 of 1"}


def test_fewer_checkpoints_to_average_train_nothing_and_more_do(tmp_path: Path, capsys):
    train = {"max-update": 5, "save-interval-updates": 1}
    one = {"sequence": content(tmp_path)["methods"]["sequence"]}

    def started(average: int) -> str:
        return run(tmp_path, seeds=[1], methods=one, train=train, average=average)

    assert trained(started(2)) == ["sequence-1"]
    best = started(0)
    assert trained(best) == []
    assert "fairseq-generate" in best
    assert trained(started(2)) == []
    assert "replaced" not in capsys.readouterr().out
    assert trained(started(3)) == ["sequence-1"]
    assert "sequence-1: it kept 2 checkpoints of the 3 asked for; the former run is in" in (
        capsys.readouterr().out
    )
    assert trained(started(1)) == []


def test_a_run_with_other_flags_is_kept_aside_and_comes_back(tmp_path: Path, capsys):
    run(tmp_path, seeds=[1])
    first = read_results(tmp_path / "out/runs.jsonl")
    methods = content(tmp_path)["methods"]
    edited = {**methods, "stack_pe": {**methods["stack_pe"], "train": {"clip-norm": 3}}}
    why = {"train.clip-norm": "to see"}
    started = run(tmp_path, seeds=[1], methods=edited, differences=why)
    assert trained(started) == ["stack_pe-1"]
    said = capsys.readouterr().out
    assert "methods.stack_pe.train: nothing -> {'clip-norm': 3}" in said
    (aside,) = (tmp_path / "out/replaced").iterdir()
    assert (
        f"stack_pe-1: its training command or data have changed; the former run is in {aside}"
        in said
    )
    assert (aside / "runs/stack_pe-1/checkpoints/checkpoint_best.pt").is_file()
    assert len(updates(tmp_path)) == 15
    renamed = {"sequence": methods["sequence"], "paths": methods["stack_pe"]}
    assert trained(run(tmp_path, seeds=[1], methods=renamed)) == []
    assert "paths-1: was trained before and is taken from" in capsys.readouterr().out
    assert table(tmp_path) == {"sequence": "1 of 1", "paths": "1 of 1"}
    assert trained(run(tmp_path, seeds=[1])) == []
    found, _ = current_results(tmp_path / "out", read_recipe(tmp_path / "recipe.yaml"))
    assert [(one.run, one.value) for one in found] == [(one.run, one.value) for one in first]


def test_a_training_goes_on_from_no_other_checkpoints(tmp_path: Path):
    """Killed before its end, edited, and started again: fairseq would load the last checkpoint."""
    run(tmp_path, seeds=[1])
    (tmp_path / "out/done/sequence-1/train.json").unlink()
    (tmp_path / "out/logs/sequence-1/train.log").unlink()
    run(tmp_path, seeds=[1], train={"max-update": 5, "lr": 0.5})
    assert updates(tmp_path).count("sequence-1") == 10
    assert updates(tmp_path).count("stack_pe-1") == 10


def test_a_wrong_vocabulary_prepares_nothing_anew(tmp_path: Path):
    run(tmp_path, seeds=[1], binarize={"subword-vocab": 9})
    started = run(tmp_path, seeds=[1], binarize={"subword-vocab": 8})
    assert started.split().count("binarize") == 2
    assert "generate" not in started.split()
    back = run(tmp_path, seeds=[1], binarize={"subword-vocab": 9})
    assert trained(back) == []
    assert "binarize" not in back


def test_prepared_data_are_found_in_another_study_beside(tmp_path: Path, capsys):
    run(tmp_path, seeds=[1])
    started = run(tmp_path, out="other", seeds=[2])
    assert trained(started) == ["sequence-2", "stack_pe-2"]
    assert "binarize" not in started
    assert "generate" not in started.split()
    log = (tmp_path / "other/logs/prepare-1.log").read_text()
    assert f"taken from {tmp_path}/out" in log
    one, other = (tmp_path / out / "data/p/train.src" for out in ("out", "other"))
    assert os.stat(one).st_ino == os.stat(other).st_ino
    assert (tmp_path / "other/binarized/sequence/train.bin").is_file()
    # Not from data that someone changed.
    (tmp_path / "out/data/p/train.src").unlink()
    (tmp_path / "out/data/p/train.src").write_text("changed\n")
    shown = run(tmp_path, out="third", seeds=[1], binarize={"subword-vocab": 3})
    assert "generate" not in shown.split()  # the second has them too
    assert (tmp_path / "third/data/p/train.src").read_text() == "a\nb\n"


@pytest.mark.parametrize("link", [False, True])
def test_a_command_that_writes_into_a_file_changes_no_other_study(tmp_path: Path, link: bool):
    """The file, or a link to it, is what a command before left, which the other study has too."""
    settings = {"seeds": [1], "methods": {"sequence": content(tmp_path)["methods"]["sequence"]}}
    file = "{data}/p/link" if link else "{data}/p/train.src"
    links = f"bash -c 'ln -s {{data}}/p/train.src {file}'"
    settings["prepare"] = [*content(tmp_path)["prepare"], *[links] * link]
    run(tmp_path, **settings)
    settings["prepare"] = [*settings["prepare"], f"bash -c 'echo c >> {file}'"]
    assert "generate" not in run(tmp_path, out="other", **settings).split()
    first, other = (tmp_path / out / "data/p/train.src" for out in ("out", "other"))
    assert (first.read_text(), other.read_text()) == ("a\nb\n", "a\nb\nc\n")
    assert run(tmp_path, out="other", **settings) == ""


def test_data_made_of_another_file_are_taken_from_no_other_study(tmp_path: Path, capsys):
    """The text of a command names the file between signs of a shell."""
    settings = {"seeds": [1], "methods": {"sequence": content(tmp_path)["methods"]["sequence"]}}
    raw = tmp_path / "raw.txt"
    raw.write_text("a\nb\n")
    settings["prepare"] = [*content(tmp_path)["prepare"], f"bash -c 'sort <{raw} >{{data}}/p/more'"]
    assert "binarize" in run(tmp_path, **settings)
    assert run(tmp_path, **settings) == ""
    raw.write_text("c\nd\n")
    assert run(tmp_path, status=2, **settings) == ""
    assert f"prepare-2: {raw} has changed since this study began" in capsys.readouterr().err
    run(tmp_path, out="other", **settings)
    assert (tmp_path / "other/data/p/more").read_text() == "c\nd\n"


def test_prepared_data_lie_under_the_first_row_that_reads_them_and_say_which_rows_do(
    tmp_path: Path,
):
    methods = content(tmp_path)["methods"]
    methods["new"] = {"arch": "tree_up_down_mini", "binarize": {"source-format": "for"}}
    run(tmp_path, seeds=[1], methods=methods)
    folders = sorted((tmp_path / "out/binarized").iterdir())
    assert [folder.name for folder in folders] == ["sequence", "stack_pe"]
    assert "these rows read: stack_pe, new\n" in (folders[1] / "README.txt").read_text()
    methods["third"] = methods["new"]
    assert "binarize" not in run(tmp_path, seeds=[1], methods=methods)
    assert "stack_pe, new, third\n" in (folders[1] / "README.txt").read_text()
    assert run(tmp_path, seeds=[1], methods=methods) == ""


def test_a_study_with_the_long_names_of_older_versions_goes_on(tmp_path: Path):
    """Its folders have the names of all rows that read them; what is done is not done again."""
    methods = content(tmp_path)["methods"]
    methods["new"] = {"arch": "tree_up_down_mini", "binarize": {"source-format": "for"}}
    run(tmp_path, seeds=[1], methods=methods)
    out = tmp_path / "out"
    (out / "binarized/stack_pe/README.txt").unlink()
    (out / "binarized/stack_pe").rename(out / "binarized/stack_pe+new")
    marker = out / "done/binarize/stack_pe+new.json"
    marker.write_text(marker.read_text().replace("binarized/stack_pe/", "binarized/stack_pe+new/"))
    plan = make_plan(read_recipe(tmp_path / "recipe.yaml"))
    assert plan.data_folder(plan.recipe.methods[1], out) == out / "binarized/stack_pe+new"
    started = run(tmp_path, seeds=[1, 2], methods=methods)
    assert {*trained(started)} == {"sequence-2", "stack_pe-2", "new-2"}
    assert "binarize" not in started
    assert plan.data_folder(plan.recipe.methods[1], out) == out / "binarized/stack_pe"
    assert (out / "binarized/stack_pe/train.bin").is_file()


def test_data_in_the_way_of_another_setting_are_kept_aside_and_come_back(tmp_path: Path):
    """A row that moves to other data takes their folder's name; the former data are not lost."""
    methods = content(tmp_path)["methods"]
    moved = {**methods, "sequence": {**methods["sequence"], "binarize": {"source-format": "for"}}}
    run(tmp_path, seeds=[1])
    assert "binarize" not in run(tmp_path, seeds=[1], methods=moved)
    readme = (tmp_path / "out/binarized/sequence/README.txt").read_text()
    assert "these rows read: sequence, stack_pe\n" in readme
    back = run(tmp_path, seeds=[1])
    assert "binarize" not in back
    assert trained(back) == []


def test_a_row_that_was_taken_away_is_in_no_figure(tmp_path: Path):
    run(tmp_path, seeds=[1, 2])
    one = {"sequence": content(tmp_path)["methods"]["sequence"]}
    assert trained(run(tmp_path, seeds=[1], methods=one)) == []
    assert table(tmp_path) == {"sequence": "1 of 1"}
    rows = (tmp_path / "out/tables/results.csv").read_text().splitlines()
    assert len(rows) == 2
    assert yaml.safe_load((tmp_path / "out/recipe.yaml").read_text())["seeds"] == [1]


def test_two_rows_with_the_same_settings_are_two_runs(tmp_path: Path):
    one = content(tmp_path)["methods"]["sequence"]
    started = run(tmp_path, seeds=[1], methods={"one": one, "two": one})
    assert trained(started) == ["one-1", "two-1"]
    assert run(tmp_path, seeds=[1], methods={"one": one, "two": one}) == ""

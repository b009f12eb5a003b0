"""Studies whose files, outputs or code change, over stand-ins for the real programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from study.run.growing_studies import content, kind, run, table, trained, updates
from support.fake_programs import programs
from support.fake_programs import study as study_here
from support.study_helpers import plan_of, write_recipe
from support.study_runs import commands_in, refused

from treesyntax.errors import OptionError
from treesyntax.study.report.report import read_study
from treesyntax.study.results.results import read_results, write_results
from treesyntax.study.run import code
from treesyntax.study.run.ledger import Ledger

pytestmark = pytest.mark.usefixtures("quick")


def test_other_data_in_the_same_folder_are_refused_by_name(tmp_path: Path):
    run(tmp_path, seeds=[1])
    write_recipe(tmp_path, **content(tmp_path, seeds=[1]))
    said = refused(tmp_path, "--set", "size=9")
    assert "recipe edited: prepare: " in said  # the command that makes them
    assert "sequence-1 was trained with another data.source.train than {data}/p/train.src" in said
    assert "choose another --out" in said
    (tmp_path / "moved").mkdir()
    for name, text in (("a", "x\ny\n"), ("test.tgt", "other\nlines\n")):
        (tmp_path / "moved" / name).write_text(text)
    said = refused(tmp_path, "--set", f"root={tmp_path}/moved")
    assert f"another data.target.test than {tmp_path}/moved/test.tgt is now" in said
    (tmp_path / "moved/test.tgt").write_text("x\ny\n")  # the same content elsewhere is the same
    started = len(commands_in(tmp_path, "start"))
    words = [str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out")]
    words += ["--set", f"root={tmp_path}/moved"]
    assert study_here(tmp_path / "journal", words) == 0
    assert len(commands_in(tmp_path, "start")) == started


@pytest.mark.parametrize(
    ("name", "label"),
    [("files/test.tgt", "data.target.test"), ("files/a", "prepare-1"),
     ("out/data/p/test.src", "data.source.test"),
     ("out/binarized/sequence/train.bin", "prepared data")],
)  # fmt: skip
def test_a_file_that_changed_stops_the_study(tmp_path: Path, name: str, label: str, capsys):
    run(tmp_path, seeds=[1])
    (tmp_path / name).write_text("y\nx\n")
    starts = len(commands_in(tmp_path, "start"))
    for options in ([], ["--plan"]):
        assert run(tmp_path, *options, status=2, seeds=[1, 2]) == ""
        assert f"{label}: {tmp_path / name} has changed since" in capsys.readouterr().err
    assert len(commands_in(tmp_path, "start")) == starts


@pytest.mark.parametrize("name", ["files/test.tgt", "out/data/p/test.src",
                                  "out/runs/stack_pe-1/hypotheses.txt"])  # fmt: skip
def test_a_report_of_changed_files_is_refused(tmp_path: Path, name: str):
    run(tmp_path, seeds=[1])
    page = (tmp_path / "out/report.html").read_bytes()
    (tmp_path / name).write_text("y\nx\n")
    with pytest.raises(OptionError, match=f"{tmp_path / name} has changed since"):
        read_study(tmp_path / "out")
    assert (tmp_path / "out/report.html").read_bytes() == page


@pytest.mark.parametrize(
    ("name", "label"),
    [("files/test.tgt", "data.target.test"), ("out/data/p/test.src", "data.source.test")],
)
def test_a_file_that_changes_while_the_study_runs_stops_it(
    tmp_path: Path, monkeypatch, capsys, name: str, label: str
):
    """The training itself changes the test set, as somebody at another terminal would."""
    write_recipe(tmp_path, **content(tmp_path, seeds=[1], score=["exact", "exact:unseen"]))
    script = tmp_path / "train.sh"
    file = tmp_path / name
    real = " ".join(programs(tmp_path / "journal")["fairseq-train"])
    script.write_text(f'echo changed >> {file}\nexec {real} "$@"\n')
    known = programs(tmp_path / "journal")
    monkeypatch.setattr(
        "support.fake_programs.programs",
        lambda _: {**known, "fairseq-train": ("bash", str(script))},
    )
    words = [str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert study_here(tmp_path / "journal", words) == 2
    assert f"{label}: {file} has changed since" in capsys.readouterr().err
    assert not (tmp_path / "out/runs.jsonl").exists()
    assert not [text for text in commands_in(tmp_path, "start") if kind(text) == "score"]


def test_outputs_that_somebody_changed_are_made_and_scored_anew(tmp_path: Path):
    run(tmp_path, seeds=[1])
    (tmp_path / "out/runs/sequence-1/hypotheses.txt").write_text("b c\nb c\n")
    assert run(tmp_path, seeds=[1]).split() == ["python", "score"]
    scores = tmp_path / "out/runs/stack_pe-1/scores.json"
    scores.write_text(scores.read_text().replace("0.0", "9.0"))
    (tmp_path / "out/runs.jsonl").unlink()
    assert run(tmp_path, seeds=[1]) == "score"
    assert {one.value for one in read_results(tmp_path / "out/runs.jsonl")} == {0.0}


def edit(file: Path) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write("\nEDITED = True\n")
    code.look_again()


def test_runs_of_different_code_are_refused_unless_asked(tmp_path: Path, package: Path, capsys):
    run(tmp_path, seeds=[1])
    edit(package / "treesyntax/nn/kernels/softmax.py")
    assert run(tmp_path, seeds=[1], title="nothing to train") == ""
    capsys.readouterr()
    assert run(tmp_path, seeds=[1, 2], status=2) == ""
    message = capsys.readouterr().err
    assert "its runs would be of different code (train: nn, generate: nn)" in message
    assert "--mix-versions" in message
    mixed = run(tmp_path, "--mix-versions", seeds=[1, 2])
    assert trained(mixed) == ["sequence-2", "stack_pe-2"]
    assert table(tmp_path)["sequence"] == "2 of 2, other code: 2"
    study = read_study(tmp_path / "out")
    assert study.comparisons == []
    assert any(
        "rows of other code than their baseline are not tested" in one for one in study.table.notes
    )
    asked = read_study(tmp_path / "out", mix_versions=True)
    assert {one.method for one in asked.comparisons} <= {"stack_pe"}
    assert any("compared as you asked" in note for note in asked.table.notes)


def test_code_that_is_edited_while_a_study_runs_is_recorded(
    tmp_path: Path, package: Path, monkeypatch
):
    """Each training imports the code as it is when it begins."""

    def look_again() -> None:
        edit(package / "treesyntax/nn/pairs.py")

    monkeypatch.setattr("treesyntax.study.run.ledger.look_again", look_again)
    run(tmp_path, "--jobs", "1", seeds=[1])
    notes = [
        json.loads((tmp_path / f"out/runs/{name}-1/begun.json").read_text())["code"]
        for name in ("sequence", "stack_pe")
    ]
    assert notes[0]["train: nn"] != notes[1]["train: nn"]
    study = read_study(tmp_path / "out")
    assert any(note.startswith("Runs of different code") for note in study.table.notes)


def test_a_step_is_of_the_code_that_it_started_with(tmp_path: Path, package: Path):
    """An edit while it runs is not in its numbers, so that it is made again later."""
    ledger = Ledger(plan_of(tmp_path), tmp_path / "out", {})
    step = next(step for step in ledger.plan.steps if step.kind == "score")
    before = ledger.code(step)
    ledger.note_start(step)
    edit(package / "treesyntax/metrics/text.py")
    ledger.mark(step, 1.0)
    assert ledger.marker(step)["code"] == before != ledger.code(step)


def test_a_job_is_of_the_code_that_it_begins_with(tmp_path: Path, package: Path):
    """It imports it after hours in a queue; one that is queued again goes on with what there is then."""
    ledger = Ledger(plan_of(tmp_path), tmp_path / "out", {})
    run_of_job = ledger.plan.runs[0]
    step, codes = ledger.plan.steps_of(run_of_job)[0], []
    for of_job in (False, True, True):
        ledger.note_start(step, of_job)
        codes.append(ledger.begun(run_of_job)["code"]["train: nn"])
        edit(package / "treesyntax/nn/pairs.py")
    ordered, begun, queued_again = codes
    assert begun != ordered
    assert begun in queued_again.split(" and ")
    assert ordered not in queued_again.split(" and ")
    assert len(queued_again.split(" and ")) == 2


def test_a_training_that_was_cut_off_does_not_go_on_with_other_code(
    tmp_path: Path, package: Path, capsys
):
    methods = {"sequence": content(tmp_path)["methods"]["sequence"]}
    run(tmp_path, seeds=[1], methods=methods)
    (tmp_path / "out/done/sequence-1/train.json").unlink()  # as after a kill
    edit(package / "fairseq_plugins/training/updates.py")
    capsys.readouterr()
    assert run(tmp_path, seeds=[1], methods=methods, status=2) == ""
    assert "different code (train: fairseq_plugins" in capsys.readouterr().err


def test_a_new_method_leaves_the_runs_of_others_as_they_are(tmp_path: Path, package: Path):
    run(tmp_path, seeds=[1])
    edit(package / "treesyntax/methods/pairs/up_down.py")
    methods = {**content(tmp_path)["methods"], "new": {"arch": "tree_up_down_mini"}}
    assert trained(run(tmp_path, seeds=[1], methods=methods)) == ["new-1"]
    edit(package / "treesyntax/methods/encodings/stack_pe.py")
    assert run(tmp_path, seeds=[1, 2], methods=methods, status=2) == ""


def test_other_code_of_metrics_scores_all_runs_anew(tmp_path: Path, package: Path):
    run(tmp_path, seeds=[1])
    before = {one.code["score: metrics"] for one in read_results(tmp_path / "out/runs.jsonl")}
    edit(package / "treesyntax/metrics/text.py")
    started = run(tmp_path, seeds=[1, 2])
    assert started.split().count("score") == 4
    assert trained(started) == ["sequence-2", "stack_pe-2"]
    after = {one.code["score: metrics"] for one in read_results(tmp_path / "out/runs.jsonl")}
    assert len(before) == len(after) == 1
    assert before != after


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("treesyntax generate for2lam --out {data}/p", "treesyntax/data/sets/for_programs.py"),
        ("treesyntax data get slog {data}/p", "treesyntax/data/sets/cogs.py"),
    ],
)
def test_data_of_a_generator_that_was_mended_are_made_again(
    tmp_path: Path, package: Path, command: str, file: str
):
    """A new study takes data from its neighbour only where the same code made them."""
    word = command.split()[1]
    assert run(tmp_path, seeds=[1], out="first", prepare=[command]).split()[0] == word
    assert word not in run(tmp_path, seeds=[1], out="second", prepare=[command]).split()
    edit(package / file)
    assert run(tmp_path, seeds=[1], out="third", prepare=[command]).split()[0] == word


def first_rule(value: dict) -> dict:
    """A record as an older version wrote it."""
    return {
        **value,
        "code": {
            part: digest for part, digest in value["code"].items() if not part.endswith(": rule")
        },
    }


def make_old(folder: Path) -> None:
    """Turn all records of a study into those of an older version."""
    for file in [*folder.glob("runs/*/begun.json"), *folder.glob("done/**/*.json")]:
        value = json.loads(file.read_text())
        file.write_text(json.dumps(first_rule(value) if "code" in value else value))
    results = read_results(folder / "runs.jsonl")
    write_results(
        folder / "runs.jsonl",
        [replace(one, code=first_rule({"code": one.code})["code"]) for one in results],
    )


def test_records_of_an_older_version_are_unknown_not_different(
    tmp_path: Path, package: Path, capsys
):
    run(tmp_path, seeds=[1])
    compared = read_study(tmp_path / "out").comparisons
    make_old(tmp_path / "out")
    assert not trained(run(tmp_path, seeds=[1], title="nothing to train"))
    study = read_study(tmp_path / "out")
    assert [one.method for one in study.comparisons] == [one.method for one in compared]
    assert [
        note
        for note in study.table.notes
        if note.startswith("The code of 2 runs was recorded by an older version")
    ]
    assert table(tmp_path)["sequence"] == "1 of 1"
    capsys.readouterr()
    assert not trained(run(tmp_path, seeds=[1, 2], status=2))
    message = capsys.readouterr().err
    assert "an older version recorded the code of 2 of its runs" in message
    assert "nobody knows if it is the present code (" in message
    assert trained(run(tmp_path, "--mix-versions", seeds=[1, 2])) == ["sequence-2", "stack_pe-2"]
    study = read_study(tmp_path / "out")
    assert study.comparisons == []
    assert any("train: unknown" in note for note in study.table.notes)


def test_a_study_of_an_older_version_is_scored_once_more_and_not_trained(tmp_path: Path):
    """It lacks what each line contributes, which the step score keeps since."""
    run(tmp_path, seeds=[1])
    for file in (tmp_path / "out/runs").glob("*/lines.json"):
        file.unlink()
    assert run(tmp_path, seeds=[1]).split() == ["score", "score"]
    assert len([*(tmp_path / "out/runs").glob("*/lines.json")]) == 2


def test_a_result_has_the_versions_that_trained(tmp_path: Path, monkeypatch):
    from treesyntax.study.run import ledger

    run(tmp_path, seeds=[1])
    monkeypatch.setattr(ledger, "commit", lambda: "later+")
    run(tmp_path, seeds=[1], score=["exact", "bleu"])
    found = read_results(tmp_path / "out/runs.jsonl")
    assert len(found) == 4
    assert "later+" not in {one.commit for one in found}
    assert {"torch", "fairseq", "sacrebleu"} <= found[0].versions.keys()
    assert found[0].code["score: sacrebleu"] == found[0].versions["sacrebleu"]


def test_a_file_made_anew_with_other_content_is_refused(tmp_path: Path, capsys):
    run(tmp_path, seeds=[1])
    marker = tmp_path / "out/done/prepare-1.json"
    noted = json.loads(marker.read_text())
    noted["outputs"]["data/p/train.src"] = "0" * 64  # as if chance had made other data before
    marker.write_text(json.dumps(noted))
    (tmp_path / "out/data/p/train.src").unlink()
    assert run(tmp_path, seeds=[1], status=2) == "generate"
    assert "prepare-1 made another" in capsys.readouterr().err


def test_a_later_command_may_write_a_file_once_more(tmp_path: Path):
    again = [*content(tmp_path)["prepare"], "bash -c 'echo x >> {data}/p/train.src'"]
    run(tmp_path, seeds=[1], prepare=again)
    assert run(tmp_path, seeds=[1], prepare=again) == ""


def test_a_parser_that_is_gone_hinders_no_study_that_needs_it_no_more(tmp_path: Path, capsys):
    run(tmp_path, seeds=[1])
    (tmp_path / "files/a").rename(tmp_path / "files/b")
    write_recipe(tmp_path, **{**content(tmp_path, seeds=[1, 2])})
    (tmp_path / "files/a").unlink()
    words = [str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out")]
    assert study_here(tmp_path / "journal", words) == 0
    assert len(updates(tmp_path)) == 20
    (tmp_path / "out/data/p/train.src").unlink()
    assert study_here(tmp_path / "journal", words) == 2
    assert (
        f"prepare-1: {tmp_path}/files/a is gone since this study began" in capsys.readouterr().err
    )

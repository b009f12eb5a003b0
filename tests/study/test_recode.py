"""Records of code by the first rule become comparable, from a checkout of the commit that made them."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from study.run.growing_studies import content, run, trained

from treesyntax.study import recode
from treesyntax.study.results.results import read_results, write_results
from treesyntax.study.run import ledger
from treesyntax.study.run.code import of_first_rule

pytestmark = pytest.mark.usefixtures("quick")
LISTED = {
    "prepare": ("trees/**/*.py", "parsers/*.py", "data/generate/*.*"),
    "binarize": ("trees/**/*.py", "data/*.py", "data/binarize/*.py"),
    "train": ("trees/**/*.py", "nn/*.py", "../fairseq_plugins/*.py", "methods/sequence.py"),
    "generate": ("trees/**/*.py", "nn/*.py", "decoding/*.py"),
    "hypotheses": ("study/run/hypotheses.py",),
    "score": ("metrics/*.py", "commands/score.py"),
}
"""Some of the parts that an older version recorded."""


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(
        ["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source that trains, as a commit."""
    git(package, "init", "-q")
    git(package, "add", ".")
    git(package, "commit", "-qm", "first")
    head = git(package, "rev-parse", "HEAD")
    monkeypatch.setattr(ledger, "commit", lambda: head)
    return package


def make_old(folder: Path, source: Path) -> None:
    """Records as an older version made them from that source."""
    recoder = recode.Recoder.__new__(recode.Recoder)
    recoder.source, recoder.files = source, {}

    def old(code: dict[str, str]) -> dict[str, str]:
        kinds = {part.partition(": ")[0] for part in code}
        versions = {
            part: value
            for part, value in code.items()
            if part.endswith(("torch", "fairseq", "sacrebleu"))
        }
        listed = {
            f"{kind}: {part}": recoder._first_digest(part)
            for kind in LISTED
            if kind in kinds
            for part in LISTED[kind]
        }
        return {**listed, **versions}

    for file in [*folder.glob("runs/*/begun.json"), *folder.glob("done/**/*.json")]:
        value = json.loads(file.read_text())
        if "code" in value:
            file.write_text(json.dumps({**value, "code": old(value["code"])}))
    results = read_results(folder / "runs.jsonl")
    write_results(folder / "runs.jsonl", [replace(one, code=old(one.code)) for one in results])


def test_a_study_goes_on_after_its_records_are_made_anew(tmp_path: Path, checkout: Path, capsys):
    run(tmp_path, seeds=[1])
    before = read_results(tmp_path / "out/runs.jsonl")
    source = tmp_path / "elsewhere"
    shutil.copytree(checkout, source)
    make_old(tmp_path / "out", source)
    assert all(of_first_rule(result.code) for result in read_results(tmp_path / "out/runs.jsonl"))
    assert not trained(run(tmp_path, seeds=[1, 2], status=2))
    capsys.readouterr()
    assert recode.main([str(tmp_path / "out"), "--source", str(source)]) == 0
    assert " 0 still of the first\n" in capsys.readouterr().out
    assert [one.code for one in read_results(tmp_path / "out/runs.jsonl")] == [
        one.code for one in before
    ]
    assert trained(run(tmp_path, seeds=[1, 2])) == ["sequence-2", "stack_pe-2"]


def test_records_of_other_source_stay_as_they_are(tmp_path: Path, checkout: Path, capsys):
    run(tmp_path, seeds=[1])
    make_old(tmp_path / "out", checkout)
    code = [one.code for one in read_results(tmp_path / "out/runs.jsonl")]
    with (checkout / "treesyntax/nn/pairs.py").open("a") as stream:
        stream.write("x = 1\n")
    words = [str(tmp_path / "out"), "--source", str(checkout)]
    assert recode.main(words) == 2
    assert "has changes, or is not treesyntax; give a clean checkout" in capsys.readouterr().err
    git(checkout, "commit", "-qam", "second")
    assert recode.main(words) == 0
    assert f"{tmp_path}/out: 0 records are of today's rule" in capsys.readouterr().out
    assert [one.code for one in read_results(tmp_path / "out/runs.jsonl")] == code


def test_data_from_beside_are_of_unknown_code(tmp_path: Path, checkout: Path, capsys):
    """The first rule took the data of another study although their generator had changed."""
    run(tmp_path, seeds=[1], out="first")
    run(tmp_path, seeds=[1], title="takes its data from the first")
    make_old(tmp_path / "out", checkout)
    words = [str(tmp_path / "out"), "--source", str(checkout)]
    notes = {
        file: json.loads(file.read_text())
        for file in (tmp_path / "first").glob("runs/*/begun.json")
    }
    for file, note in notes.items():
        file.write_text(json.dumps({**note, "versions": {**note["versions"], "commit": "other"}}))
    assert recode.main(words) == 0
    assert " 0 still of the first" not in capsys.readouterr().out
    (code,) = {
        json.dumps(one.code)
        for one in read_results(tmp_path / "out/runs.jsonl")
        if one.method == "sequence"
    }
    assert "train: rule" in code
    assert "prepare: rule" not in code
    for file, note in notes.items():
        file.write_text(json.dumps(note))
    assert recode.main(words) == 0  # the study that made them is of the same commit
    assert " 0 still of the first" in capsys.readouterr().out


def test_a_source_that_is_no_checkout_is_told(tmp_path: Path, capsys):
    run(tmp_path, **content(tmp_path, seeds=[1]))
    for folder in ("nowhere", "files"):
        assert recode.main([str(tmp_path / "out"), "--source", str(tmp_path / folder)]) == 2
        assert f"recode: --source {tmp_path / folder} is no" in capsys.readouterr().err

"""The command ``treesyntax score``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.helpers import HYPOTHESES, REFERENCES

from treesyntax import __version__
from treesyntax.__main__ import main


def score(tmp_path: Path, hypotheses: str, references: str, *more: str) -> int:
    (tmp_path / "hyp").write_text(hypotheses, encoding="utf-8")
    (tmp_path / "ref").write_text(references, encoding="utf-8")
    paths = ["--reference", str(tmp_path / "ref"), "--hypothesis", str(tmp_path / "hyp")]
    return main(["score", *paths, *more])


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = ["--metric", "exact", "--metric", "tree:lambda"]
    assert score(tmp_path, "\n".join(HYPOTHESES), "\n".join(REFERENCES), *metrics) == 0
    assert capsys.readouterr().out == (
        f"exact         25.00  n=4  exact|tok:space|v:{__version__}\n"
        f"tree:lambda   50.00  n=4  tree:lambda|v:{__version__}\n"
    )


def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(tmp_path, "a\nb\n", "a\nc\n", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"metric": "exact", "value": 50.0, "signature": f"exact|tok:space|v:{__version__}", "n": 2}
    ]


@pytest.mark.parametrize(
    ("hypotheses", "references", "more", "message"),
    [
        ("a\n", "a\nb\n", [], "{0}/hyp: has 1 lines, but {0}/ref has 2; score the output of the very same set"),
        ("H-0\t-0.1\tb\nD-0\t-0.1\tb\n", "b\na\n", [],
         "{0}/hyp:1: is what fairseq-generate printed (H-0 …), not one output a line; take the outputs: "
         "grep ^D- {0}/hyp | sort -V | cut -f 3- > out.txt"),
        ("", "", [], "{0}/ref: is empty; there is nothing to score"),
        ("a\n", "a\n", ["--metric", "tree:lambda"],
         "reference 1 is not lambda: token 1 is 'a', expected let, letrec, if, a9 or unit"),
    ],
)  # fmt: skip
def test_the_command_refuses(tmp_path: Path, capsys, hypotheses, references, more, message):
    assert score(tmp_path, hypotheses, references, *more) == 2
    assert capsys.readouterr().err == f"treesyntax score: {message.format(tmp_path)}\n"


def unseen_files(tmp_path: Path, train_target: str = "a\nb\n") -> list[str]:
    texts = {"source": "x\ny\n", "train-source": "x\nz\n", "train-target": train_target}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [part for name in texts for part in (f"--{name}", str(tmp_path / name))]


def test_the_command_scores_unseen_lines_beside_all(tmp_path: Path, capsys) -> None:
    metrics = ["--metric", "exact", "--metric", "exact:unseen", "--json"]
    assert score(tmp_path, "a\nb\n", "a\nc\n", *metrics, *unseen_files(tmp_path)) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(s["metric"], s["value"], s["n"]) for s in found] == [
        ("exact", 50.0, 2), ("exact:unseen", 0.0, 1),
    ]  # fmt: skip
    assert found[1]["signature"] == f"exact|tok:space|v:{__version__}|lines:unseen"


def test_the_lines_of_a_category_are_scored_beside_all(tmp_path: Path, capsys) -> None:
    (tmp_path / "cat").write_text("test\ngen/deep\ngen/long\ngentle\n")
    metrics = ["--metric", "exact", "--metric", "exact@test", "--metric", "exact@gen"]
    assert score(tmp_path, "a\nb\nc\nd\n", "a\nb\nx\nx\n", *metrics, "--json") == 2
    needs = "exact@test needs --counted-by, a file with the category of each line"
    assert needs in capsys.readouterr().err
    words = [*metrics, "--counted-by", str(tmp_path / "cat")]
    assert score(tmp_path, "a\nb\nc\nd\n", "a\nb\nx\nx\n", *words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(s["metric"], s["value"], s["n"]) for s in found] == [
        ("exact", 50.0, 4), ("exact@test", 100.0, 1), ("exact@gen", 50.0, 2),
    ]  # fmt: skip
    assert found[2]["signature"] == f"exact|tok:space|v:{__version__}|lines:gen"
    words = ["--metric", "exact@new", "--counted-by", str(tmp_path / "cat")]
    assert score(tmp_path, "a\nb\nc\nd\n", "a\nb\nx\nx\n", *words) == 2
    assert "exact@new: no line is of that category" in capsys.readouterr().err


def test_the_command_refuses_unseen_without_the_files(tmp_path: Path, capsys) -> None:
    metric = ["--metric", "exact:unseen"]
    assert score(tmp_path, "a\nb\n", "a\nc\n", *metric) == 2
    assert capsys.readouterr().err == "treesyntax score: metrics with :unseen need --source\n"
    assert score(tmp_path, "a\n", "a\n", *metric, *unseen_files(tmp_path)) == 2
    assert f"{tmp_path}/source: has 2 lines, but {tmp_path}/ref has 1; give the files of the" in (
        capsys.readouterr().err
    )
    assert score(tmp_path, "a\nb\n", "a\nc\n", *metric, *unseen_files(tmp_path, "a\n")) == 2
    assert "train-source: has 2 lines, but" in capsys.readouterr().err
    assert score(tmp_path, "a\n", "a\n", "--metric", "exakt:unseen") == 2
    assert "no metric is named 'exakt'" in capsys.readouterr().err


def test_the_command_refuses_unknown_metrics_and_files(tmp_path: Path, capsys) -> None:
    assert score(tmp_path, "a\n", "a\n", "--metric", "accuracies") == 2
    assert "no metric is named 'accuracies'; there are bleu," in capsys.readouterr().err
    assert main(["score", "--reference", str(tmp_path / "x"), "--hypothesis", "y"]) == 2
    assert "x: cannot be read (No such file or directory)" in capsys.readouterr().err


def test_bleu_is_what_the_docs_offer_for_fairseq_score_sacrebleu(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairseq_cli import score as fairseq_score

    assert score(tmp_path, "a b c d\n", "a b c d e\n", "--metric", "bleu") == 0
    assert capsys.readouterr().out.startswith("bleu   77.88  n=1  nrefs:1|case:mixed|")
    words = ["-s", str(tmp_path / "hyp"), "-r", str(tmp_path / "ref"), "--sacrebleu"]
    monkeypatch.setattr("sys.argv", ["fairseq-score", *words])
    with pytest.raises(TypeError):  # once it works, the docs should say so
        fairseq_score.cli_main()
    text = (Path(__file__).parents[2] / "docs/by-hand.md").read_text(encoding="utf-8")
    assert "`fairseq-score --sacrebleu`" in text


def test_categories_are_scored_by_themselves(tmp_path: Path, capsys) -> None:
    (tmp_path / "cat").write_text("active\npassive\nactive\n")
    words = ["--categories", str(tmp_path / "cat"), "--metric", "exact", "--metric", "exact:unseen"]
    files = unseen_files(tmp_path)
    (tmp_path / "source").write_text("x\ny\nz\n")
    (tmp_path / "train-target").write_text("a\nb\n")
    assert score(tmp_path, "a\nb\nd\n", "a\nb\nc\n", *words, *files, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(s["metric"], s.get("category"), s["value"], s["n"]) for s in found] == [
        ("exact", None, pytest.approx(66.67, abs=0.01), 3), ("exact:unseen", None, 50.0, 2),
        ("exact", "active", 50.0, 2), ("exact:unseen", "active", 0.0, 1),
        ("exact", "passive", 100.0, 1), ("exact:unseen", "passive", 100.0, 1),
    ]  # fmt: skip
    assert score(tmp_path, "a\nb\nd\n", "a\nb\nc\n", *words[:2]) == 0
    assert "\nexact active    50.00  n=2  exact|" in capsys.readouterr().out
    (tmp_path / "cat").write_text("active\n")
    assert score(tmp_path, "a\nb\nd\n", "a\nb\nc\n", *words[:2]) == 2
    assert "cat: has 1 lines, but" in capsys.readouterr().err


def test_what_a_metric_prints_is_no_part_of_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from treesyntax import metrics

    def talkative(hypotheses: list[str], references: list[str]) -> list[bool]:
        print("comparing", len(references), "lines")
        return [one == other for one, other in zip(hypotheses, references, strict=True)]

    monkeypatch.setitem(metrics.ITEM_METRICS.plain, "exact", talkative)
    assert score(tmp_path, "a\nb\n", "a\nc\n", "--metric", "exact", "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)[0]["value"] == 50
    assert "comparing 2 lines" in printed.err

"""Categories that do not fit their test set: said before anything is trained, and mended in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from study.run.growing_studies import content, run, trained
from support.study_helpers import write_recipe

from treesyntax.errors import OptionError, TreeSyntaxError
from treesyntax.study import session
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.report import read_study
from treesyntax.study.results.results import read_results
from treesyntax.study.run.early import check_early
from treesyntax.study.run.plan import make_plan

pytestmark = pytest.mark.usefixtures("quick")
SCORE = ["exact", "exact@gen"]


def check(folder: Path, categories: str, metric: str) -> None:
    """The check before a study of a test set of two lines."""
    (folder / "cat").write_text(categories)
    changes = content(folder, score=[metric], categories=str(folder / "cat"))
    check_early(make_plan(read_recipe(write_recipe(folder, **changes))), ())


@pytest.mark.parametrize("metric", ["exact", "exact@gen"])
def test_another_number_of_lines_is_refused(metric: str, tmp_path: Path):
    with pytest.raises(TreeSyntaxError) as raised:
        check(tmp_path, "gen\n", metric)
    test = tmp_path / "files/test.tgt"
    said = f"{tmp_path}/cat: has 1 lines, but {test} has 2; name the category of each line"
    assert str(raised.value) == said


@pytest.mark.parametrize("metric", ["exact@gne", "exact:unseen@gne"])
def test_a_category_without_lines_is_refused(metric: str, tmp_path: Path):
    with pytest.raises(OptionError) as raised:
        check(tmp_path, "gen/a\ntest\n", metric)
    where = f"{tmp_path}/recipe.yaml: score: {metric}: in {tmp_path}/cat no category is named 'gne'"
    assert str(raised.value).startswith(where)
    assert "there are gen/a, test" in str(raised.value)


def test_categories_that_fit_are_fine(tmp_path: Path):
    for metric in ("exact", "exact@gen", "exact@gen/a", "exact:unseen@gen"):
        check(tmp_path, " gen/a \ntest\n", metric)


def test_categories_that_the_study_makes_are_looked_at_before_a_training(tmp_path: Path, capsys):
    """They are there once the recipe's commands are done."""
    started = run(
        tmp_path, status=2, seeds=[1], score=SCORE, categories="{data}/cat",
        prepare=["sh -c 'mkdir -p {data} && echo gen > {data}/cat'"],
    )  # fmt: skip
    assert not trained(started)
    assert "cat: has 1 lines, but" in capsys.readouterr().err


def test_other_categories_make_scores_anew_and_train_nothing(tmp_path: Path, monkeypatch):
    """Their file is named by a bare word."""
    monkeypatch.chdir(tmp_path)
    changes = {"seeds": [1], "score": SCORE, "categories": "cat"}
    Path("cat").write_text("gen\ntest\n")
    run(tmp_path, **changes)
    Path("cat").write_text("gen\ngen\n")
    with pytest.raises(OptionError, match="categories: cat has changed .*; run the study again"):
        read_study(tmp_path / "out")
    assert run(tmp_path, **changes) == "score score"
    results = read_results(tmp_path / "out/runs.jsonl")
    assert {one.n for one in results if one.metric == "exact@gen"} == {2}
    read_study(tmp_path / "out")
    assert run(tmp_path, **changes) == ""


@pytest.mark.parametrize("ended", [True, False])
def test_no_table_has_scores_by_old_categories_beside_new_ones(
    tmp_path: Path, monkeypatch, capsys, ended: bool
):
    """A session that scores one row alone, or that ends before it scores."""
    categories = tmp_path / "cat"
    changes = {"seeds": [1], "score": SCORE, "categories": str(categories)}
    categories.write_text("gen\ntest\n")
    run(tmp_path, **changes)
    categories.write_text("gen\ngen\n")
    if ended:
        with monkeypatch.context() as patch:
            patch.setattr(session, "note_plan", interrupt)
            run(tmp_path, status=130, **changes)
    else:
        run(tmp_path, "--only", "stack_pe", **changes)
    line = f"categories changed (now {categories}), so scores of metrics with @ are made anew"
    assert line in capsys.readouterr().out
    left = {} if ended else {"stack_pe": 2}
    results = read_results(tmp_path / "out/runs.jsonl")
    assert {one.method: one.n for one in results if one.metric == "exact@gen"} == left
    assert {one.method for one in results if one.metric == "exact"} == {"sequence", "stack_pe"}
    (note, *_) = read_study(tmp_path / "out").table.notes
    assert note.startswith("PARTIAL TABLE without exact@gen of sequence")
    run(tmp_path, **changes)
    assert "PARTIAL" not in read_study(tmp_path / "out").table.notes[0]


FILES = [("{root}/one", "{root}/two"), ("{data}/one", "{data}/two"), ("{data}/cat", "{data}/cat")]


@pytest.mark.parametrize(("file", "later"), FILES)
def test_no_table_has_scores_by_two_files_of_categories(
    tmp_path: Path, capsys, file: str, later: str
):
    """The recipe names another one, or has another command that makes it."""

    def changes(source: str, name: str) -> dict:
        prepare = content(tmp_path)["prepare"]
        prepare += [f"cp {{root}}/{source} {name}"] if "{data}" in name else []
        return {"seeds": [1], "score": SCORE, "categories": name, "prepare": prepare}

    def lines_counted() -> dict[str, int]:
        results = read_results(tmp_path / "out/runs.jsonl")
        return {result.method: result.n for result in results if result.metric == "exact@gen"}

    first, second = changes("one", file), changes("two", later)
    (tmp_path / "files/one").write_text("gen\ntest\n")
    (tmp_path / "files/two").write_text("gen\ngen\n")
    run(tmp_path, **first)
    grown = {"score": [*SCORE, "bleu"], "prepare": [*first["prepare"], "mkdir -p {data}/more"]}
    run(tmp_path, "--only", "stack_pe", **{**first, **grown})
    assert lines_counted() == {"sequence": 1, "stack_pe": 1}
    assert "so scores of metrics with @" not in capsys.readouterr().out
    assert not trained(run(tmp_path, "--only", "stack_pe", **second))
    assert lines_counted() == {"stack_pe": 2}
    name = later.replace("{root}", str(tmp_path / "files"))
    line = f"categories changed (now {name}), so scores of metrics with @ are made anew"
    assert line in capsys.readouterr().out
    (note, *_) = read_study(tmp_path / "out").table.notes
    assert note.startswith("PARTIAL TABLE without exact@gen of sequence")
    assert not trained(run(tmp_path, **second))
    assert lines_counted() == {"sequence": 2, "stack_pe": 2}
    assert run(tmp_path, **second) == ""


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt

"""What a report tells its reader to do next, and what it leaves out of rows that were not run."""

from __future__ import annotations

import io
import re
import shlex
from dataclasses import replace
from math import inf, sqrt
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from rich.console import Console
from scipy.special import stdtrit
from support import ROOT
from support.study_helpers import (
    ONE,
    make_study,
    plan_of,
    recipe_content,
    recipe_with,
    result,
    write,
    write_study,
)

from treesyntax.errors import OptionError
from treesyntax.files import write_json
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.advice import (
    MOST_RUNS,
    not_run_line,
    runs_line,
    runs_needed,
    study_command,
    train_on_command,
)
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table import Row, Spread, StudyTable, make_table, print_table
from treesyntax.study.report.table_notes import COMPARISON_NOTE
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.results.results import read_results, write_results
from treesyntax.study.results.table_text import latex_text, markdown_text


def test_runs_needed_are_those_of_the_table_in_the_docs():
    text = (ROOT / "docs/statistics.md").read_text("utf-8")
    table = text[text.index("| sd over runs |") :]
    header, _, *lines = re.findall(r"^\|.*\|$", table, re.MULTILINE)[:8]
    points = [float(cell.split()[0]) for cell in header.split("|")[2:-1]]
    for line in lines:
        sd, *counts = map(float, line.split("|")[1:-1])
        for difference, count in zip(points, counts, strict=True):
            assert runs_needed(difference, 2 * sd**2, 0.0) == min(count, MOST_RUNS + 1)
    assert len(lines) == 6


def test_no_number_of_runs_is_enough_for_a_small_test_set():
    limit = stdtrit(inf, 0.975) + stdtrit(inf, 0.8)
    assert runs_needed(limit - 0.01, 0.0, 1.0) is None
    assert runs_needed(2 * limit, 0.1, 1.0) == 3
    assert runs_needed(limit + 0.001, 9.0, 1.0) == MOST_RUNS + 1


def row(name: str, values: tuple[float, ...]) -> Row:
    return Row(name, "exact", {"exact": Spread.of(values)}, 1, None, None, "3 of 3", "", {})


def comparison(name: str, difference: float, error: float, **changes: object) -> Comparison:
    half, more = (float(stdtrit(4, level)) * error for level in (0.975, 0.8))
    return replace(
        ONE, method=name, difference=difference, low=difference - half, high=difference + half,
        smallest=half + more, error=error, holm_p=0.4, **changes,
    )  # fmt: skip


def test_the_runs_that_observed_differences_need_are_told():
    sd, error = 1.7, 1.7 * sqrt(2 / 3)
    values = (10.0 - sd, 10.0, 10.0 + sd)
    names = ("sequence", "a", "b", "c", "d", "e", "f")
    found = (
        comparison("a", 2.0, error),
        comparison("b", 0.1, error),
        comparison("c", -3.0, 5.0),  # what is not from the runs is from the items
        comparison("d", 0.0, error),
        replace(comparison("e", 9.0, error), holm_p=0.01),
        replace(comparison("f", 2.0, error), low=None, high=None, smallest=None, holm_p=None),
        comparison("a", 1.0, error, primary=False),
    )
    rows = tuple(row(name, values) for name in names)
    (line,) = runs_line(StudyTable("t", ("exact",), rows, (), (), found))
    _, _, texts = line.partition("a rough guide: ")
    assert texts.partition(". ")[0] == (
        "a about 13 (+2.00 exact), b more than 200 (+0.10 exact), "
        "c none, the test set is too small (-3.00 exact)"
    )
    assert "a rough guide" in line
    assert "adding seeds until a † appears finds what is not there" in line
    assert runs_line(StudyTable("t", ("exact",), rows, (), (), found[3:])) == []


def test_rows_that_were_not_run_are_one_line(tmp_path: Path):
    plan = plan_of(tmp_path)
    table = make_table(plan, [result("stack_pe")], {})
    (line,) = not_run_line(plan.recipe, Path("runs/demo"), table)
    assert line == (
        "Not run yet: sequence, relation_mask; run them with treesyntax study runs/demo/recipe.yaml"
    )
    every = [result(method.name) for method in plan.recipe.methods]
    assert not_run_line(plan.recipe, tmp_path, make_table(plan, every, {})) == []
    methods = {f"row{number}": {"arch": "tree_sequence_mini"} for number in range(11)}
    many = recipe_with(tmp_path, methods=methods)
    (line,) = not_run_line(many, tmp_path, replace(table, rows=()))
    assert "row0, " in line
    assert "row7 and 3 more rows; run" in line


def test_a_command_names_the_recipe_with_what_was_set(tmp_path: Path):
    recipe = recipe_with(tmp_path, "train.lr=7", "train.max-epoch=30")
    folder = tmp_path / "my out"
    write_study(folder, recipe)
    words = shlex.split(train_on_command(read_recipe(folder / "recipe.yaml"), folder))
    assert words[:2] == ["treesyntax", "study"]
    assert words[3:] == ["--out", str(folder), "--train-on", "2"]
    assert read_recipe(Path(words[2])).train == recipe.train
    # Files of own methods are not beside the resolved recipe.
    for path, given in (("own/my.yaml", "own/my.yaml"), ("runs/demo/recipe.yaml", "RECIPE")):
        own = SimpleNamespace(name="demo", imports=("mine.py",), path=Path(path))
        assert study_command(own, Path("runs/demo")) == f"treesyntax study {given}"


def test_a_report_of_some_rows_says_nothing_else_of_the_others(tmp_path: Path):
    methods = recipe_content()["methods"]
    methods["stack_pe"] |= {"train": {"lr": 0.5}, "about": "reads paths, as stack_pe"}
    folder = make_study(tmp_path, methods=methods, score=["exact"])
    kept = [one for one in read_results(folder / "runs.jsonl") if one.method != "stack_pe"]
    (folder / "runs.jsonl").unlink()
    write_results(folder / "runs.jsonl", kept)
    study = read_study(folder)
    write_report(study)
    command = f"treesyntax study {folder}/recipe.yaml --out {folder}"
    line = f"Not run yet: stack_pe; run them with {command}"
    assert study.table.advice == (line,)
    console = Console(width=200, file=io.StringIO(), record=True)
    print_table(study.table, console)
    assert line in console.export_text()
    for name in ("report.html", "report.md"):
        text = (folder / name).read_text()
        assert text.count(line) == 1
        shared = "binarize/relation_mask+stack_pe"  # the step that made the data of both
        assert "stack_pe" not in text.replace(line, "").replace(shared, ""), name
    latex = (folder / "tables/table.tex").read_text()
    assert "stack" not in latex
    assert latex_text("relation_mask") in latex


def test_how_to_read_p_stands_at_the_differences(tmp_path: Path):
    study = read_study(make_study(tmp_path, score=["exact", "bleu"]))
    page = write_report(study).read_text()
    heading, note = page.index("<h2>Differences from"), page.index(COMPARISON_NOTE)
    assert heading < note < page.index('<table id="differences">')
    text = (study.folder / "report.md").read_text()
    before, _, _ = text.partition(markdown_text(COMPARISON_NOTE))
    assert before.rstrip().splitlines()[-1].startswith("| stack_pe |")
    console = Console(width=200, file=io.StringIO(), record=True)
    print_table(study.table, console)
    shown = console.export_text().replace("\n", " ")
    assert "p on other lines" in shown
    assert "docs/" not in shown + text  # the folder is not installed with the package
    import treesyntax.metrics.runs as explained

    assert COMPARISON_NOTE.endswith(f"python -m pydoc {explained.__name__}")
    assert "Satterthwaite" in (explained.__doc__ or "")


def test_runs_with_different_target_tokens_have_a_note_at_their_table(tmp_path: Path):
    folder = make_study(tmp_path, score=["exact"])
    note = "validation losses, accuracies and bits a token cannot be compared between them"
    for views, times in ((("words", "words"), 0), (("words", "lcrs_dfs"), 1)):
        for step, view in zip(("sequence", "relation_mask+stack_pe"), views, strict=True):
            side = {"language": "lambda", "view": view, "dictionary_symbols": 9}
            splits = {"valid": {"lambda": {"tokens": 50}}}
            manifest = {"sides": {"target": side}, "splits": splits}
            write_json(folder / "binarized" / step / "binarize.json", manifest)
        page = write_report(read_study(folder)).read_text()
        _, _, runs = page.partition('<table id="runs">')
        assert runs.partition("</details>")[0].count(note) == times
        assert (folder / "report.md").read_text().count(note) == times


def test_the_page_has_the_command_that_trains_longer(tmp_path: Path):
    folder = make_study(tmp_path, score=["exact"])
    ended = [replace(one, best_update=one.updates) for one in read_results(folder / "runs.jsonl")]
    write_results(folder / "runs.jsonl", ended)
    log = folder / "logs/sequence-1/train.log"
    valid = '{"valid_loss": "3.0", "valid_num_updates": "5"}'
    write(log, [f"t | INFO | valid | {valid}"])
    study = read_study(folder)
    page = write_report(study).read_text()
    command = train_on_command(study.plan.recipe, folder)
    assert f"their order. Train twice as long: {command}</p>" in page


@pytest.mark.parametrize(
    ("train", "setting"),
    [
        ({"num_train_epochs": 20}, "train.num_train_epochs=40"),
        ({"max_steps": 500}, "train.max_steps=1000"),
        ({"learning_rate": 0.1}, "train.num_train_epochs=6"),
    ],
    ids=str,
)
def test_a_pretrained_model_trains_longer_by_its_cap(train: dict, setting: str, tmp_path: Path):
    data = dict.fromkeys(("train", "valid", "test"), "a.jsonl")
    content = {
        "name": "x", "title": "x", "trainer": "huggingface", "model": "bert", "task": "causal", "data": data,
        "train": train, "score": ["exact"], "seeds": [1], "methods": {"plain": {}},
    }  # fmt: skip
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    words = shlex.split(train_on_command(read_recipe(file), tmp_path))
    assert words[-2:] == ["--set", setting]
    key, _, value = setting.removeprefix("train.").partition("=")
    assert read_recipe(file, words[-1:]).train[key] == int(value)
    with pytest.raises(
        OptionError, match="a pretrained model trains anew with a larger train.num_train_epochs"
    ):
        read_recipe(file, ["train-on=2"])

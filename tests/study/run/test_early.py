"""What is wrong with a recipe is told before anything is prepared."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.study_helpers import RECIPES, recipe_with, write_recipe
from support.study_runs import refused

from treesyntax import __main__ as cli
from treesyntax.errors import OptionError
from treesyntax.jobs.flags import Fault, find_fault
from treesyntax.study.recipe.budget import restless
from treesyntax.study.recipe.inherit import inherited_line
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.early import check_early
from treesyntax.study.run.plan import make_plan


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("score=[blue]", "score: no metric is named 'blue'; there are bleu"),
        ("score=['tree:lamda']", "score: no metric is named 'tree:lamda'"),
        ("score=['blue:unseen']", "score: no metric is named 'blue:unseen'"),
        ("score=['exact@gen']", "score: exact@gen counts the lines of a category; name the file"),
        (
            "binarize.subword-vocap=9",
            "binarize.subword-vocap: treesyntax binarize has no such flag; did you mean subword-vocab",
        ),
        ("binarize.subword-vocab=many", "binarize.subword-vocab: invalid int value: 'many'"),
        ("binarize.control-seed=many", "binarize.control-seed: invalid int value: 'many'"),
        (
            "methods.stack_pe.binarize.source-format=fro",
            "methods.stack_pe.binarize.source-format: no format is named 'fro'; did you mean 'for'?",
        ),
        ("binarize.subword-policy=siblngs", "has no choice 'siblngs'; did you mean siblings"),
        ("binarize.source-control=random", "--source-format is text"),
        ("binarize.source-dict='{dict}'", "binarize.source-dict: holds {dict}, which is not a var"),
    ],
)
def test_metrics_and_flags_of_binarize_are_checked_before_anything_runs(
    path: Path, tmp_path: Path, override: str, told: str
):
    for more in ([], ["--dry-run"]):
        said = refused(tmp_path, "--set", override, *more)
        assert said.startswith(f"{path}: ")
        assert told in said
        assert said.count("\n") == 1
    assert not (tmp_path / "journal").exists()
    assert not (tmp_path / "out").exists()


def test_a_patience_that_is_no_number_is_for_fairseq_to_refuse():
    """It ended in a traceback before anybody was asked."""
    assert restless("rest", [{"patience": "many"}]) == restless("rest", [{}])


def test_valid_recipes_pass(path: Path):
    # base.yaml is for those that extend it: the format of the targets is theirs.
    for recipe in (path, *(one for one in RECIPES if one.name != "base.yaml")):
        check_early(make_plan(read_recipe(recipe)), ())


def test_variables_may_use_each_other_but_not_in_a_circle(tmp_path: Path):
    values = {"size": "{lines}0", "lines": 1, "root": "{data}/{size}"}
    recipe = recipe_with(tmp_path, vars=values, prepare=["make {root} --size {size}"])
    assert recipe.prepare == ("make {data}/10 --size 10",)
    with pytest.raises(OptionError, match=r"vars\.a uses itself: a -> b -> a$"):
        recipe_with(tmp_path, vars={"size": 1, "a": "{b}", "b": "x{a}"})


def fake(folder: Path, answer: object = None) -> tuple[str, ...]:
    """A checker that keeps its question and gives this answer to the first command."""
    code = f"""
import json, sys
question = sys.stdin.read()
open({str(folder / "asked")!r}, "w").write(question)
print(json.dumps([{answer!r}, *[None] * (len(json.loads(question)) - 1)]))
"""
    return (sys.executable, "-c", code)


def test_each_command_of_fairseq_is_checked_once(path: Path, tmp_path: Path):
    plan = make_plan(read_recipe(path, ["methods.stack_pe.generate.beam=7"]))
    check_early(plan, fake(tmp_path))
    asked = json.loads((tmp_path / "asked").read_text())
    assert [words[0] for words in asked].count("fairseq-train") == 3
    assert "--user-dir" not in json.dumps(asked)
    for answer, told in (
        (["lr", "is odd"], "train.lr: is odd"),
        (["arch", "is odd"], "methods.sequence.arch: is odd"),
        (["", "is odd"], "methods.sequence.train: is odd"),
    ):
        with pytest.raises(OptionError) as error:
            check_early(plan, fake(tmp_path, answer))
        assert str(error.value) == f"{path}: {told}"
    with pytest.raises(OptionError, match="the flags of trainings cannot be checked: no message"):
        check_early(plan, ("false",))


@pytest.fixture
def asked(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Checks a recipe with some answers, and says whether the program was asked."""
    monkeypatch.setenv("TREESYNTAX_CACHE", str(tmp_path / "cache"))
    question = tmp_path / "asked"

    def check(*changes: str, answer: object = None, name: str = "") -> bool:
        question.unlink(missing_ok=True)
        checker = (*fake(tmp_path, answer), name)
        with suppress(OptionError):
            check_early(make_plan(read_recipe(path, list(changes))), checker)
        return question.exists()

    return check


def test_commands_without_a_fault_are_not_asked_for_again(asked: Callable[..., bool]):
    assert asked()
    assert not asked()
    assert not asked("title=Another")
    assert asked("train.lr=0.1", answer=["lr", "is odd"])
    assert asked("train.lr=0.1", answer=["lr", "is odd"])  # a fault is not kept
    assert asked(name="another program")


def test_an_edit_of_a_users_module_asks_again(
    asked: Callable[..., bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (helper := tmp_path / "helper.py").write_text("x = 1\n")
    (file := tmp_path / "own.py").write_text("import helper\n")
    monkeypatch.setenv("TREESYNTAX_IMPORT", str(file))
    assert asked()
    assert not asked()
    helper.write_text("x = 2\n")
    assert asked()


@pytest.mark.parametrize("text", ["{", "[]", '{"sound": 5}', '{"sound": [5, null]}'])
def test_a_damaged_record_of_answers_is_made_anew(
    asked: Callable[..., bool], tmp_path: Path, text: str
):
    (file := tmp_path / "cache/flags.json").parent.mkdir(parents=True)
    file.write_text(text)
    assert asked()
    assert not asked()


def test_a_cache_that_cannot_be_written_is_no_fault(asked: Callable[..., bool], tmp_path: Path):
    (tmp_path / "cache").write_text("a file")
    assert asked()
    assert asked()


def test_a_misspelt_flag_of_fairseq_is_named_with_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    changes = {"train": {"lr-schedular": "inverse_sqrt", "max-update": 5, "batch-size": 2}}
    path = write_recipe(tmp_path, **changes)
    assert cli.main(["study", str(path), "--out", str(tmp_path / "out"), "--dry-run"]) == 2
    told = "train.lr-schedular: fairseq-train has no such flag; did you mean lr-scheduler"
    assert capsys.readouterr().err == f"treesyntax study: {path}: {told}\n"
    assert not (tmp_path / "out").exists()


def test_values_that_cannot_be_read_and_words_without_use_are_faults():
    def fault(*words: str) -> Fault | None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--n", type=lambda text: eval(text))
        return find_fault(parser, lambda: parser.parse_known_args(words), "tool")[1]

    assert fault("--n", "3") is None
    assert fault("--n", "none") == ("n", "invalid value 'none' (name 'none' is not defined)")
    assert fault("x", "y") == ("", "tool does not take x y")


FORMS = {"binarize": {"source-format": "text", "target-format": "sexpr"}, "score": ["exact"]}


def rows_of(folder: Path, **rows: object) -> Path:
    text = {"arch": "tree_sequence_tiny", "binarize": {"target-format": "text"}}
    grown = {"arch": "tree_sequence_tiny", "binarize": {"target-view": "nary_dfs"}}
    train = {"max-update": 5, "batch-size": 2}
    methods = {"sequence": text, "grown": grown, **rows}
    return write_recipe(folder, **FORMS, train=train, generate={}, methods=methods)


def test_a_row_that_says_nothing_of_its_data_has_the_baselines(tmp_path: Path):
    path = rows_of(
        tmp_path, rotary={"arch": "tree_rotary_tiny"}, bigger={"like": "grown", "train": {"lr": 1}}
    )
    recipe = read_recipe(path)
    flags = {row.name: recipe.flags(row, "binarize") for row in recipe.methods}
    assert (
        flags["rotary"] == flags["sequence"] == {"source-format": "text", "target-format": "text"}
    )
    assert flags["bigger"] == flags["grown"]
    assert recipe.inherits == ("rotary",)
    assert inherited_line(("rotary",), "sequence") == (
        "rotary: no binarize and no data, so it has those of sequence"
    )
    assert recipe.methods[-1].train == {"lr": 1}
    copy = tmp_path / "again.yaml"
    copy.write_text(f"# resolved from {path}\n{json.dumps(recipe.content)}")
    assert read_recipe(copy).content == recipe.content


def test_rows_of_a_resolved_recipe_take_nothing_from_others(tmp_path: Path):
    path = rows_of(tmp_path, old={"arch": "tree_rotary_tiny"})
    path.write_text(f"# resolved from elsewhere\n{path.read_text()}")
    assert read_recipe(path).methods[-1].binarize == {}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"x": {"like": "sequense"}}, "methods.x.like: no row is named 'sequense'; did you mean 'sequence'"),
        ({"x": {"like": "y"}, "y": {"like": "x"}}, "methods.y.like goes round in a circle: x -> y -> x"),
        ({"x": {"like": 3}}, "methods.x.like: no row is named '3'"),
    ],
)  # fmt: skip
def test_a_row_is_like_one_that_there_is(tmp_path: Path, rows: dict, told: str):
    with pytest.raises(OptionError) as error:
        read_recipe(rows_of(tmp_path, **rows))
    assert told in str(error.value)


@pytest.mark.parametrize("view", [None, "preorder", "breadth_first", "words"])
def test_targets_that_cannot_be_turned_back_are_refused(tmp_path: Path, view: str | None):
    """Outputs without brackets were scored against forms with them: 0.00, and a mark."""
    flags = {"source-control": "given"} if view is None else {"target-view": view}
    path = rows_of(tmp_path, lost={"arch": "tree_sequence_tiny", "binarize": flags})
    for more in (["--plan"], ["--dry-run"], []):
        said = refused(tmp_path, *more)
        key = f"{path}: methods.lost.binarize.target-linearization: {view or 'preorder'}"
        assert said.startswith(key)
        assert "target-format: text" in said
        assert "target-linearization: nary_dfs" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({}, "target-format: is conllu, and the row writes its words alone"),
        ({"target-view": "nary_dfs"}, "target-linearization: nary_dfs loses the tree: no conllu"),
    ],
)
def test_dependency_trees_as_targets_are_refused_in_studies(tmp_path: Path, flags: dict, told: str):
    row = {"arch": "tree_sequence_tiny", "binarize": {"target-format": "conllu", **flags}}
    rows_of(tmp_path, lost=row)
    said = refused(tmp_path, "--plan")
    assert f"methods.lost.binarize.{told}" in said
    assert "take target-format: text" in said


@pytest.mark.usefixtures("quick_flags")
@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"arch": "tree_relation_mask_tiny"}, "methods.x.arch: relation_mask needs trees, and the source"),
        (
            {"train": {"encoder-injection": "stack_pe"}},
            "methods.x.train.encoder-injection: stack_pe needs trees, and the source of the row is text",
        ),
        ({"train": {"decoder-injection": "relation_mask"}}, "grow none: take target-linearization: nary_dfs"),
        ({"train": {"no-target-eos-loss": True}}, "is for targets that say where they end"),
    ],
)  # fmt: skip
def test_rows_whose_methods_need_trees_have_them(tmp_path: Path, row: dict, told: str):
    path = rows_of(tmp_path, x={"like": "sequence", **row})
    with pytest.raises(OptionError) as error:
        check_early(make_plan(read_recipe(path)))
    assert told in str(error.value)


def test_another_baseline_on_the_command_line_changes_no_row(tmp_path: Path):
    path = rows_of(tmp_path, rotary={"arch": "tree_rotary_tiny"})
    rows = [read_recipe(path, overrides).methods for overrides in ([], ["baseline=grown"])]
    assert rows[0] == rows[1]

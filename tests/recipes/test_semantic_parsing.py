"""The recipes of semantic parsing: what they compare, and that any data of that kind fits them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import ROOT, shared

from treesyntax.__main__ import main
from treesyntax.metrics import METRICS, plain_name
from treesyntax.metrics.equivalence import CALCULI
from treesyntax.model.composition import parse_spec
from treesyntax.study.recipe.backbone import positions_of
from treesyntax.study.recipe.recipe import Recipe, read_recipe
from treesyntax.study.run.plan import make_plan
from treesyntax.trees.formats import get_format
from treesyntax.trees.linearizations import get_linearization

FOLDER = ROOT / "recipes" / "semantic_parsing"
FILES = sorted(FOLDER.glob("*.yaml"))
NAMES = [file.stem for file in FILES]
TUNED = ("atis", "geo", "jobs")
TREES = {"nary_dfs", "nary_bfs", "lcrs_dfs", "lcrs_bfs"}
# Folder, notation, and pairs of valid and test.
SETS = {
    "atis": ("atis_lambda_dl", "sexpr", 491, 448),
    "geo": ("geo_lambda_dl", "sexpr_bare", 50, 280),
    "jobs": ("jobs_prolog_dl", "prolog", 50, 140),
}
FORMS = {
    "sexpr": "( lambda $0 e ( and ( f{n} $0 ) ( g $0 a{m} ) ) )",
    "sexpr_bare": "lambda $0 e ( and ( f{n} $0 ) ( g $0 a{m} ) )",
    "prolog": "job ( ANS ) , f{n} ( ANS , X ) , \\+ g ( X , a{m} )",
}


def read(name: str, *overrides: str) -> Recipe:
    return read_recipe(FOLDER / f"{name}.yaml", overrides)


def commands(recipe: Recipe, out: Path, *names: str) -> list[list[str]]:
    """The words after ``treesyntax`` of the steps whose names begin so."""
    steps = [step for step in make_plan(recipe).steps if step.name.startswith(names)]
    return [[word.replace("{out}", str(out)) for word in step.command[1:]] for step in steps]


def notation(recipe: Recipe) -> str:
    return str(recipe.content["vars"]["notation"])


@pytest.mark.parametrize("name", NAMES)
def test_rows_read_text_and_see_the_pairs_equally_often(name: str):
    recipe = read(name)
    assert {plain_name(metric) for metric in recipe.score} <= set(METRICS)
    assert len(recipe.seeds) >= 5
    for method in recipe.methods:
        assert recipe.flags(method, "binarize")["source-format"] == "text"
        assert method.arch.startswith("tree_sequence_")
    flags = [recipe.flags(method, "train") for method in recipe.methods]
    if "train.batch-size" not in recipe.differences:  # what_helps asks what it brings
        assert len({(own["batch-size"], own["max-update"]) for own in flags}) == 1
    assert not any("max-tokens" in own for own in flags)
    assert {row.arch for row in read(name, "size=tiny").methods} == {"tree_sequence_tiny"}


@pytest.mark.parametrize("name", NAMES)
def test_rows_held_to_whole_trees_learn_no_end_and_rows_that_grow_trees_have_an_injection(
    name: str,
):
    recipe = read(name)
    for method in recipe.methods:
        linearization = recipe.flags(method, "binarize").get("target-view")
        train = recipe.flags(method, "train")
        free = recipe.flags(method, "generate").get("tree-constraints") == "none"
        assert train.get("no-target-eos-loss", False) == (linearization in TREES and not free)
        if linearization not in TREES:
            assert train.get("decoder-injection") in (None, "none", "relative_position")
        else:
            assert parse_spec(train["decoder-injection"])


@pytest.mark.parametrize("name", TUNED)
def test_sequences_brackets_and_all_ways_to_grow_a_tree_are_compared(name: str):
    recipe = read(name)
    rows = {row.name: recipe.flags(row, "binarize").get("target-view") for row in recipe.methods}
    assert {linearization: linearization for linearization in TREES}.items() <= rows.items()
    assert rows["brackets"] == "bracketed"
    assert rows["sequence"] is None
    assert recipe.flags(recipe.methods[0], "binarize")["target-format"] == "text"


def test_the_tuned_recipes_differ_in_their_data_size_and_budget_alone():
    def settings(name: str) -> list[object]:
        recipe = read(name, "size=tiny")
        own = ("lr", "max-update", "save-interval-updates", "validate-interval-updates")
        train = {flag: value for flag, value in recipe.train.items() if flag not in own}
        rows = [(row.name, row.arch, row.train, row.binarize) for row in recipe.methods]
        scores = [score.partition(":")[0] for score in recipe.score]
        return [train, rows, scores, recipe.generate, recipe.seeds, recipe.average]

    assert settings("atis") == settings("geo") == settings("jobs")


def test_the_settings_of_the_paper_and_of_its_code():
    paper, code = read("paper"), read("icecaps")
    for recipe in (paper, code):
        assert float(recipe.train["lr"]) == pytest.approx(256**-0.5 * 4000**-0.5, rel=1e-3)
        assert recipe.train["warmup-updates"] == 4000
        assert recipe.train["label-smoothing"] == 0
        assert recipe.methods[0].arch == "tree_sequence_small"
    shown = ("batch-size", "dropout", "clip-norm", "adam-eps")
    assert [paper.train.get(flag) for flag in shown] == [128, 0.1, 10, None]
    assert [code.train.get(flag) for flag in shown] == [128, 0.2, 5, 0.0001]
    injections = {row.train.get("decoder-injection") for row in (*paper.methods, *code.methods)}
    assert injections == {None, "stack_pe_paper", "stack_pe_icecaps"}


@pytest.mark.parametrize("name", TUNED)
def test_the_search_gives_every_row_the_same_trials(name: str):
    recipe, rows = read(f"{name}_search"), read(name)
    assert {row.name for row in recipe.methods} == {"sequence", "nary_dfs", "lcrs_dfs"}
    assert recipe.train["embedding-scaling"] == "down"
    assert not recipe.differences
    for side in ("encoder", "decoder"):
        positions = {positions_of(m.arch, recipe.flags(m, "train"), side) for m in recipe.methods}
        assert positions == {"relative_position"}
    search = recipe.content["search"]
    assert search["train"]["max-update"] < recipe.train["max-update"]
    assert search["metric"] == rows.train["best-checkpoint-metric"]
    assert recipe.score == rows.score


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("_search")])
def test_a_table_of_questions_becomes_binarized_data_for_every_row(name: str, tmp_path: Path):
    form = FORMS[notation(read(name))]
    lines = [f"what has f{n} and a{m}\t{form.format(n=n, m=m)}" for n in range(6) for m in range(6)]
    table = tmp_path / "questions.tsv"
    table.write_text("".join(f"{line}\n" for line in lines))
    recipe = read(name, f"root={table}", "valid=5", "test=4")
    out = tmp_path / "study"
    for words in commands(recipe, out, "prepare", "binarize"):
        assert main(words) == 0
    questions = {
        part: (out / "data" / "questions" / f"{part}.src").read_text().splitlines()
        for part in ("train", "valid", "test")
    }
    assert [len(part) for part in questions.values()] == [27, 5, 4]
    assert len(set().union(*questions.values())) == 36
    linearizations = {str(row.binarize) for row in recipe.methods}
    assert len(list((out / "binarized").glob("*/binarize.json"))) == len(linearizations)


def test_a_last_training_takes_all_but_the_test_set(tmp_path: Path):
    table = tmp_path / "questions.tsv"
    table.write_text("".join(f"q{n}\tf ( a{n} )\n" for n in range(30)))
    recipe = read("geo", f"root={table}", "valid=5", "test=4", "fit=all")
    for words in commands(recipe, tmp_path, "prepare"):
        assert main(words) == 0
    source = recipe.methods[0].source
    lines = {
        part: set(Path(getattr(source, part).format(data=tmp_path / "data")).read_text().split())
        for part in ("train", "valid", "test")
    }
    assert [len(part) for part in lines.values()] == [26, 5, 4]
    assert lines["valid"] < lines["train"]
    assert not lines["test"] & lines["train"]


@pytest.mark.parametrize("name", TUNED)
def test_published_test_sets_stay_as_they_are(name: str, tmp_path: Path):
    folder, form, valid, test = SETS[name]
    recipe = read(name, f"root={shared('data', folder)}")
    assert notation(recipe) == form
    for words in commands(recipe, tmp_path, "prepare"):
        assert main(words) == 0
    found = tmp_path / "data" / "questions"
    for suffix in ("src", "tgt"):
        published = (shared("data", folder) / f"test.{suffix}").read_text().splitlines()
        assert (found / f"test.{suffix}").read_text().splitlines() == published
        assert len(published) == test
        assert len((found / f"valid.{suffix}").read_text().splitlines()) == valid


@pytest.mark.parametrize("name", TUNED)
def test_every_linearization_gives_the_published_forms_back(name: str):
    folder, form, _, _ = SETS[name]
    lines = (shared("data", folder) / "train.tgt").read_text().splitlines()
    tree_format = get_format(form)
    for line in lines[::5]:
        tree = tree_format.parse(line)
        for linearization in (*TREES, "bracketed"):
            inverse = get_linearization(linearization).tree
            assert inverse is not None
            assert tree_format.write(inverse(get_linearization(linearization).tokens(tree))) == line
    assert form in CALCULI


def test_every_row_of_what_helps_differs_from_the_full_one_by_what_its_name_says():
    recipe = read("what_helps")
    settings = {
        row.name: {
            **recipe.flags(row, "binarize"),
            **recipe.flags(row, "train"),
        }
        for row in recipe.methods
    }
    full = settings.pop("full")
    differs = {
        name: {flag for flag in full.keys() | own.keys() if own.get(flag) != full.get(flag)}
        for name, own in settings.items()
    }
    assert differs == {
        "absolute_positions": {"encoder-injection", "decoder-injection"},
        "embeddings_up": {"embedding-scaling"},
        "copying": {"copy-words", "copy-unknown", "copy-source", "copy-dropout"},
        "larger_batch": {"batch-size", "max-update"},
        "half_as_long": {"max-update"},
        "more_dropout": {"dropout"},
    }
    assert settings["larger_batch"]["batch-size"] == 2 * full["batch-size"]
    assert 2 * settings["larger_batch"]["max-update"] == full["max-update"]
    search = read("geo_search")
    searched = {**search.flags(search.methods[0], "train"), "lr": 0.002, "dropout": 0.1}
    assert {flag: full[flag] for flag in searched} == searched | {"save-interval-updates": 50}

"""The commands and code of the tutorials work as printed: docs/tutorial.md, docs/tutorial-forms.md, docs/own-method.md."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from recipes.test_nmt import check_source_text, write_corpus
from support import ROOT
from support.forked_programs import own_tests, treesyntax
from support.parser_models import make_spacy

from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import read_recipe

PAGES = ("tutorial.md", "tutorial-forms.md", "own-method.md")
NOT_RUN = re.compile(r"<!-- not run by a test: .*?-->\n\n```.*?```", re.S)
TUTORIAL = NOT_RUN.sub("", "\n".join((ROOT / "docs" / page).read_text("utf-8") for page in PAGES))
# The corpus of the test has 60 pairs.
SMALLER = {"vocab: 4000": "vocab: 65"}
SENTENCE = "1\tword\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL, re.S)


def recipes(folder: Path) -> list[Path]:
    """The tutorial's recipes, as files of the names that stand in their first lines."""
    paths = []
    for text in blocks("yaml"):
        for old, new in SMALLER.items():
            text = text.replace(old, new)
        paths.append(folder / text.split()[1])
        paths[-1].write_text(text, encoding="utf-8")
    (folder / "recipes").symlink_to(ROOT / "recipes")
    return paths


def run_in(folder: Path, commands: str) -> str:
    """Run commands one by one, ``treesyntax`` as a fork of this process."""
    printed = ""
    for line in commands.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[0] != "treesyntax":
            printed += subprocess.check_output(words, cwd=folder, text=True)
        elif words[-2] == ">":
            (folder / words[-1]).write_text(treesyntax(folder, *words[1:-2]), encoding="utf-8")
        else:
            printed += treesyntax(folder, *words[1:])
    return printed


@pytest.mark.usefixtures("empty_figures")
def test_from_two_text_files_to_a_table(tmp_path: Path):
    pytest.importorskip("spacy")
    write_corpus(tmp_path / "corpus")
    (tmp_path / "models").mkdir()
    make_spacy(tmp_path / "models" / "en")
    recipes(tmp_path)
    pairs = "".join(f"who sleeps {number}\t(sleeps x)\n" for number in range(40))
    (tmp_path / "questions.tsv").write_text(pairs, encoding="utf-8")
    for split in ("train", "valid", "test"):
        sentences = len((tmp_path / f"corpus/{split}.sv").read_text("utf-8").splitlines())
        (tmp_path / f"corpus/{split}.conllu").write_text(SENTENCE * sentences, encoding="utf-8")
    for number, commands in enumerate(blocks("bash"), start=1):
        assert run_in(tmp_path, commands) or number in (2, 5), commands
    assert yaml.safe_load((tmp_path / "forms.yaml").read_text())["title"] == "My questions"
    assert len((tmp_path / "valid.trees").read_text("utf-8").split("\n\n")) == 8 + 1
    assert "fairseq-train" in (tmp_path / "commands.txt").read_text()
    with (tmp_path / "runs/try/tables/results.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["row"], row["metric"]) for row in rows if row["lines"] == "12"] == [
        (method, metric)
        for method in ("sequence", "relation_mask", "relation_mask/random")
        for metric in ("bleu", "chrf", "ter")
    ]
    text = (tmp_path / "corpus/test.en").read_text("utf-8")
    check_source_text(tmp_path / "runs/try", text.splitlines())
    lines = (tmp_path / "test.translated").read_text("utf-8").split("\n")
    assert len(lines) == 12 + 1
    assert lines[5] == ""


def test_both_recipes_are_fair_comparisons(tmp_path: Path):
    read = [read_recipe(path) for path in recipes(tmp_path)]
    for recipe in read:
        check_fairness(recipe)
    study, idea = ({method.name for method in recipe.methods} for recipe in read)
    assert study == {"sequence", "relation_mask", "relation_mask/random"}
    assert idea == study | {"shared_ancestors", "both"}


def own_files(folder: Path) -> None:
    """The tutorial's Python files, as a reader would write them: named in their first lines."""
    for text in blocks("python"):
        (folder / text.split()[1]).write_text(text, encoding="utf-8")


def test_the_methods_own_tests_pass_where_a_reader_runs_them(tmp_path: Path):
    own_files(tmp_path)
    assert "2 passed" in own_tests(tmp_path, "test_shared_ancestors.py")


def test_a_study_knows_the_method_of_its_recipe(tmp_path: Path):
    """fairseq's flags are checked by a process that imports the file; nothing is trained."""
    write_corpus(tmp_path / "corpus")
    recipes(tmp_path)
    own_files(tmp_path)
    said = treesyntax(tmp_path, "study", "idea.yaml", "--dry-run")
    assert said.startswith(f"export TREESYNTAX_IMPORT={tmp_path}/shared_ancestors.py\n")
    assert "--encoder-injection relative_position+shared_ancestors+relation_mask" in said
    (tmp_path / "shared_ancestors.py").write_text("import nothing_of_the_kind\n")
    said = treesyntax(tmp_path, "study", "idea.yaml", "--dry-run", status=2)
    line = said.splitlines()[-1]
    assert line.startswith(f"treesyntax study: {tmp_path}/shared_ancestors.py:1: ")
    assert "shared_ancestors.py:1: cannot be imported (ModuleNotFoundError: No module named" in line

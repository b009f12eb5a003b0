"""Odd values for ``--set`` and in recipes: one line at the command, never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reliability.figures import count
from support.study_helpers import recipe_content, recipe_with, write_recipe

from treesyntax.__main__ import main
from treesyntax.errors import InputError, OptionError, TreeSyntaxError, in_one_line
from treesyntax.study.recipe.recipe import DEFAULTS, OPTIONAL, REQUIRED, read_recipe
from treesyntax.study.run.plan import make_plan

KEYS = [*REQUIRED, *DEFAULTS, *OPTIONAL]
NESTED = ["data.source", "data.source.lang", "data.target.test", "methods.sequence",
          "methods.sequence.arch", "train.lr", "binarize.workers", "vars.size"]  # fmt: skip
BROKEN = [
    "2026-99-99", "2026-13-01T99:99:99", "!!timestamp x", "!!int x", "!!float x", "9" * 5000,
    "[" * 500 + "]" * 500, "&a [*a]", "{a: &b {c: *b}}", "*a", "[", "{[1]: 2}", "\0",
    "!!python/object/apply:os.system [x]", "{a: 1, a: 2}",
]  # fmt: skip
ODD = [
    "2026-01-01",
    "nan",
    ".inf",
    "1e999",
    "''",
    "[]",
    "{}",
    "-1",
    "0x",
    "[null]",
    "[[[1]]]",
    "!!set {a}",
]


def refused(words: list[str], capsys: pytest.CaptureFixture) -> str:
    assert main(["study", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("treesyntax study: ")
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize("key", REQUIRED)
def test_a_key_that_must_be_there_cannot_be_taken_away(key: str, tmp_path: Path, capsys):
    words = [str(write_recipe(tmp_path)), "--set", f"{key}=null"]
    assert f"recipe.yaml: the recipe lacks the key {key!r}; it needs " in refused(words, capsys)


@pytest.mark.parametrize("key", [key for key in DEFAULTS if key in recipe_content()])
def test_other_keys_fall_back_to_what_they_are_without(key: str, tmp_path: Path):
    text = "treesyntax generate for2lam --out {data}/p"  # without a variable
    content = {"prepare": [text], "vars": {}}
    taken = recipe_with(tmp_path, f"{key}=null", **content)
    assert taken.content[key] == DEFAULTS[key]


@pytest.mark.parametrize("value", BROKEN)
def test_what_is_no_yaml_is_refused(value: str, tmp_path: Path, capsys):
    recipe = write_recipe(tmp_path)
    said = refused([str(recipe), "--set", f"name={value}"], capsys)
    assert in_one_line(f"--set name={value[:80]}")[:80] in said
    recipe.write_text(recipe.read_text() + f"question: {value}\n")
    assert f"{recipe}" in refused([str(recipe)], capsys)
    count("recipes: odd values", 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("010", "YAML reads 010 as 8; write that number, or quotes around a text"),
        ("-0_17", "YAML reads -0_17 as -15; "),
        ("1:30", "YAML reads 1:30 as 90; "),
        ("1:30.5", "YAML reads 1:30.5 as 90.5; "),
        ("{a, b}", "a value is missing; for none write null, for no entries "),
    ],
)
def test_what_stands_for_something_else_is_refused(value: str, message: str, tmp_path: Path):
    """Seeds 010, a size of 0100, a section of which every line is a comment: each ran as another study."""
    path = write_recipe(tmp_path)
    with pytest.raises(OptionError, match=re.escape(f"--set vars.size={value}: {message}")):
        read_recipe(path, [f"vars.size={value}"])
    lines = path.read_text().splitlines()
    number = next(n for n, line in enumerate(lines, start=1) if line.startswith("vars:"))
    lines[number] = f"  size: {value}"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=re.escape(f"recipe.yaml:{number + 1}: {message}")):
        read_recipe(path)


def test_a_section_without_entries_takes_nothing_away(tmp_path: Path):
    write_recipe(tmp_path)
    other = tmp_path / "other.yaml"
    other.write_text("extends: recipe.yaml\ngenerate:\n  # beam: 10\n")
    with pytest.raises(InputError, match="other.yaml:2: a value is missing; "):
        read_recipe(other)
    other.write_text("extends: recipe.yaml\ngenerate: null\n")
    assert read_recipe(other).generate == {}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "there is no value; for none write null, for an empty text ''"),
        (" ", "there is no value; "),
        ("#1", "' #' begins a comment; write the whole value in quotes"),
        ("for lambda #2 ", "' #' begins a comment; "),
        ("'a' # b", "' #' begins a comment; "),
    ],
)
def test_a_value_of_which_nothing_or_a_piece_would_be_left(value, message, tmp_path: Path):
    """An unset variable of the shell took the learning rate away."""
    path = write_recipe(tmp_path)
    with pytest.raises(OptionError, match=re.escape(f"--set question={value}: {message}")):
        read_recipe(path, [f"question={value}"])
    for whole in ("a#b", "'a #b'", '"#1"'):
        assert read_recipe(path, [f"question={whole}"]).question == whole.strip("'\"")


@pytest.mark.parametrize("key", [*KEYS, *NESTED])
def test_any_value_is_taken_or_refused_in_one_line(key: str, tmp_path: Path):
    recipe = write_recipe(tmp_path)
    for value in ("null", *BROKEN, *ODD):
        try:
            make_plan(read_recipe(recipe, [f"{key}={value}"]))
        except TreeSyntaxError as error:
            assert "\n" not in str(error)  # noqa: PT017
        count("recipes: odd values")


@pytest.mark.parametrize("command", ["", "  ", "{nothing}"])
def test_a_command_of_no_words_is_refused(command: str, tmp_path: Path, capsys):
    recipe = write_recipe(tmp_path, prepare=[command], vars={"nothing": ""})
    said = refused([str(recipe)], capsys)
    assert "recipe.yaml: prepare, command 1, is " in said


def test_a_variable_with_a_space_stays_in_its_word(tmp_path: Path):
    values = {"root": "my data/it's", "parse": "--pretokenized --strict empty", "nothing": ""}
    command = "parse {root}/a '{root}' {parse} {nothing} {data}/b --x '1 2'"
    recipe = read_recipe(write_recipe(tmp_path, prepare=[command], vars=values))
    (step,) = [step for step in make_plan(recipe).steps if step.name == "prepare-1"]
    assert list(step.command)[:6] == [
        "parse", "my data/it's/a", "my data/it's", "--pretokenized", "--strict", "empty",
    ]  # fmt: skip
    assert step.command[6].endswith("data/b")
    assert list(step.command)[7:] == ["--x", "1 2"]


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_numpy_does_not_take_is_refused(seed: int, tmp_path: Path, capsys):
    words = [str(write_recipe(tmp_path)), "--set", f"seeds=[{seed}]"]
    assert f"seeds has {seed}; a seed is from 0 to" in refused(words, capsys)

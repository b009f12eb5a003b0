"""Training sets of several sizes beside one valid and one test: the smaller is the beginning of the larger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from treesyntax.__main__ import main
from treesyntax.data.sets import drawing, listops, question_paths, string_edits, transformations
from treesyntax.data.sets.base import DataSet
from treesyntax.data.sets.coffeescript import CoffeeScriptOptions, generate_pairs
from treesyntax.data.sets.coffeescript_programs import Vocabulary
from treesyntax.data.sets.for2lam import For2LamOptions, generate_splits
from treesyntax.data.sets.for_programs import Style
from treesyntax.data.sets.making import _resize

SIZES = 40, 120, 300
KINDS: dict[str, dict[str, Any]] = {
    "alike": {"size": 9, "min_nodes": 6},
    "repeats": {"size": 9, "repeats": True},
    "longer": {"style": Style.CHEN, "length": 20, "test_length": 40},
    "held out": {"size": 9, "held_out": 2},
}


def check(made: dict[int, dict[str, list[Any]]]) -> None:
    """One valid and one test at all sizes, nested training sets, and no item in two splits."""
    largest = made[max(made)]
    for size, splits in made.items():
        assert splits["valid"] == largest["valid"]
        assert splits["test"] == largest["test"]
        assert splits["train"] == largest["train"][:size]
        assert len(splits["train"]) == size
    sets = [set(part) for part in largest.values()]
    assert all(sets)
    assert len(set.union(*sets)) == sum(map(len, sets))


@pytest.mark.parametrize("kind", KINDS)
def test_programs_of_for_with_a_fixed_test(kind: str):
    options = For2LamOptions(**KINDS[kind], fixed_test=True)
    check({size: generate_splits(size, 20, 30, options) for size in SIZES})


@pytest.mark.parametrize("kind", KINDS)
def test_without_it_the_test_goes_with_the_number_of_training_programs(kind: str):
    """As it ever was, so that the data of published studies stay what they are."""
    options = For2LamOptions(**KINDS[kind])
    made = [generate_splits(size, 20, 30, options) for size in SIZES[:2]]
    assert made[0]["valid"] != made[1]["valid"] or made[0]["test"] != made[1]["test"]


def test_a_rare_split_is_filled_too():
    options = For2LamOptions(size=15, fixed_test=True)
    splits = generate_splits(5, 1, 300, options)
    assert [len(part) for part in splits.values()] == [5, 1, 300]


def test_training_programs_alone():
    assert len(generate_splits(30, 0, 0, For2LamOptions(fixed_test=True))["train"]) == 30


def test_coffeescript_with_a_fixed_test():
    def splits(size: int, fixed: bool) -> dict[str, list[Any]]:
        options = CoffeeScriptOptions(8, Vocabulary(2, 2), fixed_test=fixed)
        wanted = {"train": size, "valid": 20, "test": 30}
        made = generate_pairs(wanted, options, lambda programs: [f"js {one}" for one in programs])
        return made._asdict()

    check({size: splits(size, True) for size in SIZES})
    assert splits(SIZES[0], False)["test"] != splits(SIZES[1], False)["test"]


@pytest.mark.parametrize(
    "data",
    [
        listops.LISTOPS,
        question_paths.QUESTION_PATHS,
        string_edits.STRING_EDITS,
        transformations.QUESTIONS,
        transformations.TENSE,
    ],
    ids=lambda data: data.name,
)
def test_drawn_sets_have_more_and_fewer_training_examples_and_the_same_others(
    data: DataSet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(drawing, "NUMBERS", {"train": 60, "valid": 9, "test": 9, "gen": 9})

    def splits(size: int) -> dict[str, list[Any]]:
        parts = data.make({}, 1)
        _resize(parts, data, size, 1)
        return {name: part.sources for name, part in parts.items()}

    made = {size: splits(size) for size in (20, 60, 90)}
    check(made)
    assert len({tuple(one["gen"]) for one in made.values()}) == 1


def test_all_sizes_have_one_test_and_the_older_command_says_that_its_have_not(
    tmp_path: Path, capsys
):
    def made(command: str, name: str, *more: object) -> str:
        words = [*command.split(), "for2lam", "--out", tmp_path / name, "--valid", 3, "--test", 3]
        assert main([*map(str, [*words, *more]), "--size", "9"]) == 0
        return capsys.readouterr().out

    message = "valid and test are those of --train 9, another number has others"
    assert message in made("generate", "a", "--train", 9)
    assert message not in made("data make", "b", "--train", 9)
    assert message not in made("generate", "c", "--train", 9, "--small-train", 4)
    made("data make", "d", "--train", 15)
    for name in ("valid.for", "test.lambda"):
        assert (tmp_path / "b" / name).read_text() == (tmp_path / "d" / name).read_text()
    longer, shorter = ((tmp_path / name / "train.for").read_text() for name in ("d", "b"))
    assert longer.startswith(shorter)
    assert (tmp_path / "a/train.for").read_text() == (tmp_path / "c/train.for").read_text()
    words = ["data", "make", "for2lam", "--out", str(tmp_path / "a"), "--train", "9"]
    assert main([*words, "--valid", "3", "--test", "3", "--size", "9"]) == 2  # nothing is mixed
    assert "was not made with these options" in capsys.readouterr().err

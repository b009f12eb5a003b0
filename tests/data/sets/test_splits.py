"""The splits where structure should matter: longer programs, unseen words, small training sets."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from commands.test_generate import generate, read

from treesyntax.data.sets import lexical
from treesyntax.data.sets.for2lam import (
    For2LamOptions,
    fitted_size,
    generate_splits,
    longest_known,
    texts,
)
from treesyntax.data.sets.for_programs import Style, draw_program
from treesyntax.data.sets.for_to_lambda import translate
from treesyntax.data.sets.lexical import check_exposed, draw_plain_program
from treesyntax.data.sets.split import split_pairs
from treesyntax.errors import InputError, OptionError
from treesyntax.trees.formats.for2lam import FOR, LAMBDA

PARTS = ("train", "valid", "test")


def chen(out: Path, *more: object) -> int:
    numbers = ("--train", 600, "--valid", 60, "--test", 80)
    return generate("for2lam", "--out", out, "--style", "chen", "--length", 20, *numbers, *more)


def pairs(folder: Path, suffixes: tuple[str, str]) -> dict[str, list[tuple[str, str]]]:
    found = {}
    for part in PARTS:
        source, target = (read(folder / f"{part}.{suffix}") for suffix in suffixes)
        found[part] = list(zip(source, target, strict=True))
    return found


def programs(folder: Path) -> dict[str, list[tuple[str, str]]]:
    return pairs(folder, ("for", "lambda"))


HARD = {"length": ("--test-length", 40), "lexical": ("--held-out", 3)}


@pytest.mark.parametrize("options", HARD.values(), ids=HARD)
def test_hard_splits_are_disjoint_translated_and_the_same_for_a_seed(
    tmp_path: Path, options: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert chen(tmp_path / "a", *options) == 0
    printed = capsys.readouterr().out
    for line in ("valid_in_train: 0", "test_in_train: 0", "test_sources_in_train: 0"):
        assert f"{line}\n" in printed
    found = programs(tmp_path / "a")
    assert {part: len(lines) for part, lines in found.items()} == {
        "train": 600, "valid": 60, "test": 80,
    }  # fmt: skip
    repeated = [line for lines in found.values() for line in lines if lines.count(line) > 1]
    assert all(len(source.split()) == 3 for source, _ in repeated), "but those that show words"
    sources = {part: {source for source, _ in lines} for part, lines in found.items()}
    assert not sources["test"] & (sources["train"] | sources["valid"])
    assert not sources["train"] & sources["valid"]
    for source, target in found["test"]:
        assert LAMBDA.write(translate(FOR.parse(source))) == target
    assert chen(tmp_path / "b", *options) == 0
    assert programs(tmp_path / "b") == found
    assert chen(tmp_path / "c", "--seed", 2, *options) == 0
    assert programs(tmp_path / "c") != found


def test_test_programs_can_be_longer_than_any_known(tmp_path: Path, capsys):
    assert chen(tmp_path, "--test-length", 50) == 0
    found = programs(tmp_path)
    longest, shortest = [], []
    for side in (0, 1):
        longest.append(max(len(p[side].split()) for p in found["train"] + found["valid"]))
        shortest.append(min(len(p[side].split()) for p in found["test"]))
        assert shortest[side] > longest[side]
    printed = capsys.readouterr().out
    assert f"longest_known: {longest[0]}\nshortest_test: {shortest[0]}\n" in printed
    mean = sum(len(source.split()) for source, _ in found["test"]) / len(found["test"])
    assert mean == pytest.approx(50, rel=0.1)
    options = json.loads((tmp_path / "manifest.json").read_text())["options"]
    assert (options["length"], options["test_length"]) == (20, 50)
    assert "held_out" not in options


def new_places(source: str, held_out: set[str]) -> list[int]:
    """Where held-out words stand in a program, but for both sides of an assignment ``x = y``."""
    tokens = source.split()
    ends = {None, ";", "then", "else", "endif", "do", "endfor", "(", ")"}
    padded = [None, None, *tokens, None, None]
    found = []
    for index, token in enumerate(tokens, start=2):
        target = padded[index + 1] == "=" and padded[index - 1] in ends
        value = (
            padded[index - 1] == "=" and padded[index + 1] in ends and padded[index - 3] != "for"
        )
        if token in held_out and not (target or value):
            found.append(index)
    return found


def test_the_bound_of_the_length_split_does_not_depend_on_how_many_are_drawn():
    options = For2LamOptions(style=Style.CHEN, length=20, test_length=50)
    sets = [generate_splits(train, 5, 40, options) for train in (50, 800)]
    bound = longest_known(fitted_size(options), Style.CHEN)
    for splits in sets:
        for split, programs in splits.items():
            lengths = [[len(text.split()) for text in texts(program)] for program in programs]
            for side in (0, 1):
                own = [length[side] for length in lengths]
                assert max(own) <= bound[side] if split != "test" else min(own) > bound[side]


def test_known_programs_have_held_out_words_in_single_assignments_only(tmp_path: Path, capsys):
    assert chen(tmp_path, "--held-out", 3) == 0
    names, constants = {"a22", "a23", "a24"}, {"11", "12", "13"}
    assert "held_out: a22 a23 a24 11 12 13\n" in capsys.readouterr().out
    found = programs(tmp_path)
    shown: set[str] = set()
    exposures = 0
    for source, _ in found["train"] + found["valid"]:
        held = set(source.split()) & (names | constants)
        if held:
            assert len(source.split()) == 3, source
            exposures += 1
            shown |= held
    assert shown == names | constants
    assert exposures == 66
    for source, target in found["test"]:
        words = set(source.split())
        assert FOR.parse(source).labels[0] != "<ASSIGN>"
        assert new_places(source, names)
        assert new_places(source, constants)
        assert words & (names | constants) == set(target.split()) & (names | constants)
    roles = {
        (tree.labels[tree.parents[node]], tree.labels[tree.parents[tree.parents[node]]])
        for tree in (FOR.parse(source) for source, _ in found["test"])
        for node, label in enumerate(tree.labels)
        if label in constants
    }
    assert ("<CONST>", "<LE>") in roles
    assert ("<CONST>", "<FOR>") in roles


def test_renamed_programs_keep_their_structure_and_tell_variables_apart() -> None:
    for seed in range(200):
        plain = draw_program(random.Random(seed), Style.CHEN, 40)
        renamed = draw_plain_program(random.Random(seed), Style.CHEN, 40)
        assert renamed is not None
        assert renamed.parents.tolist() == plain.parents.tolist()
        words = set(zip(plain.labels, renamed.labels, strict=True))
        assert len(words) == len({old for old, _ in words}) == len({new for _, new in words})
        assert all(old == new for old, new in words if old.startswith("<"))


def test_programs_with_too_many_variables_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "SEEN_NAMES", 2)
    rng = random.Random(1)
    drawn = [draw_plain_program(rng, Style.CHEN, 60) for _ in range(40)]
    assert {program is None for program in drawn} == {True, False}


def test_a_training_set_without_some_held_out_word_is_refused() -> None:
    check_exposed("train.for", ["a22 = 11"], 1)
    check_exposed("train.for", ["a0 = 1"], 0)
    with pytest.raises(OptionError) as caught:
        check_exposed("train.for", ["a22 = 1", "a0 = 12"], 2)
    assert str(caught.value) == (
        "train.for never shows the held-out a23, 11, so that no model could know them; ask for "
        "more training programs or hold out less"
    )


def test_words_must_be_shown_in_small_training_sets_too(tmp_path: Path, capsys):
    assert chen(tmp_path / "data", "--held-out", 3, "--small-train", 5) == 2
    assert "train.5.for never shows the held-out a2" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"held_out": -1}, "held_out is -1; it must be 0 or more"),
        ({"test_length": 50}, "test_length needs a length, and goes without held_out"),
        ({"style": Style.CHEN, "length": 20, "test_length": 50, "held_out": 1},
         "test_length needs a length, and goes without held_out"),
        ({"style": Style.CHEN, "length": 20, "test_length": 501},
         "test_length is 501; it must be 10 to 500 tokens"),
        ({"style": Style.CHEN, "length": 20, "test_length": 20},
         "test_length is 20; it must be more than the length 20"),
        ({"held_out": 1, "min_nodes": 9},
         "min_nodes is 9; held_out needs single assignments, which have 5 nodes"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(options: dict, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        For2LamOptions(**options)
    assert str(caught.value) == message


def test_both_styles_can_hold_words_out() -> None:
    splits = generate_splits(200, 0, 20, For2LamOptions(held_out=2))
    assert all({"a22", "a23"} & set(tree.labels) for tree in splits["test"])


def test_small_training_sets_are_the_first_lines(tmp_path: Path) -> None:
    assert chen(tmp_path / "data", "--small-train", 100, 10, 600) == 0
    folder = tmp_path / "data"
    for suffix in ("for", "lambda"):
        whole = read(folder / f"train.{suffix}")
        for number in (10, 100, 600):
            assert read(folder / f"train.{number}.{suffix}") == whole[:number]
    assert chen(tmp_path / "plain") == 0
    assert read(tmp_path / "plain" / "train.for") == read(folder / "train.for")


@pytest.mark.parametrize("number", [0, 601])
def test_a_small_training_set_is_a_part_of_the_training_set(tmp_path: Path, capsys, number: int):
    assert chen(tmp_path / "data", "--small-train", number) == 2
    assert capsys.readouterr().err == (
        f"treesyntax generate: small-train is {number}; it must be 1 to 600, as train has\n"
    )
    assert not list(tmp_path.iterdir())


# treesyntax generate split


def text_files(folder: Path) -> tuple[Path, Path]:
    rng = random.Random(5)
    source, target = folder / "all.en", folder / "all.sv"
    lengths = [rng.randint(1, 12) for _ in range(200)]
    source.write_text("".join(f"{n} {' w' * size}\n" for n, size in enumerate(lengths)))
    target.write_text("".join(f"t{n}\n" for n in range(200)))
    return source, target


def split(folder: Path, out: Path, *more: object) -> int:
    source, target = text_files(folder)
    parts = ("--valid", 20, "--test", 30)
    return generate("split", "--source", source, "--target", target, "--out", out, *parts, *more)


def test_test_can_have_the_longest_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert split(tmp_path, tmp_path / "out", "--longest") == 0
    found = pairs(tmp_path / "out", ("en", "sv"))
    lengths = {part: [len(source.split()) for source, _ in found[part]] for part in PARTS}
    assert (len(lengths["valid"]), len(lengths["test"])) == (20, 30)
    assert min(lengths["test"]) > max(lengths["train"] + lengths["valid"])
    every = [len(line.split()) for line in read(tmp_path / "all.en")]
    assert sorted(every)[-30] == min(lengths["test"])
    left_out = 200 - sum(map(len, lengths.values()))
    assert left_out == sum(size >= min(lengths["test"]) for size in every) - 30
    assert f"left_out: {left_out}\n" in capsys.readouterr().out
    for part in PARTS:
        numbers = [int(source.split()[0]) for source, _ in found[part]]
        assert numbers == sorted(numbers)
        assert [target for _, target in found[part]] == [f"t{number}" for number in numbers]


def test_nothing_may_be_left_to_train_on() -> None:
    lines = [(f"{n} w", "t") for n in range(8)] + [("w", "t"), ("v", "t")]
    with pytest.raises(OptionError) as caught:
        split_pairs(lines, 2, 3, 1, dedup=False, longest=True)
    assert str(caught.value) == (
        "valid takes 2 of the 2 pairs with shorter sources than test; leave some for train"
    )


def test_longest_without_test_is_a_plain_split() -> None:
    lines = [(f"{n}", "t") for n in range(9)]
    found = split_pairs(lines, 2, 0, 1, dedup=False, longest=True)
    assert (len(found.train), len(found.valid), found.test) == (7, 2, [])


def test_small_parts_of_a_split_are_random_and_nested(tmp_path: Path) -> None:
    assert split(tmp_path, tmp_path / "out", "--small-train", 20, 50) == 0
    out = tmp_path / "out"
    parts = {name: read(out / f"train{name}.en") for name in ("", ".20", ".50")}
    assert parts[".50"][:20] == parts[".20"]
    assert set(parts[".50"]) < set(parts[""])
    assert len(set(parts[".50"])) == 50
    assert parts[".50"] != parts[""][:50]
    numbers = [int(line.split()[0]) for line in parts[".20"]]
    assert read(out / "train.20.sv") == [f"t{number}" for number in numbers]


def test_data_of_a_generator_that_was_mended_are_not_taken_for_those_of_today(
    tmp_path: Path, monkeypatch, capsys
):
    """The same command makes them once more: equal data stay, others are refused and kept."""
    from treesyntax.data.sets import folder as data_set

    def write(text: str, code: str) -> str:
        monkeypatch.setattr(data_set, "code_of_module", lambda name: code)
        capsys.readouterr()
        data_set.write_data_set(tmp_path / "a", {"n": 1}, lambda: ({"train.src": [text]}, {}))
        return capsys.readouterr().out

    assert "1 lines" in write("x", "first")
    assert write("nobody makes this", "first") == f"{tmp_path}/a: up to date\n"
    assert write("x", "second") == f"{tmp_path}/a: up to date\n"
    assert json.loads((tmp_path / "a/manifest.json").read_text())["code"] == "second"
    told = r"a: was made by other code: today the same options make another train\.src; delete"
    with pytest.raises(InputError, match=told):
        write("y", "third")
    assert (tmp_path / "a/train.src").read_text() == "x\n"
    manifest = json.loads((tmp_path / "a/manifest.json").read_text())
    del manifest["code"]  # as older versions wrote it
    (tmp_path / "a/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=told):
        write("y", "third")


def test_the_code_of_a_data_set_is_all_that_its_command_imports():
    from treesyntax.data.sets import making
    from treesyntax.source import code_of_module

    assert len(code_of_module(making.__name__)) == 12
    assert code_of_module("support.helpers") == ""

"""Questions with logical forms: any layout in, aligned files out, held-out pairs nowhere else."""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.commands.generate import add_arguments, run
from treesyntax.data.sets.questions import complete, read_parts
from treesyntax.errors import InputError, OptionError

PAIRS = [(f"what is {n % 40}", f"( answer {n % 40} )") for n in range(100)]


def generate(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(["questions", *map(str, arguments)]))


def write_lines(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_part(folder: Path, part: str, pairs: list[tuple[str, str]] = PAIRS) -> None:
    for side, suffix in enumerate(("src", "tgt")):
        write_lines(folder / f"{part}.{suffix}", [pair[side] for pair in pairs])


def read_pairs(folder: Path, part: str) -> list[tuple[str, str]]:
    sides = [
        (folder / f"{part}.{suffix}").read_text(encoding="utf-8").splitlines()
        for suffix in ("src", "tgt")
    ]
    return list(zip(*sides, strict=True))


def test_sets_that_are_there_stay_whole(tmp_path: Path):
    test = [("who", "( a b )"), PAIRS[0], PAIRS[0]]
    for part, pairs in (("train", PAIRS), ("valid", PAIRS[:7]), ("test", test)):
        write_part(tmp_path / "in", part, pairs)
    assert generate("--data", tmp_path / "in", "--out", tmp_path / "out", "--valid", 9) == 0
    assert read_pairs(tmp_path / "out", "train") == PAIRS
    assert read_pairs(tmp_path / "out", "valid") == PAIRS[:7]
    assert read_pairs(tmp_path / "out", "test") == test
    assert not (tmp_path / "out" / "all.src").exists()


def test_valid_is_drawn_from_train_alone_and_no_copy_stays(tmp_path: Path):
    write_part(tmp_path / "in", "train")
    write_part(tmp_path / "in", "test", PAIRS[:10])
    options = ("--data", tmp_path / "in", "--valid", 8, "--seed", 3)
    assert generate(*options, "--out", tmp_path / "a") == 0
    train, valid = (read_pairs(tmp_path / "a", part) for part in ("train", "valid"))
    assert len(set(valid)) == len(valid) == 8
    assert not set(valid) & set(train)
    assert Counter(train) == Counter(pair for pair in PAIRS if pair not in valid)
    assert read_pairs(tmp_path / "a", "test") == PAIRS[:10]
    assert read_pairs(tmp_path / "a", "all") == PAIRS
    assert generate(*options, "--out", tmp_path / "b") == 0
    assert read_pairs(tmp_path / "b", "valid") == valid
    assert generate(*options[:-1], 4, "--out", tmp_path / "c") == 0
    assert read_pairs(tmp_path / "c", "valid") != valid


def test_a_table_alone_is_cut_into_three(tmp_path: Path):
    table = write_lines(tmp_path / "all.tsv", ["\t".join(pair) for pair in PAIRS])
    out = tmp_path / "out"
    assert generate("--data", table, "--out", out, "--valid", 5, "--test", 6) == 0
    parts = [set(read_pairs(out, part)) for part in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [29, 5, 6]
    assert set.union(*parts) == set(PAIRS)
    # A last training may see valid, but never test.
    assert set(read_pairs(out, "all")) == parts[0] | parts[1]


def test_a_folder_may_mix_tables_and_packed_files(tmp_path: Path):
    folder = tmp_path / "in"
    write_lines(folder / "train.tsv", ["\t".join(pair) for pair in PAIRS])
    for side, suffix in enumerate(("src", "tgt")):
        text = "".join(f"{pair[side]}\n" for pair in PAIRS[:3])
        (folder / f"test.{suffix}.gz").write_bytes(gzip.compress(text.encode()))
    parts = read_parts(folder, None)
    assert parts == {"train": PAIRS, "test": PAIRS[:3]}


def test_a_notation_puts_spaces_between_tokens(tmp_path: Path):
    table = write_lines(tmp_path / "a.tsv", ["where  is it\t(lambda $0 e (loc:t  $0 s0))"])
    spaced = ("where is it", "( lambda $0 e ( loc:t $0 s0 ) )")
    assert read_parts(table, "sexpr") == {"train": [spaced]}
    assert read_parts(table, None)["train"][0][1] == "(lambda $0 e (loc:t $0 s0))"


def test_the_same_command_again_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_part(tmp_path / "in", "train")
    options = ("--data", tmp_path / "in", "--out", tmp_path / "out", "--valid", 5, "--test", 5)
    assert generate(*options) == 0
    assert "valid_in_train: 0\ntest_in_train: 0\n" in capsys.readouterr().out
    assert generate(*options) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}: up to date\n"
    notes = json.loads((tmp_path / "out" / "manifest.json").read_text())["options"]
    assert notes["valid"] == 5
    assert set(notes["data"]) == {"train"}
    write_part(tmp_path / "in", "train", PAIRS[:90])
    with pytest.raises(InputError, match="was not made with these options"):
        generate(*options)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("xyz")), min_size=1),
    st.integers(1, 6), st.integers(1, 6), st.integers(0, 9),
)  # fmt: skip
def test_parts_share_no_pair_and_lose_none(
    pairs: list[tuple[str, str]], valid: int, test: int, seed: int
):
    if valid + test >= len(set(pairs)):
        with pytest.raises(OptionError):
            complete({"train": pairs}, valid, test, seed)
        return
    split = complete({"train": pairs}, valid, test, seed)
    assert (len(split.valid), len(split.test)) == (valid, test)
    sets = [set(part) for part in split]
    assert sum(map(len, sets)) == len(set.union(*sets))
    assert set.union(*sets) == set(pairs)
    assert Counter(split.train) == Counter(pair for pair in pairs if pair in sets[0])


FAULTS = {
    "columns": ("train.tsv", ["a\tb", "a b"], "train.tsv:2: has 1 columns"),
    "question": ("train.tsv", [" \tb"], "train.tsv:1: has no question"),
    "form": ("train.tsv", ["a\t "], "train.tsv:1: has no logical form"),
    "malformed": ("train.tsv", ["a\t( b c )", "a\t( b"], "train.tsv:2: 1 parenthesis still open"),
    "absent": ("test.tsv", ["a\tb"], "has no train set"),
}


@pytest.mark.parametrize(("name", "lines", "message"), FAULTS.values(), ids=FAULTS)
def test_bad_data_is_named_and_nothing_is_written(
    tmp_path: Path, name: str, lines: list[str], message: str
):
    write_lines(tmp_path / "in" / name, lines)
    with pytest.raises(InputError, match=re.escape(message)):
        generate("--data", tmp_path / "in", "--out", tmp_path / "out", "--notation", "sexpr")
    assert not (tmp_path / "out").exists()


def test_sides_that_differ_in_length_are_refused(tmp_path: Path):
    write_part(tmp_path, "train")
    write_lines(tmp_path / "train.tgt", ["( a b )"])
    with pytest.raises(InputError, match="has 1 lines, but .*train.src has 100"):
        read_parts(tmp_path, None)
    with pytest.raises(OptionError, match="no tree format is named 'latin'"):
        read_parts(write_lines(tmp_path / "a.tsv", ["a\tb"]), "latin")


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 5, 1), "no valid set, and --valid is 0: 1 to 34 of the 35 different pairs"),
        ((5, 0, 1), "no test set, and --test is 0: 1 to 39 of the 40"),
        ((40, 5, 1), "no valid set, and --valid is 40"),
        ((5, 5, -1), "seed is -1; it must be 0 or more"),
    ],
)
def test_impossible_draws_are_refused(numbers: tuple[int, int, int], message: str):
    with pytest.raises(OptionError, match=re.escape(message)):
        complete({"train": PAIRS}, *numbers)


@pytest.mark.parametrize(
    ("first", "second", "header"),
    [
        ("question\tform", "who\t( a )", True),
        ("question\tlogical form", "who\ta ( b )", True),
        ("what is it\tform", "who\t( a )", False),
        ("who\t( b )", "who\t( a )", False),
        ("question\tform", "who\ta", False),
    ],
)
def test_a_header_is_no_pair(tmp_path: Path, first: str, second: str, header: bool):
    """Two short columns without brackets before a form with some; one that differs in a thing is a pair."""
    table = write_lines(tmp_path / "pairs.tsv", [first, second])
    if header:
        with pytest.raises(InputError, match=r"pairs.tsv:1: looks like a header \(question"):
            read_parts(table, None)
    else:
        assert len(read_parts(table, None)["train"]) == 2

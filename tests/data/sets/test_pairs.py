"""``treesyntax generate pairs``."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from treesyntax.__main__ import main


def corpus(folder: Path, train: int = 20) -> list[object]:
    folder.mkdir(parents=True, exist_ok=True)
    arguments: list[object] = []
    for split, count in (("train", train), ("valid", 3), ("test", 2)):
        arguments.append(f"--{split}")
        for lang in ("en", "de"):
            text = "".join(f"{split} {lang} {number}\n" for number in range(count))
            (folder / f"{split}.{lang}.gz").write_bytes(gzip.compress(text.encode()))
            arguments.append(folder / f"{split}.{lang}")  # is found packed
    return [*arguments, "--langs", "en", "de"]


def pairs(*arguments: object) -> int:
    return main(["generate", "pairs", *map(str, arguments)])


def read(folder: Path) -> dict[str, list[str]]:
    return {
        path.name: path.read_text().splitlines()
        for path in folder.iterdir()
        if path.suffix != ".json"
    }


def test_all_pairs_are_taken_as_they_are(tmp_path: Path):
    assert pairs(*corpus(tmp_path / "c"), "--out", tmp_path / "d") == 0
    found = read(tmp_path / "d")
    assert set(found) == {
        f"{s}.{lang}" for s in ("train", "valid", "test") for lang in ("en", "de")
    }
    assert found["train.de"] == [f"train de {number}" for number in range(20)]
    assert found["test.en"] == ["test en 0", "test en 1"]


def test_several_test_sets_are_one_with_the_set_of_each_line(tmp_path: Path, capsys):
    arguments = corpus(tmp_path / "c")
    for lang in ("en", "de"):
        (tmp_path / f"coco.{lang}").write_text(f"coco {lang} 0\n")
    more = [tmp_path / f"coco.{lang}" for lang in ("en", "de")]
    at = arguments.index("--langs")
    words = [*arguments[:at], *more, *arguments[at:]]
    assert pairs(*words, "--out", tmp_path / "d") == 0
    found = read(tmp_path / "d")
    assert found["test.de"] == ["test de 0", "test de 1", "coco de 0"]
    assert found["test.set"] == ["test", "test", "coco"]
    assert pairs(*arguments[:at], more[0], *arguments[at:], "--out", tmp_path / "e") == 2
    assert "--test names 3 files; give a source and a target" in capsys.readouterr().err
    twice = [*arguments[:at], *arguments[at - 2 : at], *arguments[at:]]
    assert pairs(*twice, "--out", tmp_path / "e") == 2
    assert "two sources of one name" in capsys.readouterr().err


def test_the_first_pairs_or_random_ones(tmp_path: Path):
    arguments = corpus(tmp_path / "c")
    sets = {}
    for name, more in {"first": (), "five": ("--seed", 3), "nine": ("--seed", 3)}.items():
        count = 9 if name == "nine" else 5
        pairs(*arguments, "--out", tmp_path / name, "--pairs", count, *more)
        found = read(tmp_path / name)
        numbers = [int(line.split()[-1]) for line in found["train.en"]]
        assert [int(line.split()[-1]) for line in found["train.de"]] == numbers
        assert numbers == sorted(numbers)
        assert len(numbers) == count
        assert len(found["valid.en"]) == 3
        sets[name] = set(numbers)
    assert sets["first"] == set(range(5))
    assert sets["five"] != sets["first"]
    assert sets["five"] < sets["nine"]


def test_long_pairs_of_training_are_left_out_before_pairs_are_taken(tmp_path: Path, capsys):
    arguments = corpus(tmp_path / "c", train=6)
    for lang, long in (("en", 1), ("de", 3)):
        lines = [f"{lang} {number} x" + " y" * (number == long) for number in range(6)]
        (tmp_path / "c" / f"train.{lang}.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    short = ("--most-words", 3, "--pairs", 3)
    assert pairs(*arguments, *short, "--out", tmp_path / "d") == 0
    found = read(tmp_path / "d")
    assert found["train.en"] == ["en 0 x", "en 2 x", "en 4 x"]
    assert found["train.de"] == ["de 0 x", "de 2 x", "de 4 x"]
    assert len(found["valid.en"]) == 3
    assert "too_long_left_out: 2" in capsys.readouterr().out
    assert pairs(*arguments, *short[:2], "--pairs", 5, "--out", tmp_path / "e") == 2


def test_again_it_does_nothing_and_other_data_are_refused(tmp_path: Path, capsys):
    arguments = [*corpus(tmp_path / "c"), "--out", tmp_path / "d"]
    assert pairs(*arguments) == 0
    assert pairs(*arguments) == 0
    assert "up to date" in capsys.readouterr().out
    corpus(tmp_path / "c", train=21)
    assert pairs(*arguments) == 2
    assert "was not made with these options" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--pairs", 21], "--pairs is 21, but train has 20"),
        (["--pairs", -1], "--pairs must be 0 or more"),
        (["--seed", -1], "--seed must be 0 or more"),
        (["--most-words", -1], "--most-words must be 0 or more"),
        (["--langs", "en", "en"], "both languages are 'en'"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, capsys, more: list[object], message: str):
    assert pairs(*corpus(tmp_path / "c"), "--out", tmp_path / "d", *more) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_files_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = [*corpus(tmp_path / "c"), "--out", tmp_path / "d"]
    (tmp_path / "c" / "test.de.gz").write_bytes(gzip.compress(b"one\n"))
    assert pairs(*arguments) == 2
    assert "test.de.gz: has 1 lines, but" in capsys.readouterr().err
    for lang in ("en", "de"):
        (tmp_path / "c" / f"test.{lang}.gz").write_bytes(gzip.compress(b""))
    assert pairs(*arguments) == 2
    assert "test.en: has no lines" in capsys.readouterr().err


def test_parts_may_stand_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    train, valid, langs = (
        corpus(tmp_path / "c")[cut] for cut in (slice(3), slice(3, 6), slice(9, 12))
    )
    assert pairs(*valid, *langs, "--out", tmp_path / "v") == 0
    assert set(read(tmp_path / "v")) == {"valid.en", "valid.de"}
    assert pairs(*train, *langs, "--out", tmp_path / "t", "--pairs", 2) == 0
    assert read(tmp_path / "t")["train.en"] == ["train en 0", "train en 1"]
    assert pairs(*valid, *langs, "--out", tmp_path / "x", "--pairs", 2) == 2
    assert "--pairs is about training pairs: give --train" in capsys.readouterr().err
    assert pairs(*langs, "--out", tmp_path / "x") == 2
    assert "give at least one of --train, --valid and --test" in capsys.readouterr().err

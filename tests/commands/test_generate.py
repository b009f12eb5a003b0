"""``treesyntax generate``: folders of data with a manifest."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from treesyntax.__main__ import main
from treesyntax.data.sets.for_to_lambda import translate
from treesyntax.trees.formats.for2lam import FOR, LAMBDA


def generate(*arguments: object) -> int:
    return main(["generate", *map(str, arguments)])


def for2lam(out: Path, *more: object) -> int:
    return generate("for2lam", "--out", out, "--train", 30, "--valid", 10, "--test", 5, *more)


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_programs_and_translations_are_aligned(tmp_path: Path) -> None:
    assert for2lam(tmp_path / "new" / "data") == 0
    folder = tmp_path / "new" / "data"
    for split, number in (("train", 30), ("valid", 10), ("test", 5)):
        source, target = read(folder / f"{split}.for"), read(folder / f"{split}.lambda")
        assert len(source) == number
        assert [LAMBDA.write(translate(FOR.parse(line))) for line in source] == target


def test_the_manifest_describes_the_files(tmp_path: Path) -> None:
    for2lam(tmp_path / "data", "--style", "chen", "--length", 20, "--seed", 4)
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_text())
    assert manifest["options"] == {
        "generator": "for2lam", "style": "chen", "length": 20, "min_nodes": 0, "repeats": False,
        "seed": 4, "train": 30, "valid": 10, "test": 5,
    }  # fmt: skip
    assert 20 <= manifest["notes"]["size"] <= 30
    assert len(manifest["files"]) == 6
    for name, facts in manifest["files"].items():
        path = tmp_path / "data" / name
        lengths = [len(line.split()) for line in read(path)]
        assert facts["lines"] == len(lengths)
        assert facts["mean_length"] == pytest.approx(sum(lengths) / len(lengths), abs=0.01)
        assert facts["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_same_command_again_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for2lam(tmp_path / "data")
    before = snapshot(tmp_path / "data")
    capsys.readouterr()
    assert for2lam(tmp_path / "data") == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'data'}: up to date\n")
    assert snapshot(tmp_path / "data") == before
    assert for2lam(tmp_path / "other") == 0
    assert snapshot(tmp_path / "other") == before


def test_other_contents_are_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "data"
    for2lam(out)
    before = snapshot(out)
    refusal = (
        f"treesyntax generate: {out}: is not empty and was not made with these options; "
        "name another folder or delete this one\n"
    )
    assert for2lam(out, "--seed", 2) == 2
    assert capsys.readouterr().err == refusal
    assert snapshot(out) == before
    for broken in ("{", "[]", "\udcff"):
        (out / "manifest.json").write_text(broken, encoding="utf-8", errors="surrogateescape")
        assert for2lam(out) == 2
        assert capsys.readouterr().err == refusal


@pytest.mark.parametrize("change", ["edit", "remove"])
def test_changed_files_are_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str):
    for2lam(tmp_path)
    path = tmp_path / "valid.lambda"
    path.write_text("unit\n") if change == "edit" else path.unlink()
    assert for2lam(tmp_path) == 2
    assert capsys.readouterr().err == (
        f"treesyntax generate: {path}: was changed or deleted since it was made; "
        "delete the folder to make it again\n"
    )


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").write_text("mine")
    assert for2lam(tmp_path / "data") == 2
    assert "data: is a file; name a folder\n" in capsys.readouterr().err
    assert (tmp_path / "data").read_text() == "mine"


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: Path, data: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupt)
    assert for2lam(tmp_path / "data") == 130
    assert not list(tmp_path.iterdir())


def test_impossible_options_leave_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert for2lam(tmp_path / "data", "--length", 20) == 2
    assert "the style drissi takes a size" in capsys.readouterr().err
    assert generate("for2lam", "--out", tmp_path / "data") == 2
    assert capsys.readouterr().err == (
        "treesyntax generate: no programs are asked for; set --train, --valid or --test\n"
    )
    with pytest.raises(SystemExit):
        for2lam(tmp_path / "data", "--size", 3, "--length", 20)
    assert not list(tmp_path.iterdir())


def aligned(tmp_path: Path, lines: int = 40) -> tuple[Path, Path]:
    source, target = tmp_path / "all.en", tmp_path / "all.sexpr"
    source.write_text("".join(f"é {n}\n" for n in range(lines)), encoding="utf-8")
    target.write_text("".join(f"(f {n})\n" for n in range(lines)), encoding="utf-8")
    return source, target


def split(source: Path, target: Path, out: Path, *more: object) -> int:
    return generate("split", "--source", source, "--target", target, "--out", out, *more)


def test_split_keeps_lines_aligned_and_in_order(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert split(*aligned(tmp_path), out, "--valid", 7, "--test", 5) == 0
    numbers: dict[str, list[int]] = {}
    for part in ("train", "valid", "test"):
        source, target = read(out / f"{part}.en"), read(out / f"{part}.sexpr")
        numbers[part] = [int(line.removeprefix("é ")) for line in source]
        assert target == [f"(f {n})" for n in numbers[part]]
        assert numbers[part] == sorted(numbers[part])
    assert [len(part) for part in numbers.values()] == [28, 7, 5]
    assert sorted(n for part in numbers.values() for n in part) == list(range(40))
    # Pinned, so that a recipe has the same split on every machine.
    assert numbers["test"] == [3, 6, 24, 25, 30]


def test_split_depends_on_the_seed_and_takes_packed_files(tmp_path: Path) -> None:
    source, target = aligned(tmp_path)
    packed = tmp_path / "all.en.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    for out, name, seed in (("a", source, 1), ("b", source, 2), ("c", packed, 1)):
        assert split(name, target, tmp_path / out, "--valid", 5, "--seed", seed) == 0
    valid = {out: read(tmp_path / out / "valid.en") for out in "abc"}
    assert valid["a"] == valid["c"] != valid["b"]
    # A split of 0 lines has no files.
    assert not (tmp_path / "a" / "test.en").exists()


def test_split_reports_or_removes_equal_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source, target = tmp_path / "s.a", tmp_path / "s.b"
    source.write_text("x\n" * 5 + "y\nx\n")
    target.write_text("1\n" * 5 + "2\n2\n")
    assert split(source, target, tmp_path / "plain", "--valid", 3) == 0
    train, valid = (
        list(zip(*(read(tmp_path / f"plain/{part}.{side}") for side in "ab"), strict=True))
        for part in ("train", "valid")
    )
    seen = sum(pair in train for pair in valid)
    assert seen > 0
    assert f"valid_in_train: {seen}\ntest_in_train: 0\n" in capsys.readouterr().out
    assert split(source, target, tmp_path / "clean", "--valid", 2, "--dedup") == 0
    names = ("train.a", "valid.a", "train.b", "valid.b")
    kept = [line for name in names for line in read(tmp_path / "clean" / name)]
    assert sorted(kept) == ["1", "2", "2", "x", "x", "y"]
    shown = capsys.readouterr().out
    assert "valid_in_train: 0" in shown
    assert "duplicates_left_out: 4" in shown


def test_split_again_notices_new_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = aligned(tmp_path)
    split(source, target, tmp_path / "out", "--valid", 5)
    capsys.readouterr()
    assert split(source, target, tmp_path / "out", "--valid", 5) == 0
    assert capsys.readouterr().out.endswith("out: up to date\n")
    target.write_text(target.read_text().replace("f", "g"))
    assert split(source, target, tmp_path / "out", "--valid", 5) == 2
    assert "was not made with these options" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--valid", "-1"], "valid is -1; it must be 0 or more"),
        (["--seed", "-1"], "seed is -1; it must be 0 or more"),
        (["--valid", "30", "--test", "10"], "valid and test take 40 of 40 pairs; leave some for train"),
        (["--test", "40", "--dedup"], "valid and test take 40 of 40 different pairs; leave some for train"),
    ],
)  # fmt: skip
def test_split_refuses_impossible_numbers(tmp_path: Path, capsys, more: list[str], message: str):
    assert split(*aligned(tmp_path), tmp_path / "out", *more) == 2
    assert capsys.readouterr().err == f"treesyntax generate: {message}\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("begin", ["", "# text = a b\n", "1-2\tab" + 8 * "\t_" + "\n"])
def test_split_refuses_a_treebank_whose_words_have_lines(tmp_path: Path, capsys, begin: str):
    words = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t_\t1\tdep\t_\t_\n\n"
    source, target = tmp_path / "all.conllu", tmp_path / "all.labels"
    source.write_text(begin + 20 * words)
    target.write_text(source.read_text())
    assert split(source, target, tmp_path / "out", "--valid", "3") == 2
    line = 2 if begin.startswith("#") else 1
    assert capsys.readouterr().err == (
        f"treesyntax generate: {source}:{line}: is CoNLL-U, where each word of a sentence has a line; "
        "write a sentence a line, as text or as trees in jsonl\n"
    )
    assert not (tmp_path / "out").exists()


def test_split_refuses_files_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source, target = aligned(tmp_path)
    target.write_text("(f 0)\n")
    assert split(source, target, tmp_path / "out") == 2
    assert capsys.readouterr().err == (
        f"treesyntax generate: {target}: has 1 lines, but {source} has 40; "
        "the files must be aligned line by line\n"
    )
    assert split(source, source, tmp_path / "out") == 2
    assert "both files end in .en; give them different suffixes" in capsys.readouterr().err
    bare = source.rename(tmp_path / "all")
    assert split(bare, target, tmp_path / "out") == 2
    assert "all has no suffix, and the new files need one" in capsys.readouterr().err
    assert split(tmp_path / "none.en", target, tmp_path / "out") == 2
    assert "none.en: cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

"""What commands do with files and folders of the user's own, and with options that would have no effect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import support.fake_parser as fake_parser
from support.fake_parser import LINES
from support.fake_parser import words as parse_words

from treesyntax.__main__ import main
from treesyntax.parsers import PARSERS
from treesyntax.parsers.workers import _loaded


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A text, in the folder that the process is in, and parsers without models."""
    for name, kind in fake_parser.KINDS.items():
        monkeypatch.setitem(PARSERS, name, kind)
    _loaded.cache_clear()
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "in.txt"
    file.write_text("".join(f"{line}\n" for line in LINES))
    return file


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line with which a command ends that fails."""
    capsys.readouterr()
    assert main([*map(str, words)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


def test_a_folder_beside_the_trees_that_no_parse_has_begun_is_left_alone(text: Path, capsys):
    notes = Path("out.parts/01-notes.txt")
    notes.parent.mkdir()
    notes.write_text("mine")
    assert "holds 01-notes.txt, which is of no parse" in said(capsys, *parse_words(text, "out"))
    assert (notes.read_text(), Path("out").exists()) == ("mine", False)
    Path("out").write_text("trees of mine")
    assert "already exists" in said(capsys, *parse_words(text, "out"))
    assert (notes.read_text(), Path("out").read_text()) == ("mine", "trees of mine")


@pytest.mark.parametrize("content", ["", "(a b)\n"])
def test_trees_that_were_changed_are_not_called_complete(text: Path, capsys, content: str):
    words = parse_words(text, "out")
    assert main(words) == 0
    before = Path("out").read_bytes()
    assert main(words) == 0
    Path("out").write_text(content)
    assert (
        "out: was changed or deleted since it was written; name another file or add --over"
        in said(capsys, *words)
    )
    assert Path("out").read_text() == content
    assert main([*words, "--overwrite"]) == 0
    assert Path("out").read_bytes() == before


@pytest.mark.parametrize("deleted", [True, False])
def test_trees_without_their_offsets_are_not_called_complete(text: Path, capsys, deleted: bool):
    words = parse_words(text, "out", "--parser", "fake-con")
    assert main(words) == 0
    before = fake_parser.outputs(Path("out"))
    if deleted:
        Path("out.offsets").unlink()
    else:
        Path("out.offsets").write_text("0:1\n")
    assert "out.offsets: was changed or deleted since it was written; name" in said(capsys, *words)
    assert main([*words, "--overwrite"]) == 0
    assert fake_parser.outputs(Path("out")) == before
    assert main(words) == 0


def test_what_another_parse_has_begun_stays_where_the_first_one_is_complete(
    text: Path, monkeypatch: pytest.MonkeyPatch
):
    words = parse_words(text, "out")
    assert main(words) == 0

    def interrupted(self: fake_parser.FakeParser, lines: list[str]) -> None:
        raise KeyboardInterrupt

    other = [*words, "--max-words", "25", "--overwrite"]
    with monkeypatch.context() as patch:
        patch.setattr(fake_parser.FakeParser, "parse", interrupted)
        assert main(other) == 130
    shard = Path("out.parts/000000.trees")
    shard.write_text("of the other parse")
    assert main(words) == 0
    assert shard.exists()


def test_trees_do_not_take_the_place_of_a_folder(text: Path, capsys):
    Path("folder").mkdir()
    for more in ([], ["--overwrite"]):
        assert "folder: is a folder" in said(capsys, *parse_words(text, "folder"), *more)


@pytest.mark.parametrize("name", [".", "..", "{cwd}"])
def test_the_folder_that_one_is_in_is_not_replaced(text: Path, capsys, name: str):
    here = text.parent / "here"
    here.mkdir()
    os.chdir(here)
    place = name.format(cwd=here)
    error = said(capsys, "generate", "for2lam", "--train", 2, "--out", place)
    assert "the folder that you are in" in error or "was not made" in error
    assert here.is_dir()
    (here / "still").touch()  # the process is in no deleted folder
    assert (here / "still").exists()


def test_two_sides_in_different_places_make_no_recipe(text: Path, capsys):
    for folder, languages in (("a", ("en", "de")), ("b", ("de",))):
        Path(folder).mkdir()
        for split in ("train", "valid", "test"):
            for language in languages:
                Path(folder, f"{split}.{language}").write_text("words\n")
    words = ["new", "my.yaml", "--parser", "spacy", "--model", "m", "--source", "a/train.en"]
    told = "is not beside a/train.en under its name; put both sides into one folder, as train.en"
    assert told in said(capsys, *words, "--target", "b/train.de")
    Path("a/valid.en").rename("a/dev.en")
    assert "a/valid.de: is not beside a/dev.en" in said(capsys, *words, "--target", "a/train.de")
    assert not Path("my.yaml").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["binarize", "d", "--source-lang", "a", "--target-lang", "b", "--train", "in.txt",
             "in.txt", "--source-dict", "in.txt", "--source-vocab-size", "5"],
            "--source-dict gives the dictionary as it is; leave out --source-threshold and",
        ),
        (
            ["generate", "pairs", "--test", "n.en", "n.de", "n.de", "n.en", "--langs", "s", "t",
             "--out", "d"],
            "--test has two sources of one name",
        ),
        (
            ["generate", "pairs", "--test", "n.en", "n.de", "m.en", "m.de", "--langs", "set", "t",
             "--out", "d"],
            "test.set names the set of each line",
        ),
        (["new", "d", "--source", "few.tsv", "--target-format", "prolog"], "has 1 different pair to train on"),
        (
            ["new", "d", "--source", "c/train.conllu", "--source-format", "conllu", "--target",
             "c/train.de", "--parser", "spacy"],
            "has trees: leave out --parser and --model",
        ),
    ],
)  # fmt: skip
def test_options_that_would_do_nothing_or_harm(text: Path, capsys, words: list[str], told: str):
    for name in ("n.en", "n.de", "m.en", "m.de"):
        Path(name).write_text("a\nb\n")
    Path("few.tsv").write_text("a question\tf(a)\n" * 2)
    Path("c").mkdir()
    for name in ("train", "valid", "test"):
        for suffix in ("conllu", "de"):
            Path(f"c/{name}.{suffix}").write_text("\n")
    assert told in said(capsys, *words)
    assert not Path("d").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--count", "0"], "--count 0: at least 1"),
        (["--split", "/abs"], "has no split /abs"),
        (["--split", "**"], "no single ** split"),
    ],
)
def test_inspect_refuses_what_names_no_sentence(text: Path, capsys, more: list[str], told: str):
    made = ["binarize", "d", "--source-lang", "a", "--target-lang", "b", "--train", "in.txt"]
    assert main([*made, "in.txt", "--workers", "1"]) == 0
    assert told in said(capsys, "inspect", "d", *more)


def test_a_file_name_that_is_no_utf8_is_taken(text: Path, capsys):
    name = os.fsdecode(b"caf\xe9.en")
    try:
        Path(name).write_text("a b\nc\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")
    made = ["binarize", "d", "--source-lang", "en", "--target-lang", "b", "--train", name, name]
    assert main([*made, "--workers", "1"]) == 0
    assert Path("d/binarize.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--help", "--version"])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_help_that_cannot_be_written_is_an_error(option: str):
    # Without a buffer argparse itself meets the error, and is silent about it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "treesyntax", option],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=env,
        )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left on device" in done.stderr

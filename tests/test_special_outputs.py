"""Outputs that are no regular files are written through, and never replaced."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import support.fake_parser as fake_parser
import torch
from reliability.figures import count
from support.fake_parser import LINES
from support.fake_parser import words as parse_words

from treesyntax.__main__ import main
from treesyntax.decoding.growing_output import growing_output
from treesyntax.errors import InputError
from treesyntax.files import atomic_folder, output_file
from treesyntax.parsers import PARSERS
from treesyntax.trees.formats import write_trees
from treesyntax.trees.tree import Tree

TEXT = "the output\n"


def by_output_file(path: Path) -> str:
    with output_file(path) as staged:
        staged.write_text(TEXT)
    return TEXT


def by_translate(path: Path) -> str:
    with growing_output(str(path), dict, resume=False) as output:
        output.stream.write(TEXT.encode())
    return TEXT


def by_write_trees(path: Path) -> str:
    write_trees(path, [Tree([-1], ["a"])], "sexpr")
    return "a\n"


WRITERS = (by_output_file, by_translate, by_write_trees)


@contextmanager
def read_pipe(path: Path) -> Iterator[list[str]]:
    """A FIFO and what its reader gets."""
    os.mkfifo(path)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(path.read_text()), daemon=True)
    reader.start()
    yield got
    reader.join(30)


@pytest.mark.parametrize("write", WRITERS)
def test_a_pipe_gets_the_text_and_stays(write: Callable[[Path], str], tmp_path: Path):
    with read_pipe(tmp_path / "pipe") as got:
        wanted = write(tmp_path / "pipe")
    assert got == [wanted]
    assert stat.S_ISFIFO(os.lstat(tmp_path / "pipe").st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
    count("special outputs: written through")


@pytest.mark.parametrize("write", WRITERS)
def test_a_link_stays_a_link(write: Callable[[Path], str], tmp_path: Path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    link.symlink_to("second")
    (tmp_path / "second").symlink_to("there/file")
    for before in (None, "before"):
        if before:
            target.write_text(before)
        wanted = write(link)
        assert link.is_symlink()
        assert target.read_text() == wanted
    assert os.listdir(tmp_path / "there") == ["file"]
    count("special outputs: written through", 2)


@pytest.mark.parametrize("write", WRITERS)
def test_devices_stay_devices(write: Callable[[Path], str], tmp_path: Path):
    devices = {"null": (1, 3), "full": (1, 7)}
    try:
        for name, numbers in devices.items():
            os.mknod(tmp_path / name, stat.S_IFCHR | 0o666, os.makedev(*numbers))
        os.close(os.open(tmp_path / "null", os.O_WRONLY))
    except PermissionError:
        pytest.skip("only root makes devices")
    write(tmp_path / "null")
    with pytest.raises(InputError, match=r"full: cannot be written .No space left on device.; "):
        write(tmp_path / "full")
    with pytest.raises(InputError, match="null: is no folder"), atomic_folder(tmp_path / "null"):
        pass
    for name in devices:
        assert stat.S_ISCHR(os.lstat(tmp_path / name).st_mode)
    assert sorted(os.listdir(tmp_path)) == ["full", "null"]
    count("special outputs: written through", 3)


WRITE = f"from treesyntax.files import output_file as o\nwith o('/dev/stdout') as s: s.write_text({TEXT!r})"


def test_standard_output_by_its_name(tmp_path: Path):
    """Into a file that has a line already, as in ``(echo first; command) > file``, and a pipe."""
    log = tmp_path / "log"
    link = os.readlink("/dev/stdout")
    with log.open("w") as stream:
        stream.write("first\n")
        stream.flush()
        subprocess.run([sys.executable, "-c", WRITE], stdout=stream, check=True)
    assert log.read_text() == f"first\n{TEXT}"
    shown = subprocess.run([sys.executable, "-c", WRITE], stdout=subprocess.PIPE, check=True)
    assert shown.stdout.decode() == TEXT
    assert os.readlink("/dev/stdout") == link
    assert os.listdir(tmp_path) == ["log"]


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with atomic_folder(tmp_path / "link") as staged:
        (staged / "new").write_text("")
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "folder") == ["new"]


def test_trees_are_parsed_into_a_pipe_and_through_a_link(tmp_path: Path, monkeypatch):
    for name, kind in fake_parser.KINDS.items():
        monkeypatch.setitem(PARSERS, name, kind)
    text = tmp_path / "in.txt"
    text.write_text("".join(line + "\n" for line in LINES))
    assert main(parse_words(text, tmp_path / "plain")) == 0
    wanted = (tmp_path / "plain").read_text()
    with read_pipe(tmp_path / "pipe") as got:
        assert main(parse_words(text, tmp_path / "pipe")) == 0
    assert got == [wanted]
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/trees")
    (tmp_path / "there/trees").write_text("of another text")
    assert main(parse_words(text, tmp_path / "link", "--overwrite")) == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there/trees").read_text() == wanted
    assert not (tmp_path / "pipe.report.json").exists()
    assert (tmp_path / "link.report.json").exists()


def test_checkpoints_are_averaged_into_a_link(tmp_path: Path):
    state = {"model": {"a": torch.ones(2)}, "extra_state": {}, "optimizer_history": []}
    torch.save(state, tmp_path / "checkpoint1.pt")
    (tmp_path / "link.pt").symlink_to("target.pt")
    words = ["average", str(tmp_path), "--last", "1", "--out", str(tmp_path / "link.pt")]
    assert main(words) == 0
    assert (tmp_path / "link.pt").is_symlink()
    assert torch.load(tmp_path / "target.pt", weights_only=True)["model"]["a"].tolist() == [1, 1]


@pytest.mark.parametrize("words", [["recipes", "copy", "demo/for2lam"], ["new"]])
def test_a_link_to_nothing_is_not_replaced_by_a_new_recipe(
    words: list[str], tmp_path: Path, capsys
):
    """As a file that is there: who set the link has something else in mind."""
    link = tmp_path / "mine.yaml"
    link.symlink_to(tmp_path / "gone/recipe.yaml")
    assert main([*words, str(link)]) == 2
    assert "mine.yaml: already exists; choose another name" in capsys.readouterr().err
    assert link.is_symlink()
    assert not link.exists()

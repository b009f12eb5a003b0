"""A write that fails leaves what was there before, and says why in one line."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from reliability.figures import amount, count
from reliability.hostile.readers import PREFIX, tokens
from reliability.test_crash_safety import files as contents
from support import ROOT
from support.study_helpers import result
from support.study_runs import check_complete, start_forked, study

from treesyntax.__main__ import main
from treesyntax.data.dictionary import Dictionary
from treesyntax.data.sets.folder import write_data_set
from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.files import atomic_folder
from treesyntax.study.results.results import write_results
from treesyntax.trees.formats import write_trees
from treesyntax.trees.tree import Tree


def _tree_file(folder: Path) -> None:
    write_trees(folder / "x.sexpr", [Tree([-1, 0], ["f", "x"])] * 5000, "sexpr")


def _results(folder: Path) -> None:
    write_results(folder / "runs.jsonl", [result(seed=seed) for seed in range(99)])


def _folder(folder: Path) -> None:
    files = {"a.src": ["x" * 99] * 999, "a.tgt": ["y"]}
    write_data_set(folder / "data", {}, lambda: (files, {}))


def _checkpoint(folder: Path) -> None:
    path = folder / "runs/checkpoint_1_1.pt"
    if not path.exists():
        path.parent.mkdir()
        torch.save({"model": {"weight": torch.ones(9000)}}, path)


def _command(name: str, folder: Path) -> None:
    lines = "".join(f"a b c d {i}\n" for i in range(300))
    text = folder.parent / "text"
    if not text.exists():
        text.write_text(lines)
    _checkpoint(folder.parent)
    words = {
        "parse": ["parse", text, folder / "out", "--parser", "fake-con", "--model", "m"],
        "binarize": ["binarize", folder / "bin", "--source-lang", "a", "--target-lang", "b",
                     "--overwrite", "--train", text, text],
        "generate": ["generate", "for2lam", "--out", folder / "generated", "--train", 50],
        "average": ["average", folder.parent / "runs", "--last", 1, "--out", folder / "mean.pt"],
    }[name]  # fmt: skip
    workers = ["--workers", "1"] if name in ("parse", "binarize") else []
    status = main([*map(str, words), *workers])
    if status:
        raise TreeSyntaxError(f"status {status}")


WRITERS: dict[str, Callable[[Path], None]] = {
    "trees": _tree_file,
    "tokens and store": tokens,
    "dictionary": lambda folder: Dictionary([("x" * 99, 1)]).write(folder / "dict.txt"),
    "results": _results,
    "folder": _folder,
    "parse": lambda folder: _command("parse", folder),
    "binarize": lambda folder: _command("binarize", folder),
    "generate": lambda folder: _command("generate", folder),
    "average": lambda folder: _command("average", folder),
}


def under_limit(name: str, folder: Path, limit: int) -> str:
    """What a writer says in a process in which no file may grow beyond a size, as on a full disk."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with os.fdopen(writing, "w") as answer:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            answer.write(_said(name, folder))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    assert os.waitpid(pid, 0)[1] == 0
    return said


def _said(name: str, folder: Path) -> str:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            WRITERS[name](folder)
    except TreeSyntaxError as error:
        return f"OURS {error} {said.getvalue()}"
    except BaseException:
        return traceback.format_exc()
    return "WRITTEN"


@pytest.mark.parametrize("name", ["results", "tokens and store", "binarize", "parse", "average"])
@pytest.mark.parametrize("limit", [1, 3000][: amount(1, 2)])
def test_a_full_disk_is_one_clear_line(tmp_path: Path, name: str, limit: int):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "before").write_text("before")
    (tmp_path / "text").write_text("".join(f"a b c d {i}\n" for i in range(2000)))
    _checkpoint(tmp_path)
    said = under_limit(name, folder, limit)
    count("corruption: full disks and read-only folders")
    assert said.startswith("OURS"), said
    assert "File too large" in said or "disk" in said or "space" in said, said
    # The parts of a parse stay, as what is done need not be done again.
    found = {name for name in contents(folder) if not name.startswith(("out.parts/", ".lock"))}
    assert found <= {"before", "runs.jsonl", f"{PREFIX}.bin", f"{PREFIX}.idx"}
    assert contents(folder).get("runs.jsonl", b"") == b""
    assert (folder / "before").read_text() == "before"


class Disk:
    """Fails the n-th time that anything is opened to write, renamed or made a folder below a path."""

    def __init__(self, folder: Path, number: int, code: int) -> None:
        self.folder, self.left, self.code = str(folder), number, code

    def __call__(self, event: str, arguments: tuple) -> None:
        if self.left < 0 or not arguments or not isinstance(arguments[0], str | os.PathLike):
            return
        if not str(arguments[0]).startswith(self.folder):
            return
        if event == "open":
            mode, flags = arguments[1], arguments[2]
            writes = flags & (os.O_WRONLY | os.O_RDWR) if isinstance(flags, int) else mode != "r"
            if not writes:
                return
        elif event not in ("os.rename", "os.mkdir"):
            return
        self.left -= 1
        if self.left < 0:
            raise OSError(self.code, os.strerror(self.code), str(arguments[0]))


DISKS: list[Disk] = []


def _hook(event: str, arguments: tuple) -> None:
    if DISKS and event in ("open", "os.rename", "os.mkdir"):
        DISKS[-1](event, arguments)


@contextlib.contextmanager
def failing(disk: Disk) -> Iterator[Disk]:
    """With the system's own audit hook: it sees every file that is opened, whoever opens it."""
    if not getattr(sys, "_treesyntax_hook", False):
        sys.addaudithook(_hook)
        sys._treesyntax_hook = True  # type: ignore[attr-defined]
    DISKS.append(disk)
    try:
        yield disk
    finally:
        DISKS.pop()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS], ids=["full", "read-only"])
@pytest.mark.parametrize("name", WRITERS)
def test_whichever_write_fails_the_state_is_that_of_before(tmp_path: Path, name: str, code: int):
    """The first write fails, then the second, … until all succeed; nothing is left in between."""
    folder = tmp_path / "data"
    folder.mkdir()
    write, failed = WRITERS[name], 0
    for number in range(amount(12, 60)):
        before = contents(folder)
        with failing(Disk(folder, number, code)) as disk:
            try:
                write(folder)
            except TreeSyntaxError:
                failed += 1
            else:
                if disk.left >= 0:
                    break
                # A fault that did not matter, as a folder that is there need not be made.
                shutil.rmtree(folder)
                folder.mkdir()
        count("corruption: full disks and read-only folders")
        after = {file: text for file, text in contents(folder).items() if ".parts/" not in file}
        whole = {f"{PREFIX}.bin", f"{PREFIX}.idx", f"{PREFIX}.tree", "dict.a.txt", "runs.jsonl"}
        whole |= {"out.offsets", "out.report.json"}  # each is whole; the tree file comes last
        assert {file for file in after if file not in before} <= whole
        assert not [file for file in after if file.endswith((".part", ".old"))]
    assert failed >= 1
    write(folder)


def test_a_failed_exchange_of_folders_puts_the_old_one_back(tmp_path: Path, monkeypatch):
    target = tmp_path / "target"
    with atomic_folder(target) as staged:
        (staged / "x").write_text("old")
    rename = Path.replace

    def fail(self: Path, other: Path) -> Path:
        if self.suffix == ".part":
            raise OSError(errno.ENOSPC, "No space left on device")
        return rename(self, other)

    monkeypatch.setattr(Path, "replace", fail)
    with (
        pytest.raises(InputError, match="target: cannot be written .No space left on device"),
        atomic_folder(target) as staged,
    ):
        (staged / "x").write_text("new")
    assert contents(tmp_path) == {"target/x": b"old"}


def test_a_command_tells_of_any_fault_of_the_system_in_one_line(capsys, monkeypatch):
    def run(error: Exception) -> str:
        def fail(_: object) -> int:
            raise error

        monkeypatch.setattr("treesyntax.commands.methods.run", fail)
        assert main(["methods"]) == 2
        return capsys.readouterr().err

    full = OSError(errno.ENOSPC, "No space left on device", "/x/y")
    assert run(full) == (
        "treesyntax methods: /x/y: No space left on device; check free space and permissions\n"
    )
    assert run(OSError("odd")).endswith("methods: odd; check free space and permissions\n")
    assert run(MemoryError()) == "treesyntax methods: out of memory\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_to_a_full_disk_is_an_error(tmp_path: Path):
    (tmp_path / "a").write_text("x\n")
    words = [sys.executable, "-m", "treesyntax", "score"]
    words += ["--reference", str(tmp_path / "a"), "--hypothesis", str(tmp_path / "a")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "treesyntax score: No space left on device; check free space and permissions\n"
    )


def test_a_study_on_a_full_disk_ends_in_one_line_and_goes_on_later(quick: Path, tmp_path: Path):
    shutil.copytree(quick, tmp_path, dirs_exist_ok=True)
    (tmp_path / "out" / "done" / "sequence-1" / "score.json").unlink()
    shutil.rmtree(tmp_path / "out" / "logs")
    (tmp_path / "out" / "logs").write_text("a file where a folder should be")
    (tmp_path / "out" / "logs").rename(tmp_path / "out" / ".logs")
    os.symlink(tmp_path / "out" / ".logs", tmp_path / "out" / "logs")
    process = study(tmp_path, start=start_forked)
    said = process.output()
    assert process.returncode in (1, 2)
    assert "Traceback" not in said
    (tmp_path / "out" / "logs").unlink(missing_ok=True)
    (tmp_path / "out" / ".logs").unlink(missing_ok=True)
    assert study(tmp_path).returncode == 0
    check_complete(tmp_path)

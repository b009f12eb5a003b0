"""Damage is found and named; a write that fails leaves what was there before."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from figures import amount, count
from readers import READERS, tokens
from study_helpers import result
from study_runs import check_complete, study

from treesyntax.cli import main
from treesyntax.dictionary import EOS, Dictionary
from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.files import atomic_file, atomic_folder
from treesyntax.formats import write_trees
from treesyntax.generate.folder import write_folder
from treesyntax.indexed import TokenData, write_tokens
from treesyntax.manifest import check_tokens
from treesyntax.store import TreeStore
from treesyntax.study.results import append_results, read_results
from treesyntax.tree import Tree

PREFIX = "train.a-b.a"
SEED = 11


# Truncated and flipped


def everything(folder: Path) -> list:
    """All that a store and its token files say."""
    data, store = TokenData(folder / PREFIX), TreeStore(folder / f"{PREFIX}.tree")
    store.check_files(data)
    trees = [array.tolist() for tree in store for array in tree]
    return [store.view, trees, data.sizes.tolist(), [data[i].tolist() for i in range(len(data))]]


def damages(whole: bytes, cuts: int, flips: int) -> Iterator[bytes]:
    """A file cut off at many places, and with one bit changed at many places."""
    draw = random.Random(SEED)
    places = range(len(whole)) if len(whole) <= cuts else draw.sample(range(len(whole)), cuts)
    yield from (whole[:place] for place in places)
    yield whole + b"\0"
    bits = range(8 * len(whole))
    for bit in bits if len(bits) <= flips else draw.sample(bits, flips):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.parametrize("suffix", [".tree", ".idx"])
def test_damaged_stores_and_indices_are_named(tmp_path: Path, suffix: str):
    tokens(tmp_path)
    path, wanted = tmp_path / f"{PREFIX}{suffix}", everything(tmp_path)
    found = unnoticed = 0
    for damaged in damages(path.read_bytes(), amount(100, 10_000), amount(600, 100_000)):
        path.write_bytes(damaged)
        try:
            same = everything(tmp_path) == wanted
        except InputError as error:
            assert re.match(rf"{re.escape(str(tmp_path / PREFIX))}\.(tree|idx|bin): ", str(error))  # noqa: PT017
            found += 1
        else:
            assert same, "damage that changes what is read went unnoticed"
            unnoticed += 1
    count("corruption: cuts and flipped bits", found + unnoticed)
    assert found > unnoticed or suffix == ".tree"
    assert found > 100


def test_damaged_tokens_are_named(tmp_path: Path):
    reader = READERS["binarize.json"]
    reader.prepare(tmp_path)
    path = tmp_path / "data/train.a-b.a.bin"
    whole = path.read_bytes()
    check_tokens(TokenData(path.with_suffix("")))
    for damaged in damages(whole, 10, 1000):
        path.write_bytes(damaged)
        with pytest.raises(
            InputError, match=r"train\.a-b\.a\.bin: (is not the file|has \d+ bytes)"
        ):
            check_tokens(TokenData(path.with_suffix("")))


def test_an_index_alone_is_checked_for_sizes_and_offsets(tmp_path: Path):
    tokens(tmp_path)
    path = tmp_path / f"{PREFIX}.idx"
    whole = path.read_bytes()
    for position, byte in ((26, 6), (26 + 3, 0x80), (38, 1), (38 + 8, 9)):
        changed = bytearray(whole)
        changed[position] = byte
        path.write_bytes(changed)
        with pytest.raises(InputError, match=r"\.idx: is damaged: its sizes and offsets are not"):
            TokenData(tmp_path / PREFIX)


def test_a_store_of_numbers_that_make_no_trees_is_refused(tmp_path: Path):
    """Its checksums are right: whoever wrote it had no trees."""
    from treesyntax.store import TreeArrays
    from treesyntax.store_write import write_store

    ids, sizes = np.array([4, 5]), np.array([2])
    fingerprint = write_tokens(tmp_path / "x", [(ids, sizes)], 8, EOS)
    right = TreeArrays(sizes, sizes, np.array([-1, 0]), np.array([0, 0]), np.array([1, -1]))
    write_store(tmp_path / "x.tree", "words", [right], fingerprint)
    assert TreeStore(tmp_path / "x.tree")[0].parents.tolist() == [-1, 0]
    for change in (
        {"parents": np.array([-1, 1])}, {"parents": np.array([-2, 0])},
        {"token_nodes": np.array([2, 0])}, {"token_nodes": np.array([-2, 0])},
        {"branches": np.array([0, -1])},
    ):  # fmt: skip
        write_store(tmp_path / "x.tree", "words", [right._replace(**change)], fingerprint)
        with pytest.raises(InputError, match=r"x\.tree: its numbers are not those of trees; run"):
            TreeStore(tmp_path / "x.tree")
    for change in ({"node_counts": np.array([3])}, {"token_counts": np.array([1])}):
        write_store(tmp_path / "x.tree", "words", [right._replace(**change)], fingerprint)
        with pytest.raises(InputError, match="its offsets are not those of sentences in a row"):
            TreeStore(tmp_path / "x.tree")


def test_a_stale_store_beside_regenerated_data_is_refused(tmp_path: Path):
    tokens(tmp_path)
    everything(tmp_path)
    ids = np.array([5, 5, 6, 4, 5, 5, 4])  # other tokens, the same lengths, another type
    write_tokens(tmp_path / PREFIX, [(ids, np.array([4, 0, 3]))], 70_000, EOS)
    with pytest.raises(InputError, match=r"do not belong to this data .*\.idx is not the file"):
        everything(tmp_path)
    write_tokens(tmp_path / PREFIX, [(ids, np.array([3, 0, 4]))], 8, EOS)
    with pytest.raises(InputError, match="do not belong to this data .sentence 0 has 4 tokens"):
        everything(tmp_path)
    capture = main(["inspect", str(tmp_path)])
    assert capture == 2


def test_damaged_results_are_named(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    found = [result(), result(seed=2), result(metric="bleu")]
    append_results(path, found)
    whole = path.read_bytes()
    noticed = tried = 0
    for damaged in damages(whole, amount(100, 10_000), amount(600, 100_000)):
        path.write_bytes(damaged)
        tried += 1
        try:
            read = read_results(path)
        except InputError as error:
            assert str(error).startswith(f"{path}:")  # noqa: PT017
            noticed += 1
            continue
        # A line without its end was never written: the study writes it again.
        ends = damaged.count(b"\n")
        assert read == found[: len(read)]
        assert len(read) == ends
    count("corruption: cuts and flipped bits", tried)
    assert noticed > amount(500, 9000)


def test_lines_that_results_have_lost_are_written_again(
    quick: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Cut off or removed by hand: the study takes them from the files of the run."""
    shutil.copytree(quick, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "out" / "results.jsonl"
    whole = read_results(path)
    spoils = (lambda raw: raw[:-40], lambda raw: raw.split(b"\n", 1)[1], lambda raw: b"")
    for spoil in spoils[: amount(1, 3)]:
        path.write_bytes(spoil(path.read_bytes()))
        assert len(read_results(path)) < len(whole)
        assert study(tmp_path).returncode == 0
        check_complete(tmp_path)
        again = {one.key: replace(one, date="") for one in read_results(path)}
        assert again == {one.key: replace(one, date="") for one in whole}
    damaged = path.read_bytes().replace(b'"value": 5', b'"value": 6', 1)
    path.write_bytes(damaged)
    words = ["study", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert re.search(
        r"results\.jsonl:\d: its checksum differs: the line is damaged; restore the line, or remove "
        "it and run the study again",
        capsys.readouterr().err,
    )


def test_damaged_checkpoints_are_named(tmp_path: Path):
    torch = pytest.importorskip("torch")
    from treesyntax.checkpoint import load_checkpoint

    path = tmp_path / "checkpoint_best.pt"
    state = {"model": {"a": torch.arange(40.0), "b": torch.ones(3, 3)}, "cfg": {"x": "y" * 20}}
    torch.save(state, path)
    whole, noticed = path.read_bytes(), 0
    for damaged in damages(whole, amount(50, 2000), amount(200, 20_000)):
        path.write_bytes(damaged)
        try:
            read = load_checkpoint(path)
        except InputError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
            noticed += 1
            continue
        # Bits between the parts of the archive mean nothing.
        assert all(torch.equal(read["model"][name], state["model"][name]) for name in "ab")
        assert read["cfg"] == state["cfg"]
    count("corruption: cuts and flipped bits", amount(250, 22_000))
    assert noticed > amount(60, 2000)
    # Headers that have torch read a tensor from another place, or not at all.
    header, entry = whole.index(b"PK\x03\x04", whole.index(b"byteorder") + 9), b"PK\x01\x02"
    last = whole.rindex(entry, 0, whole.rindex(b"/data/0"))
    for position, bit, reason in ((header + 27, 1, "cannot be read"), (last + 38, 16, "a folder")):
        changed = bytearray(whole)
        changed[position] ^= bit
        path.write_bytes(changed)
        with pytest.raises(InputError, match=rf"best\.pt: is damaged \(.*{reason}"):
            load_checkpoint(path)
    changed = bytearray(whole)
    changed[whole.index(torch.arange(40.0).numpy().tobytes()) + 7] ^= 64
    path.write_bytes(changed)
    with pytest.raises(
        InputError, match=r"best\.pt: is damaged \(the checksum of .*/data/\d differs"
    ):
        load_checkpoint(path)


# Disk full, read-only folders


def _tree_file(folder: Path) -> None:
    write_trees(folder / "x.sexpr", [Tree([-1, 0], ["f", "x"])] * 5000, "sexpr")


def _results(folder: Path) -> None:
    append_results(folder / "results.jsonl", [result(seed=seed) for seed in range(99)])


def _folder(folder: Path) -> None:
    write_folder(folder / "data", {}, {"a.src": ["x" * 99] * 999, "a.tgt": ["y"]}, {})


def _command(name: str, folder: Path) -> None:
    lines = "".join(f"a b c d {i}\n" for i in range(300))
    text = folder.parent / "text"
    if not text.exists():
        text.write_text(lines)
    words = {
        "parse": ["parse", text, folder / "out", "--parser", "fake-con", "--model", "m"],
        "binarize": ["binarize", folder / "bin", "--source-lang", "a", "--target-lang", "b",
                     "--overwrite", "--train", text, text],
        "generate": ["generate", "for2lam", "--out", folder / "generated", "--train", 50],
    }[name]  # fmt: skip
    READERS["parse report"]
    workers = [] if name == "generate" else ["--workers", "1"]
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
}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
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


@pytest.mark.parametrize("name", ["results", "tokens and store", "binarize", "parse"])
@pytest.mark.parametrize("limit", [1, 3000][: amount(1, 2)])
def test_a_full_disk_is_one_clear_line(tmp_path: Path, name: str, limit: int):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "before").write_text("before")
    (tmp_path / "text").write_text("".join(f"a b c d {i}\n" for i in range(2000)))
    said = under_limit(name, folder, limit)
    count("corruption: full disks and read-only folders")
    assert said.startswith("OURS"), said
    assert "File too large" in said or "disk" in said or "space" in said, said
    # The parts of a parse stay, as what is done need not be done again.
    found = {name for name in contents(folder) if not name.startswith(("out.parts/", ".lock"))}
    assert found <= {"before", "results.jsonl", f"{PREFIX}.bin", f"{PREFIX}.idx"}
    assert contents(folder).get("results.jsonl", b"") == b""
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
        whole = {f"{PREFIX}.bin", f"{PREFIX}.idx", f"{PREFIX}.tree", "dict.a.txt", "results.jsonl"}
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


def test_a_failed_file_leaves_the_old_one(tmp_path: Path):
    path = tmp_path / "x"
    path.write_text("old")
    for code in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO):
        with pytest.raises(InputError, match="cannot be written"), atomic_file(path) as staged:
            staged.write_text("ne")
            raise OSError(code, os.strerror(code))
        assert contents(tmp_path) == {"x": b"old"}


def test_a_command_tells_of_any_fault_of_the_system_in_one_line(capsys, monkeypatch):
    def run(error: Exception) -> str:
        def fail(_: object) -> int:
            raise error

        monkeypatch.setattr("treesyntax.list_methods.run", fail)
        assert main(["methods"]) == 2
        return capsys.readouterr().err

    full = OSError(errno.ENOSPC, "No space left on device", "/x/y")
    assert run(full) == (
        "treesyntax methods: /x/y: No space left on device; check free space and permissions\n"
    )
    assert run(OSError("odd")).endswith("methods: odd; check free space and permissions\n")
    assert run(MemoryError()) == "treesyntax methods: there is not enough memory for it\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_to_a_full_disk_is_an_error(tmp_path: Path):
    (tmp_path / "a").write_text("x\n")
    words = [sys.executable, "-m", "treesyntax.cli", "score"]
    words += ["--reference", str(tmp_path / "a"), "--hypothesis", str(tmp_path / "a")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
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
    process = study(tmp_path)
    said = process.stdout.read()
    assert process.returncode in (1, 2)
    assert "Traceback" not in said
    (tmp_path / "out" / "logs").unlink(missing_ok=True)
    (tmp_path / "out" / ".logs").unlink(missing_ok=True)
    assert study(tmp_path).returncode == 0
    check_complete(tmp_path)

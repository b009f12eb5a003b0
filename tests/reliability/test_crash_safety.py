"""kill -9 at random points: the same command again gives what an undisturbed one gives."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import support.fake_parser as fake_parser
from reliability.figures import amount, count
from support import ROOT, wait_until
from support.study_helpers import write_recipe
from support.study_runs import alive, check_complete, start_forked, study

SEED = 5
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="children are tied to their parent on Linux only"
)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def start(words: Sequence[object], log: Path) -> subprocess.Popen:
    """A command in a process group of its own."""
    with log.open("ab") as stream:
        return subprocess.Popen(
            [sys.executable, *map(str, words)], stdout=stream, stderr=stream, env=ENVIRONMENT,
            start_new_session=True,
        )  # fmt: skip


def finish(words: Sequence[object], log: Path) -> float:
    """Run a command to its end; the seconds that it took."""
    begun = time.monotonic()
    assert start(words, log).wait(timeout=600) == 0, log.read_text(errors="replace")[-3000:]
    return time.monotonic() - begun


def kill_after(words: Sequence[object], log: Path, seconds: float) -> bool:
    """Kill a command after some time; whether it was still running."""
    process = start(words, log)
    time.sleep(seconds)
    alive = process.poll() is None
    if alive:
        process.send_signal(signal.SIGKILL)
    process.wait()
    count("crashes: processes killed")
    return alive


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def empty(folder: Path) -> None:
    """Make a folder anew."""
    shutil.rmtree(folder)
    folder.mkdir()


def written(folder: Path) -> dict[str, int]:
    """When each file below a folder was written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("[!.]*") if path.is_file()}


def text_of(folder: Path) -> Path:
    path = folder / "text"
    path.write_text("".join(f"a b c{i % 97} d .\n\n" for i in range(300)))
    return path


def binarize_words(out: Path, text: Path) -> list[object]:
    return [
        "-m", "treesyntax", "binarize", out / "bin", "--overwrite", "--source-lang", "a",
        "--target-lang", "b", "--train", text, text, "--workers", 2, "--subword-vocab", 20,
    ]  # fmt: skip


def generate_words(out: Path, text: Path) -> list[object]:
    words = "-m treesyntax generate for2lam --train 1000 --seed 1 --out"
    return [*words.split(), out / "data"]


COMMANDS: dict[str, Callable[[Path, Path], list[object]]] = {
    "binarize": binarize_words,
    "generate": generate_words,
}


def visible(found: dict[str, bytes]) -> dict[str, bytes]:
    """Without what a killed command leaves under names that begin with a dot; binarize.json has no
    place in its options but that of the files."""
    return {name: text for name, text in found.items() if not name.startswith(".")}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_is_finished_by_the_same_command(name: str, tmp_path: Path):
    out, log, text = tmp_path / "out", tmp_path / "log", text_of(tmp_path)
    out.mkdir()
    words = COMMANDS[name](out, text)
    seconds = finish(words, log)
    wanted = visible(files(out))
    assert wanted
    draw = random.Random(SEED)
    for _ in range(amount(1, 8)):
        empty(out)
        for _ in range(amount(1, 2)):
            wait = draw.uniform(0.2, 0.95) * seconds
            while not kill_after(words, log, wait):  # it took less than the first time
                empty(out)
                wait /= 2
            partly = visible(files(out))
            assert partly in ({}, wanted)  # the folder appears as a whole
        finish(words, log)
        assert visible(files(out)) == wanted


@pytest.mark.parametrize(("name", "workers"), [("fake-dep", 1), ("fake-con", 2)])
def test_a_killed_parse_goes_on_after_its_last_shard(name: str, workers: int, tmp_path: Path):
    kills, draw = amount(2, 10), random.Random(workers)
    text, out, parts = tmp_path / "text", tmp_path / "out", tmp_path / "out.parts"
    lines = fake_parser.LINES * (2 + kills)
    text.write_text("".join(f"{line} {number}\n" for number, line in enumerate(lines)))
    options = ("--parser", name, "--lang", "5", "--workers", workers)
    done: dict[Path, int] = {}
    for _ in range(kills):
        process, wanted = fake_parser.start(text, out, *options), len(done) + draw.randint(0, 4)
        wait_until(lambda: len(list(parts.glob("*.trees"))) >= wanted)  # noqa: B023
        wait_until((parts / "identity.json").exists)
        time.sleep(draw.uniform(0, 0.05))
        assert process.poll() is None
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
        process.communicate()
        count("crashes: processes killed")
        wait_until(lambda: not any(alive(int(child)) for child in children), 20)  # noqa: B023
        found = {file: file.stat().st_mtime_ns for file in parts.glob("*.trees")}
        assert done.items() <= found.items(), "a finished shard was parsed again"
        done = found
    assert 0 < len(done) < len(lines) / 5
    for output in (out, tmp_path / "whole" / "out"):
        fake_parser.start(text, output, *options).communicate()
    assert fake_parser.outputs(out) == fake_parser.outputs(output)


def test_a_killed_report_is_finished_by_the_same_command(quick: Path, tmp_path: Path):
    """Killed at or after its first write; what it leaves in the end is what the study left."""
    shutil.copytree(quick, tmp_path, dirs_exist_ok=True)
    out, log = tmp_path / "out", tmp_path / "log"
    words = ["-m", "treesyntax", "report", out]
    wanted, draw = files(out), random.Random(SEED)
    for name in ("report.html", "report.md"):  # their commands name the study's folder, a copy here
        wanted[name] = wanted[name].replace(bytes(quick / "out"), bytes(out))
    for _ in range(amount(1, 6)):
        before, process = written(out), start(words, log)
        while written(out) == before and process.poll() is None:
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 0.5))
        process.kill()
        process.wait()
        count("crashes: processes killed")
        finish(words, log)
        assert {name: text for name, text in files(out).items() if ".part" not in name} == wanted
    check_complete(tmp_path)


def test_what_a_killed_study_left_half_written_is_removed(quick: Path, tmp_path: Path):
    shutil.copytree(quick, tmp_path, dirs_exist_ok=True)
    out = tmp_path / "out"
    leftovers = [".study.json.7.part", "binarized/.x.abc.part/train.bin", "data/.p.abc.old/x"]
    leftovers += ["done/sequence-1/.train.json.7.part"]
    for name in leftovers:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("half")
    assert study(tmp_path).returncode == 0
    found = files(out)
    assert not [name for name in found if ".part" in name or ".old" in name]
    check_complete(tmp_path)


def test_two_processes_on_one_study_do_not_disturb_each_other(tmp_path: Path):
    methods = {name: {"arch": f"tree_{name}_mini"} for name in ("sequence", "stack_pe")}
    write_recipe(tmp_path, seeds=[1], methods=methods)
    for _ in range(amount(1, 5)):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        both = [study(tmp_path, "--jobs", "1", wait=False, start=start_forked) for _ in range(2)]
        codes = sorted(process.wait() for process in both)
        said = [process.output() for process in both]
        assert codes in ([0, 0], [0, 2]), said
        assert codes == [0, 0] or any("is in use by another treesyntax study" in s for s in said)
        check_complete(tmp_path)


def test_two_binarize_to_one_folder_leave_one_whole_folder(tmp_path: Path):
    text, log, out = text_of(tmp_path), tmp_path / "log", tmp_path / "out"
    out.mkdir()
    words = [word if word != 2 else 1 for word in binarize_words(out, text)]
    finish(words, log)
    wanted = visible(files(out))
    for _ in range(amount(1, 8)):
        both = [start(words, log) for _ in range(2)]
        assert {process.wait(timeout=120) for process in both} <= {0, 2}
        assert "Traceback" not in log.read_text()
        assert visible(files(out)) == wanted

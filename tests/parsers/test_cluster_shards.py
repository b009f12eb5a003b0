"""``treesyntax parse --cluster``: shards as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import support.fake_parser as fake_parser
from support.parser_models import make_spacy, text_of, treebank

from treesyntax.__main__ import main
from treesyntax.jobs.node import Order
from treesyntax.parsers import PARSERS, cluster_shards, parse_file
from treesyntax.parsers.parse_task import ParseTask
from treesyntax.parsers.parser import ParserConfig
from treesyntax.parsers.workers import _loaded

LINES = ["a b c", "", "one two. three four.", "x " * 30, "a BAD b", "z", "the end ."] * 7


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in fake_parser.KINDS.items():
        monkeypatch.setitem(PARSERS, name, kind)
    _loaded.cache_clear()


class Job:
    reason = ""

    def __init__(self, order: Order, returncode: int | None) -> None:
        self.order, self.returncode, self.stopped = order, returncode, False

    def poll(self) -> int | None:
        return self.returncode


class InProcess:
    """Runs jobs at once, here; those whose shards are in `lost` end with a message instead."""

    def __init__(self, lost: set[str]) -> None:
        self.lost, self.folder = lost, Path("cluster")
        self.jobs: list[Job] = []
        self.shares: list[list[str]] = []

    def start(self, orders: Sequence[tuple[str, Order]]) -> list[Job]:
        return [self._start(order.words, order) for _, order in orders]

    def stop(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            job.stopped = True

    def _start(self, words: Sequence[str], order: Order) -> Job:
        assert words[1:3] == ["-m", "treesyntax.parsers.cluster_shards"]
        assert order.environment == {"OMP_NUM_THREADS": "1"}
        share = list(words[4:])
        self.shares.append(share)
        if self.lost & set(share):
            order.log.write_text("Traceback\nout of memory\n")
            job = Job(order, 1)
        elif self.jobs and self.lost:
            job = Job(order, None)  # still runs when another is lost
        else:
            job = Job(order, cluster_shards.main(words[3:]))
        self.jobs.append(job)
        return job


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InProcess:
    made = InProcess(set())
    monkeypatch.setattr(parse_file, "Cluster", lambda *_: made)
    monkeypatch.setattr(cluster_shards, "POLL", 0)
    return made


def parse(folder: Path, name: str, *options: object) -> int:
    text = folder / "in.txt"
    text.write_text("".join(line + "\n" for line in LINES))
    words = ["parse", text, folder / name, "--parser", "fake-dep", "--model", "m"]
    return main([str(word) for word in (*words, "--max-words", 20, "--shard-lines", 5, *options)])


def outputs(folder: Path, name: str) -> dict[str, bytes]:
    files = folder.glob(f"{name}*")
    return {file.name.removeprefix(name): file.read_bytes() for file in files}


def test_jobs_give_the_same_files_as_one_process(tmp_path: Path, cluster: InProcess):
    assert parse(tmp_path, "here", "--workers", 1) == 0
    assert parse(tmp_path, "there", "--cluster", "local", "--workers", 3) == 0
    assert cluster.shares == [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8", "9"]]
    assert outputs(tmp_path, "here") == outputs(tmp_path, "there")


def test_more_jobs_than_shards(tmp_path: Path, cluster: InProcess):
    assert parse(tmp_path, "out", "--cluster", "local", "--workers", 99) == 0
    assert cluster.shares == [[str(number)] for number in range(10)]


def test_a_lost_job_is_told_others_are_cancelled_and_the_next_call_finishes(
    tmp_path: Path, cluster: InProcess, capsys: pytest.CaptureFixture[str]
):
    assert parse(tmp_path, "here", "--workers", 1) == 0
    cluster.lost = {"4"}
    assert parse(tmp_path, "there", "--cluster", "local", "--workers", 3) == 2
    message = capsys.readouterr().err
    assert "a job ended before shard 3 was saved: Traceback | out of memory; finished" in message
    assert [job.stopped for job in cluster.jobs] == [False, False, True]
    cluster.lost, cluster.shares = set(), []
    assert parse(tmp_path, "there", "--cluster", "local", "--workers", 1) == 0
    assert cluster.shares == [["3", "4", "5", "6", "7", "8", "9"]]
    assert outputs(tmp_path, "here") == outputs(tmp_path, "there")


def test_a_job_tells_its_faults_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "task.json"
    config = ParserConfig("fake-dep", "m")
    source = tmp_path / "gone.txt"
    cluster_shards._write_task(ParseTask(source, tmp_path / "out", config, 20, 5), path)
    assert cluster_shards.main([str(path), "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_settings_of_a_cluster_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert parse(tmp_path, "out", "--cluster-set", "timeout_min=5") == 2
    assert "--cluster-set needs --cluster" in capsys.readouterr().err


def test_real_jobs_on_this_machine(tmp_path: Path):
    pytest.importorskip("spacy")
    pytest.importorskip("submitit")
    model = make_spacy(tmp_path / "model")
    text = tmp_path / "in.txt"
    text.write_text("".join(f"{text_of(gold)}\n" for gold in treebank(12)))
    found = {}
    for name, options in {"here": (), "there": ("--cluster", "local")}.items():
        words = ["parse", text, tmp_path / name, "--parser", "spacy", "--model", model]
        words += ["--workers", 2 if options else 1, "--shard-lines", 4, *options]
        assert main([str(word) for word in words]) == 0
        found[name] = (tmp_path / name).read_bytes()
    assert found["here"] == found["there"]
    assert not list(tmp_path.glob("*.parts"))

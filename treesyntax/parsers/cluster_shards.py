"""Shards as jobs of a cluster: each job parses its share and saves shard after shard."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from treesyntax.errors import TreeSyntaxError
from treesyntax.files import read_json, sha256_of_value, write_json
from treesyntax.jobs import Cluster, Job
from treesyntax.parsers.parse_task import ParseTask
from treesyntax.parsers.parser import ParserConfig
from treesyntax.parsers.shards import Parts, shards_of
from treesyntax.parsers.workers import parse_here

TASK = "task.json"
POLL = 0.5
"""Seconds between two looks at the shards, which may be on a slow shared disk."""
LAST_LINES = 3


def parse_in_jobs(
    task: ParseTask, parts: Parts, numbers: Sequence[int], cluster: Cluster, count: int
) -> Iterator[int]:
    """Parse and save shards; yields the number of each in order, once it is saved.

    ``numbers`` are those of the shards that are not done, ``count`` is how many jobs share them. If
    the parse is interrupted, its jobs are cancelled. If it is killed they go on, and the same
    command finds them or what they saved.
    """
    _write_task(task, parts.folder / TASK)
    jobs: list[tuple[Job, Sequence[int]]] = []
    try:
        for share in _shares(numbers, count):
            jobs.append((_submit(parts, share, cluster), share))
        for job, share in jobs:
            for number in share:
                _await(job, parts, number)
                yield number
    finally:
        for job, _ in jobs:
            if job.poll() is None:
                job.stop()


def _shares(numbers: Sequence[int], count: int) -> list[Sequence[int]]:
    """Consecutive shards for each job, as evenly as possible."""
    count = min(count, len(numbers))
    ends = [len(numbers) * index // count for index in range(count + 1)]
    return [numbers[first:last] for first, last in pairwise(ends)]


def _submit(parts: Parts, share: Sequence[int], cluster: Cluster) -> Job:
    name = f"parse-{share[0]}"
    words = [sys.executable, "-m", __name__, str(parts.folder / TASK), *map(str, share)]
    key = sha256_of_value(words)
    log = parts.folder / f"{name}.log"
    try:
        # One thread each: with more, sums and so trees would depend on the machine.
        return cluster.start(name, key, words, log, {"OMP_NUM_THREADS": "1"})
    except OSError as error:
        raise TreeSyntaxError(f"the cluster took no job ({error.strerror})") from None


def _await(job: Job, parts: Parts, number: int) -> None:
    while not parts.is_done(number):
        ended = job.poll() is not None
        # It may have saved the shard between the two looks.
        if ended and not parts.is_done(number):
            said = job.log.read_text("utf-8", "replace") if job.log.exists() else ""
            last = " | ".join(said.strip().splitlines()[-LAST_LINES:]) or "its log is empty"
            raise TreeSyntaxError(
                f"a job ended before shard {number} was saved: {last}; finished shards are kept: run "
                "the same command again"
            )
        time.sleep(0 if ended else POLL)


def _write_task(task: ParseTask, path: Path) -> None:
    content = {
        **task._asdict(),
        "source": str(task.source.absolute()),
        "output": str(task.output),
        "config": task.config._asdict(),
    }
    write_json(path, content)


def _read_task(path: Path) -> ParseTask:
    content = read_json(path)
    config = ParserConfig(**content.pop("config"))
    source, output = Path(content.pop("source")), Path(content.pop("output"))
    return ParseTask(source=source, output=output, config=config, **content)


def main(arguments: Sequence[str]) -> int:
    """Run by a job: arguments are the file of the task, then numbers of shards."""
    task, numbers = _read_task(Path(arguments[0])), {int(number) for number in arguments[1:]}
    try:
        for shard in shards_of(task, Parts(task)):
            if shard.number in numbers:
                parse_here(task, shard)
    except TreeSyntaxError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

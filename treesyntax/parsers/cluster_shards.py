"""Shards as jobs of a cluster: each job parses its share and saves shard after shard."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from treesyntax.errors import TreeSyntaxError
from treesyntax.files import sha256_of_value, write_json
from treesyntax.jobs.cluster import Cluster, Job
from treesyntax.jobs.node import Order
from treesyntax.made.records import read_record_of
from treesyntax.parsers.parse_task import ParseTask
from treesyntax.parsers.shards import Parts, shards_of
from treesyntax.parsers.workers import parse_here

TASK = "task.json"
POLL = 0.5
"""Seconds between two looks at the shards, which may be on a slow shared disk."""
LAST_LINES = 3


def parse_in_jobs(
    task: ParseTask, shards: Parts, numbers: Sequence[int], cluster: Cluster, count: int
) -> Iterator[int]:
    """Parse and save shards; yields the number of each in order, once it is saved.

    ``numbers`` are those of the shards that are not done, ``count`` is how many jobs share them. If
    the parse is interrupted, its jobs are cancelled. If it is killed they go on, and the same
    command finds them or what they saved.
    """
    _write_task(task, shards.folder / TASK)
    shares = _shares(numbers, count)
    try:
        jobs = cluster.start([_order(shards, share, cluster.folder) for share in shares])
    except OSError as error:
        raise TreeSyntaxError(f"the cluster took no job ({error.strerror})") from None
    try:
        for job, share in zip(jobs, shares, strict=True):
            for number in share:
                _await(job, shards, number)
                yield number
    finally:
        cluster.stop(job for job in jobs if job.poll() is None)


def _shares(numbers: Sequence[int], count: int) -> list[Sequence[int]]:
    """Consecutive shards for each job, as evenly as possible."""
    count = min(count, len(numbers))
    ends = [len(numbers) * index // count for index in range(count + 1)]
    return [numbers[first:last] for first, last in pairwise(ends)]


def _order(shards: Parts, share: Sequence[int], folder: Path) -> tuple[str, Order]:
    name = f"parse-{share[0]}"
    words = [sys.executable, "-m", __name__, str(shards.folder / TASK), *map(str, share)]
    log = shards.folder.resolve() / f"{name}.log"
    # One thread each: with more, sums and so trees would depend on the machine.
    return sha256_of_value(words), Order(folder, name, words, log, {"OMP_NUM_THREADS": "1"})


def _await(job: Job, shards: Parts, number: int) -> None:
    while not shards.is_done(number):
        ended = job.poll() is not None
        # It may have saved the shard between the two looks.
        if ended and not shards.is_done(number):
            log = job.order.log
            said = log.read_text("utf-8", "replace") if log.exists() else ""
            lines = [
                line for line in said.splitlines() if line.strip() and not line.startswith("# ")
            ]
            last = job.reason or " | ".join(lines[-LAST_LINES:]) or "its log is empty"
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


def main(arguments: Sequence[str]) -> int:
    """Run by a job: arguments are the file of the task, then numbers of shards."""
    task = read_record_of(ParseTask, Path(arguments[0]), "is no task of a parse", "parse again")
    numbers = {int(number) for number in arguments[1:]}
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

"""Shards parsed by several processes on CPUs, one on each GPU, or by this process."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from typing import TYPE_CHECKING

from treesyntax.errors import TreeSyntaxError
from treesyntax.jobs import begin_worker
from treesyntax.parsers import load_parser
from treesyntax.parsers.parse_task import ParseTask
from treesyntax.parsers.parser import Parser, ParserConfig
from treesyntax.parsers.progress_bar import Advance
from treesyntax.parsers.shards import Shard, parse_shard

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue
    from multiprocessing.sharedctypes import Synchronized

TICK = 0.5
SHARDS_AHEAD = 2
"""Shards queued for each worker: it never waits, and few are in memory."""


def parse_all(
    task: ParseTask, shards: Iterable[Shard], workers: int, gpus: int, tell: Advance
) -> Iterator[int]:
    """Parse and save shards; yields the number of each in order, once it is saved.

    ``tell`` is called while parsers work with the lines done since the last call.
    One worker is this process. Unless ``gpus`` is 0, each of them has a process, and no CPU has.
    """
    if workers == 1 and not gpus:
        for shard in shards:
            yield parse_here(task, shard, tell)
        return
    # Spawned, as torch's threads and CUDA do not survive a fork.
    context = multiprocessing.get_context("spawn")
    count = gpus or workers
    devices = context.SimpleQueue()
    for device in _visible_devices(gpus) if gpus else [""] * count:
        devices.put(device)
    done, reported = context.Value("d", 0.0), 0.0

    def saved(future: Future[int]) -> int:
        nonlocal reported
        working = True
        while working:
            working = bool(wait([future], TICK).not_done)
            now = done.value
            tell(now - reported)
            reported = now
        return future.result()

    with ProcessPoolExecutor(count, context, _start, (devices, done)) as executor:
        pending: deque[Future[int]] = deque()
        try:
            for shard in shards:
                pending.append(executor.submit(_parse_in_worker, task, shard))
                if len(pending) >= count * SHARDS_AHEAD:
                    yield saved(pending.popleft())
            while pending:
                yield saved(pending.popleft())
        except BrokenProcessPool:
            raise TreeSyntaxError(
                "a worker process died, possibly out of memory; finished shards are kept: run "
                "the same command again with fewer --workers"
            ) from None
        finally:
            executor.shutdown(cancel_futures=True)


def _visible_devices(gpus: int) -> list[str]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(i) for i in range(gpus)] if visible is None else visible.split(",")
    if len(names) < gpus or "" in names:
        raise TreeSyntaxError(f"--gpus is {gpus}, but CUDA_VISIBLE_DEVICES is {visible!r}")
    return names[:gpus]


_done: Synchronized[float]
"""In a worker: the lines that all workers have done."""


def _start(devices: SimpleQueue[str], done: Synchronized[float]) -> None:
    """Prepare a worker, before anything imports torch."""
    global _done
    begin_worker()
    _done = done
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = devices.get()


def _parse_in_worker(task: ParseTask, shard: Shard) -> int:
    def tell(lines: float) -> None:
        with _done.get_lock():
            _done.value += lines

    return parse_here(task, shard, tell)


def parse_here(task: ParseTask, shard: Shard, tell: Advance = lambda lines: None) -> int:
    """Parse and save a shard in this process, which keeps the parser; returns its number."""
    return parse_shard(task, _loaded(task.config), shard, tell)


@lru_cache(maxsize=1)
def _loaded(config: ParserConfig) -> Parser:
    parser = load_parser(config)
    torch = sys.modules.get("torch")
    if torch is not None:
        # One thread each: with more, sums and so trees would depend on the machine.
        torch.set_num_threads(1)
        if config.gpu and not torch.cuda.is_available():
            raise TreeSyntaxError("torch cannot use that GPU; leave out --gpus")
    return parser

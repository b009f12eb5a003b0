"""Interleaved timing: all candidates in turn, so that a drifting machine slows them alike.

One CPU thread is timed in seconds of the processor, which other programs do not take part in.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch


def synchronized_time(action: Callable[[], object]) -> float:
    """Seconds of one call, a GPU's queue included."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    elif torch.get_num_threads() == 1:
        begin = time.process_time()
        action()
        return time.process_time() - begin
    begin = time.perf_counter()
    action()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def peak_memory(action: Callable[[], object]) -> float:
    """Most MiB that one call takes beyond what is there before.

    On a GPU by PyTorch's count; on a CPU by the resident memory of a fresh process for the call.
    """
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        action()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        before = _resident("VmRSS")
        action()
        os.write(writer, f"{_resident('VmHWM') - before}".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return float(text) / 1024


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise OSError("this system does not tell the memory of a process; leave --memory out")


def medians(actions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each action over interleaved repeats.

    Each timed call follows an untimed one of the same action: what another action leaves behind in
    caches and in the allocator is not its fault, and layers of one kind come in stacks.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            action()
            times[name].append(synchronized_time(action))
    return {name: statistics.median(values) for name, values in times.items()}


def paired_ratios(
    actions: dict[str, Callable[[], object]], baseline: str, repeats: int
) -> dict[str, list[float]]:
    """Ratios of each action to the baseline that ran just before it, sorted; of the baseline, its seconds.

    As in :func:`medians` an untimed call goes before each timed one. A pair takes seconds, in which a
    machine drifts less than over a whole run.
    """
    found: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            if name == baseline:
                continue
            actions[baseline]()
            base = synchronized_time(actions[baseline])
            action()
            found[name].append(synchronized_time(action) / base)
            found[baseline].append(base)
    return {name: sorted(values) for name, values in found.items()}


def print_pairs(title: str, ratios: dict[str, list[float]], baseline: str) -> None:
    """One line: milliseconds of the baseline, and of every other candidate the median ratio and its quartiles."""

    def described(values: list[float]) -> str:
        quarter = len(values) // 4
        return (
            f"{statistics.median(values):.2f} [{values[quarter]:.2f}, {values[-1 - quarter]:.2f}]"
        )

    base = statistics.median(ratios[baseline]) * 1000
    others = [f"{name} {described(values)}" for name, values in ratios.items() if name != baseline]
    print(f"{title:<10} {baseline} {base:8.1f} ms = 1 | " + " | ".join(others), flush=True)


def print_ratios(title: str, seconds: dict[str, float], baseline: str) -> None:
    """One line: milliseconds of the baseline, and every other candidate as a ratio to it."""
    base = seconds[baseline]
    others = [f"{name} {value / base:.2f}" for name, value in seconds.items() if name != baseline]
    print(f"{title:<10} {baseline} {base * 1000:8.1f} ms = 1 | " + " | ".join(others), flush=True)


def print_table(seconds: dict[str, dict[str, float]], baseline: str) -> None:
    """A Markdown table: candidates as rows, and their ratios to the baseline for each title of a column."""
    print(f"\n| | {' | '.join(seconds)} |\n|---|{'---:|' * len(seconds)}")
    for name in next(iter(seconds.values())):
        ratios = [f"{column[name] / column[baseline]:.2f}" for column in seconds.values()]
        print(f"| {name} | {' | '.join(ratios)} |")


def print_memory(title: str, megabytes: dict[str, float]) -> None:
    """One line: peak memory of every candidate in MiB."""
    row = [f"{name} {value:.0f}" for name, value in megabytes.items()]
    print(f"{title:<10} peak MiB | " + " | ".join(row), flush=True)

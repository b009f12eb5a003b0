"""Interleaved timing: all candidates in turn, so that a drifting machine slows them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch


def synchronized_time(action: Callable[[], object]) -> float:
    """Seconds of one call, a GPU's queue included."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    action()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def medians(actions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each action over interleaved repeats, after one warm-up of each."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for repeat in range(repeats + 1):
        for name, action in actions.items():
            seconds = synchronized_time(action)
            if repeat:
                times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items()}


def print_ratios(title: str, seconds: dict[str, float], baseline: str) -> None:
    """One line: milliseconds of the baseline, and every other candidate as a ratio to it."""
    base = seconds[baseline]
    others = [f"{name} {value / base:.2f}" for name, value in seconds.items() if name != baseline]
    print(f"{title:<10} {baseline} {base * 1000:8.1f} ms = 1 | " + " | ".join(others), flush=True)

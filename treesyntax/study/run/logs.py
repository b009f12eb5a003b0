"""Reading what fairseq-train writes with ``--log-format json``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from treesyntax.files import parse_json

TAIL = 65536
MOMENT = len("2026-01-31 23:59:59")
DONE = "done training in"
_RESTED = "early stop since valid performance hasn't improved"
_LOWEST_RATE = "stopping training because current learning rate"
_SET_UP = re.compile(r" \| training on \d+ devices")
_STATS = re.compile(r" \| (train_inner|train|valid) \| (\{.*\})$")
_SAVED = re.compile(r"Saved checkpoint .* @ ([0-9]{1,18}) updates")
_FRESH = "| No existing checkpoint found "
_LOADED = re.compile(r"\| Loaded checkpoint .* @ ([0-9]{1,18}) updates\)")
_DEVICE = re.compile(
    r"\| rank +\d+: capabilities = .*; total memory = ([\d.]+) GB ; name = (.+?)\s*$"
)
_PEAK = re.compile(r"^# peak resident memory: (\d+) bytes$")
_LOAD = re.compile(r"^# commands for each core: ([\d.]{1,9})$")
_JOB = re.compile(r"^# job (\S+) on (\S+) after (\d{1,9}) s, (.*)$")
_BEGUN = re.compile(r"^# (\d{4}-\d\d-\d\dT[\d:]{8}Z?)")
TRAINS_ON = "# trains on from update"
"""Begins the line between a training and its extension, see :mod:`treesyntax.study.run.extension`."""
_PAIRS = re.compile(r" \| pairs \| (\{.*\})$")
_LOST = "attempting to recover from OOM in forward/backward pass"
_DIVERGED = re.compile(
    r"(gradients are Nan/Inf|\b(NaN|Inf) detected in)|Minimum loss scale reached"
)
MEBIBYTE = 2**20


@dataclass
class TrainLog:
    """A training log.

    Attributes:
        valid: validation loss by update. After a resume the later value of an update counts.
        figures: all that is known of the validation set by update, by name.
        speeds: target tokens a second, one for each log interval.
        rates: pairs a second, one for each log interval.
        batches: mean pairs of a batch in each log interval, by its last update.
        epochs_per_update: at the last log interval, 0 before.
        loss: the latest training loss, None before the first.
        updates: updates done, as far as logged.
        epochs: epochs done, a fraction within an epoch.
        saved: update of the last checkpoint.
        resumed: whether it went on from a checkpoint of an earlier session.
        finished: whether training came to its end.
        rested: whether patience ended it.
        lowest_rate: whether the learning rate ended it, which had fallen to its lowest.
        set_up: seconds from the beginning of each session until its training was set up, summed up.
        device: name of the CUDA device, "" on the CPU.
        gpu_total: its memory in GiB.
        gpu_free: the least of it that was free at a log interval, None if not logged.
        resident: largest resident size of the process in bytes, over all sessions; 0 if unknown.
        load: most commands at once for each core when a session of it ended, those of others
            included; None if unknown.
        waited: seconds in the queue of the jobs of a cluster that trained, by their ids.
        node: where the last one ran, "" if there was none.
        processor: of that node.
        begun: time at which the last session began on this machine; None if unknown, as for a job.
        used: what the step tells of the pairs of each split, see `fairseq_plugins.pairs`: their number,
            how many it left out and why, and a checksum of those that it used. Under ``lost`` the batches
            that did not fit into memory, which fairseq leaves out.
        first: time and update of the first log interval of that session.
        last: the same of its last one.
    """

    valid: dict[int, float] = field(default_factory=dict)
    figures: dict[str, dict[int, float]] = field(default_factory=dict)
    speeds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    batches: dict[int, float] = field(default_factory=dict)
    epochs_per_update: float = 0.0
    loss: float | None = None
    updates: int = 0
    epochs: float = 0.0
    saved: int = 0
    resumed: bool = False
    finished: bool = False
    rested: bool = False
    lowest_rate: bool = False
    set_up: float = 0.0
    device: str = ""
    gpu_total: float = 0.0
    gpu_free: float | None = None
    resident: int = 0
    load: float | None = None
    waited: dict[str, float] = field(default_factory=dict)
    node: str = ""
    processor: str = ""
    begun: float | None = None
    used: dict[str, dict[str, Any]] = field(default_factory=dict)
    first: tuple[float, int] | None = None
    last: tuple[float, int] | None = None

    @property
    def seen(self) -> tuple[int, float]:
        """Updates and seconds from the first log interval of the last session to its last one.

        The first one is left out: it holds the time in which a training starts up.
        """
        if self.first is None or self.last is None:
            return 0, 0.0
        return self.last[1] - self.first[1], self.last[0] - self.first[0]

    @property
    def start_up(self) -> float:
        """Seconds from the beginning of the last session to its first update; 0 if unknown."""
        updates, seconds = self.seen
        if self.begun is None or self.first is None or not updates:
            return 0.0
        return max(0.0, self.first[0] - self.begun - self.first[1] * seconds / updates)

    @property
    def tokens_per_second(self) -> float | None:
        """Median over the log intervals, so that validation and saving do not count."""
        return median(self.speeds) if self.speeds else None

    @property
    def pairs_per_second(self) -> tuple[float, float, float] | None:
        """Lower quartile, median and upper quartile over the log intervals, the first left out."""
        rates = self.rates[1:]
        if len(rates) < 2:
            return (self.rates[-1],) * 3 if self.rates else None
        low, middle, high = quantiles(rates, n=4, method="inclusive")
        return low, middle, high

    @property
    def pairs(self) -> float | None:
        """Training pairs seen, repetitions counted; None if the size of batches was not logged."""
        return self.updates * fmean(self.batches.values()) if self.batches else None

    @property
    def epochs_seen(self) -> float | None:
        """How often each training pair was seen on average; None if not logged."""
        return self.updates * self.epochs_per_update or None

    def best_is_last(self, metric: str, maximize: bool) -> bool | None:
        """Whether the last validation was better than all before; None if none has this metric.

        Of equal ones the first counts, as it does for fairseq's patience.
        """
        figures = sorted(self.figures.get(metric, {}).items())
        if not figures:
            return None
        *earlier, last = (value if maximize else -value for _, value in figures)
        return all(last > value for value in earlier if not math.isnan(value))

    @property
    def peak_memory(self) -> float | None:
        """MiB: what a GPU held at most, as far as logged; on the CPU the process's resident size."""
        if self.device:
            return None if self.gpu_free is None else 1024 * (self.gpu_total - self.gpu_free)
        return self.resident / MEBIBYTE if self.resident else None


def load_line(load: float) -> str:
    """The line of a log that says how busy the machine was, see `TrainLog.load`."""
    return f"# commands for each core: {load:.2f}\n"


def read_log(path: Path, tail: bool = False) -> TrainLog:
    """Read a log; a missing file is an empty log, and lines in any other form are skipped.

    Args:
        path: the log file.
        tail: read the end only, which is enough to follow a run.
    """
    log = TrainLog()
    for line in _lines(path, tail):
        if stats := _STATS.search(line):
            _take(log, stats[1], stats[2])
            if stats[1] == "train_inner" and (moment := _moment(line[:MOMENT])):
                log.last = moment, log.updates
                log.first = log.first or log.last
        elif line.startswith(TRAINS_ON):
            log.finished = log.rested = False
        elif begun := _BEGUN.match(line):
            log.begun, log.first, log.last = _moment(begun[1]), None, None
        elif _SET_UP.search(line) and log.begun is not None:
            log.set_up += max(0.0, (_moment(line[:MOMENT]) or log.begun) - log.begun)
        elif _RESTED in line:
            log.rested = True
        elif _LOWEST_RATE in line:
            log.lowest_rate = True
        elif saved := _SAVED.search(line):
            log.saved = int(saved[1])
        elif loaded := _LOADED.search(line):
            log.saved, log.resumed, log.finished = int(loaded[1]), True, False
        elif _FRESH in line:
            # What stands above is about checkpoints that are gone, but for the job of this training.
            job_of_this = dict(list(log.waited.items())[-1:])
            log = TrainLog(waited=job_of_this, node=log.node, processor=log.processor)
        elif pairs := _PAIRS.search(line):
            _take_pairs(log, pairs[1])
        elif _LOST in line:
            lost = log.used.setdefault("lost", {"batches": 0})
            lost["batches"] += 1
        elif device := _DEVICE.search(line):
            log.gpu_total, log.device = float(device[1]), device[2]
        elif load := _LOAD.match(line):
            log.load = max(log.load or 0.0, float(load[1]))
        elif peak := _PEAK.match(line):
            log.resident = max(log.resident, int(peak[1]))
        elif job := _JOB.match(line):
            log.begun = None  # which was before it waited
            log.waited.setdefault(job[1], float(job[3]))  # a requeue says it once more
            log.node, log.processor = job[2], job[4]
        elif DONE in line:
            log.finished = True
    return log


def _lines(path: Path, tail: bool) -> Iterator[str]:
    if not path.is_file():
        return
    with path.open("rb") as stream:
        if tail:
            stream.seek(max(0, stream.seek(0, 2) - TAIL))
        for raw in stream:
            yield raw.decode("utf-8", errors="replace").rstrip("\r\n")


def _moment(text: str) -> float | None:
    """A date and time in seconds; fairseq writes those of the machine, a study those with a Z."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _take(log: TrainLog, tag: str, text: str) -> None:
    try:
        values = {key: _number(value) for key, value in parse_json(text).items()}
    except (ValueError, TypeError, OverflowError):
        return
    updates = values.get("valid_num_updates" if tag == "valid" else "num_updates", 0.0)
    if not math.isfinite(updates):
        return
    if tag == "valid" and "valid_loss" in values and "valid_num_updates" in values:
        log.updates, log.rested = int(updates), False  # which is said after the last validation
        log.valid[log.updates] = values["valid_loss"]
        log.epochs = values.get("update", log.epochs)
        for key, value in values.items():
            log.figures.setdefault(key.removeprefix("valid_"), {})[log.updates] = value
    elif tag == "train_inner":
        log.loss = values.get("loss", log.loss)
        log.updates = int(updates) if "num_updates" in values else log.updates
        log.epochs = values.get("update", log.epochs)
        if (free := values.get("gb_free")) is not None:
            log.gpu_free = free if log.gpu_free is None else min(log.gpu_free, free)
        if "bsz" in values and "num_updates" in values:
            log.batches[log.updates] = values["bsz"]
            if values.get("ups", 0.0) > 0:
                log.rates.append(values["bsz"] * values["ups"])
        if log.updates and "update" in values:
            log.epochs_per_update = values["update"] / log.updates
        if values.get("wps", 0.0) > 0:
            log.speeds.append(values["wps"])
    elif tag == "train":
        log.epochs = values.get("epoch", log.epochs)


def _take_pairs(log: TrainLog, text: str) -> None:
    with suppress(ValueError, TypeError, KeyError):
        counts = parse_json(text)
        log.used[str(counts.pop("split"))] = counts


def _number(value: Any) -> float:
    return float(value) if value is not None else float("nan")


def last_line(path: Path) -> str:
    """The last line of a log that says anything, "" if there is none."""
    lines = [line.strip() for line in _lines(path, tail=True)]
    return next((line for line in reversed(lines) if line and not line.startswith("# ")), "")


def divergence(path: Path) -> str:
    """That a training diverged, and where, if its last session says so; else ""."""
    cause, stats = "", {}
    for line in _lines(path, tail=False):
        if _BEGUN.match(line):
            cause = ""
        elif (match := _STATS.search(line)) and match[1] == "train_inner":
            with suppress(ValueError):
                stats = parse_json(match[2])
        elif not cause and (diverged := _DIVERGED.search(line)):
            cause = (
                "NaN or infinite gradients" if diverged[1] else "overflow at the least loss scale"
            )
    if not cause:
        return ""
    update, rate, loss = (stats.get(name) for name in ("num_updates", "lr", "loss"))
    where = f"soon after update {update}, learning rate {rate}, loss {loss}" if stats else "at once"
    return f"training diverged ({cause}) {where}; lower the rate, warm up longer or clip gradients"

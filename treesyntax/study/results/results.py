"""runs.jsonl: one line a run, with its facts once and the score of each metric; scoring again replaces it.

Studies of older versions have results.jsonl, with a line a run and metric. It is read, and becomes runs.jsonl
with the first result that is written.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Interval

from treesyntax.endings import RESTED, Ending
from treesyntax.errors import InputError
from treesyntax.files import parse_json, read_record, unreadable, write_lines
from treesyntax.made.records import OPEN, Lines

RESULTS_FILE, OLD_FILE = "runs.jsonl", "results.jsonl"
SCORES = "scores"
OF_A_METRIC = ("metric", "value", "signature", "n", "lengths")
"""The fields of a result that differ between the metrics of a run."""
CHECKSUM = "crc32"
"""Of the text of the line without it."""
Key = tuple[str, int, str]

Whole = Annotated[int, Interval(ge=-(1 << 63), le=1 << 63)]
Number = Annotated[float, Interval(ge=-1e100, le=1e100)]
"""Squares of larger numbers, and the axes of figures, leave the range of numbers."""


@dataclass(frozen=True)
class Result:
    """One score, with everything needed to check or repeat it.

    Attributes:
        hash: the study's.
        injection: the methods in the encoder, as the checkpoint has them.
        signature: how the metric was computed.
        n: number of test sentences.
        parameters: trained numbers in the model; shared ones count once.
        tokens_per_second: target tokens a second while training, median over log intervals.
        train_seconds: wall-clock time of training with validation, over all resumes.
        valid_loss: of the checkpoint that was tested, or the last one of those averaged; what
            ``best-checkpoint-metric`` names instead of the loss, such as an accuracy.
        updates: updates trained.
        best_update: update of the same.
        versions: of Python and the packages: those that trained, and the sacrebleu that scored.
        commit: git commit of treesyntax that trained, "" outside a repository; "+" marks local
            changes. Several where a training went on with another one, as for versions.
        data_sha256: over the six data files.
        commands: what was run, ``{out}`` being the study's folder and ``{plugins}`` what
            ``treesyntax plugins`` prints.
        peak_memory: MiB of the training, see :attr:`treesyntax.study.run.logs.TrainLog.peak_memory`;
            None where it is not known.
        run: the key of the outputs that were scored, see :mod:`treesyntax.study.run.keys`.
        code: digests of the code of all steps, see :func:`treesyntax.study.run.code.code_of`.
        lengths: of BLEU its brevity penalty and the ratio of lengths.
        memory_step: MiB by which that can be told apart: fairseq logs the memory of GPUs in tenths
            of a GiB.
        pairs: training pairs seen, repetitions counted.
        epochs: how often each training pair was seen.
        pairs_per_second: median over log intervals of training, without validation.
        slow, fast: the quartiles of the same.
        load: commands at once for each core when training ended, those of others included.
        node: of the cluster, that trained; None for this machine.
        job: the ids of the jobs that trained.
        queue_seconds: how long they waited, which no other time of a run includes.
        used: as JSON, what training told of the pairs of each split: their number, how many it left out
            and why, and a checksum of those that it used; None where it told nothing.
        ended: ``rested`` where patience ended the training before its cap, so its best validation was not
            its last one; ``last`` where the best was the last; ``cap`` where the best was an earlier one,
            but the training met its cap (``max-update``, ``max-epoch``, hours) before its patience ran
            out. None in records that do not know. A fixed budget is no ending: the recipe says that
            (:attr:`treesyntax.study.recipe.recipe.Recipe.budget`), and the ending stays what it was.
        seconds: wall-clock time by kind of step (``train``, ``average``, ``generate``, ``hypotheses``,
            ``score``, ``facts``, ``analyses``), and as ``start_up`` what a training took before it was
            set up, over all its sessions, which ``train`` leaves out. {} in records that do not know.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = OPEN
    recipe: str
    hash: str
    method: str
    arch: str
    injection: str
    seed: Whole
    metric: str
    value: Number
    signature: str
    n: Whole
    parameters: Annotated[Whole, Ge(1)]
    tokens_per_second: Number | None
    train_seconds: Number
    valid_loss: Number
    updates: Whole
    best_update: Whole
    versions: dict[str, str]
    commit: str
    device: str
    date: str
    data_sha256: str
    commands: list[str]
    peak_memory: Number | None = None
    run: str = ""
    code: dict[str, str] = field(default_factory=dict)
    lengths: str | None = None
    memory_step: Number | None = None
    pairs: Number | None = None
    epochs: Number | None = None
    pairs_per_second: Number | None = None
    slow: Number | None = None
    fast: Number | None = None
    load: Number | None = None
    node: str | None = None
    job: str | None = None
    queue_seconds: Number | None = None
    used: str | None = None
    ended: Ending | None = None
    seconds: dict[str, Number] = field(default_factory=dict)

    @property
    def still_learning(self) -> bool | None:
        """Whether the training ended before it rested; None where that is not known."""
        return None if self.ended is None else self.ended != RESTED

    @property
    def key(self) -> Key:
        """What identifies a result: a study has at most one with this key."""
        return (self.method, self.seed, self.metric)


LINES = Lines(Result, "is not a result", "restore the line, or remove it and run the study again")


def results_file(folder: Path) -> Path:
    """Return the file of results in a folder, whether it is there or not."""
    file, old = folder / RESULTS_FILE, folder / OLD_FILE
    return old if old.exists() and not file.exists() else file


def read_results(path: Path) -> list[Result]:
    """All results of the file, each once; a last line without its end, left by a kill, is dropped.

    Lines of other studies may be among them: see
    :func:`treesyntax.study.results.current.current_results`.

    Raises:
        InputError: if the file cannot be read, or another line is not a result or damaged.
    """
    results: dict[bytes, list[Result]] = {}
    for number, raw in enumerate(_whole_lines(path), start=1):
        results[raw] = [
            LINES.parse(json.dumps(values), path, number) for values in _scores(raw, path, number)
        ]
    return [result for line in results.values() for result in line]


def _scores(raw: bytes, path: Path, line: int) -> list[dict[str, Any]]:
    """The values of each result of a line."""
    cause = LINES.cause
    try:
        values = parse_json(raw)
        checksum = values.pop(CHECKSUM, None)
        if checksum == _checksum(values):
            scores = values.pop(SCORES, [{}])  # an older line is of one metric
            return [values | score for score in scores]
        difference = "has no checksum" if checksum is None else "its checksum differs"
        cause = f"{difference}: the line is damaged"
    except (AttributeError, TypeError, ValueError):  # another value than an object
        pass
    raise InputError(path, line, cause, LINES.remedy)


def _checksum(values: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _write(path: Path, results: Iterable[Result]) -> None:
    """Write a line a run: all results with the same facts."""
    runs: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
    for result in results:
        facts = asdict(result)
        score = {name: facts.pop(name) for name in OF_A_METRIC}
        runs.setdefault(json.dumps(facts), (facts, []))[1].append(score)
    lines = []
    for facts, scores in runs.values():
        values = {**facts, SCORES: scores}
        lines.append(json.dumps({**values, CHECKSUM: _checksum(values)}, ensure_ascii=False))
    write_lines(path, lines)
    if path.name == RESULTS_FILE:
        path.with_name(OLD_FILE).unlink(missing_ok=True)


def _whole_lines(path: Path) -> list[bytes]:
    try:
        content = read_record(path) if path.exists() else b""
    except OSError as error:
        raise unreadable(path, error) from None
    return content.split(b"\n")[:-1]


def drop_results(folder: Path, unwanted: Callable[[Result], bool]) -> list[Result]:
    """Take results out of a folder's file, the whole file or nothing; returns them."""
    kept: list[Result] = []
    dropped: list[Result] = []
    for result in read_results(results_file(folder)):
        (dropped if unwanted(result) else kept).append(result)
    if dropped:
        _write(folder / RESULTS_FILE, kept)
    return dropped


def write_results(path: Path, results: Iterable[Result]) -> None:
    """Write results in place of those of the same runs and metrics; the whole file or nothing."""
    known = read_results(results_file(path.parent) if path.name == RESULTS_FILE else path)
    lines = {result.key: result for result in known} | {result.key: result for result in results}
    _write(path, lines.values())

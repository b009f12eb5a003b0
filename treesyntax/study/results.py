"""results.jsonl: one line a run and metric, appended once and never doubled."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError

RESULTS_FILE = "results.jsonl"
Key = tuple[str, int, str]


@dataclass(frozen=True)
class Result:
    """One number, with all that is needed to trust or repeat it.

    Attributes:
        hash: the study's.
        injection: the methods in the encoder, as the checkpoint has them.
        signature: how the metric was computed.
        n: number of test sentences.
        parameters: trained numbers in the model; shared ones count once.
        tokens_per_second: target tokens a second while training, median over log intervals.
        train_seconds: wall-clock time of training with validation, over all resumes.
        valid_loss: of the checkpoint that was tested.
        updates: updates trained.
        best_update: update of the checkpoint that was tested.
        versions: of Python and the packages.
        commit: git commit of treesyntax, "" outside a repository; "+" marks local changes.
        data_sha256: over the six data files.
        commands: what was run, ``{out}`` being the study's folder and ``{plugins}`` what
            ``treesyntax plugins`` prints.
    """

    recipe: str
    hash: str
    method: str
    arch: str
    injection: str
    seed: int
    metric: str
    value: float
    signature: str
    n: int
    parameters: int
    tokens_per_second: float | None
    train_seconds: float
    valid_loss: float
    updates: int
    best_update: int
    versions: dict[str, str]
    commit: str
    device: str
    date: str
    data_sha256: str
    commands: list[str]

    @property
    def key(self) -> Key:
        """What may be there once only."""
        return (self.method, self.seed, self.metric)


def read_results(path: Path) -> list[Result]:
    """The results of a study; a last line without its end, left by a kill, is dropped.

    Raises:
        InputError: if any other line is not a result.
    """
    results: dict[Key, Result] = {}
    for number, raw in enumerate(_whole_lines(path), start=1):
        try:
            result = _result(json.loads(raw))
        except (ValueError, TypeError):
            raise InputError(
                path, number, "is not a result", "restore or remove the line"
            ) from None
        results.setdefault(result.key, result)
    return list(results.values())


def _result(values: dict[str, Any]) -> Result:
    # Fields that a later version adds do not hinder this one.
    return Result(
        **{item.name: values[item.name] for item in fields(Result) if item.name in values}
    )


def _whole_lines(path: Path) -> list[bytes]:
    content = path.read_bytes() if path.exists() else b""
    return content.split(b"\n")[:-1]


def append_results(path: Path, results: Iterable[Result]) -> list[Result]:
    """Append those results that are not there yet; returns them.

    Raises:
        InputError: if the file is damaged.
    """
    known = {result.key for result in read_results(path)}
    new = [result for result in results if result.key not in known]
    if not new:
        return []
    with path.open("ab") as stream:
        stream.truncate(sum(len(line) + 1 for line in _whole_lines(path)))
        lines = (json.dumps(asdict(result), ensure_ascii=False) for result in new)
        stream.write("".join(f"{line}\n" for line in lines).encode())
        stream.flush()
        os.fsync(stream.fileno())
    return new

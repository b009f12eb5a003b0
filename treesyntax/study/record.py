"""Turn the files of a finished run into lines of results.jsonl."""

from __future__ import annotations

import hashlib
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError
from treesyntax.files import parse_json
from treesyntax.study import provenance
from treesyntax.study.identity import Identity, file_facts
from treesyntax.study.logs import read_log
from treesyntax.study.plan import Plan
from treesyntax.study.recipe import Method, Side
from treesyntax.study.results import Result
from treesyntax.study.steps import OUT, Run, inside


class Recorder:
    """Makes the results of runs in one study."""

    def __init__(self, plan: Plan, identity: Identity, folder: Path) -> None:
        self.plan, self.identity, self.folder = plan, identity, folder
        self._data_sha256: dict[tuple[Side, Side], str] = {}

    def results(self, run: Run) -> list[Result]:
        """One result a metric of a run whose steps are done.

        Raises:
            InputError: if one of the run's files is not what it should be.
        """
        try:
            return [self._result(run, score) for score in self._read(run, "scores.json")]
        except OSError as error:
            raise InputError(error.filename, None, f"cannot be read ({error.strerror})") from None
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                self.folder / run.folder, None, f"scores.json or facts.json is odd ({error!r})"
            ) from None

    def _read(self, run: Run, name: str) -> Any:
        return parse_json((self.folder / run.folder / name).read_text(encoding="utf-8"))

    def _result(self, run: Run, score: dict[str, Any]) -> Result:
        facts = self._read(run, "facts.json")
        log = read_log(self.folder / f"logs/{run.step('train')}.log")
        return Result(
            recipe=self.plan.recipe.name,
            hash=self.identity.hash,
            method=run.method.name,
            arch=run.method.arch,
            injection=str(facts["injection"]),
            seed=run.seed,
            metric=str(score["metric"]),
            value=float(score["value"]),
            signature=str(score["signature"]),
            n=int(score["n"]),
            parameters=int(facts["parameters"]),
            tokens_per_second=log.tokens_per_second,
            train_seconds=round(float(facts["train_seconds"]), 1),
            valid_loss=float(facts["valid_loss"]),
            updates=int(facts["updates"]),
            best_update=int(facts["best_update"]),
            versions=provenance.versions(),
            commit=provenance.commit(),
            device=log.device or provenance.processor(),
            date=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            data_sha256=self.data_sha256(run.method),
            commands=[shlex.join(step.command) for step in self.plan.steps_of(run)],
            peak_memory=None if log.peak_memory is None else round(log.peak_memory, 1),
        )

    def data_sha256(self, method: Method) -> str:
        """One hash over the sizes and hashes of the six data files."""
        sides = (method.source, method.target)
        if sides not in self._data_sha256:
            names = [
                inside(getattr(side, split)).replace(OUT, str(self.folder))
                for side in sides
                for split in ("train", "valid", "test")
            ]
            text = json.dumps([file_facts(Path(name)) for name in names])
            self._data_sha256[sides] = hashlib.sha256(text.encode()).hexdigest()
        return self._data_sha256[sides]

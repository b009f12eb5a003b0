"""Results of runs, read from the files that their steps left."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from functools import cache
from typing import Any

from treesyntax.errors import InputError, misfit
from treesyntax.files import read_json, sha256_of_value
from treesyntax.jobs import processor
from treesyntax.study.recipe.identity import Identity
from treesyntax.study.recipe.recipe import SPLITS, Side
from treesyntax.study.results.endings import ending, seconds_of
from treesyntax.study.results.results import Result
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.logs import read_log
from treesyntax.study.run.steps import Run, located

GPU_MEMORY_STEP = 1024 / 10
"""MiB: fairseq rounds the free memory of a GPU to tenths of a GiB."""


class Recorder:
    """Makes the results of runs in one study.

    Args:
        ledger: the study's.
        identity: the study's.
    """

    def __init__(self, ledger: Ledger, identity: Identity) -> None:
        self.plan, self.folder = ledger.plan, ledger.folder
        self.ledger, self.identity = ledger, identity
        self.data_sha256 = cache(self._data_sha256)

    def results(self, run: Run) -> list[Result]:
        """One result a metric of a run whose steps are done."""
        folder = self.folder / run.folder
        scores, facts = (read_json(folder / f"{name}.json") for name in ("scores", "facts"))
        try:
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            return [self._result(run, score, facts, now) for score in scores]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            cause = f"has a scores.json or facts.json that is damaged: {misfit(error)}"
            raise InputError(folder, None, cause, "remove both and go on with the study") from None

    def _result(self, run: Run, score: dict[str, Any], facts: dict[str, Any], date: str) -> Result:
        log = read_log(self.folder / f"logs/{run.step('train')}.log")
        code = self.ledger.run_code(run)
        origin = {**self.ledger.begun(run)["versions"], "sacrebleu": code["score: sacrebleu"]}
        slow, speed, fast = log.pairs_per_second or (None, None, None)
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
            commit=origin.pop("commit"),
            versions=origin,
            device=log.device or log.processor or processor(),
            date=date,
            data_sha256=self.data_sha256(run.method.source, run.method.target),
            commands=[shlex.join(step.command) for step in self.plan.steps_of(run)],
            lengths=score.get("lengths"),
            peak_memory=None if log.peak_memory is None else round(log.peak_memory, 1),
            run=self.identity.runs[run.name],
            code=code,
            memory_step=GPU_MEMORY_STEP if log.device else None,
            pairs=log.pairs,
            epochs=log.epochs_seen,
            pairs_per_second=speed,
            slow=slow,
            fast=fast,
            load=log.load,
            node=log.node or None,
            job=", ".join(log.waited) or None,
            queue_seconds=sum(log.waited.values()) if log.waited else None,
            used=json.dumps(log.used) if log.used else None,
            ended=facts.get("ended") or ending(log, self.plan.recipe.flags(run.method, "train")),
            seconds=seconds_of(self.folder, run.name, log, float(facts["train_seconds"])),
        )

    def _data_sha256(self, *sides: Side) -> str:
        """One hash over those of the six data files."""
        files = [located(getattr(side, split), self.folder) for side in sides for split in SPLITS]
        return sha256_of_value([self.ledger.digests.of(file) for file in files])

"""How the training of a run ended, and what each of its steps took, as its folder tells."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from treesyntax.endings import CAP, LAST, RESTED, Ending
from treesyntax.files import read_object
from treesyntax.study.recipe.recipe import Flags, Recipe
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.results.results import Result
from treesyntax.study.run.logs import TrainLog, read_log


def ending(log: TrainLog, flags: Flags) -> Ending | None:
    """Return how a training ended, see :attr:`treesyntax.study.results.results.Result.ended`.

    The log tells it, since with averaged checkpoints the one that is tested says nothing of the best.

    Args:
        log: its whole log.
        flags: its flags of fairseq-train.
    """
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    metric = str(named.get("best-checkpoint-metric", "loss"))
    last = log.best_is_last(metric, bool(named.get("maximize-best-checkpoint-metric")))
    plateau = log.lowest_rate and named.get("lr-scheduler") == "reduce_lr_on_plateau"
    if log.rested or (plateau and not last):  # whose rate falls where validations get no better
        return RESTED
    return None if last is None else LAST if last else CAP


def seconds_of(folder: Path, run: str, log: TrainLog, trained: float) -> dict[str, float]:
    """Return wall-clock seconds by kind of step, see :attr:`treesyntax.study.results.results.Result.seconds`.

    Args:
        folder: of the study.
        run: its name.
        log: of its training.
        trained: seconds of training over all sessions, as its checkpoint has them.
    """
    took = {"start_up": round(log.set_up, 2)} if log.set_up else {}
    for file in sorted((folder / "done" / run).glob("*.json")):
        if isinstance(seconds := read_object(file).get("seconds"), int | float):
            took[file.stem] = float(seconds)
    return {**took, "train": round(trained, 2)}


def with_endings(results: list[Result], folder: Path, recipe: Recipe) -> list[Result]:
    """Return results with the endings and seconds that older versions did not record, where logs are there."""
    methods = {method.name: method for method in recipe.methods}

    @cache
    def log_of(run: str) -> TrainLog | None:
        path = folder / f"logs/{run}/train.log"
        return read_log(path) if path.is_file() else None

    def completed(result: Result) -> Result:
        run = run_name(result.method, result.seed)
        if result.ended is not None or (log := log_of(run)) is None:
            return result
        ended = ending(log, recipe.flags(methods[result.method], "train"))
        seconds = result.seconds or seconds_of(folder, run, log, result.train_seconds)
        return replace(result, ended=ended, seconds=seconds)

    return [completed(result) for result in results]

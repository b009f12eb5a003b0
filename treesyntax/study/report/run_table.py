"""The table of single runs: what each scored, and how its training went."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.results.results import Result
from treesyntax.study.results.table_text import Table


def run_table(recipe: Recipe, metrics: Sequence[str], results: Sequence[Result]) -> Table:
    """A line a run: its metrics, and how its training went."""
    header = [
        "run",
        *metrics,
        f"valid {_selected_by(recipe)}",
        "last update averaged" if recipe.average else "best update",
        "updates",
        "pairs seen",
        "epochs",
        "training",
        "peak memory",
        *(f"lengths ({metric})" for metric in _with_lengths(metrics, results)),
    ]
    return Table("Runs", header, run_rows(metrics, results))


def run_rows(metrics: Sequence[str], results: Sequence[Result]) -> list[list[str]]:
    """The lines of `run_table`."""
    runs: dict[str, dict[str, Result]] = {}
    for result in results:
        runs.setdefault(f"{result.method}-{result.seed}", {})[result.metric] = result
    rows = []
    for name, scores in runs.items():
        some = next(iter(scores.values()))
        values = [f"{scores[metric].value:.2f}" if metric in scores else "–" for metric in metrics]
        training = [f"{some.valid_loss:.3f}", str(some.best_update), str(some.updates)]
        training += [
            "–" if some.pairs is None else f"{some.pairs:,.0f}",
            "–" if some.epochs is None else f"{some.epochs:.1f}",
        ]
        of_metrics = map(scores.get, _with_lengths(metrics, results))
        lengths = [score.lengths if score and score.lengths else "–" for score in of_metrics]
        seconds = f"{some.train_seconds:.0f} s"
        rows.append([name, *values, *training, seconds, _memory(some), *lengths])
    return rows


def _selected_by(recipe: Recipe) -> str:
    """What ``valid_loss`` is: with fairseq the metric that chose the checkpoint, else the loss."""
    flags = (recipe.flags(method, "train") for method in recipe.methods)
    return " or ".join(
        dict.fromkeys(str(of_row.get("best-checkpoint-metric") or "loss") for of_row in flags)
    )


def _with_lengths(metrics: Sequence[str], results: Sequence[Result]) -> list[str]:
    """The metrics that tell brevity penalty and length ratio."""
    known = {result.metric for result in results if result.lengths}
    return [metric for metric in metrics if metric in known]


def _memory(result: Result) -> str:
    """In the resolution in which it was measured."""
    if result.peak_memory is None:
        return "–"
    if result.memory_step:
        return f"{result.peak_memory / 1024:.1f} GiB"
    return f"{result.peak_memory:,.0f} MiB"

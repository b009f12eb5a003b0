"""The table of single runs: what each scored, and how its training went."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.recipe.trainer import chosen_by
from treesyntax.study.results.results import Result


def run_header(recipe: Recipe, metrics: Sequence[str], results: Sequence[Result]) -> list[str]:
    """The column headings of :func:`run_rows`."""
    return [
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


def run_rows(metrics: Sequence[str], results: Sequence[Result]) -> list[list[str]]:
    """A row a run: its metrics, and how its training went."""
    runs: dict[str, dict[str, Result]] = {}
    for result in results:
        runs.setdefault(f"{result.method}-{result.seed}", {})[result.metric] = result
    rows = []
    for name, found in runs.items():
        some = next(iter(found.values()))
        values = [f"{found[metric].value:.2f}" if metric in found else "–" for metric in metrics]
        training = [f"{some.valid_loss:.3f}", str(some.best_update), str(some.updates)]
        training += [
            "–" if some.pairs is None else f"{some.pairs:,.0f}",
            "–" if some.epochs is None else f"{some.epochs:.1f}",
        ]
        told = (found.get(metric) for metric in _with_lengths(metrics, results))
        lengths = [one.lengths if one is not None and one.lengths else "–" for one in told]
        seconds = f"{some.train_seconds:.0f} s"
        rows.append([name, *values, *training, seconds, _memory(some), *lengths])
    return rows


def _selected_by(recipe: Recipe) -> str:
    """What the best checkpoint was chosen by, as fairseq's flag names it; loss unless told."""
    flags = (recipe.flags(method, "train") for method in recipe.methods)
    return " or ".join(
        dict.fromkeys(
            str(one.get("best-checkpoint-metric") or chosen_by(recipe.content, one))
            for one in flags
        )
    )


def _with_lengths(metrics: Sequence[str], results: Sequence[Result]) -> list[str]:
    """The metrics that tell brevity penalty and length ratio."""
    told = {result.metric for result in results if result.lengths}
    return [metric for metric in metrics if metric in told]


def _memory(result: Result) -> str:
    """In the resolution in which it was measured."""
    if result.peak_memory is None:
        return "–"
    if result.memory_step:
        return f"{result.peak_memory / 1024:.1f} GiB"
    return f"{result.peak_memory:,.0f} MiB"

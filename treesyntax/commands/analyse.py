"""Draw what a trained model has learnt, or print the facts of its training.

  treesyntax analyse mask_strengths runs/my/runs/relation_mask-1 --out figures
  treesyntax analyse attention_mass checkpoints/checkpoint_best.pt data-bin/en-de --out figures
  treesyntax analyse strength_study runs/en-vi runs/en-de --metric bleu --out figures

Figures are SVG files, with --format pdf png for a paper too; the numbers behind them are in a JSON
file of the same name. Checkpoints are read without fairseq, and nothing in them is executed.

In place of a checkpoint name the folder of a run, or of a study: its best run with a method is taken.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path

from treesyntax.analysis.arguments import ARGUMENTS, PAPER
from treesyntax.commands.nested import add_commands
from treesyntax.errors import OptionError
from treesyntax.study.results.figure_files import papers_of

MODULES = {
    name: f"treesyntax.analysis.{'paper.' if name in PAPER else ''}{name}" for name in ARGUMENTS
}
DATA_OF_RUN = ("attention_mass", "run", "sentence_masks")
"""The analyses that read sentences, of the run's own data unless they are given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare each analysis with its arguments."""
    add_commands(parser, "analysis", MODULES, ARGUMENTS)


def run(args: argparse.Namespace) -> int:
    """Make one analysis: it takes the arguments that are named like its parameters."""
    _take_run(args)
    analyse = importlib.import_module(MODULES[args.analysis]).analyse
    with papers_of(args):
        analyse(**{name: getattr(args, name) for name in inspect.signature(analyse).parameters})
    return 0


def _take_run(args: argparse.Namespace) -> None:
    """Take checkpoints and data of the folder of a run or of a study, as far as they are not given."""
    from treesyntax.commands.average import find_checkpoints
    from treesyntax.study.trained import find_trained, study_of

    options = vars(args)
    name = "checkpoint" if "checkpoint" in options else "checkpoints"
    paths = [options[name]] if isinstance(options.get(name), Path) else options.get(name, [])
    needs_data = "data" in options and not options.get("data") and args.analysis in DATA_OF_RUN
    for path in paths[:1]:
        best = (path / "checkpoint_best.pt").is_file() and name != "checkpoint"
        direct = path.is_file() or best
        if direct and not needs_data:
            return
        if direct and study_of(path) is None:
            raise OptionError(f"DATA is missing: what the model of {path} was trained on")
        trained = find_trained(path, lambda plan, row: plan.recipe.baseline_of(row) is not None)
        if needs_data:
            options["data"] = trained.data
        if direct:
            return
        if trained.why:
            print(f"{trained.folder} is analysed ({trained.why})", file=sys.stderr)
        if name == "checkpoint":
            options[name] = trained.checkpoint
        elif args.analysis == "run":
            options.update(
                checkpoints=trained.checkpoints, tested=args.tested or trained.checkpoint
            )
        else:
            options[name] = find_checkpoints(trained.checkpoints)

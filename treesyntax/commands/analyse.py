"""Draw what a trained model has learnt, or print the facts of its training.

  treesyntax analyse mask_strengths checkpoints/checkpoint_best.pt --out figures
  treesyntax analyse attention_mass checkpoints/checkpoint_best.pt data-bin/en-de --out figures
  treesyntax analyse strength_study runs/en-vi runs/en-de --metric bleu --out figures

Figures are SVG files, with --format pdf png for a paper too; the numbers behind them are in a JSON
file of the same name. Checkpoints are read without fairseq, and nothing in them is executed.
"""

from __future__ import annotations

import argparse
import importlib
import inspect

from treesyntax.analysis.arguments import ARGUMENTS, PAPER
from treesyntax.commands.nested import add_commands
from treesyntax.study.results.figure_files import papers_of

MODULES = {
    name: f"treesyntax.analysis.{'paper.' if name in PAPER else ''}{name}" for name in ARGUMENTS
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare each analysis with its arguments."""
    add_commands(parser, "analysis", MODULES, ARGUMENTS)


def run(args: argparse.Namespace) -> int:
    """Make one analysis: it takes the arguments that are named like its parameters."""
    analyse = importlib.import_module(MODULES[args.analysis]).analyse
    with papers_of(args):
        analyse(**{name: getattr(args, name) for name in inspect.signature(analyse).parameters})
    return 0

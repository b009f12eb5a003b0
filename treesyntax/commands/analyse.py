"""Draw what a trained model has learnt, or print the facts of its training.

  treesyntax analyse mask_strengths checkpoints/checkpoint_best.pt --out figures
  treesyntax analyse attention_mass checkpoints/checkpoint_best.pt data-bin/en-de --out figures
  treesyntax analyse strength_study runs/en-vi runs/en-de --metric bleu --out figures

Figures are SVG files; the numbers behind them are in a JSON file of the same name. Checkpoints are
read without fairseq, and nothing in them is executed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
from importlib.resources import files

from treesyntax.analysis.arguments import ARGUMENTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare each analysis with its arguments."""
    analyses = parser.add_subparsers(dest="analysis", metavar="NAME", required=True)
    for name, arguments in ARGUMENTS.items():
        text = _documentation(name)
        own = analyses.add_parser(
            name,
            help=text.split("\n")[0].rstrip("."),
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for add in arguments:
            add(own)


def _documentation(name: str) -> str:
    """The docstring of an analysis, from its source: importing it would load torch."""
    source = files("treesyntax.analysis").joinpath(f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def run(args: argparse.Namespace) -> int:
    """Make one analysis."""
    analyse = importlib.import_module(f"treesyntax.analysis.{args.analysis}").analyse
    analyse(**{name: getattr(args, name) for name in inspect.signature(analyse).parameters})
    return 0

"""Score a file of outputs against a file of references, line by line.

  treesyntax score --reference test.tgt --hypothesis out.txt --metric exact --metric tree:lambda

Metrics: exact, bleu, chrf, tree:NOTATION and wellformed:NOTATION, each in percent.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import read_lines
from treesyntax.metrics import Score, get_metric


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files, the metrics and the form of the output."""
    add = parser.add_argument
    add("--reference", type=Path, required=True, help="what the outputs should be, one a line")
    add("--hypothesis", type=Path, required=True, help="the outputs in the same order")
    add("--metric", action="append", help="name of a metric, may be repeated (default exact)")
    add("--json", action="store_true", help="print a JSON list instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print the scores; returns 0.

    Raises:
        OptionError: if there is no such metric, or a reference is malformed.
        InputError: if a file cannot be read, or the files differ in their number of lines.
    """
    metrics = [get_metric(name) for name in args.metric or ["exact"]]
    references, hypotheses = list(read_lines(args.reference)), list(read_lines(args.hypothesis))
    if len(hypotheses) != len(references):
        raise InputError(
            args.hypothesis,
            None,
            f"has {len(hypotheses)} lines, but {args.reference} has {len(references)}",
            "score the output of the very same set",
        )
    if not references:
        raise InputError(args.reference, None, "is empty", "there is nothing to score")
    scores = [score for metric in metrics for score in metric(hypotheses, references)]
    print(
        json.dumps([score._asdict() for score in scores], indent=2) if args.json else _table(scores)
    )
    return 0


def _table(scores: list[Score]) -> str:
    width = max(len(score.metric) for score in scores)
    return "\n".join(
        f"{score.metric:<{width}}  {score.value:6.2f}  n={score.n}  {score.signature}"
        for score in scores
    )

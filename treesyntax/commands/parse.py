"""Parse raw text, one line a record, to a tree file that is aligned with it line by line.

  treesyntax parse train.en train.en.conllu --parser stanza-dep --model models/en
  treesyntax parse train.en train.en.ptb --parser benepar --model models/benepar_en3 --workers 8
  treesyntax parse train.en train.en.ptb --parser benepar --model models/benepar_en3 --workers 50 \\
      --cluster slurm --cluster-set slurm_partition=cpu --cluster-set timeout_min=60

Dependency trees are written as CoNLL-U, constituency trees in brackets, one a line. Every line gives
one record. A blank line gives an empty one, and several sentences give one tree with a common root. A
line that is too long, or on which the parser fails, gives a flat tree. OUTPUT.report.json counts
these cases; --strict makes them errors.

The character span of every word is kept, in the column MISC of CoNLL-U or in OUTPUT.offsets. If a run
is interrupted, the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from treesyntax.errors import OptionError
from treesyntax.jobs.completion import suggest
from treesyntax.jobs.options import add_arguments as add_cluster_arguments
from treesyntax.jobs.options import read_parameters
from treesyntax.parsers import PARSERS, get_kind
from treesyntax.parsers.cases import CASES, in_words, strict_cases
from treesyntax.parsers.parser import ParserConfig, model_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("input", metavar="INPUT", type=Path, help="UTF-8 text; .gz is unpacked")
    add("output", metavar="OUTPUT", type=Path, help="the tree file")
    add_parser_arguments(add, required=True)
    add(
        "--strict", nargs="?", const="", metavar="CASE,…",
        help=f"cases that are errors, of {', '.join(CASES)}; without a list: those that get flat trees",
    )  # fmt: skip
    add(
        "--workers", type=int, default=0, metavar="N",
        help="number of processes (default: one a core), or of jobs on a cluster (default: 8)",
    )  # fmt: skip
    add(
        "--gpus", type=int, default=0, metavar="N", help="use N GPUs, one process each, and no CPUs"
    )
    add(
        "--shard-lines", type=int, default=2000, metavar="N",
        help="how many lines are parsed and saved at a time (default 2000)",
    )  # fmt: skip
    add_cluster_arguments(parser, "shards")
    add(
        "--overwrite", action="store_true", help="replace an OUTPUT made from other text or options"
    )


def add_parser_arguments(add: Callable[..., argparse.Action], required: bool) -> None:
    """Declare the parser, its model and how it reads lines."""
    models = "; ".join(f"{name}: {kind.model}" for name, kind in PARSERS.items())
    suggest(
        add("--parser", required=required, metavar="NAME", help=", ".join(PARSERS)),
        lambda: PARSERS,
    )
    add("--model", required=required, metavar="MODEL", help=models)
    add("--lang", default="en", help="language code, for word and sentence boundaries (default en)")
    add(
        "--pretokenized", action="store_true",
        help="white space separates words, a line is one sentence",
    )  # fmt: skip
    add(
        "--download", action="store_true",
        help="download a parser's model that is given by name; the only use of the network",
    )  # fmt: skip
    add(
        "--max-words",
        type=int,
        default=150,
        metavar="N",
        help="longer lines get flat trees (default 150)",
    )


def run(args: argparse.Namespace) -> int:
    """Parse, or finish what an earlier run began."""
    # Here, since it loads libraries that --help does without.
    from treesyntax.parsers.parse_file import Execution, parse_file, report_of
    from treesyntax.parsers.parse_task import ParseTask, remarks_of_text

    task = ParseTask(
        args.input, args.output.absolute(), _config(args), args.max_words, args.shard_lines
    )
    parameters = read_parameters(args)
    execution = Execution(args.workers, args.gpus, args.cluster, parameters)
    # Before hours of parsing, as the text is to be mended first.
    for remark in remarks_of_text(task).texts():
        print(f"treesyntax parse: {remark}", file=sys.stderr)
    begun = time.monotonic()
    cases, known = parse_file(task, execution, strict_cases(args.strict), args.overwrite)
    if known:
        print(f"{task.output} is complete already: {in_words(cases)}", file=sys.stderr)
        return 0
    seconds = time.monotonic() - begun
    report = report_of(task.output)
    see = f"; see {report}" if report.exists() else ""  # a pipe has no report beside it
    print(f"{cases.lines} lines in {seconds:.0f} s: {in_words(cases)}{see}", file=sys.stderr)
    return 0


def _config(args: argparse.Namespace) -> ParserConfig:
    get_kind(args.parser)
    for name, least in (("workers", 0), ("gpus", 0), ("max_words", 1), ("shard_lines", 1)):
        if getattr(args, name) < least:
            raise OptionError(f"--{name.replace('_', '-')} must be at least {least}")
    gpu = args.gpus > 0
    config = ParserConfig(args.parser, args.model, args.lang, args.pretokenized, gpu, args.download)
    path = model_path(config)
    # Absolute, since workers may start in another folder.
    return config._replace(model=str(path)) if path else config

"""Parse raw text, one line a record, to a tree file that is aligned with it line by line.

  treesyntax parse train.en train.en.conllu --parser stanza-dep --model models/en
  treesyntax parse train.en train.en.ptb --parser benepar --model models/benepar_en3 --workers 8
  treesyntax parse train.en train.en.ptb --parser benepar --model models/benepar_en3 --workers 50 \\
      --cluster slurm --cluster-set slurm_partition=cpu --cluster-set timeout_min=60

Dependency trees are written as CoNLL-U, constituency trees in brackets, one a line. Every line
gives one record: a blank line an empty one, several sentences one tree with a joint root, and a
line that is too long, or on which the parser fails, a flat tree. OUTPUT.report.json counts these
cases; --strict makes them errors. The place of every word in its line is kept, in the column MISC
of CoNLL-U or in OUTPUT.offsets. A run that was interrupted is taken up again by the same command.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError, OptionError
from treesyntax.files import atomic_file
from treesyntax.jobs import Cluster, read_parameters
from treesyntax.jobs import add_arguments as add_cluster_arguments
from treesyntax.parsers import PARSERS, ParserConfig, get_kind, load_parser
from treesyntax.parsers.base import model_path
from treesyntax.parsers.identity import ParseTask, identity
from treesyntax.parsers.jobs import parse_in_jobs
from treesyntax.parsers.output import OFFSETS
from treesyntax.parsers.policy import CASES
from treesyntax.parsers.progress import shown
from treesyntax.parsers.report import Cases, check_strict, in_words, read_cases, strict_cases, total
from treesyntax.parsers.shards import TREES, Parts, read_json, shards_of
from treesyntax.parsers.workers import parse_all

REPORT = ".report.json"
JOBS = 8
"""On a cluster, unless told."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    models = "; ".join(f"{name}: {kind.model}" for name, kind in PARSERS.items())
    add("input", metavar="INPUT", type=Path, help="UTF-8 text; .gz is unpacked")
    add("output", metavar="OUTPUT", type=Path, help="the tree file")
    add("--parser", required=True, metavar="NAME", help=", ".join(PARSERS))
    add("--model", required=True, metavar="MODEL", help=models)
    add("--lang", default="en", help="language code, for word and sentence boundaries (en)")
    add(
        "--pretokenized",
        action="store_true",
        help="white space separates words, a line is one sentence",
    )
    add(
        "--download",
        action="store_true",
        help="download a model known by name; the only use of the network",
    )
    add("--max-words", type=int, default=150, metavar="N", help="longer lines get flat trees (150)")
    add(
        "--strict",
        nargs="?",
        const="",
        metavar="CASE,…",
        help=f"cases that are errors, of {', '.join(CASES)}; without a list those that get flat trees",
    )
    add(
        "--workers",
        type=int,
        default=0,
        metavar="N",
        help="processes (one for each CPU), or jobs (8)",
    )
    add(
        "--gpus", type=int, default=0, metavar="N", help="use N GPUs, one process each, and no CPUs"
    )
    add(
        "--shard-lines",
        type=int,
        default=2000,
        metavar="N",
        help="lines that are parsed and saved together (2000)",
    )
    add_cluster_arguments(parser, "shards")
    add(
        "--overwrite", action="store_true", help="replace an OUTPUT made from other text or options"
    )


def run(args: argparse.Namespace) -> int:
    """Parse, or finish what an earlier run began."""
    task, strict = _task(args), strict_cases(args.strict)
    wanted = identity(task)
    parts = Parts(task)
    report = task.output.with_name(task.output.name + REPORT)
    found = read_json(report)
    cases = read_cases(found)
    if task.output.exists() and cases is not None and found.get("identity") == wanted:
        check_strict(task.source, cases, strict)
        parts.remove()
        print(f"{task.output} is complete already: {in_words(cases)}", file=sys.stderr)
        return 0
    if task.output.exists() and not parts.folder.exists() and not args.overwrite:
        raise InputError(
            task.output,
            None,
            "is there already, made from other text, model or options",
            "name another file or add --overwrite",
        )
    if args.download:
        # Once, before many processes would do it at the same time.
        load_parser(task.settings)
        task = task._replace(settings=task.settings._replace(download=False))
    begun = time.monotonic()
    with parts.opened(wanted, args.overwrite):
        cases = _parse(task, parts, wanted["lines"], args, strict)
        _write(task, parts, wanted, cases, report)
    seconds = time.monotonic() - begun
    print(
        f"{cases.lines} lines in {seconds:.0f} s: {in_words(cases)}; see {report}", file=sys.stderr
    )
    return 0


def _task(args: argparse.Namespace) -> ParseTask:
    get_kind(args.parser)
    for name, least in (("workers", 0), ("gpus", 0), ("max_words", 1), ("shard_lines", 1)):
        if getattr(args, name) < least:
            raise OptionError(f"--{name.replace('_', '-')} must be at least {least}")
    if args.cluster_set and not args.cluster:
        raise OptionError("--cluster-set needs --cluster")
    gpu = args.gpus > 0
    settings = ParserConfig(
        args.parser, args.model, args.lang, args.pretokenized, gpu, args.download
    )
    path = model_path(settings)
    # Workers may start in another folder.
    settings = settings._replace(model=str(path)) if path else settings
    return ParseTask(args.input, args.output.absolute(), settings, args.max_words, args.shard_lines)


def _parse(
    task: ParseTask, parts: Parts, lines: int, args: argparse.Namespace, strict: tuple[str, ...]
) -> Cases:
    """Parse what is left; the cases of everything."""
    count = -(-lines // task.shard_lines)
    left = [number for number in range(count) if not parts.is_done(number)]
    done = min(lines, (count - len(left)) * task.shard_lines)
    for number in range(count):
        if parts.is_done(number):
            check_strict(task.source, parts.cases(number), strict)
    from rich.console import Console

    with shown(lines, done, Console(stderr=True)) as advance:
        for number in _saved(task, parts, left, args):
            cases = parts.cases(number)
            check_strict(task.source, cases, strict)
            advance(cases.lines)
    return total(parts.cases(number) for number in range(count))


def _saved(
    task: ParseTask, parts: Parts, left: list[int], args: argparse.Namespace
) -> Iterator[int]:
    if args.cluster and left:
        cluster = Cluster(args.cluster, parts.folder, read_parameters(args.cluster_set))
        return parse_in_jobs(task, parts, left, cluster, args.workers or JOBS)
    workers = min(args.workers or _cores(), max(len(left), 1))
    return parse_all(task, shards_of(task, parts), workers, args.gpus)


def _cores() -> int:
    # Jobs on a cluster may have fewer than the machine; not every system can tell.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _write(
    task: ParseTask, parts: Parts, wanted: dict[str, Any], cases: Cases, report: Path
) -> None:
    """Join the shards. The tree file comes last: where it stands, everything belongs to it."""
    task.output.unlink(missing_ok=True)
    count = -(-cases.lines // task.shard_lines)
    text = json.dumps({**cases.to_dict(), "identity": wanted}, indent=1, ensure_ascii=False)
    with atomic_file(report) as staged:
        staged.write_text(text + "\n", encoding="utf-8")
    if OFFSETS in parts.suffixes:
        parts.join(count, OFFSETS, task.output.with_name(task.output.name + OFFSETS))
    parts.join(count, TREES, task.output)
    parts.remove()

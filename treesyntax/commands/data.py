"""Data sets: get one by name, or make one of random programs or of text files.

  treesyntax data list
  treesyntax data get slog DIR --from FOLDER
  treesyntax data get scan_length DIR --seed 1
  treesyntax data make for2lam --out DIR --train 100000 --valid 10000 --test 10000
  treesyntax data make coffeescript --out DIR --compiler FOLDER --train 10000 --test 1000
  treesyntax data make split --source geo.src --target geo.tgt --out DIR --valid 60
  treesyntax data make questions --data my.tsv --out DIR --valid 60 --test 200 --notation sexpr

The folder of get has train, valid, test and further test sets, each as PART.src and PART.tgt. Where there are
any, PART.ptb has trees of the source, one a line, and PART.category the category of each line.

Where gen tests what training lacks, both.src and so on hold test and then gen, with categories test/NAME and gen/NAME.
The metrics exact@test and exact@gen then stand side by side, in and out of distribution.

manifest.json has the options, the checksums of all files, and of get the licence and the citation. Published
files come from FOLDER or else from their public address, and are checked; generated sets need neither. If the
folder is up to date, the same command does nothing. make writes no files for a split of 0 lines.

Valid and test do not depend on --train, and a smaller training set is the beginning of a larger one.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treesyntax.commands.nested import add_commands
from treesyntax.jobs.completion import suggest

Add = Callable[..., Any]
SPLITS = ("train", "valid", "test")
MAKERS = {
    "for2lam": "treesyntax.data.sets.for2lam",
    "coffeescript": "treesyntax.data.sets.coffeescript",
    "split": "treesyntax.data.sets.splitting",
    "pairs": "treesyntax.data.sets.pairs",
    "questions": "treesyntax.data.sets.questions",
}
"""The module of each command of ``data make``; its docstring is the help."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``list``, ``get`` and ``make``."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    lister = commands.add_parser("list", help="name, origin, licence and content of every data set")
    lister.add_argument("--json", action="store_true", help="print a JSON list instead")
    maker = commands.add_parser("make", help="make one of random programs or of text files")
    add_makers(maker)
    maker.set_defaults(fixed_test=True)
    getter = commands.add_parser("get", help="make the folder of a data set")
    add = getter.add_argument
    suggest(
        add("name", metavar="NAME", help="name of the data set, see treesyntax data list"),
        set_names,
    )
    add("folder", type=Path, metavar="DIR", help="folder to write")
    add(
        "--from", default="", metavar="FOLDER", dest="source",
        help="folder with the published files, or with a subfolder of the set's name that has them (default, "
        "and with an empty name: fetch them)",
    )  # fmt: skip
    add(
        "--sample", type=int, default=0, metavar="N",
        help="also write valid and each test set as PART.sample with N lines of each category, always the same "
        "ones (default 0: no samples)",
    )  # fmt: skip
    add(
        "--seed",
        type=int,
        default=1,
        help="seed of what is drawn or generated: 0, 1, 2, … (default 1)",
    )
    add(
        "--train", type=int, default=0, metavar="N",
        help="training examples, the first N; some generated sets can have more than they have by default. The "
        "other parts stay the same (default 0: as many as there are)",
    )  # fmt: skip
    add(
        "--small-train", type=int, nargs="+", default=[], metavar="N",
        help="also write smaller training sets as train.N, drawn once, so that each is part of the next",
    )  # fmt: skip


def set_names() -> list[str]:
    """The names of all data sets."""
    from treesyntax.data.sets import SETS

    return list(SETS)


def add_makers(parser: argparse.ArgumentParser) -> None:
    """Declare each command of ``data make`` with its options."""
    add_commands(parser, "generator", MAKERS, ARGUMENTS)


def make(args: argparse.Namespace) -> int:
    """Write the data set, unless the folder is up to date."""
    importlib.import_module(MAKERS[args.generator]).generate(args)
    return 0


def run(args: argparse.Namespace) -> int:
    """List the data sets, or write the folder of one."""
    if args.action == "make":
        return make(args)
    if args.action == "get":
        from treesyntax.data.sets.making import get

        source = Path(args.source) if args.source else None
        get(args.name, args.folder, source, args.sample, args.seed, args.train, args.small_train)
        return 0
    from treesyntax.data.sets import SETS

    if args.json:
        facts = ("name", "title", "origin", "licence", "citation", "notes")
        sets = [{key: getattr(data, key) for key in facts} for data in SETS.values()]
        print(json.dumps(sets, indent=2, ensure_ascii=False))
        return 0
    wide = max(map(len, SETS))
    for data in SETS.values():
        print(f"{data.name:{wide}}  {data.origin:10}  {data.licence:14}  {data.title}")
        print(f"{'':{wide}}  {data.citation}{f' ({data.notes})' if data.notes else ''}")
    return 0


def _numbers(add: Add, of: str, splits: Sequence[str] = SPLITS) -> None:
    for split in splits:
        add(
            f"--{split}",
            type=int,
            default=0,
            metavar="N",
            help=f"number of {split} {of} (default 0)",
        )


def _seed_and_small_train(add: Add, examples: str = "the first N training examples") -> None:
    add("--seed", type=int, default=1, help="0, 1, 2, … (default 1)")
    add(
        "--small-train", type=int, nargs="+", default=[], metavar="N",
        help=f"also write train.N.SUFFIX for each N, with {examples}: nested sets beside one valid and test",
    )  # fmt: skip


def _for2lam(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{for,lambda}")
    _numbers(add, "programs")
    add(
        "--style",
        choices=("drissi", "chen"),
        default="drissi",
        help="distribution of the programs (default drissi)",
    )
    size = parser.add_mutually_exclusive_group().add_argument
    size("--size", type=int, default=15, help="the size to draw programs with (default 15)")
    size("--length", type=int, help="mean length in tokens, in place of --size with --style chen")
    hard = parser.add_mutually_exclusive_group().add_argument
    hard(
        "--test-length", type=int, metavar="N",
        help="with --length: test programs of mean length N, longer than any in train and valid",
    )  # fmt: skip
    hard(
        "--held-out", type=int, default=0, metavar="K",
        help="test programs with K names and K constants that train has in single assignments only",
    )  # fmt: skip
    smaller = "leave out smaller programs (0); 9: single assignments"
    add("--min-nodes", type=int, default=0, help=smaller)
    add("--repeats", action="store_true", help="let a program occur again within its split")
    _seed_and_small_train(add)


def _coffeescript(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{coffee,js}")
    add(
        "--compiler", type=Path, required=True, metavar="FOLDER",
        help="folder of the npm package coffeescript@2.7.0, which is installed if absent",
    )  # fmt: skip
    _numbers(add, "programs")
    add("--size", type=int, default=32, help="the size to draw programs with (default 32)")
    limit = "draw names from N (default: a0, a1, … without limit)"
    add("--variables", type=int, metavar="N", help=limit)
    add("--constants", type=int, default=10, metavar="N", help="numbers are 0 to N-1 (default 10)")
    _seed_and_small_train(add)


def _split(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", type=Path, required=True, help="text file, one example a line; may be .gz")
    add("--target", type=Path, required=True, help="aligned with it, with another suffix")
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.SUFFIX")
    _numbers(add, "lines", SPLITS[1:])
    add("--dedup", action="store_true", help="keep only the first of equal pairs")
    add("--longest", action="store_true", help="test gets the longest sources, not random ones")
    _seed_and_small_train(
        add, "N training examples drawn at random, the smaller sets in the larger"
    )


def _pairs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    pair = ("SOURCE", "TARGET")
    for split in SPLITS[:2]:
        add(f"--{split}", nargs=2, type=Path, metavar=pair, help=f"two aligned files of {split}")
    several = "two aligned files of test, or of several test sets: SOURCE TARGET SOURCE TARGET …"
    add("--test", nargs="+", type=Path, metavar="FILE", help=several)
    add("--langs", nargs=2, required=True, metavar=pair, help="suffixes, such as en de")
    add("--out", type=Path, required=True, help="folder to write: train.SOURCE and so on")
    add("--pairs", type=int, default=0, metavar="N", help="training pairs (default 0: all)")
    add("--seed", type=int, default=0, help="draw them at random (default 0: the first N)")
    most = "leave out training pairs with more words on either side (default 0: none)"
    add("--most-words", type=int, default=0, metavar="N", help=most)


def _questions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder or TSV file with the data")
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{src,tgt}")
    for split in SPLITS[1:]:
        add(f"--{split}", type=int, default=0, help=f"pairs to draw if there is no {split} set")
    add("--seed", type=int, default=1, help="0, 1, 2, … (default 1)")
    add(
        "--notation",
        help="notation of the logical forms, such as sexpr: checks each, and puts single spaces between "
        "its tokens (default: any text)",
    )


ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "for2lam": _for2lam,
    "coffeescript": _coffeescript,
    "split": _split,
    "pairs": _pairs,
    "questions": _questions,
}
"""Declares the options of each command of ``data make``; what they need to run is not imported."""

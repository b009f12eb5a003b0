"""Data sets by name: list them, or make the folder of one.

  treesyntax data list
  treesyntax data get slog DIR --from FOLDER
  treesyntax data get scan_length DIR --seed 1

The folder gets train, valid, test and further test sets, each as PART.src and PART.tgt. Where there are
any, PART.ptb has trees of the source, one a line, and PART.category the category of each line.

manifest.json has the checksums of the published files, the licence and the citation. Files come from
FOLDER or else from their public address, and are checked; generated sets need neither. If the folder is
up to date, the same command does nothing.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from treesyntax.jobs.completion import suggest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``list`` and ``get``."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    lister = commands.add_parser("list", help="name, origin, licence and content of every data set")
    lister.add_argument("--json", action="store_true", help="print a JSON list instead")
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


def run(args: argparse.Namespace) -> int:
    """List the data sets or make one."""
    if args.action == "get":
        from treesyntax.data.sets.making import get

        source = Path(args.source) if args.source else None
        get(args.name, args.folder, source, args.sample, args.seed, args.train, args.small_train)
        return 0
    from treesyntax.data.sets import SETS

    if args.json:
        told = ("name", "title", "origin", "licence", "citation", "notes")
        sets = [{key: getattr(data, key) for key in told} for data in SETS.values()]
        print(json.dumps(sets, indent=2, ensure_ascii=False))
        return 0
    wide = max(map(len, SETS))
    for data in SETS.values():
        print(f"{data.name:{wide}}  {data.origin:10}  {data.licence:14}  {data.title}")
        print(f"{'':{wide}}  {data.citation}{f' ({data.notes})' if data.notes else ''}")
    return 0

"""Write the report of a study again, finished or not; or draw the map that one has written, or make its
tables from its results and scores by item.

Examples:
  treesyntax report runs/for2lam-demo
  treesyntax report docs/results/demo/items.jsonl
  treesyntax report runs/structure-all/tables/map.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

from treesyntax.study.results.figure_files import paper_arguments, papers_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The study's folder and the row that others are tested against."""
    parser.add_argument(
        "folder", type=Path, metavar="DIR",
        help="folder of a study; or the map.csv of one with several test sets, to draw map.svg beside it; or "
        "its items.jsonl, to make table.csv and map.csv beside it again, with intervals and p-values, "
        "from that and results.jsonl alone",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="METHOD", help="test against this row (default: as the recipe says)"
    )
    parser.add_argument(
        "--mix-versions", action="store_true", help="test rows of different code against each other"
    )
    paper_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the table and write the report and its tables into the folder."""
    if args.folder.suffix == ".jsonl":
        from treesyntax.study.report.items.again import tables_again

        tables_again(args.folder)
        return 0
    if args.folder.is_file():
        from treesyntax.study.report.map.draw import draw_file

        with papers_of(args):
            print(draw_file(args.folder))
        return 0
    from treesyntax.study.session import report  # figures take a second to load

    with papers_of(args):
        report(args.folder, args.baseline, args.mix_versions)
    return 0

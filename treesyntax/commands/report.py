"""Write the report of a study again, finished or not.

It also draws the map that a study has written, and makes the tables of a study from its results and
scores by item, with the figure of its verdict.

Examples:
  treesyntax report runs/for2lam-demo
  treesyntax report runs/for2lam-demo --for-paper paper --columns exact parameters
  treesyntax report docs/results/demo/items.jsonl
  treesyntax report here/tables/items.jsonl there/tables/items.jsonl --out both
  treesyntax report runs/structure-all/tables/map.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

from treesyntax.errors import OptionError
from treesyntax.study.results.figure_files import TEXT_WIDTH, paper_arguments, papers_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The study's folder and the row that others are tested against."""
    parser.add_argument(
        "paths", type=Path, nargs="+", metavar="DIR",
        help="folder of a study: write its report. A map.csv: draw map.svg beside it. An items.jsonl: make the tables "
        "and figures again, from it and runs.jsonl beside it. Several items.jsonl, of rows trained in several places: make "
        "the tables of all in --out",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER",
        help="where the tables from items.jsonl go (default: beside it)",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="METHOD", help="test against this row (default: as the recipe says)"
    )
    parser.add_argument(
        "--mix-versions", action="store_true", help="test rows of different code against each other"
    )
    parser.add_argument(
        "--for-paper", type=Path, metavar="OUT",
        help="also write into this folder: a short table.tex, figures as PDF, methods.txt (two sentences on runs, items, "
        "test and versions) and references.bib of the methods. Figures are as wide as a column, 3.03 inches unless --width",
    )  # fmt: skip
    parser.add_argument(
        "--columns", nargs="+", metavar="COLUMN", default=[],
        help="of that table.tex: metrics of the study, parameters, minutes, runs (default: the metric that decides)",
    )  # fmt: skip
    paper_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the table and write the report and its tables into the folder."""
    paths: list[Path] = args.paths
    scores = [path.suffix == ".jsonl" for path in paths]
    if len(paths) > 1 and not (all(scores) and args.out):
        raise OptionError(
            "several parts are given by their items.jsonl, with --out FOLDER for the tables of all"
        )
    if args.baseline is not None and paths[0].is_file():
        raise OptionError(
            "--baseline is for the folder of a study; a file of scores says what is compared"
        )
    if args.mix_versions and paths[0].is_file() and not all(scores):
        raise OptionError("--mix-versions is for a study or its items.jsonl; a map is only drawn")
    if args.columns and not args.for_paper:
        raise OptionError("--columns are those of the table of --for-paper OUT")
    if args.for_paper and paths[0].is_file():
        raise OptionError("--for-paper is for the folder of a study")
    if all(scores):
        from treesyntax.study.report.tables_again import tables_again

        with papers_of(args):
            tables_again(paths, args.out, args.mix_versions)
        return 0
    if args.out:
        raise OptionError(
            "--out is for the tables from items.jsonl; a study has its report in its folder"
        )
    (path,) = paths
    if path.is_file():
        from treesyntax.study.report.map import draw_file

        with papers_of(args):
            print(draw_file(path))
        return 0
    from treesyntax.study.report.paper import COLUMN_WIDTH
    from treesyntax.study.session import report  # figures take a second to load

    width = COLUMN_WIDTH if args.for_paper else TEXT_WIDTH
    with papers_of(args, width, args.for_paper):
        report(path, args.baseline, args.mix_versions, args.for_paper, args.columns)
    return 0

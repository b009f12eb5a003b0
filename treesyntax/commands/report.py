"""Write the report of a study again, finished or not.

Example: treesyntax report runs/for2lam-demo-1a2b3c4d
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The study's folder and what its rows are compared with."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of a study")
    parser.add_argument(
        "--baseline", metavar="METHOD", help="test against this row (default: as the recipe says)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the table and write the report and its tables into the folder."""
    from treesyntax.study.report.report import read_study, write_report
    from treesyntax.study.report.table import make_console, print_table

    study = read_study(args.folder, args.baseline)
    page = write_report(study)
    console = make_console()
    print_table(study.table, console)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
    return 0

"""Write the report of a study again, finished or not.

Example: treesyntax report runs/for2lam-demo
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The study's folder and the row that others are tested against."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of a study")
    parser.add_argument(
        "--baseline", metavar="METHOD", help="test against this row (default: as the recipe says)"
    )
    parser.add_argument(
        "--mix-versions", action="store_true", help="test rows of different code against each other"
    )


def run(args: argparse.Namespace) -> int:
    """Print the table and write the report and its tables into the folder."""
    from treesyntax.study.session import report  # figures take a second to load

    report(args.folder, args.baseline, args.mix_versions)
    return 0

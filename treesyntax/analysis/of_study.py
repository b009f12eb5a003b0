"""All analyses of a study as a whole: so far how far mask strengths spread beside what masks gain.

Example: python -m treesyntax.analysis.of_study runs/lines-en-sv-1a2b3c4d --metric bleu
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from treesyntax.analysis import strength_study
from treesyntax.analysis.dispatch import Analysis, write_analyses
from treesyntax.analysis.figures import run_analysis

NAME = "of_study"


def main(argv: Sequence[str] | None = None) -> int:
    """Analyse one study; what cannot be drawn is listed, and only a bad folder is a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=Path, help="folder of a study that has run")
    parser.add_argument("--metric", required=True, help="as in results.jsonl, such as bleu")
    parser.add_argument("--out", type=Path, required=True, help="folder for figures and numbers")
    args = parser.parse_args(argv)

    def strengths(folder: Path) -> None:
        options = {"studies": [args.study], "metric": args.metric, "baseline": None}
        strength_study.analyse(Namespace(**options, out=folder))

    analyses = [Analysis(strength_study.NAME, "", strengths)]
    return run_analysis(NAME, lambda: write_analyses(analyses, args.out))


if __name__ == "__main__":
    sys.exit(main())

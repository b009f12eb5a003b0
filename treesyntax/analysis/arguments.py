"""The arguments of every analysis, declared without importing torch or matplotlib.

An analysis NAME is the function ``analyse`` of ``treesyntax.analysis.NAME``, or of ``paper.NAME`` there; its
parameters bear the names of these arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treesyntax.errors import TreeSyntaxError
from treesyntax.study.results.figure_files import paper_arguments, papers_of

SIDES = ("encoder", "decoder")
SUBSET = "valid"
PANELS = ("mask_strengths", "attention_mass", "attention_against_chance", "sentence_masks")

Argument = Callable[[argparse.ArgumentParser], None]


def _argument(*names: str, **settings: Any) -> Argument:
    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(*names, **settings)

    return add


def _all(*arguments: Argument) -> Argument:
    def add(parser: argparse.ArgumentParser) -> None:
        for argument in arguments:
            argument(parser)

    return add


_CHECKPOINT = _argument(
    "checkpoint",
    metavar="CHECKPOINT",
    type=Path,
    help="file that fairseq-train wrote, or the folder of a run or a study",
)
_SIDE = _argument(
    "--side", choices=SIDES, default=SIDES[0], help="whose methods to show (default %(default)s)"
)
_DATA = _argument(
    "data", metavar="DATA", type=Path, nargs="?",
    help="folder that treesyntax binarize wrote (default: that of the run)",
)  # fmt: skip
_SUBSET = _argument("--subset", default=SUBSET, help="train, valid or test (default %(default)s)")
_SENTENCE = _argument(
    "--sentence",
    type=int,
    default=0,
    metavar="N",
    help="index of the sentence in the subset (default 0)",
)
_NODES = _all(
    _argument(
        "--levels", type=int, default=4, metavar="N",
        help="levels of the complete tree to draw (default 4)",
    ),
    _argument(
        "--data", type=Path, metavar="DATA", help="draw the tree of a sentence in this folder instead"
    ),
    _SUBSET,
    _SENTENCE,
)  # fmt: skip
_TREE = _argument(
    "--tree", default="(S (NP the cat) (VP sees (NP it)))", metavar="BRACKETS",
    help="tree to draw (default %(default)s)",
)  # fmt: skip
_METRIC = _argument("--metric", required=True, help="one in the study's runs.jsonl, such as bleu")
_OUT = _all(
    _argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="folder for figures and numbers"
    ),
    paper_arguments,
)

ARGUMENTS: dict[str, Argument] = {
    "attention_mass": _all(
        _CHECKPOINT,
        _DATA,
        _SUBSET,
        _argument("--limit", type=int, default=200, metavar="N", help="read the first N sentences (default 200)"),
        _OUT,
    ),
    "encoding_attention": _all(
        _CHECKPOINT,
        _SIDE,
        _argument("--p", type=float, nargs="*", default=[1.0, 0.9, 0.6], help="draw these p too; 1 has no parameters (default 1 0.9 0.6)"),
        _argument("--moves", nargs="*", default=[], metavar="MOVE", help="such as U D0 UU D1U (default: parent, children, grandparent, siblings)"),
        _argument("--temperature", type=float, default=1.0, help="temperature that scores of --p are divided by (default 1)"),
        _NODES,
        _OUT,
    ),
    "encoding_similarity": _all(
        _CHECKPOINT,
        _SIDE,
        _argument("--p", type=float, nargs="*", default=[0.3, 0.6, 0.9], help="draw these p too (default 0.3 0.6 0.9)"),
        _NODES,
        _OUT,
    ),
    "facts": _all(
        _CHECKPOINT,
        _argument("--last", type=Path, metavar="FILE", help="last checkpoint of the training (default: CHECKPOINT)"),
    ),
    "idea": _all(_TREE, _OUT),
    "mask_strengths": _all(_CHECKPOINT, _SIDE, _OUT),
    "method": _all(
        _argument("method", metavar="METHOD", help="with its arguments, or several joined by +"),
        _TREE,
        _OUT,
    ),
    "panels": _all(
        _argument("paths", metavar="PLACE", type=Path, nargs="+", help="folders of studies, or JSON files of analyses"),
        _argument("--kind", choices=PANELS, default=PANELS[0], help="what to draw (default %(default)s)"),
        _SIDE,
        _argument("--rows", nargs="+", default=[], metavar="ROW", help="rows of the studies (default all)"),
        _argument("--seeds", type=int, nargs="+", default=[], metavar="N", help="seeds of the studies (default all)"),
        _argument("--layers", type=int, nargs="+", default=[], metavar="N", help="from 1 (default all)"),
        _argument("--heads", type=int, nargs="+", default=[], metavar="N", help="from 1 (default all)"),
        _argument("--limit", type=float, metavar="X", help="end of the colour scale, the same for several figures (default: the largest value shown)"),
        _OUT,
    ),
    "relative_tables": _all(_CHECKPOINT, _SIDE, _OUT),
    "run": _all(
        _argument("checkpoints", metavar="CHECKPOINTS", type=Path, help="folder of a training's checkpoints, or of a run or a study"),
        _DATA,
        _argument("--tested", type=Path, metavar="FILE", help="draw this checkpoint (default: the best one)"),
        _argument("--trees", type=Path, nargs="*", default=[], metavar="DATA", help="other folders, whose trees serve if their tokens are the same"),
        _argument("--numbers-only", action="store_true", help="draw no figures, which take most of the time"),
        _OUT,
    ),
    "sentence_masks": _all(_CHECKPOINT, _DATA, _SUBSET, _SENTENCE, _OUT),
    "strength_study": _all(
        _argument("studies", metavar="STUDY", type=Path, nargs="+", help="folders of finished studies"),
        _METRIC,
        _argument("--baseline", metavar="METHOD", help="compare with it (default: as each recipe says)"),
        _OUT,
    ),
    "strength_trajectories": _all(
        _argument("checkpoints", metavar="CHECKPOINT", type=Path, nargs="+", help="files of one training, or the folder of a run or a study"),
        _SIDE,
        _OUT,
    ),
    "study": _all(
        _argument("study", metavar="STUDY", type=Path, help="folder of a finished study"),
        _METRIC,
        _OUT,
    ),
}  # fmt: skip
"""Declares the arguments of each analysis, by its name."""
PAPER = ("encoding_attention", "method", "panels")
"""The analyses of the folder ``paper``."""


@contextmanager
def script(name: str, text: str | None) -> Iterator[argparse.Namespace]:
    """The arguments of a script that draws a figure; a user's mistake is one line and status 2.

    Args:
        name: the analysis that takes the same arguments.
        text: what ``--help`` says first.
    """
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ARGUMENTS[name](parser)
    args = parser.parse_args()
    try:
        with papers_of(args):
            yield args
    except TreeSyntaxError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")

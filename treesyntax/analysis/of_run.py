"""All analyses that fit the methods of one run, each side of its model for itself.

Attention is sorted by the relations of the run's own trees. Where its data has none, those of other
data serve whose tokens are the very same: the plain Transformer is measured on the trees that the
others see.

Example: python -m treesyntax.analysis.of_run runs/a-1/checkpoints binarized/a --trees binarized/b --out out
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from treesyntax.analysis import (
    attention_mass,
    encoding_similarity,
    mask_strengths,
    relative_tables,
    sentence_masks,
    strength_trajectories,
)
from treesyntax.analysis.dispatch import Analysis, write_analyses
from treesyntax.analysis.figures import run_analysis
from treesyntax.analysis.loading import SIDES, build_methods
from treesyntax.analysis.sentences import Sentences
from treesyntax.data.token_files import find_prefix, token_files
from treesyntax.errors import InputError, OptionError
from treesyntax.model.checkpoint import load_checkpoint

NAME = "of_run"
BEST = "checkpoint_best.pt"
SUBSET = "valid"
MOST_SENTENCES = 100
SENTENCE_LENGTHS = range(6, 17)
"""Tokens of a sentence whose masks are drawn, if there is one of such a length."""
MOST_PLACES = 21
"""Nodes of the tree whose encodings are compared: their names must stay legible."""
FEWEST_MOMENTS = 3


def find_trees(data: Path, others: Sequence[Path]) -> Path:
    """The folder whose source trees belong to the tokens of ``data``.

    Args:
        data: the run's own; comes first if it has trees.
        others: the other data of a study.

    Raises:
        OptionError: if there is none.
    """
    own = find_prefix(data, SUBSET, "source")
    for folder in (data, *others):
        prefix = find_prefix(folder, SUBSET, "source")
        has_trees = prefix.with_name(f"{prefix.name}.tree").exists()
        if has_trees and _content(prefix) == _content(own):
            return folder
    raise OptionError(
        "the source of its data has no trees"
        + (", and no other data of the study has the same tokens with trees" if others else "")
    )


def _content(prefix: Path) -> list[bytes]:
    dictionary = prefix.with_name(f"dict.{prefix.name.rpartition('.')[2]}.txt")
    return [path.read_bytes() for path in (*token_files(prefix), dictionary)]


def choose_sentence(sentences: Sentences) -> int:
    """The first sentence of a length that can be drawn well, else the shortest of the first ones."""
    lengths = [
        sentences[number].tokens.shape[1] for number in range(min(len(sentences), MOST_SENTENCES))
    ]
    fitting = [number for number, length in enumerate(lengths) if length in SENTENCE_LENGTHS]
    return fitting[0] if fitting else lengths.index(min(lengths))


def choose_levels(degree: int) -> int:
    """Levels of a complete tree of few enough nodes, at least two."""
    levels, nodes = 1, 1
    while nodes + degree**levels <= MOST_PLACES or levels < 2:
        nodes += degree**levels
        levels += 1
        if degree < 2 and levels == MOST_PLACES:
            break
    return levels


def find_analyses(
    checkpoints: Path, best: Path, data: Path, others: Sequence[Path]
) -> Iterator[Analysis]:
    """The analyses that fit a run's methods.

    Args:
        checkpoints: folder of all that training left.
        best: the one that is tested.
        data: the run's data.
        others: other data of the same study.

    Raises:
        TreeSyntaxError: for a checkpoint that cannot be read.
    """
    state = load_checkpoint(best)
    yield Analysis(attention_mass.NAME, "encoder", _attention(best, data, others))
    for side in SIDES:
        composition = build_methods(state, best, side)
        methods: dict[str, Any] = dict(composition.items())
        of_side = {"checkpoint": best, "side": side}
        if "relation_mask" in methods:
            yield _plain(mask_strengths, of_side)
            if side == "encoder":
                yield Analysis(sentence_masks.NAME, side, _sentence(best, data))
            yield Analysis(strength_trajectories.NAME, side, _trajectories(checkpoints, side))
        if "stack_pe" in methods:
            levels = choose_levels(methods["stack_pe"].degree)
            tree = {"p": [0.3, 0.6, 0.9], "levels": levels, "data": None}
            yield _plain(encoding_similarity, {**of_side, **tree})
        if relative_tables.compute_tables(composition):
            yield _plain(relative_tables, of_side)


def _plain(module: Any, options: Mapping[str, Any]) -> Analysis:
    """An analysis that is a module's own command."""
    return Analysis(
        module.NAME,
        options["side"],
        lambda folder: module.analyse(Namespace(**options, out=folder)),
    )


def _attention(best: Path, data: Path, others: Sequence[Path]) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        trees = find_trees(data, others)
        options = {"checkpoint": best, "data": trees, "subset": SUBSET, "limit": MOST_SENTENCES}
        attention_mass.analyse(Namespace(**options, out=folder))

    return work


def _sentence(best: Path, data: Path) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        number = choose_sentence(Sentences(data, SUBSET))
        options = {"checkpoint": best, "data": data, "subset": SUBSET, "sentence": number}
        sentence_masks.analyse(Namespace(**options, out=folder))

    return work


def _trajectories(checkpoints: Path, side: str) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        paths = sorted(checkpoints.glob("*.pt"))
        updates = {strength_trajectories.read_moment(path, side).update for path in paths}
        if len(updates) < FEWEST_MOMENTS:
            raise OptionError(
                f"there are checkpoints of {len(updates)} updates, too few for a line; keep more "
                "with train.keep-interval-updates"
            )
        options = {"checkpoints": paths, "side": side}
        strength_trajectories.analyse(Namespace(**options, out=folder))

    return work


def main(argv: Sequence[str] | None = None) -> int:
    """Analyse one run; what cannot be drawn is listed, and only a bad checkpoint is a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoints", type=Path, help=f"folder with {BEST} and others of its run")
    parser.add_argument(
        "--tested", type=Path, metavar="FILE",
        help=f"the checkpoint to draw, if it is not {BEST}",
    )  # fmt: skip
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of treesyntax binarize")
    parser.add_argument(
        "--trees", type=Path, nargs="*", default=[], metavar="DATA",
        help="other data, that may have trees over the same tokens",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="folder for figures and numbers")
    args = parser.parse_args(argv)

    def work() -> None:
        if not (args.checkpoints / BEST).is_file():
            raise InputError(args.checkpoints, None, f"has no {BEST}", "train it first")
        best = args.tested or args.checkpoints / BEST
        write_analyses(find_analyses(args.checkpoints, best, args.data, args.trees), args.out)

    return run_analysis(NAME, work)


if __name__ == "__main__":
    sys.exit(main())

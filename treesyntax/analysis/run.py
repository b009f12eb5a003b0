"""All analyses that fit the methods of one run.

Figures and numbers of all go into one folder, with a list of them, analyses.json. Attention is
sorted by the relations of the run's own trees. Where its data has none, trees of --trees serve if
their tokens are the same: the plain Transformer is measured on the trees that the others see.

Example: treesyntax analyse run runs/a-1/checkpoints binarized/a --trees binarized/b --out out
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from treesyntax.analysis import (
    attention_mass,
    encoding_similarity,
    figures,
    mask_strengths,
    relative_tables,
    sentence_masks,
    strength_trajectories,
)
from treesyntax.analysis.arguments import SIDES, SUBSET
from treesyntax.analysis.dispatch import Analysis, write_analyses
from treesyntax.analysis.loading import build_methods
from treesyntax.analysis.sentences import Sentences
from treesyntax.data.manifest import dictionary_file
from treesyntax.data.token_files import find_prefix, token_files
from treesyntax.errors import InputError, OptionError
from treesyntax.methods.encodings.stack_pe import StackEncoding
from treesyntax.model.checkpoint import load_checkpoint

BEST = "checkpoint_best.pt"
MOST_SENTENCES = 100
SENTENCE_LENGTHS = range(6, 17)
"""Tokens of a sentence whose masks are legible."""
CHOSEN_P = (0.3, 0.6, 0.9)
MOST_NODES = 21
"""Nodes whose encodings are compared: more names would not be legible."""


def find_trees(data: Path, others: Sequence[Path]) -> Path:
    """The first folder that has trees over the source tokens of ``data``.

    Args:
        data: the run's own; comes first.
        others: the other data of a study.
    """
    run_prefix = find_prefix(data, SUBSET, "source")
    for folder in (data, *others):
        prefix = find_prefix(folder, SUBSET, "source")
        has_trees = prefix.with_name(f"{prefix.name}.tree").exists()
        if has_trees and _content(prefix) == _content(run_prefix):
            return folder
    raise OptionError(
        "the source of its data has no trees"
        + (", and no other data of the study has the same tokens with trees" if others else "")
    )


def _content(prefix: Path) -> list[bytes]:
    dictionary = prefix.with_name(dictionary_file(prefix.name.rpartition(".")[2]))
    return [path.read_bytes() for path in (*token_files(prefix), dictionary)]


def choose_sentence(sentences: Sentences) -> int:
    """The index of the first sentence of a legible length, else of the shortest of the first ones."""
    lengths = [
        sentences[index].tokens.shape[1] for index in range(min(len(sentences), MOST_SENTENCES))
    ]
    fitting = [index for index, length in enumerate(lengths) if length in SENTENCE_LENGTHS]
    return fitting[0] if fitting else lengths.index(min(lengths))


def choose_levels(degree: int) -> int:
    """Levels of a complete tree of few enough nodes, at least two."""
    levels, nodes = 1, 1
    while nodes + degree**levels <= MOST_NODES or levels < 2:
        nodes += degree**levels
        levels += 1
        if degree < 2 and levels == MOST_NODES:
            break
    return levels


def find_analyses(
    checkpoints: Path, best: Path, data: Path, others: Sequence[Path]
) -> Iterator[Analysis]:
    """The analyses that fit a run's methods.

    Args:
        checkpoints: folder of all checkpoints of the training.
        best: the one that is tested.
        data: the run's data.
        others: other data of the same study.
    """
    state = load_checkpoint(best)
    yield Analysis(attention_mass.NAME, "encoder", partial(_attention, best, data, others))
    for side in SIDES:
        methods = build_methods(state, best, side)
        if "relation_mask" in methods:
            yield Analysis(mask_strengths.NAME, side, partial(mask_strengths.analyse, best, side))
            if side == "encoder":
                yield Analysis(sentence_masks.NAME, side, partial(_sentence, best, data))
            trajectories = partial(_trajectories, checkpoints, side)
            yield Analysis(strength_trajectories.NAME, side, trajectories)
        if "stack_pe" in methods:
            levels = choose_levels(cast(StackEncoding, methods["stack_pe"]).degree)
            draw = partial(encoding_similarity.analyse, best, side, CHOSEN_P, levels, None, "", 0)
            yield Analysis(encoding_similarity.NAME, side, draw)
        if relative_tables.compute_tables(methods):
            yield Analysis(relative_tables.NAME, side, partial(relative_tables.analyse, best, side))


def _attention(best: Path, data: Path, others: Sequence[Path], out: Path) -> None:
    attention_mass.analyse(best, find_trees(data, others), SUBSET, MOST_SENTENCES, out)


def _sentence(best: Path, data: Path, out: Path) -> None:
    sentence = choose_sentence(Sentences(data, SUBSET))
    sentence_masks.analyse(best, data, SUBSET, sentence, out)


def _trajectories(checkpoints: Path, side: str, out: Path) -> None:
    strength_trajectories.analyse(sorted(checkpoints.glob("*.pt")), side, out)


def analyse(
    checkpoints: Path,
    data: Path,
    tested: Path | None,
    trees: Sequence[Path],
    numbers_only: bool,
    out: Path,
) -> None:
    """Draw what can be drawn, and list the rest with the reasons."""
    if not (checkpoints / BEST).is_file():
        raise InputError(checkpoints, None, f"has no {BEST}", "train it first")
    for folder in (data, *trees):
        find_prefix(folder, SUBSET, "source")
    analyses = find_analyses(checkpoints, tested or checkpoints / BEST, data, trees)
    with figures.numbers_only(numbers_only):
        write_analyses(analyses, out)

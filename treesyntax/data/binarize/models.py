"""Subword models of ``treesyntax binarize``: given ones are copied, missing ones trained."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from treesyntax.data.binarize.encode import words_of_batch
from treesyntax.data.binarize.options import BinarizeOptions, SideOptions
from treesyntax.data.binarize.read import BatchMap, tasks
from treesyntax.data.sentencepiece import Segmenter, train_model


def prepare_models(options: BinarizeOptions, batch_map: BatchMap, folder: Path) -> BinarizeOptions:
    """The options with a model in ``folder`` for every side that is to be segmented.

    Trees without words, such as logical forms, are left whole: their labels are symbols.
    """
    paths = {
        side.role: _copied(side.encoding.model, _model_path(folder, side))
        for side in options.sides
        if side.encoding.model
    }
    if options.subword_vocab:
        paths |= _train(options, batch_map, folder)
    source, target = (
        replace(side, encoding=side.encoding._replace(model=paths.get(side.role)))
        for side in options.sides
    )
    return replace(options, source=source, target=target)


def _train(options: BinarizeOptions, batch_map: BatchMap, folder: Path) -> dict[str, Path]:
    free = [side for side in options.sides if side.wants_model]
    groups = [free] if options.joined_subwords else [[side] for side in free]
    paths = {}
    for group in groups:
        lines = {side.role: _training_lines(side, batch_map) for side in group}
        firsts = {role: next(texts, "") for role, texts in lines.items()}
        worded = [side for side in group if firsts[side.role] or not side.has_trees]
        if not worded:
            continue
        text = chain.from_iterable(chain([firsts[side.role]], lines[side.role]) for side in worded)
        first = worded[0]
        trained = _model_path(folder, first)
        origin = first.files["train"]
        train_model(text, options.subword_vocab, options.subword_type, trained, origin)
        for side in worded:
            paths[side.role] = _copied(trained, _model_path(folder, side))
    return paths


def _training_lines(side: SideOptions, batch_map: BatchMap) -> Iterator[str]:
    batches = batch_map(words_of_batch, tasks([side], ["train"]))
    return (line for _, lines in batches for line in lines if line and not line.isspace())


def _model_path(folder: Path, side: SideOptions) -> Path:
    return folder / f"subwords.{side.language}.model"


def _copied(model: Path, path: Path) -> Path:
    Segmenter(model)  # refuses what is not a model
    if model != path:
        shutil.copyfile(model, path)
    return path

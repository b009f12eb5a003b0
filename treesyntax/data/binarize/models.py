"""Subword models of ``treesyntax binarize``: given ones are copied, missing ones trained."""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from threading import Event, Thread

from treesyntax.data.binarize.encode import words_of_batch
from treesyntax.data.binarize.options import BinarizeOptions, SideOptions
from treesyntax.data.binarize.read import BatchMap, tasks
from treesyntax.data.binarize.spelling import alike_until
from treesyntax.data.sentencepiece import Segmenter, train_model
from treesyntax.errors import InputError
from treesyntax.remarks import Remark, remark, remarks_of

Say = Callable[[str], None]
CHECKED_LINES = 1000
"""Lines of each side that must come back from their subwords."""
RESPELT = Remark(
    "characters that the subword model spells otherwise (such as ½ as 1⁄2)",
    "no output can have them; --subword-normalization identity trains one that keeps them",
)
WORDLESS = Remark(
    "no words",
    "the subword model cuts none of their labels, which are tokens as they are",
    ("have", "has"),
)
SAY_EVERY = 10.0


def prepare_models(
    options: BinarizeOptions, sentences: int, batch_map: BatchMap, folder: Path, say: Say
) -> BinarizeOptions:
    """The options with a model in ``folder`` for every side that is to be segmented.

    Trees without words, such as logical forms, are left whole: their labels are symbols.

    Args:
        options: all of one call.
        sentences: those of the training split.
        batch_map: maps a function over batches.
        folder: where the models are written.
        say: called with a line where a model is trained on a sample.
    """
    paths = {
        side.role: _copied(side.encoding.model, _model_path(folder, side))
        for side in options.sides
        if side.encoding.model
    }
    if options.subword_vocab:
        paths |= _train(options, sentences, batch_map, folder, say)
    source, target = (
        checked(replace(side, encoding=side.encoding._replace(model=paths.get(side.role))))
        for side in options.sides
    )
    return replace(options, source=source, target=target)


def checked(side: SideOptions) -> SideOptions:
    """The side, once its model segments its first lines so that they can be put together again.

    Raises:
        InputError: if the model is of a kind that its trees cannot have, or a line does not come back.
    """
    encoding = side.encoding
    if encoding.model is None:
        return side
    segmenter = Segmenter(encoding.model)
    if side.has_trees:
        segmenter.check_trees(encoding.units)
    whole = not side.has_trees or bool(encoding.units)
    task = next(tasks([side], ["train"]))
    records, texts = task.batch.records, words_of_batch(encoding, task.batch)
    rows = zip(records.lines, records.texts, texts, strict=True)
    with remarks_of(task.batch.path) as remarks:
        for remarks.line, record, text in islice(rows, CHECKED_LINES):
            remarks.records += 1
            words = text.split()
            if not words and record.strip():
                remark(WORDLESS)
            subwords = (
                segmenter.line(text) if whole else chain.from_iterable(segmenter.words(words))
            )
            decoded, plain = (
                segmenter.text([*subwords]).split(),
                segmenter.normalised(text)[0].split(),
            )
            if decoded != plain:
                at = alike_until(decoded, plain)
                cause = (
                    f"the subwords of {encoding.model.name} spell {' '.join(decoded[at:])[:40]!r} where the text "
                    f"has {' '.join(plain[at:])[:40]!r}"
                )
                raise InputError(task.batch.path, remarks.line, cause, "give another subword model")
            if plain != words:
                remark(RESPELT)
    return replace(side, subword_remarks=tuple(remarks.to_json("first lines")))


def _train(
    options: BinarizeOptions, sentences: int, batch_map: BatchMap, folder: Path, say: Say
) -> dict[str, Path]:
    free = [side for side in options.sides if side.wants_model]
    groups = [free] if options.joined_subwords else [[side] for side in free]
    paths = {}
    for group in groups:
        lines = {side.role: _training_lines(side, batch_map) for side in group}
        firsts = {role: next(texts, "") for role, texts in lines.items()}
        worded = [side for side in group if firsts[side.role] or not side.has_trees]
        if not worded:
            continue
        share = options.subword_sample // len(worded) or sentences
        first = worded[0]
        trained, origin = _model_path(folder, first), first.files["train"]
        sign = SignOfLife(f"the subword model for {' and '.join(side.language for side in worded)}")
        text = chain.from_iterable(
            drawn(chain([firsts[side.role]], lines[side.role]), sentences, share) for side in worded
        )
        try:
            train_model(
                sign.watch(text), options.subword_vocab, options.subword_type, trained, origin,
                options.training,
            )  # fmt: skip
        finally:
            sign.ended.set()
        if share < sentences:
            total = sentences * len(worded)
            say(f"{trained.name} was trained on {sign.read:,} of {total:,} lines, drawn at random; "
                "--subword-sample 0 takes all")  # fmt: skip
        for side in worded:
            paths[side.role] = _copied(trained, _model_path(folder, side))
    return paths


def drawn(lines: Iterable[str], total: int, size: int) -> Iterator[str]:
    """Lines drawn at random in their order, the same ones every time.

    Selection sampling (Knuth, The Art of Computer Programming, vol. 2, algorithm 3.4.2 S), which
    holds none of them.

    Args:
        lines: at most ``total``; of fewer, a smaller share is drawn.
        total: number of lines.
        size: number of lines to draw, all if there are no more.
    """
    draw = random.Random(0)
    for done, line in enumerate(lines):
        if draw.random() * (total - done) < size:
            size -= 1
            yield line


class SignOfLife:
    """Says on standard error every ten seconds how far a subword model is.

    Attributes:
        read: how many lines it has watched.
        ended: to be set when the model is trained, or failed.
    """

    def __init__(self, what: str) -> None:
        self.what, self.read = what, 0
        self.begun = self.said = time.monotonic()
        self.ended = Event()

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines; once they are read, SentencePiece trains, which a thread reports."""
        for line in lines:
            self.read += 1
            if time.monotonic() - self.said >= SAY_EVERY:
                self._say(f"{self.read:,} lines read")
            yield line
        # Not before: worker processes, which read the lines, may be forked from this one.
        Thread(target=self._report, daemon=True).start()

    def _report(self) -> None:
        while not self.ended.wait(SAY_EVERY):
            self._say(f"training on {self.read:,} lines")

    def _say(self, state: str) -> None:
        self.said = time.monotonic()
        seconds = self.said - self.begun
        print(f"{self.what}: {state}, {seconds:.0f} s so far", file=sys.stderr, flush=True)


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

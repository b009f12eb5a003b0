"""Where translations go: standard output, at once, or a file, whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import sentencepiece

from treesyntax.data.manifest import SideData
from treesyntax.decoding.engine import Hypothesis
from treesyntax.errors import InputError
from treesyntax.files import atomic_file
from treesyntax.trees.linearizations import as_text, get_linearization

EMPTY = Hypothesis(0.0, [])
"""The translation of an empty line, which nobody asks the model for."""
# Output stays aligned with the input, whatever a token holds.
_LINE_ENDS = str.maketrans("\n\r", "  ")


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The output: ``-`` is standard output; a file appears under its name once all is written.

    Raises:
        InputError: if the file cannot be written.
    """
    if path == "-":
        yield sys.stdout.buffer
        return
    if os.path.isdir(path):
        raise InputError(path, None, "is a folder", "name a file")
    with atomic_file(Path(path)) as staged, staged.open("wb") as stream:
        yield stream


def lines_of(
    number: int, hypotheses: Sequence[Hypothesis], to_text: ToText, with_scores: bool
) -> str:
    """The output of one sentence, with its line end.

    Args:
        number: of the sentence in the input, from 1.
        hypotheses: best first, at least one.
        to_text: makes text of tokens.
        with_scores: all of them as tab-separated columns number, score and text; else the best
            one's text alone.
    """
    texts = [to_text(tokens).translate(_LINE_ENDS) if tokens else "" for _, tokens in hypotheses]
    if not with_scores:
        return texts[0] + "\n"
    scores = (hypothesis.score for hypothesis in hypotheses)
    return "".join(
        f"{number}\t{score:.4f}\t{text}\n" for score, text in zip(scores, texts, strict=True)
    )


ToText = Callable[[Sequence[str]], str]


def make_to_text(side: SideData) -> ToText:
    """How the target's tokens become text.

    Tokens that are a tree's are written as the tree in the notation of the training data; where
    the linearization does not tell the tree, and where nobody knows how words were segmented, the
    tokens
    stay as they are.

    Raises:
        InputError: if the subword model cannot be read.
    """
    encoding = side.encoding
    if side.has_trees and get_linearization(encoding.linearization).tree is not None:
        return lambda tokens: as_text(
            " ".join(tokens), encoding.linearization, encoding.format_name
        )
    if encoding.model is not None:
        return _decoder(encoding.model)
    if side.pieces and encoding.pieces_style == "sentencepiece":
        return lambda tokens: "".join(tokens).replace("▁", " ").strip()
    if side.pieces:
        return lambda tokens: f"{' '.join(tokens)} ".replace("@@ ", "").rstrip()
    return " ".join


def _decoder(model: Path) -> ToText:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError):
        raise InputError(
            model, None, "cannot be read as a SentencePiece model", "run treesyntax binarize again"
        ) from None
    # A lone mark of a word at the end would leave a space.
    return lambda tokens: str(processor.decode(list(tokens))).strip()

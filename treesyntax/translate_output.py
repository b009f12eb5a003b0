"""Where translations go: standard output, at once, or a file, whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from treesyntax.errors import InputError
from treesyntax.files import atomic_file
from treesyntax.translate_engine import Hypothesis
from treesyntax.translate_text import ToText

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

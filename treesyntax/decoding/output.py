"""Output of ``treesyntax translate``: hypotheses become text and are written line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import sentencepiece

from treesyntax.data.manifest import SideData
from treesyntax.decoding.engine import Hypothesis
from treesyntax.errors import InputError
from treesyntax.trees.linearizations import MALFORMED, tree_text

ToText = Callable[[Sequence[str]], str]
"""Makes text of target tokens."""

# A token with a line end must not shift the output against the input.
_LINE_ENDS = str.maketrans("\n\r", "  ")


def make_to_text(side: SideData) -> ToText:
    """A function that makes text of the target's tokens.

    Where the linearization determines the tree, the text is the tree in the format of the training
    data. If the segmentation is not known, the tokens stay as they are.
    """
    encoding = side.encoding
    form = tree_text(
        encoding.format_name, encoding.linearization, encoding.control, encoding.control_seed
    )
    if form is not None:
        return lambda tokens: form.text(" ".join(tokens))
    if encoding.model is not None:
        return _decoder(encoding.model)
    if side.segmented and encoding.subwords_style == "sentencepiece":
        return lambda tokens: "".join(tokens).replace("▁", " ").strip()
    if side.segmented:
        return lambda tokens: f"{' '.join(tokens)} ".replace("@@ ", "").rstrip()
    return " ".join


def _decoder(model: Path) -> ToText:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError):
        raise InputError(
            model, None, "cannot be read as a SentencePiece model", "run treesyntax binarize again"
        ) from None
    # The library leaves the ▁ of unknown subwords; a lone one at the end would leave a space.
    return lambda tokens: str(processor.decode(list(tokens))).replace("▁", " ").strip()


class Writer(NamedTuple):
    """Writes the hypotheses of one sentence after the other.

    Attributes:
        stream: the output.
        to_text: turns tokens into text.
        with_scores: write all hypotheses as tab-separated columns: number of the sentence from 1,
            score, text; else only the text of the best one.
        written: counts under ``malformed`` the hypotheses that the format of the target cannot hold,
            which are written as a lone bracket.
    """

    stream: BinaryIO
    to_text: ToText
    with_scores: bool
    written: Counter[str]

    def write(self, number: int, hypotheses: Sequence[Hypothesis]) -> None:
        """Write the hypotheses of a sentence, of which there is at least one, best first."""
        if not self.with_scores:
            hypotheses = hypotheses[:1]
        for score, tokens in hypotheses:
            text = self.to_text(tokens).translate(_LINE_ENDS) if tokens else ""
            self.written["malformed"] += text == MALFORMED
            columns = f"{number}\t{score:.4f}\t" if self.with_scores else ""
            self.stream.write(f"{columns}{text}\n".encode())

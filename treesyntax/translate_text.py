"""What target tokens say: text without marks of subwords, or the tree that they are, written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import sentencepiece

from treesyntax.errors import InputError, TreeError
from treesyntax.linearize import get_view
from treesyntax.translate_data import SideData
from treesyntax.tree_scores import MALFORMED, from_view

ToText = Callable[[Sequence[str]], str]


def as_text(hypothesis: str, view: str, notation: str) -> str:
    """The tokens of a view as a tree in a notation; what is no tree stays malformed.

    Raises:
        OptionError: if there is no such view or notation, or the view does not determine the tree.
    """
    try:
        return from_view(hypothesis, view, notation)
    except TreeError:
        return MALFORMED


def make_to_text(side: SideData) -> ToText:
    """How the target's tokens become text.

    Tokens that are a tree's are written as the tree in the notation of the training data; where
    the view does not tell the tree, and where nobody knows how words were segmented, the tokens
    stay as they are.

    Raises:
        InputError: if the subword model cannot be read.
    """
    encoding = side.encoding
    if side.has_trees and get_view(encoding.view).tree is not None:
        return lambda tokens: as_text(" ".join(tokens), encoding.view, encoding.format_name)
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

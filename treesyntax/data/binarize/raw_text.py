"""One sentence whose words have places in a raw line: its pieces, and the tree over them."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.data.binarize.alignment import (
    Group,
    Span,
    check_spans,
    group_pieces,
    group_units,
    segments,
    units,
)
from treesyntax.data.binarize.spelling import piece_places, raw_places
from treesyntax.data.sentencepiece import Segmenter, standard_normalised
from treesyntax.errors import TreeError
from treesyntax.trees.merging import merge_words
from treesyntax.trees.tree import Tree

TOKEN_UNITS, LINE_UNITS = "token", "line"
SUBWORD_UNITS = (TOKEN_UNITS, LINE_UNITS)


def check_places(tree: Tree, text: str, spans: Sequence[Span]) -> None:
    """Refuse places that are not those of the words of this tree in this text.

    Raises:
        TreeError: if there are more or fewer of them than words, they are not places in the
            text from left to right, or there is text, but no word.
    """
    words = len(tree.word_nodes())
    if len(spans) != words:
        raise TreeError(
            f"{len(spans)} words have offsets, but the tree has {words} words",
            "the offsets belong to another tree; parse the text again",
        )
    check_spans(text, spans)
    if not words and text.strip():
        raise TreeError(f"the text {text[:40]!r} has a tree without words", "parse the text again")


def over_tokens(
    tree: Tree, text: str, spans: Sequence[Span], segmenter: Segmenter | None
) -> tuple[Tree, list[list[str]]]:
    """The pieces of every parser token, segmented on its own, and the tree over these tokens.

    Without a segmenter white space alone separates pieces.

    Args:
        tree: the tree.
        text: the raw line.
        spans: the place of each word in it; equal for the words of one multi-word token, which
            become one word.
        segmenter: a subword model.
    """
    whole = units(spans)
    plain = len(whole) == len(spans)
    parts = segments(text, spans if plain else [spans[first] for first, _ in whole])
    pieces = segmenter.segments(parts) if segmenter else [part.split() for part in parts]
    if plain and all(pieces):
        return tree, pieces
    return _over_groups(tree, text, spans, group_units(whole, pieces))


def over_line(
    tree: Tree, text: str, spans: Sequence[Span], segmenter: Segmenter
) -> tuple[Tree, list[list[str]]]:
    """The pieces of the line, segmented as a whole, and the tree over the words they make."""
    pieces = segmenter.line(text)
    normal, origins = segmenter.normalised(text)
    places = raw_places(piece_places(pieces, normal, "sentencepiece"), origins)
    return _over_groups(tree, text, spans, group_pieces(spans, pieces, places))


def over_pieces(
    tree: Tree, text: str, spans: Sequence[Span], pieces: list[str], style: str
) -> tuple[Tree, list[list[str]]]:
    """Pieces made elsewhere, by word, and the tree over the words they make.

    Pieces of SentencePiece may spell the line as its default ``nmt_nfkc`` normalises it.

    Raises:
        TreeError: if the pieces do not spell the text.
    """
    try:
        places = piece_places(pieces, text, style)
    except TreeError as error:
        if style != "sentencepiece":
            raise
        normal, origins = standard_normalised(text)
        try:
            places = raw_places(piece_places(pieces, normal, style), origins)
        except TreeError:
            raise error from None
    return _over_groups(tree, text, spans, group_pieces(spans, pieces, places))


def _over_groups(
    tree: Tree, text: str, spans: Sequence[Span], groups: list[Group]
) -> tuple[Tree, list[list[str]]]:
    words = [(group.first, group.end) for group in groups]
    forms = [text[spans[first][0] : spans[end - 1][1]] for first, end in words]
    return merge_words(tree, words, forms), [group.pieces for group in groups]

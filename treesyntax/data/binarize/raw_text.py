"""One sentence whose words have character spans in a raw line: its subwords, and their tree."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.data.binarize.alignment import (
    Group,
    Span,
    check_spans,
    group_subwords,
    group_units,
    segments,
    stretches_outside,
)
from treesyntax.data.binarize.spelling import raw_spans, subword_spans
from treesyntax.data.sentencepiece import Segmenter, standard_normalised
from treesyntax.errors import TreeError
from treesyntax.remarks import Remark, remark
from treesyntax.trees.formats.offsets import check_spelling
from treesyntax.trees.merging import merge_words, units
from treesyntax.trees.tree import Tree

OUTSIDE = Remark(
    "text that no word of the tree covers",
    "its subwords go to the words beside it: check that the trees are of the whole text",
)


def check_spans_of_tree(tree: Tree, text: str, spans: Sequence[Span], spelt: bool) -> None:
    """Refuse spans that are not those of the words of this tree in this text.

    Args:
        tree: the tree.
        text: its raw line.
        spans: those of its words.
        spelt: whether the words are known to be at their spans.
    """
    words = [tree.labels[node] for node in tree.word_nodes()]
    if len(spans) != len(words):
        raise TreeError(
            f"{len(spans)} words have offsets, but the tree has {len(words)} words",
            "the offsets belong to another tree; parse the text again",
        )
    check_spans(text, spans)
    if not words and text.strip():
        raise TreeError(f"the text {text[:40]!r} has a tree without words", "parse the text again")
    if not spelt:
        check_spelling(words, spans, text)
    if stretches := stretches_outside(text, spans):
        remark(OUTSIDE, stretches)


def over_tokens(
    tree: Tree, text: str, spans: Sequence[Span], segmenter: Segmenter | None
) -> tuple[Tree, list[list[str]]]:
    """The subwords of every parser token, segmented on its own, and the tree over these tokens.

    Without a segmenter white space alone separates subwords. The words of one multi-word token,
    which have equal spans, become one word.
    """
    plain = len(set(spans)) == len(spans)
    whole = [] if plain else units(spans)
    stretches = segments(text, spans if plain else [spans[first] for first, _ in whole])
    subwords = (
        segmenter.segments(stretches) if segmenter else [stretch.split() for stretch in stretches]
    )
    if plain and all(subwords):
        return tree, subwords
    return _over_groups(tree, text, spans, group_units(whole or units(spans), subwords))


def over_line(
    tree: Tree, text: str, spans: Sequence[Span], segmenter: Segmenter
) -> tuple[Tree, list[list[str]]]:
    """The subwords of the line, segmented as a whole, and the tree over the words they make."""
    subwords = segmenter.line(text)
    normal, origins = segmenter.normalised(text)
    spans_of_subwords = raw_spans(subword_spans(subwords, normal, "sentencepiece"), origins)
    return _over_groups(tree, text, spans, group_subwords(spans, subwords, spans_of_subwords))


def over_subwords(
    tree: Tree, text: str, spans: Sequence[Span], subwords: list[str], style: str
) -> tuple[Tree, list[list[str]]]:
    """Subwords made elsewhere, by word, and the tree over the words they make.

    Subwords of SentencePiece may spell the line as its default ``nmt_nfkc`` normalises it.

    Raises:
        TreeError: if the subwords do not spell the text.
    """
    try:
        spans_of_subwords = subword_spans(subwords, text, style)
    except TreeError as error:
        if style != "sentencepiece":
            raise
        normal, origins = standard_normalised(text)
        try:
            spans_of_subwords = raw_spans(subword_spans(subwords, normal, style), origins)
        except TreeError:
            raise error from None
    return _over_groups(tree, text, spans, group_subwords(spans, subwords, spans_of_subwords))


def _over_groups(
    tree: Tree, text: str, spans: Sequence[Span], groups: list[Group]
) -> tuple[Tree, list[list[str]]]:
    words = [(group.first, group.end) for group in groups]
    forms = [text[spans[first][0] : spans[end - 1][1]] for first, end in words]
    return merge_words(tree, words, forms), [group.subwords for group in groups]

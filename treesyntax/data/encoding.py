"""How one side of a data set becomes tokens."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from treesyntax.trees.names import GIVEN
from treesyntax.trees.names import TEXT as TEXT

SIDES = ("source", "target")
MANIFEST = "binarize.json"
"""Beside binarized data: all options and counts."""
CONLLU = "conllu"
WORDS_LINEARIZATION = "words"
TREE_LINEARIZATION = "preorder"
WORD_FORMATS = (TEXT, CONLLU)
"""The formats whose nodes are words, so that their natural tokens are the sentence."""
MODEL_TYPES = ("unigram", "bpe")
NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
"""Normalization rules of SentencePiece; its own default comes first."""
SUBWORDS_STYLES = ("sentencepiece", "subword-nmt")
TOKEN_UNITS, LINE_UNITS = "token", "line"
SUBWORD_UNITS = (TOKEN_UNITS, LINE_UNITS)
SPAN_FORMATS = (CONLLU, "ptb")
"""The formats for which the parsers keep the character span of every word."""


def usual_linearization(format_name: str) -> str:
    """The linearization of a side whose options name none."""
    return WORDS_LINEARIZATION if format_name in WORD_FORMATS else TREE_LINEARIZATION


class Training(NamedTuple):
    """How a subword model is trained, beside its size and type; SentencePiece's own defaults.

    Attributes:
        normalization: one of `NORMALIZATIONS`.
        coverage: share of all characters of the text that the model has subwords for.
        byte_fallback: spell any other character as its bytes in UTF-8, ``<0xE2>``.
    """

    normalization: str = NORMALIZATIONS[0]
    coverage: float = 0.9995
    byte_fallback: bool = False


STANDARD = Training()


class Encoding(NamedTuple):
    """How records become tokens; small and hashable, it travels with every batch.

    Attributes:
        format_name: ``text`` or the name of a tree format.
        linearization: name of the linearization.
        policy: how subwords are attached to trees.
        subwords_style: how given subwords mark the words they belong to.
        model: SentencePiece model, None for none.
        control: name of the control tree that takes the place of each tree.
        control_seed: seed of random control trees.
        units: what is segmented: "" each word by its form; "token" each word, or "line" each
            line as a whole, by the character spans of words in the raw text.
        labels: whether the labels of nodes are kept.
    """

    format_name: str
    linearization: str
    policy: str
    subwords_style: str
    model: Path | None = None
    control: str = GIVEN
    control_seed: int = 0
    units: str = ""
    labels: bool = False

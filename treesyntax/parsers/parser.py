"""The protocol of a parser: it splits lines into sentences of words, and parses sentences.

Words are identified by their character span in the raw line, never by their text: a parser may
rewrite a word (``(`` becomes ``-LRB-``, a long one ``<UNK>``), but word k of a tree is word k of
its sentence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from treesyntax.errors import OptionError

if TYPE_CHECKING:
    from treesyntax.trees.tree import Tree

Span = tuple[int, int]

_WORD = re.compile(r"\S+")


class ParserConfig(NamedTuple):
    """Which parser to load, and how.

    Attributes:
        parser: its name in ``PARSERS``.
        model: path or name of its model.
        language: code of the language, for word and sentence boundaries.
        pretokenized: white space separates words, and a line is one sentence.
        gpu: run on the GPU that this process sees.
        download: whether an absent model may be downloaded.
    """

    parser: str
    model: str
    language: str = "en"
    pretokenized: bool = False
    gpu: bool = False
    download: bool = False


class ParsedSentence(NamedTuple):
    """The words of a sentence.

    Attributes:
        words: their forms. A word of a multi-word token (French ``du`` = de + le) has a form of
            its own, any other is the text of its span.
        spans: the character span of each in the raw line; the words of a multi-word token may
            share its span.
    """

    words: tuple[str, ...]
    spans: tuple[Span, ...]

    @property
    def spaces(self) -> list[bool]:
        """Whether white space follows each word within the sentence."""
        after = [
            self.spans[i][1] < self.spans[i + 1][0] for i in range(max(len(self.spans) - 1, 0))
        ]
        return [*after, False] if self.spans else []


class Parser(Protocol):
    """A loaded parser. Both methods may raise any exception on input that they cannot parse."""

    def split(self, lines: Sequence[str]) -> list[list[ParsedSentence]]:
        """The sentences of each line, in order; white space is not a word."""
        ...

    def parse(self, sentences: Sequence[ParsedSentence]) -> list[list[Tree]]:
        """The trees of each sentence, from left to right.

        There are several where the parser finds more sentence boundaries; together they have all
        words of the sentence, in order.
        """
        ...


def white_space_words(line: str) -> ParsedSentence:
    """The words between white space, as one sentence."""
    matches = list(_WORD.finditer(line))
    return ParsedSentence(tuple(m.group() for m in matches), tuple(m.span() for m in matches))


def model_path(config: ParserConfig) -> Path | None:
    """The model as an absolute path, or None if it is a name."""
    path = Path(os.path.expanduser(config.model))  # pathlib's raises where there is no such user
    if path.exists():
        return path.resolve()
    if "/" in config.model or path.suffix:
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise OptionError(f"there is no model at {config.model}{where}; check --model")
    return None


def no_model(config: ParserConfig, where: str, names: str) -> OptionError:
    """The error for a model known by name that is not ``where`` it should be; ``names`` says what to give."""
    remedy = names if config.download else f"{names}, or add --download"
    return OptionError(f"there is no {config.parser} model {config.model!r} {where}; {remedy}")

"""spaCy (https://spacy.io): dependency parser, and the word and sentence splitter for benepar."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from treesyntax.errors import OptionError, reason_of
from treesyntax.parsers.parser import (
    ParsedSentence,
    ParserConfig,
    model_path,
    no_model,
    white_space_words,
)
from treesyntax.trees.tree import Tree

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span

    from treesyntax.parsers import Kind

ROOT = "root"
NO_RELATION = "dep"


class SpacyParser:
    """A pipeline with a parser; of its other components only those run that the parser needs."""

    def __init__(self, nlp: Language, pretokenized: bool) -> None:
        self._nlp = nlp
        self._pretokenized = pretokenized

    def split(self, lines: Sequence[str]) -> list[list[ParsedSentence]]:
        """One sentence a line: the parser itself finds the boundaries."""
        if self._pretokenized:
            return [[white_space_words(line)] for line in lines]
        return [[sentence_of(self._nlp.make_doc(line))] for line in lines]

    def parse(self, sentences: Sequence[ParsedSentence]) -> list[list[Tree]]:
        """One tree for each sentence that the parser finds."""
        docs = [self._doc(sentence) for sentence in sentences]
        return [[_tree(span) for span in doc.sents] for doc in self._nlp.pipe(docs)]

    def _doc(self, sentence: ParsedSentence) -> Doc:
        from spacy.tokens import Doc

        doc = Doc(self._nlp.vocab, list(sentence.words), sentence.spaces)
        if self._pretokenized:
            for word in itertools.islice(doc, 1, None):
                word.is_sent_start = False
        return doc


def load(config: ParserConfig, kind: Kind) -> SpacyParser:
    """Load a pipeline by path or by the name of its package."""
    import spacy

    if config.gpu and not spacy.prefer_gpu():
        raise OptionError("spaCy finds no GPU; install cupy, or leave out --gpus")
    path = model_path(config)
    if path is None and config.download and not spacy.util.is_package(config.model):
        _download(config.model)
    try:
        nlp = spacy.load(path or config.model)
    except OSError as error:
        if path is None:
            where = "among the installed packages"
            raise no_model(config, where, "give its folder, install its package") from None
        raise OptionError(f"{config.model} is no spaCy pipeline ({reason_of(error)})") from None
    except Exception as error:  # a damaged part of a pipeline raises whatever it likes
        raise OptionError(f"{config.model} is no spaCy pipeline ({reason_of(error)})") from error
    if "parser" not in nlp.pipe_names:
        raise OptionError(f"the spaCy pipeline {config.model} has no component named parser")
    needed = {name for name, pipe in nlp.pipeline if getattr(pipe, "listeners", False)}
    nlp.select_pipes(enable=[name for name in nlp.pipe_names if name in needed | {"parser"}])
    return SpacyParser(nlp, config.pretokenized)


def _download(name: str) -> None:
    """Install the package of a pipeline; where spaCy has printed why it cannot, it is looked for as it is."""
    import spacy

    try:
        spacy.cli.download(name)  # type: ignore[attr-defined]
    except SystemExit:
        return
    except Exception as error:  # of its network libraries
        raise OptionError(f"spaCy cannot download {name} ({reason_of(error)})") from None


def sentence_of(tokens: Doc | Span) -> ParsedSentence:
    """The words of a document or a part of one, without runs of white space."""
    words = [token for token in tokens if not token.is_space]
    return ParsedSentence(
        tuple(token.text for token in words),
        tuple((token.idx, token.idx + len(token.text)) for token in words),
    )


def _tree(span: Span) -> Tree:
    first = span.start
    heads = [0 if token.head.i == token.i else token.head.i - first + 1 for token in span]
    relations = [
        (token.dep_ or NO_RELATION) if head else ROOT
        for token, head in zip(span, heads, strict=True)
    ]
    return Tree.from_heads(heads, [token.text for token in span], relations)


def rule_splitter(language: str) -> Callable[[str], list[ParsedSentence]]:
    """Sentences and words of a line by spaCy's rules for a language, without any model.

    A sentence ends after a full stop, question or exclamation mark that is a word of its own.
    """
    import spacy

    try:
        nlp = spacy.blank(language)
    except ImportError as error:
        raise OptionError(f"spaCy cannot split {language!r}: {reason_of(error)}") from None
    if getattr(nlp.tokenizer, "segmenter", "") == "char":
        raise OptionError(
            f"spaCy's rules split {language!r} into characters, not words; split the text first, with jieba or the "
            "like, and give --pretokenized"
        )
    sentencizer = nlp.add_pipe("sentencizer")

    def split(line: str) -> list[ParsedSentence]:
        doc = sentencizer(nlp.make_doc(line))
        sentences = (sentence_of(span) for span in doc.sents)
        return [sentence for sentence in sentences if sentence.words]

    return split

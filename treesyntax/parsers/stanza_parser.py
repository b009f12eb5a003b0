"""Stanza (Qi et al. 2020): dependency and constituency parser, offline and in bulk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.errors import OptionError, reason_of
from treesyntax.files import read_object
from treesyntax.parsers.parser import (
    ParsedSentence,
    ParserConfig,
    Span,
    model_path,
    no_model,
    white_space_words,
)
from treesyntax.trees.tree import NO_WORD, Tree

if TYPE_CHECKING:
    from stanza import Pipeline

    from treesyntax.parsers import Kind

# The dependency parser embeds lemmas: without them its trees are garbage, without an error.
PROCESSORS = {"depparse": ("pos", "lemma", "depparse"), "constituency": ("pos", "constituency")}
SPLITTERS = ("tokenize", "mwt")
VECTORS = {
    "pretrain": "pretrain.pt",
    "forward_charlm": "forward_charlm.pt",
    "backward_charlm": "backward_charlm.pt",
}
LONGEST_WORD = 1000
TOO_LONG = "<UNK>"
OPTIONS = {"depparse_batch_size": 1000, "tokenize_max_seqlen": LONGEST_WORD}
NO_TAG = "XX"


class StanzaParser:
    """A pipeline that runs in two parts: words and sentences first, the rest later."""

    def __init__(self, pipeline: Pipeline, annotation: str, pretokenized: bool) -> None:
        self._pipeline = pipeline
        self._annotation = annotation
        self._pretokenized = pretokenized

    def split(self, lines: Sequence[str]) -> list[list[ParsedSentence]]:
        """One document a line, so that offsets refer to it and empty lines keep their place."""
        if self._pretokenized:
            return [[white_space_words(line)] for line in lines]
        documents = self._pipeline.bulk_process(list(lines), processors=list(SPLITTERS))
        return [
            [sentence_of(sentence, line) for sentence in document.sentences]
            for line, document in zip(lines, documents, strict=True)
        ]

    def parse(self, sentences: Sequence[ParsedSentence]) -> list[list[Tree]]:
        """One tree a sentence; the library sorts them into batches by length."""
        from stanza import Document

        rows = [
            [{"id": (i,), "text": _short(word)} for i, word in enumerate(sentence.words, start=1)]
            for sentence in sentences
        ]
        document = Document(rows)
        self._pipeline.process(document, processors=list(PROCESSORS[self._annotation]))
        make = _dependencies if self._annotation == "depparse" else _constituents
        return [
            [make(parsed, sentence)]
            for parsed, sentence in zip(document.sentences, sentences, strict=True)
        ]


def load(config: ParserConfig, kind: Kind) -> StanzaParser:
    """Load a folder of models, a folder as stanza's downloads make it, or a language by name."""
    path = model_path(config)
    needed = (SPLITTERS[0], *PROCESSORS[kind.annotation])
    if path is None:
        pipeline = _named_pipeline(config, kind, needed)
    elif not path.is_dir():
        raise OptionError(f"{config.model} is not a folder; stanza needs several models")
    elif _folder(path, config.language).is_dir():
        pipeline = _pipeline(config, config.language, needed, dir=str(path))
    else:
        pipeline = _flat_pipeline(config, path, needed)
    return StanzaParser(pipeline, kind.annotation, config.pretokenized)


def named_models(name: str, kind: Kind) -> list[Path]:
    """The folders of the models that stanza has for a language and that a parser needs; none if it was not downloaded."""
    folder = _folder(_home(), name)
    names = (*SPLITTERS, *PROCESSORS[kind.annotation], *VECTORS)
    folders = [folder / name for name in names if (folder / name).is_dir()]
    return folders if folder / kind.annotation in folders else []


def _folder(home: Path, language: str) -> Path:
    """The folder of a language's models. Stanza knows languages by several names: ``zh`` and ``chinese`` are ``zh-hans``."""
    language = language.lower()
    entry = read_object(home / "resources.json").get(language)
    return home / (entry.get("alias", language) if isinstance(entry, dict) else language)


def _home() -> Path:
    """Where stanza keeps what it downloads: STANZA_RESOURCES_DIR, else a folder that changes with its version."""
    from stanza.resources.common import DEFAULT_MODEL_DIR

    return Path(DEFAULT_MODEL_DIR)


def _flat_pipeline(config: ParserConfig, path: Path, needed: Sequence[str]) -> Pipeline:
    processors = list(needed)
    # Not every language has multi-word tokens.
    if not config.pretokenized and (path / "mwt.pt").exists():
        processors.insert(1, SPLITTERS[1])
    without = SPLITTERS if config.pretokenized else ()
    models = {name: path / f"{name}.pt" for name in processors if name not in without}
    if missing := [file.name for file in models.values() if not file.exists()]:
        _check_downloads(config, path)
        raise OptionError(
            f"the folder {config.model} has no {', '.join(missing)}; {config.parser} needs "
            f"{', '.join(file.name for file in models.values())}"
        )
    options = {f"{name}_model_path": str(file) for name, file in models.items()}
    for kind, name in VECTORS.items():
        if (path / name).exists():
            options |= {f"{model}_{kind}_path": str(path / name) for model in models}
    # Stanza opens a list of resources even if it needs nothing from it.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "resources.json").write_text("{}")
        return _pipeline(config, config.language, processors, dir=folder, **options)


def _check_downloads(config: ParserConfig, path: Path) -> None:
    """Refuse a folder as stanza's downloads make it that is of another language, or of a single one."""
    if (path / SPLITTERS[0]).is_dir():
        raise OptionError(
            f"{config.model} has the models of a single language; give the folder above it and --lang {path.name}"
        )
    languages = sorted(folder.parent.name for folder in path.glob(f"*/{SPLITTERS[0]}"))
    if languages:
        raise OptionError(
            f"{config.model} has models for {', '.join(languages)}, but none for {config.language!r}; give --lang"
        )


def _named_pipeline(config: ParserConfig, kind: Kind, needed: Sequence[str]) -> Pipeline:
    if not config.download and not named_models(config.model, kind):
        raise no_model(
            config, f"in {_home()}", "give the folder of its models, set STANZA_RESOURCES_DIR"
        )
    return _pipeline(config, config.model, needed, dir=str(_home()))


def _pipeline(
    config: ParserConfig, language: str, needed: Sequence[str], **options: Any
) -> Pipeline:
    import stanza

    method = "reuse_resources" if config.download else None
    try:
        return stanza.Pipeline(
            language,
            processors=",".join(needed),
            download_method=method,
            use_gpu=config.gpu,
            allow_unknown_language=True,
            tokenize_pretokenized=config.pretokenized,
            logging_level="ERROR",
            **OPTIONS,
            **options,
        )
    except Exception as error:
        does = "download or load" if config.download else "load"
        raise OptionError(
            f"stanza cannot {does} its models from {config.model} ({reason_of(error)}); check that they are "
            f"complete, for {config.parser}, and made for this version of stanza"
        ) from error


def sentence_of(sentence: Any, line: str) -> ParsedSentence:
    """The words of a stanza sentence; a word without offsets has those of its token."""
    words: list[str] = []
    spans: list[Span] = []
    for token in sentence.tokens:
        span = (token.start_char, token.end_char)
        for word in token.words:
            word_span = (word.start_char, word.end_char)
            single = len(token.words) == 1
            spans.append(span if single or None in word_span else word_span)
            words.append(line[slice(*span)] if single else word.text)
    return ParsedSentence(tuple(words), tuple(spans))


def _short(word: str) -> str:
    """The word for the parser, whose memory grows with the longest word."""
    return word if len(word) <= LONGEST_WORD else TOO_LONG


def _dependencies(parsed: Any, sentence: ParsedSentence) -> Tree:
    heads = [word.head for word in parsed.words]
    return Tree.from_heads(heads, sentence.words, [word.deprel for word in parsed.words])


def _constituents(parsed: Any, sentence: ParsedSentence) -> Tree:
    """Walks the tree, since not every printed tree can be read again; leaf k is word k."""
    parents: list[int] = []
    labels: list[str] = []
    words: list[int] = []
    leaves = 0
    for node, parent in _preorder(parsed.constituency):
        parents.append(parent)
        words.append(NO_WORD if node.children else leaves)
        labels.append(node.label or NO_TAG if node.children else sentence.words[leaves])
        leaves += not node.children
    return Tree(parents, labels, words)


def _preorder(root: Any) -> Iterator[tuple[Any, int]]:
    """Every node with the number of its parent."""
    stack = [(root, -1)]
    number = 0
    while stack:
        node, parent = stack.pop()
        yield node, parent
        stack.extend((child, number) for child in reversed(node.children))
        number += 1

"""benepar (Kitaev et al. 2019), constituency parser, on current versions of its libraries."""

from __future__ import annotations

import logging
import os
import re
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.errors import OptionError, reason_of
from treesyntax.parsers.parser import (
    ParsedSentence,
    ParserConfig,
    model_path,
    no_model,
    white_space_words,
)
from treesyntax.parsers.spacy_parser import rule_splitter
from treesyntax.trees.tree import Tree

if TYPE_CHECKING:
    from treesyntax.parsers import Kind

BATCH_TOKENS = 500
"""Subwords in a padded batch: on a CPU 6 times as fast as batches of 64 sentences of any length."""
GPU_BATCH_TOKENS = 4000
INVISIBLE = "_"
"""Replaces a word that tokenizers delete, such as a lone zero-width space."""
NO_TAG = "UNK"
_LANGUAGE = re.compile("benepar_([a-z]{2})[0-9]")
ROOT = "TOP"


class BeneparParser:
    """A chart parser of benepar over the words of the text, not escaped."""

    def __init__(
        self, model: Any, split: Callable[[str], list[ParsedSentence]], batch_tokens: int
    ) -> None:
        self._model = model
        self._split = split
        self._batch_tokens = batch_tokens

    def split(self, lines: Sequence[str]) -> list[list[ParsedSentence]]:
        """Words and sentences by spaCy's rules: benepar has none of its own."""
        return [self._split(line) for line in lines]

    def parse(self, sentences: Sequence[ParsedSentence]) -> list[list[Tree]]:
        """One tree a sentence, in batches by length."""
        from benepar import InputSentence
        from benepar.ptb_unescape import ptb_unescape

        examples = []
        for sentence in sentences:
            words = [_visible(word) for word in ptb_unescape(sentence.words)]
            spaces = sentence.spaces
            examples.append(InputSentence(words=words, space_after=spaces, escaped_words=words))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "[\\s\\S]*arg_constraints")  # of torch_struct
            outputs = self._model.parse(
                examples, return_compressed=True, subbatch_max_tokens=self._batch_tokens
            )
        return [
            [self._tree(output, sentence)]
            for output, sentence in zip(outputs, sentences, strict=True)
        ]

    def _tree(self, output: Any, sentence: ParsedSentence) -> Tree:
        labels = self._model.decoder.label_from_index
        tags = self._model.tag_from_index
        return tree_of_spans(
            list(zip(output.starts.tolist(), output.ends.tolist(), strict=True)),
            [labels[label] for label in output.labels.tolist()],
            sentence.words,
            [NO_TAG] * len(sentence.words)
            if output.tags is None
            else [tags[tag] for tag in output.tags.tolist()],
        )


def tree_of_spans(
    spans: Sequence[tuple[int, int]],
    labels: Sequence[str],
    words: Sequence[str],
    tags: Sequence[str],
) -> Tree:
    """The tree of labelled spans in preorder.

    Args:
        spans: first word and last word + 1 of each constituent; every word has one of its own.
        labels: their labels: ``A::B`` is A with the only child B, "" makes no node.
        words: the words.
        tags: the preterminal of each.
    """
    parents, names, leaves = [-1], [ROOT], [-1]
    open_spans = [(len(words), 0)]

    def add(parent: int, name: str, word: int = -1) -> int:
        parents.append(parent)
        names.append(name)
        leaves.append(word)
        return len(parents) - 1

    for (start, end), label in zip(spans, labels, strict=True):
        while open_spans[-1][0] <= start:
            open_spans.pop()
        node = open_spans[-1][1]
        for name in label.split("::") if label else ():
            node = add(node, name)
        if end - start == 1:
            add(add(node, tags[start]), words[start], start)
        else:
            open_spans.append((end, node))
    return Tree(parents, names, leaves)


def _visible(word: str) -> str:
    if all(unicodedata.category(c)[0] in "CMZ" or c == "\ufffd" for c in word):
        return INVISIBLE
    return word


def load(config: ParserConfig, kind: Kind) -> BeneparParser:
    """Load a model by path or by its name among nltk's data."""
    _check_language(config)
    path = model_path(config)
    if path is not None or not config.download:
        # Single-file models name their encoder, which transformers would look up on the network.
        os.environ["HF_HUB_OFFLINE"] = "1"
    logging.getLogger("transformers").setLevel(logging.ERROR)
    from treesyntax.parsers.benepar_remedies import TolerantChartParser, special_tokens_method

    location = str(path) if path is not None else _locate(config, kind)
    split = _one_sentence if config.pretokenized else rule_splitter(config.language)
    try:
        with warnings.catch_warnings(), special_tokens_method():
            warnings.simplefilter("ignore")
            model = TolerantChartParser.from_trained(location)
    except Exception as error:
        raise OptionError(
            f"benepar cannot load {config.model} ({reason_of(error)}); give a folder with config.json and "
            "benepar_model.bin, or a file with the configuration and the weights"
        ) from error
    if config.gpu:
        model.cuda()
    return BeneparParser(model, split, GPU_BATCH_TOKENS if config.gpu else BATCH_TOKENS)


def _check_language(config: ParserConfig) -> None:
    """Refuse a published model of another language than that by whose rules words are split.

    By English rules a line of Chinese is one word.
    """
    named = _LANGUAGE.match(Path(config.model).name)
    if named and named[1] != config.language and not config.pretokenized:
        raise OptionError(
            f"--model {config.model} is for the language {named[1]!r}, but words would be split by the rules "
            f"for {config.language!r}; give --lang {named[1]}, or --pretokenized for text that is split"
        )


def _one_sentence(line: str) -> list[ParsedSentence]:
    return [white_space_words(line)]


def named_models(name: str, kind: Kind) -> list[Path]:
    """The file or folder that nltk's data have by that name, if there is one.

    nltk's search refuses folders that a group may write to, as they are by Ubuntu's umask, since data may
    hold code; torch loads a model's weights alone.
    """
    from nltk.data import path

    models = (Path(folder, "models", name) for folder in path)
    return [model for model in models if model.exists()][:1]


def _locate(config: ParserConfig, kind: Kind) -> str:
    if config.download:
        from benepar.integrations import downloader

        downloader.download(config.model)
    for path in named_models(config.model, kind):
        return str(path)
    from nltk import data

    for folder in data.path:
        if (packed := Path(folder, "models", f"{config.model}.zip")).is_file():
            raise OptionError(f"the benepar model {packed} is packed; unzip it in its folder")
    raise no_model(config, "in nltk's data folders", "give its path")

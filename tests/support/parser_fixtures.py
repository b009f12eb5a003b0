"""What the tests of real parsers share: which models there are, and how lines go through them."""

from __future__ import annotations

from pathlib import Path

import support.parser_models as parser_models

from treesyntax.parsers import PARSERS, ParserConfig
from treesyntax.parsers.policy import parse_lines
from treesyntax.trees.tree import Tree

MODELS = {
    "stanza-dep": "stanza",
    "stanza-con": "stanza",
    "benepar-characters": "characters.pt",
    "benepar-bert": "bert",
    "spacy": "spacy",
}
GOLD = parser_models.treebank(12, seed=7)


def settings(name: str, models: Path, **changes) -> ParserConfig:
    return ParserConfig(
        name.split("-")[0] if "benepar" in name else name, str(models / MODELS[name]), **changes
    )


def is_dependency(name: str) -> bool:
    return PARSERS[settings(name, Path()).parser].notation == "conllu"


def parse(loaded, name, lines, max_words=150, **changes):
    return parse_lines(loaded(name, **changes), lines, is_dependency(name), max_words)


def words_of_tree(tree: Tree) -> list[str]:
    return [tree.labels[node] for node in tree.word_nodes()]


def words_of(result) -> list[str]:
    return words_of_tree(result.tree)

"""Shared by the tests of real parsers: the models, the way of lines through them, odd lines."""

from __future__ import annotations

import random
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


ODD_WORDS = (
    "🙂", "👩‍👩‍👧‍👦", "🇩🇪", "مرحبا", "שלום", "\u202ereversed", "cafe\u0301", "Ångström",
    "\u200b", "a\u200bb", "\u00ad", "co\u00adop", "\ufeff", "\x00", "\x07", "\x1b[31m", "\x7f",
    "\x85", "\u2028", "\u3000", "\u00a0", "(", ")", "((", "[", "{x}", "-LRB-", "-RRB-", '"', "``",
    "''", "'", "“", "don't", "#", "# text = x", "_", "1-2", "1.1", "\\", "<s>", "<unk>", "</s>",
    "½", "™", "ﬁne", "１２", "日本語のテキスト", "ไม่มีช่องว่าง", "http://x.y/z?a=b&c", "$1,000.00",
    "...", "?!", "\t", "\u0301", "\ufffd", "\U0001f468\u200d", "A" * 60, "x\u0300\u0301\u0302",
)  # fmt: skip
PLAIN_WORDS = ("the", "cat", "sees", "a", "dog", "today", "The", "tree", ".", "likes", "!")


def hostile_lines(size: int, seed: int) -> list[str]:
    """Lines without line ends; every kind occurs where there are 50 lines or more."""
    draw = random.Random(seed)
    makers = (_mixed, _mixed, _mixed, _glued, _plain, _blank, _long, _brackets, _one_word)
    lines = [makers[i % len(makers)](draw) for i in range(size)]
    draw.shuffle(lines)
    lines[size // 2] = " ".join(draw.choice(PLAIN_WORDS) for _ in range(5000))
    lines[size // 3] = "y" * 3000
    return lines


def _mixed(draw: random.Random) -> str:
    words = [draw.choice(ODD_WORDS + PLAIN_WORDS) for _ in range(draw.randint(1, 12))]
    return draw.choice(("", " ", "  ")) + draw.choice((" ", "  ", " ")).join(words)


def _glued(draw: random.Random) -> str:
    return "".join(draw.choice(ODD_WORDS) for _ in range(draw.randint(1, 8)))


def _plain(draw: random.Random) -> str:
    return " ".join(draw.choice(PLAIN_WORDS) for _ in range(draw.randint(1, 20)))


def _blank(draw: random.Random) -> str:
    return draw.choice(("", " ", "   ", "\t", " \t ", "\u00a0", "\u3000 "))


def _long(draw: random.Random) -> str:
    return " ".join(draw.choice(PLAIN_WORDS) for _ in range(draw.randint(40, 90)))


def _brackets(draw: random.Random) -> str:
    return draw.choice(("(", ")", "(S (NP x", "a) b", '"', "' \" `` [ ( {"))


def _one_word(draw: random.Random) -> str:
    return draw.choice(ODD_WORDS)

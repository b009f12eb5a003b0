"""Parsers without a model, for tests of everything around parsers.

Run as a script it is the command ``treesyntax`` with these parsers; processes that it spawns have
them too. Words with a meaning: BAD makes a parser fail, SPLIT makes it refuse to split, DIE ends
the process, and every sentence takes ``--lang`` milliseconds where that is a number.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from treesyntax import __main__ as cli
from treesyntax.parsers import PARSERS, Kind
from treesyntax.parsers.parser import ParsedSentence, ParserConfig, white_space_words
from treesyntax.trees.tree import Tree

KINDS = {
    "fake-dep": Kind(__name__, "depparse", (), "any name"),
    "fake-con": Kind(__name__, "constituency", (), "any name"),
    "fake-absent": Kind("no_such_package_at_all", "depparse", (), "any name"),
}


LINES = ["a b c", "", "one two. three four.", "x " * 30, "a BAD b", "z", "the end ."] * 7


def words(text: Path, output: Path, *options: object) -> list[str]:
    """``treesyntax parse`` with one worker and short shards; later options override earlier ones."""
    given = ["parse", text, output, "--parser", "fake-dep", "--model", "m", "--max-words", "20"]
    return [str(item) for item in (*given, "--workers", "1", "--shard-lines", "5", *options)]


def start(text: Path, output: Path, *options: object) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, __file__, *words(text, output, *options)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def outputs(output: Path) -> dict[str, bytes]:
    """The output file and everything beside it whose name begins like it."""
    return {file.name: file.read_bytes() for file in output.parent.glob(f"{output.name}*")}


class FakeParser:
    """Sentences end after a word with a full stop; trees lean to the right."""

    def __init__(self, kind: Kind, delay: float) -> None:
        self.kind = kind
        self.delay = delay
        self.calls: list[int] = []

    def split(self, lines: Sequence[str]) -> list[list[ParsedSentence]]:
        """White space separates words."""
        return [self._split(line) for line in lines]

    def _split(self, line: str) -> list[ParsedSentence]:
        words, spans = white_space_words(line)
        if "SPLIT" in words:
            raise RuntimeError("cannot split")
        ends = [i + 1 for i, word in enumerate(words) if word.endswith(".")] + [len(words)]
        starts = [0, *ends[:-1]]
        return [ParsedSentence(words[a:b], spans[a:b]) for a, b in zip(starts, ends, strict=True)]

    def parse(self, sentences: Sequence[ParsedSentence]) -> list[list[Tree]]:
        """Every word depends on the one before, or hangs in a bracket of its own."""
        self.calls.append(len(sentences))
        return [[self._parse(sentence.words)] for sentence in sentences]

    def _parse(self, words: Sequence[str]) -> Tree:
        time.sleep(self.delay)
        if "DIE" in words:
            os._exit(1)
        if "BAD" in words:
            raise ValueError("bad word\nin two lines")
        if self.kind.annotation == "depparse":
            return Tree.from_heads(range(len(words)), words, ["root"] + ["dep"] * (len(words) - 1))
        parents, labels, places = [-1], ["ROOT"], [-1]
        current = 0
        for place, word in enumerate(words):
            parents += [current, len(parents)]
            current = len(labels)
            labels += ["X", word]
            places += [-1, place]
        return Tree(parents, labels, places)


def named_models(name: str, kind: Kind) -> list[Path]:
    """Names are known by nothing else."""
    return []


def load(settings: ParserConfig, kind: Kind) -> FakeParser:
    """A parser; the language may be a number of milliseconds."""
    language = settings.language
    return FakeParser(kind, int(language) / 1000 if language.isdigit() else 0)


if os.path.basename(sys.argv[0]) == "fake_parser.py":
    PARSERS.update(KINDS)

if __name__ == "__main__":
    sys.exit(cli.main())

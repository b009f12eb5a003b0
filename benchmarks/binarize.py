"""Sentences a second and core of `treesyntax binarize`, from files to files, trees already parsed.

python benchmarks/binarize.py                          # made-up trees of 14 words
python benchmarks/binarize.py --file ewt.conllu.gz --words 12 16
python benchmarks/binarize.py --only conllu/words/copy

One process works on source trees with a SentencePiece model of 4,000 pieces and on a plain target
text; its processor time counts, without imports. Dependency trees are written as `treesyntax parse`
writes them; a file given must be CoNLL-U and its sentences have comments ``# text =``. Constituents
are made up. "text" is with --source-text, "forms" without.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from treesyntax.__main__ import main as treesyntax
from treesyntax.data.sentencepiece import train_model
from treesyntax.parsers.record_text import conllu_text, offsets_text, ptb_text
from treesyntax.trees.formats import conllu
from treesyntax.trees.formats.offsets import OFFSETS, conllu_comment, conllu_spans
from treesyntax.trees.tree import Tree

LINEARIZATIONS = {"conllu": ("words", "bracketed"), "ptb": ("words", "preorder", "bracketed")}
POLICIES = ("copy", "first", "siblings", "chain")
SUBWORDS = 4000
VOCABULARY = 30_000


class Sentence(NamedTuple):
    """A line, its dependency tree, and the place of each word in the line."""

    line: str
    tree: Tree
    spans: list[tuple[int, int]]


def made_up(words: int, source: random.Random) -> Iterator[Sentence]:
    """Sentences of about so many words, which are as frequent as Zipf's law has it."""
    syllables = [c + v + e for c in "bdfgklmnprst" for v in "aeiou" for e in ("", "n", "s")]
    forms = ["".join(source.choices(syllables, k=1 + n % 4)) for n in range(VOCABULARY)]
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    while True:
        size = source.randint(max(1, words - 2), words + 2)
        chosen = [*source.choices(forms, weights, k=size - 1), "."]
        order = source.sample(range(1, size + 1), size)
        heads = [0] * size
        for place, word in enumerate(order[1:], start=1):
            heads[word - 1] = order[source.randrange(place)]
        line = " ".join(chosen[:-1]) + "."
        ends = [sum(map(len, chosen[: i + 1])) + min(i, size - 2) for i in range(size)]
        spans = [(end - len(form), end) for form, end in zip(chosen, ends, strict=True)]
        yield Sentence(line, Tree.from_heads(heads, chosen, ["dep"] * size), spans)


def of_file(path: Path, shortest: int, longest: int) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file with so many words."""
    for record in conllu.records(path):
        tree, line = conllu.parse(record.text), conllu_comment(record.text) or ""
        if shortest <= len(tree) <= longest:
            yield Sentence(line, tree, conllu_spans(record.text, line))


def constituents(sentence: Sentence, source: random.Random) -> Tree:
    """A made-up constituency tree over the words, each below a tag."""
    words = [sentence.tree.labels[node] for node in sentence.tree.word_nodes()]
    parents: list[int] = []
    labels: list[str] = []
    surface: list[int] = []
    stack = [(0, len(words), -1)]
    while stack:
        first, end, parent = stack.pop()
        node = len(parents)
        parents.append(parent)
        labels.append(source.choice(("NP", "VP", "PP", "S")))
        surface.append(-1)
        if end - first == 1:
            parents.append(node)
            labels.append(words[first])
            surface.append(first)
        else:
            cut = source.randrange(first + 1, end)
            stack += [(cut, end, node), (first, cut, node)]
    return Tree(parents, labels, surface)


def write_corpus(folder: Path, sentences: list[Sentence], source: random.Random) -> None:
    """Trees in both notations, with the places of words, a target text and a subword model."""
    lines = [sentence.line for sentence in sentences]
    trees = (conllu_text(*sentence) + "\n\n" for sentence in sentences)
    (folder / "t.conllu").write_text("".join(trees), "utf-8")
    brackets = (ptb_text(constituents(sentence, source)) + "\n" for sentence in sentences)
    (folder / "t.ptb").write_text("".join(brackets), "utf-8")
    offsets = (offsets_text(sentence.spans) + "\n" for sentence in sentences)
    (folder / f"t.ptb{OFFSETS}").write_text("".join(offsets), "utf-8")
    (folder / "t.txt").write_text("".join(line + "\n" for line in lines), "utf-8")
    train_model(lines[:10_000], SUBWORDS, "unigram", folder / "t.model", "lines")


def rate(folder: Path, case: str, with_text: bool, sentences: int) -> float:
    """Sentences a second of one run of the command."""
    trees, linearization, policy = case.split("/")
    texts = [] if trees == "conllu" else [folder / "t.txt"]
    options = [
        "binarize", folder / "out", "--overwrite", "--workers", 1,
        "--source-lang", "en", "--target-lang", "sv",
        "--train", folder / f"t.{trees}", folder / "t.txt",
        "--source-format", trees, "--source-linearization", linearization, "--subword-policy", policy,
        "--source-subword-model", folder / "t.model",
        *(["--source-text", *texts] if with_text else []),
    ]  # fmt: skip
    begin = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        status = treesyntax([str(option) for option in options])
    if status:
        raise SystemExit(status)
    return sentences / (time.process_time() - begin)


def main() -> None:
    """Print a line for every format, linearization and policy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--file", type=Path)
    parser.add_argument("--words", type=int, nargs=2, default=(12, 16), metavar=("LEAST", "MOST"))
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", metavar="NAME", help="cases that begin so")
    args = parser.parse_args()
    source = random.Random(1)
    corpus = of_file(args.file, *args.words) if args.file else made_up(sum(args.words) // 2, source)
    sentences = list(islice(corpus, args.sentences))
    words = sum(len(sentence.tree) for sentence in sentences) / len(sentences)
    print(f"{len(sentences)} sentences of {words:.1f} words\n{'':24}{'text':>10}{'forms':>10}")
    count = len(sentences)
    names = (
        f"{f}/{linearization}/{p}"
        for f in LINEARIZATIONS
        for linearization in LINEARIZATIONS[f]
        for p in POLICIES
    )
    cases = [name for name in names if name.startswith(args.only)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder, sentences, source)
        del sentences  # else the garbage collector looks at all of them again and again
        for case in cases:
            rates = [
                [rate(folder, case, with_text, count) for _ in range(args.repeats)]
                for with_text in (True, False)
            ]
            print(
                f"{case:24}" + "".join(f"{statistics.median(r):10,.0f}" for r in rates), flush=True
            )


if __name__ == "__main__":
    main()

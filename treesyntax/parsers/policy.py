"""The tree of every line: no line is dropped, and every special case is counted.

A blank line gives an empty record. The sentences of a line are joined under one root: in
constituency trees below ``TOP``; in dependency trees every later root depends on the first by the
relation ``parataxis``, UD's name for clauses side by side. A line with more words than the limit, or
with a word of `WORD_CHARACTERS` times as many characters,
gets a flat tree, and so does a line if the parser fails on any part of it: in constituency trees
all words below ``TOP``, each with the preterminal ``XX``; in dependency trees all words depend on
the first by the relation ``dep``. Its words are those of the parser; where the parser has none, those
between white space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from treesyntax.errors import TreeError
from treesyntax.parsers.cases import EMPTY, FAILED, JOINED, TOO_LONG
from treesyntax.parsers.halving import ParseFailure, batches, in_halves
from treesyntax.parsers.joining import (
    flat_constituents,
    flat_dependencies,
    join_constituents,
    join_dependencies,
)
from treesyntax.parsers.parser import ParsedSentence, Parser, Span, white_space_words
from treesyntax.trees.tree import Tree

WORD_CHARACTERS = 20
"""A text without spaces has at most that many characters for each word of the limit: of 10,000 emoji or
brackets in a row spaCy splits off one after the other, in two minutes, of 100,000 in hours."""


class Parsed(NamedTuple):
    """The tree of a line.

    Attributes:
        tree: without nodes for a blank line.
        spans: the character span of each word in the line.
        case: one of ``treesyntax.parsers.cases.CASES``, or "".
        reason: why the parser failed.
    """

    tree: Tree
    spans: tuple[Span, ...]
    case: str = ""
    reason: str = ""


def parse_lines(
    parser: Parser,
    lines: Sequence[str],
    dependencies: bool,
    max_words: int,
    tell: Callable[[float], None] = lambda share: None,
) -> list[Parsed]:
    """The trees of raw lines. They depend on the lines alone, not on batches or workers.

    The parser gets no line of more than ``max_words`` words. ``tell`` is called while it works with the
    share of all words that it has done since the last call.
    """
    flat = flat_dependencies if dependencies else flat_constituents
    join = join_dependencies if dependencies else join_constituents
    done = _trees(parser, _sentences(parser, lines, max_words), join, flat, max_words, tell)
    parsed = []
    for number, line in enumerate(lines):
        words = white_space_words(line)
        result = done.get(number)
        if not words.words:
            parsed.append(Parsed(Tree([], []), (), EMPTY))
        elif result is None:
            parsed.append(Parsed(flat(words.words), words.spans, TOO_LONG))
        elif isinstance(result, ParseFailure):
            parsed.append(Parsed(flat(words.words), words.spans, FAILED, result.reason))
        else:
            parsed.append(result)
    return parsed


def _sentences(
    parser: Parser, lines: Sequence[str], max_words: int
) -> dict[int, list[ParsedSentence] | ParseFailure]:
    """The sentences of the lines that are neither blank nor, between white space, too long."""
    short = {number: line for number, line in enumerate(lines) if _is_short(line, max_words)}
    results = in_halves(_checked_split(parser), list(short.values()))
    return dict(zip(short, results, strict=True))


def _is_short(line: str, max_words: int) -> bool:
    words = white_space_words(line).words
    return 0 < len(words) <= max_words and len(max(words, key=len)) <= WORD_CHARACTERS * max_words


def _trees(
    parser: Parser,
    split: dict[int, list[ParsedSentence] | ParseFailure],
    join: Callable[[Sequence[Tree]], Tree],
    flat: Callable[[Sequence[str]], Tree],
    max_words: int,
    tell: Callable[[float], None],
) -> dict[int, Parsed | ParseFailure]:
    """The tree of each line; a failure in one sentence is a failure of its line."""
    long = {
        number
        for number, value in split.items()
        if isinstance(value, list) and sum(len(sentence.words) for sentence in value) > max_words
    }
    sentences = [
        sentence
        for number, value in split.items()
        if isinstance(value, list) and number not in long
        for sentence in value
    ]
    parsed = iter(_parse(parser, sentences, tell))
    lines: dict[int, Parsed | ParseFailure] = {}
    for number, value in split.items():
        if isinstance(value, ParseFailure):
            lines[number] = value
            continue
        words = [word for sentence in value for word in sentence.words]
        spans = tuple(span for sentence in value for span in sentence.spans)
        if number in long:
            lines[number] = Parsed(flat(words), spans, TOO_LONG)
            continue
        results = [next(parsed) for _ in value]
        failures = [result for result in results if isinstance(result, ParseFailure)]
        if failures:
            lines[number] = Parsed(flat(words), spans, FAILED, failures[0].reason)
            continue
        trees = [tree for result in results if isinstance(result, list) for tree in result]
        lines[number] = Parsed(join(trees), spans, JOINED if len(trees) > 1 else "")
    return lines


def _checked_split(parser: Parser) -> Callable[[Sequence[str]], list[list[ParsedSentence]]]:
    def split(lines: Sequence[str]) -> list[list[ParsedSentence]]:
        by_line = [
            [sentence for sentence in map(_without_white_space, sentences) if sentence.words]
            for sentences in parser.split(lines)
        ]
        for line, sentences in zip(lines, by_line, strict=True):
            _check_spans(line, [span for sentence in sentences for span in sentence.spans])
        return by_line

    return split


def _without_white_space(sentence: ParsedSentence) -> ParsedSentence:
    """The sentence without words of white space: some parsers return U+0085 and others as words."""
    if not any(word.isspace() for word in sentence.words):
        return sentence
    kept = [number for number, word in enumerate(sentence.words) if not word.isspace()]
    return ParsedSentence(
        tuple(sentence.words[number] for number in kept),
        tuple(sentence.spans[number] for number in kept),
    )


def _check_spans(line: str, spans: list[Span]) -> None:
    if not spans:
        raise TreeError("the parser found no words")
    previous = (0, 0)
    for start, end in spans:
        if not 0 <= start < end <= len(line) or (start, end) < previous:
            raise TreeError(f"the parser's words do not fit the line (word at {start}-{end})")
        previous = (start, end)


def _parse(
    parser: Parser, sentences: list[ParsedSentence], tell: Callable[[float], None]
) -> list[list[Tree] | ParseFailure]:
    """The trees of every sentence, parsed in batches of similar length."""

    def parse(batch: Sequence[ParsedSentence]) -> list[list[Tree]]:
        trees = parser.parse(batch)
        for sentence, sentence_trees in zip(batch, trees, strict=True):
            if sum(len(tree.word_nodes()) for tree in sentence_trees) != len(sentence.words):
                raise TreeError("the parser's tree lacks words of the sentence")
        return trees

    sizes = [len(sentence.words) for sentence in sentences]
    order = sorted(range(len(sentences)), key=sizes.__getitem__)
    results: list[list[Tree] | ParseFailure] = [ParseFailure("")] * len(sentences)
    for batch in batches(order, [sizes[i] for i in order]):
        for i, result in zip(batch, in_halves(parse, [sentences[i] for i in batch]), strict=True):
            results[i] = result
        tell(sum(sizes[i] for i in batch) / sum(sizes))
    return results

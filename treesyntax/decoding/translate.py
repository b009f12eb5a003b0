"""Translate records in chunks: encode, search, write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from treesyntax.decoding.engine import EncodedSource, Engine, Hypothesis
from treesyntax.decoding.growing_output import Output
from treesyntax.decoding.input import SourceEncoder
from treesyntax.decoding.output import Writer
from treesyntax.trees.copies import with_words
from treesyntax.trees.formats import Record

EMPTY = Hypothesis(0.0, [])
"""The translation of an empty line; the model is not asked for it."""


def translate(
    chunks: Iterable[Sequence[Record]],
    encoder: SourceEncoder,
    engine: Engine,
    writer: Writer,
    output: Output,
    advance: Callable[[int], None],
    linearization: str,
) -> None:
    """Translate chunks of records in order, write their hypotheses and keep them.

    After each chunk, ``advance`` is called with its number of sentences. A malformed record raises
    its InputError once all records before it are written. The linearization is that of the target.
    """
    numbers = count(output.done.records + 1)
    for chunk in chunks:
        sentences, fault = encoder.encode(chunk)
        for hypotheses in _search(engine, sentences, linearization):
            writer.write(next(numbers), hypotheses)
        output.keep(chunk[: len(sentences)], writer.written["malformed"], len(encoder.skipped))
        advance(len(sentences))
        if fault is not None:
            raise fault


def _search(
    engine: Engine, sentences: Sequence[EncodedSource], linearization: str
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence; the model sees only sentences with tokens."""
    full = [sentence for sentence in sentences if len(sentence.ids) > 1]
    results = iter(engine.translate(full) if full else ())
    return [
        [
            Hypothesis(score, with_words(tokens, sentence.words, linearization))
            for score, tokens in next(results)
        ]
        if len(sentence.ids) > 1
        else [EMPTY]
        for sentence in sentences
    ]

"""Translate text or trees with a trained model, line by line, as they come.

DATA is the folder that treesyntax binarize wrote for the training of the model; it tells how input
becomes tokens and trees and how output becomes text again. Every line of input (every record of
CoNLL-U) gives one line of output; an empty one gives an empty one. Translations of standard input
are written as soon as they are there.

Raw text, parsed like the training data, one sentence answered after the other:

  treesyntax translate data-bin/en-sv --path checkpoint_best.pt --parser stanza-dep --model models/en

Trees that are there already, in the format of the training data, by an ensemble of two models:

  treesyntax translate data-bin/en-sv --path a/checkpoint_best.pt:b/checkpoint_best.pt \\
      --parsed --input test.conllu --output test.sv

Questions to logical forms, with the scores (base-2 logarithms, as fairseq-generate prints them) of
the three best:

  echo what states border texas | treesyntax translate data-bin/geo --path checkpoint_best.pt --nbest 3
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rich.console import Console

from treesyntax.commands.translate_options import (
    BRACKETS,
    add_arguments,
    check_numbers,
    find_device,
    input_format,
    input_path,
    search_of,
)
from treesyntax.data.manifest import read_data
from treesyntax.decoding.engine import EncodedSource, Engine, Hypothesis, load_engine
from treesyntax.decoding.input import ParsedBatches, ReadBatches, SourceEncoder, chunks, records_of
from treesyntax.decoding.output import EMPTY, ToText, lines_of, make_to_text, opened
from treesyntax.parsers import ParserConfig, get_kind, load_parser
from treesyntax.parsers.progress import Advance, shown
from treesyntax.parsers.report import in_words
from treesyntax.trees.formats import Record

__all__ = ["add_arguments", "run"]


class Writer(NamedTuple):
    """Where hypotheses go and in what form; ``nbest`` is None for the best one's text alone."""

    output: BinaryIO
    to_text: ToText
    nbest: int | None


def run(args: argparse.Namespace) -> int:
    """Translate.

    Raises:
        OptionError: if options do not fit together, the data or the model.
        InputError: if something cannot be read, or a record is malformed; standard output has
            the translations of all records before it.
    """
    check_numbers(args)
    path = input_path(args.input)
    data = read_data(args.data)
    source_format = input_format(args, data.source)
    writer_text = " ".join if args.tokens else make_to_text(data.target)
    device = find_device(args.device)
    batches = _parsed_batches(args, path, device) if args.parser else ReadBatches(path)
    engine = load_engine(search_of(args, data, device))
    encoding = data.source.encoding
    if args.parser and encoding.format_name in BRACKETS:
        encoding = encoding._replace(format_name=get_kind(args.parser).notation)
    dictionary = data.dictionary(data.source)
    encoder = SourceEncoder(encoding, dictionary, batches, engine.longest_source)
    with opened(args.output) as output, _progress(args, path, source_format) as advance:
        records = chunks(records_of(path, source_format), args.buffer, wait=path.is_file())
        _translate(records, encoder, engine, Writer(output, writer_text, args.nbest), advance)
    if isinstance(batches, ParsedBatches):
        print(f"{batches.cases.lines} lines: {in_words(batches.cases)}", file=sys.stderr)
    return 0


def _parsed_batches(args: argparse.Namespace, path: Path, device: str) -> ParsedBatches:
    gpu = device != "cpu"
    settings = ParserConfig(
        args.parser, args.model, args.lang, args.pretokenized, gpu, args.download
    )
    dependencies = get_kind(args.parser).notation == "conllu"
    return ParsedBatches(path, load_parser(settings), dependencies, args.max_words)


def _translate(
    records: Iterator[list[Record]],
    encoder: SourceEncoder,
    engine: Engine,
    writer: Writer,
    advance: Advance,
) -> None:
    number = 0
    for chunk in records:
        sentences, fault = encoder.encode(chunk)
        for hypotheses in _hypotheses(engine, sentences):
            number += 1
            with_scores = writer.nbest is not None
            line = lines_of(number, hypotheses, writer.to_text, with_scores)
            writer.output.write(line.encode())
        writer.output.flush()
        advance(len(sentences))
        if fault is not None:
            raise fault


def _hypotheses(engine: Engine, sentences: list[EncodedSource]) -> list[list[Hypothesis]]:
    """Those of each sentence; only sentences with tokens are shown to the model."""
    full = [sentence for sentence in sentences if len(sentence.ids) > 1]
    found = iter(engine.translate(full) if full else ())
    return [next(found) if len(sentence.ids) > 1 else [EMPTY] for sentence in sentences]


@contextmanager
def _progress(args: argparse.Namespace, path: Path, format_name: str) -> Iterator[Advance]:
    """A bar on a terminal while a file is translated, and its speed at the end."""
    if not path.is_file():
        if args.input == "-" and sys.stdin.isatty():
            print("one sentence a line; Ctrl-D ends", file=sys.stderr)
        yield lambda lines: None
        return
    console = Console(stderr=True)
    drawn = console.is_terminal and not (args.output == "-" and sys.stdout.isatty())
    total = sum(1 for _ in records_of(path, format_name)) if drawn else 0
    done, begin = 0, time.perf_counter()
    with shown(total, 0, console) if drawn else nullcontext() as bar:

        def advance(lines: int) -> None:
            nonlocal done
            done += lines
            if bar is not None:
                bar(lines)

        yield advance
    seconds = time.perf_counter() - begin
    speed = done / max(seconds, 1e-9)
    print(f"{done} sentences in {seconds:.1f} s, {speed:,.1f} sentences/s", file=sys.stderr)

"""Input of ``treesyntax translate``: read as it comes, parsed where it must be, encoded as the
training data were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Queue
from threading import Thread

import numpy as np

from treesyntax.data.binarize.batch import Batch
from treesyntax.data.binarize.encode import encode_batch
from treesyntax.data.binarize.records import Records
from treesyntax.data.dictionary import EOS, Dictionary
from treesyntax.data.encoding import TEXT, Encoding
from treesyntax.data.manifest import label_numbers
from treesyntax.data.sentencepiece import SPACE
from treesyntax.data.tree_store import StoredTree, deepest
from treesyntax.decoding.engine import EncodedSource
from treesyntax.decoding.remarks import Remarks
from treesyntax.errors import InputError, TreeError
from treesyntax.parsers import Parser
from treesyntax.parsers.cases import Cases, cases_of, total
from treesyntax.parsers.policy import Parsed, parse_lines
from treesyntax.parsers.record_text import conllu_text, ptb_text
from treesyntax.trees.copies import Placeholders
from treesyntax.trees.formats import Record, get_format
from treesyntax.trees.formats.base import line_records

STDIN = Path("/dev/stdin")

ToBatches = Callable[[Sequence[Record]], Iterator[Batch]]


def input_path(name: str) -> Path:
    """The input as a path, that of standard input for ``-``."""
    if name == "-":
        return STDIN
    path = Path(name)
    if not path.exists() or path.is_dir():
        cause = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(path, None, cause, "name a file, or leave out --input to read stdin")
    return path


def records_of(path: Path, format_name: str) -> Iterator[Record]:
    """The records of a file or pipe, each as soon as it is complete."""
    return line_records(path) if format_name == TEXT else get_format(format_name).records(path)


def chunks(records: Iterator[Record], size: int, wait: bool) -> Iterator[list[Record]]:
    """Consecutive records to work on together.

    Args:
        records: read in a thread, ahead of the work.
        size: most records of a chunk.
        wait: fill every chunk; else a chunk is what has come so far, so that at a terminal every
            line gets its answer.
    """
    queue: Queue[Record | Exception | None] = Queue(size)
    Thread(target=_read, args=(records, queue), daemon=True).start()
    chunk: list[Record] = []
    while True:
        if len(chunk) == size or (chunk and not wait and queue.empty()):
            yield chunk
            chunk = []
        item = queue.get()
        if isinstance(item, Record):
            chunk.append(item)
            continue
        if chunk:
            yield chunk
        if item is not None:
            raise item
        return


def _read(records: Iterator[Record], queue: Queue[Record | Exception | None]) -> None:
    try:
        for record in records:
            queue.put(record)
        queue.put(None)
    except Exception as error:
        queue.put(error)


class ReadBatches:
    """Records as they were written: one batch each, so that a fault names its record."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, records: Sequence[Record]) -> Iterator[Batch]:
        """One batch a record."""
        return (Batch(self.path, Records.of([record])) for record in records)


class ParsedBatches:
    """Raw lines, parsed as ``treesyntax parse`` does.

    Attributes:
        cases: how many lines were not one sentence with one tree.
    """

    def __init__(self, path: Path, parser: Parser, dependencies: bool, max_words: int) -> None:
        self.path, self.parser = path, parser
        self.dependencies, self.max_words = dependencies, max_words
        self.cases = Cases()

    def __call__(self, records: Sequence[Record]) -> Iterator[Batch]:
        """One batch a line."""
        lines = [record.text for record in records]
        parsed = parse_lines(self.parser, lines, self.dependencies, self.max_words)
        self.cases = total([self.cases, cases_of(records[0].line, parsed)])
        for record, result in zip(records, parsed, strict=True):
            tree = self._tree_record(record, result)
            yield Batch(self.path, Records.of([tree]), text=[record.text], spans=[result.spans])

    def _tree_record(self, record: Record, parsed: Parsed) -> Record:
        try:
            if self.dependencies:
                return Record(record.line, conllu_text(record.text, parsed.tree, parsed.spans))
            return Record(record.line, ptb_text(parsed.tree))
        except TreeError as error:
            raise InputError(self.path, record.line, error.cause, error.remedy) from None


class SourceEncoder:
    """Encodes records exactly as ``treesyntax binarize`` does.

    ``to_batches`` makes trees or text of records; ``longest`` counts EOS; ``remarks`` gets what the
    model was not trained for. ``labels`` has the labels of nodes where the data keeps them.
    """

    def __init__(
        self,
        encoding: Encoding,
        dictionary: Dictionary,
        to_batches: ToBatches,
        longest: int,
        remarks: Remarks,
        labels: Dictionary | None = None,
    ) -> None:
        self.labels = labels
        self.remarks, self.unknown = remarks, {*dictionary.unknown_ids}
        self.encoding, self.dictionary = encoding, dictionary
        self.to_batches, self.longest = to_batches, longest
        self.placeholders = Placeholders(dictionary.symbols, self.unknown, encoding.linearization)

    def encode(self, records: Sequence[Record]) -> tuple[list[EncodedSource], InputError | None]:
        """The sentences before the first fault, and the fault or None."""
        sentences: list[EncodedSource] = []
        try:
            for batch in self.to_batches(records):
                sentences.append(self._sentence(batch))
        except InputError as fault:
            return sentences, fault
        return sentences, None

    def _sentence(self, batch: Batch) -> EncodedSource:
        encoded = encode_batch(self.encoding, batch)
        symbols = [self.dictionary.index(symbol) for symbol in encoded.symbols]
        own, words = encoded.ids.tolist(), list[str]()
        numbered = [symbols[i] for i in own]
        self.placeholders.number(numbered, [encoded.symbols[i] for i in own], words, new=True)
        ids = np.array([*numbered, EOS], np.int64)
        if len(ids) > self.longest:
            raise InputError(
                batch.path,
                batch.records.lines[0],
                f"has {len(ids)} tokens with the end of the sentence, but the model takes at most "
                f"{self.longest}",
                "split or shorten it",
            )
        unknown = [
            symbol.replace(SPACE, "")
            for symbol, index in zip(encoded.symbols, symbols, strict=True)
            if index in self.unknown
        ]
        depth = 0 if encoded.trees is None else deepest(encoded.trees)
        self.remarks.check(batch.records.lines[0], unknown, len(ids) - 1, depth)
        if encoded.trees is None:
            return EncodedSource(ids, None, words)
        arrays = (encoded.trees.parents, encoded.trees.branches, encoded.trees.token_nodes)
        tree = StoredTree(*(array.astype(np.int64) for array in arrays))
        if self.labels is not None and encoded.trees.labels is not None:
            known = np.array([self.labels.index(label) for label in encoded.labels], np.int64)
            tree = tree._replace(labels=label_numbers(known)[encoded.trees.labels])
        return EncodedSource(ids, tree, words)

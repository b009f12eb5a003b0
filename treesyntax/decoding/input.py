"""Input of ``treesyntax translate``: read as it comes, parsed where it must be, encoded as the
training data were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from queue import Queue
from threading import Thread

import numpy as np

from treesyntax.data.binarize.batch import Batch
from treesyntax.data.binarize.encode import encode_batch
from treesyntax.data.binarize.records import Records
from treesyntax.data.dictionary import EOS, Dictionary
from treesyntax.data.encoding import Encoding
from treesyntax.data.manifest import label_numbers
from treesyntax.data.sentencepiece import SPACE
from treesyntax.data.tree_store import StoredTree, deepest
from treesyntax.decoding.engine import EncodedSource
from treesyntax.decoding.remarks import Remarks
from treesyntax.errors import InputError, TreeError
from treesyntax.files import STDIN
from treesyntax.parsers import Parser
from treesyntax.parsers.cases import Cases, cases_of, total
from treesyntax.parsers.policy import Parsed, parse_lines
from treesyntax.parsers.record_text import record_text
from treesyntax.trees.copies import Placeholders
from treesyntax.trees.formats import Record

FEWEST = 10
"""Records of the first chunk; a later one has at most as many more as there were before it."""
CHECKED = 1000
"""Records whose lengths are looked at together."""

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


def chunks(
    records: Iterator[Record], size: int, wait: bool, done: int = 0
) -> Iterator[list[Record]]:
    """Consecutive records to work on together: few at first, so that an interrupt loses little.

    Args:
        records: read in a thread, ahead of the work.
        size: most records of a chunk.
        wait: fill every chunk; else a chunk is what has come so far, so that at a terminal every
            line gets its answer.
        done: how many records were worked on before. The same chunks follow as without a break.
    """
    queue: Queue[Record | Exception | None] = Queue(size)
    Thread(target=_read, args=(records, queue), daemon=True).start()
    chunk: list[Record] = []
    while True:
        if len(chunk) == min(size, FEWEST + done) or (chunk and not wait and queue.empty()):
            yield chunk
            done += len(chunk)
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
            text = record_text(record.text, parsed.tree, parsed.spans, self.dependencies)
            return Record(record.line, text)
        except TreeError as error:
            raise InputError(self.path, record.line, error.cause, error.remedy) from None


def _too_long(path: Path, over: Sequence[tuple[int, int]], longest: int) -> InputError:
    line, size = over[0]
    others = f"; lines that are too long: {len(over)}" if len(over) > 1 else ""
    return InputError(
        path,
        line,
        f"has {size} tokens with the end of the sentence, but the model takes at most {longest}{others}",
        "split or shorten it, or give --skip-long, which writes an empty line for it",
    )


class SourceEncoder:
    """Encodes records exactly as ``treesyntax binarize`` does.

    Args:
        encoding: of the data folder.
        dictionary: of the source.
        to_batches: makes trees or text of records.
        longest: most tokens of a sentence, with EOS.
        remarks: gets what the model was not trained for.
        labels: those of nodes, where the data keeps them.
        skip_long: whether sentences that are too long are empty; else they are faults.

    Attributes:
        skipped: the lines that were too long.
    """

    def __init__(
        self,
        encoding: Encoding,
        dictionary: Dictionary,
        to_batches: ToBatches,
        longest: int,
        remarks: Remarks,
        labels: Dictionary | None = None,
        skip_long: bool = False,
    ) -> None:
        self.labels, self.skip_long = labels, skip_long
        self.skipped: list[int] = []
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

    def check_lengths(self, path: Path, records: Iterator[Record], parsed: bool) -> None:
        """Refuse sentences that are too long, before any is translated.

        Args:
            path: of the records, for messages.
            records: all of them. A fault in one is left to the time when it is encoded.
            parsed: whether they are raw lines to be parsed. Nothing is parsed here: such a line is too
                long if it has more words between spaces.

        Raises:
            InputError: for the first one, with the number of all.
        """
        over: list[tuple[int, int]] = []
        with suppress(InputError):  # of reading
            while chunk := list(islice(records, CHECKED)):
                over += self._over(path, chunk, parsed)
        if over:
            raise _too_long(path, over, self.longest)

    def _over(
        self, path: Path, records: Sequence[Record], parsed: bool
    ) -> Iterator[tuple[int, int]]:
        """The lines of records that are too long, with their tokens."""
        sizes: Iterable[int]
        if parsed:
            sizes = [len(record.text.split()) for record in records]
        else:
            try:
                sizes = encode_batch(self.encoding, Batch(path, Records.of(records))).token_counts
            except InputError:
                if len(records) > 1:
                    for record in records:
                        yield from self._over(path, [record], parsed)
                return
        for record, size in zip(records, sizes, strict=True):
            if size + 1 > self.longest:
                yield record.line, int(size) + 1

    def _sentence(self, batch: Batch) -> EncodedSource:
        encoded = encode_batch(self.encoding, batch)
        unit = "lines" if encoded.trees is None else "trees"
        self.remarks.add_reading(encoded.remarks, unit)
        symbols = [self.dictionary.index(symbol) for symbol in encoded.symbols]
        local_ids, words = encoded.ids.tolist(), list[str]()
        numbered = [symbols[i] for i in local_ids]
        self.placeholders.number(numbered, [encoded.symbols[i] for i in local_ids], words, new=True)
        ids = np.array([*numbered, EOS], np.int64)
        if len(ids) > self.longest:
            line = batch.records.lines[0]
            if not self.skip_long:
                raise _too_long(batch.path, [(line, len(ids))], self.longest)
            self.skipped.append(line)
            return EncodedSource(ids[-1:], None)
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

"""The output of ``treesyntax translate``: it grows in ``OUTPUT.part`` and gets its name when it is whole.

What is done is never lost: an interrupt, a kill, a full disk or a fault in a later line leave
``OUTPUT.part``, and ``OUTPUT.part.jsonl``, which says what it is made of (model, data, options) and, after
each lot of lines, how far it is and which input it has read. ``--resume`` goes on after the last lot.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from treesyntax.errors import InputError
from treesyntax.files import is_special, output_file, parse_json, read_lines
from treesyntax.made.lock import hold
from treesyntax.made.records import Lines
from treesyntax.made.reuse import differences
from treesyntax.trees.formats import Record

PART, PROGRESS = ".part", ".part.jsonl"
BUSY = (
    "is being written by another treesyntax translate; wait until it ends, or name another --output"
)


@dataclass(frozen=True)
class Lot:
    """How far an output is after a lot of lines.

    Attributes:
        records: of the input that are done.
        bytes, crc32: of the output so far.
        sha256: of these records.
        malformed, long: hypotheses that their format cannot hold, and sources that were too long.
    """

    records: int = 0
    bytes: int = 0
    crc32: int = 0
    sha256: str = hashlib.sha256().hexdigest()
    malformed: int = 0
    long: int = 0


LOTS = Lines(Lot, "does not say how far a translation is", "remove it to begin again")


class Output:
    """A stream that hypotheses are written to; nothing is kept of it.

    Attributes:
        stream: where to write.
        done: what an earlier call has done.
    """

    def __init__(self, stream: BinaryIO, done: Lot = Lot()) -> None:
        self.stream, self.done = stream, done

    def rest(self, records: Iterator[Record], path: Path) -> Iterator[Record]:
        """The records that are not done yet."""
        return records

    def keep(self, records: Sequence[Record], malformed: int, long: int) -> None:
        """Note that a lot is done: its records, and the counts of this call so far."""
        self.stream.flush()


class GrowingOutput(Output):
    """An output that is kept lot by lot.

    Args:
        stream: of ``OUTPUT.part``, at its end.
        progress: its record, open for more lines.
        done: what an earlier call has done.
    """

    def __init__(self, stream: BinaryIO, progress: BinaryIO, done: Lot) -> None:
        super().__init__(stream, done)
        self.lot = done
        self._progress, self._read = progress, hashlib.sha256()

    def rest(self, records: Iterator[Record], path: Path) -> Iterator[Record]:
        """The records that are not done yet.

        Raises:
            InputError: if those that are done are not the same as they were.
        """
        if not self.done.records:
            return records
        for _ in range(self.done.records):
            record = next(records, None)
            if record is not None:
                self._read.update(_content(record))
        if self._read.hexdigest() != self.done.sha256:
            raise InputError(
                path, None,
                f"does not begin with the {self.done.records} records that are translated already",
                f"give the same input, or remove the {PART} file of the output to begin again",
            )  # fmt: skip
        return records

    def keep(self, records: Sequence[Record], malformed: int, long: int) -> None:
        """Note that a lot is done, once its lines are in the file."""
        self.stream.flush()
        for record in records:
            self._read.update(_content(record))
        end = self.stream.tell()
        # Not by another descriptor, with which the lock would be given up as it is closed.
        written = os.pread(self.stream.fileno(), end - self.lot.bytes, self.lot.bytes)
        crc32 = zlib.crc32(written, self.lot.crc32)
        self.lot = Lot(
            self.lot.records + len(records), end, crc32, self._read.hexdigest(),
            self.done.malformed + malformed, self.done.long + long,
        )  # fmt: skip
        self._progress.write(LOTS.text(self.lot).encode())
        self._progress.flush()


def _content(record: Record) -> bytes:
    return record.text.encode("utf-8", "surrogatepass") + b"\0"


@contextmanager
def growing_output(
    name: str, made_of: Callable[[], Mapping[str, str]], resume: bool
) -> Iterator[Output]:
    """The output: ``-`` is standard output; a file appears under its name once all is written.

    Args:
        name: of the file. Standard output, pipes and devices are written through.
        made_of: what decides the output, in words; asked for files alone.
        resume: go on with what an earlier call left.

    Raises:
        InputError: if a part of an earlier call is in the way or is of something else, another process
            writes it, or the disk is full.
        KeyboardInterrupt: with how to go on.
    """
    if resume and (name == "-" or is_special(Path(name))):
        remedy = "give --output FILE" if name == "-" else "leave out --resume"
        raise InputError(name, None, "is no file that could be gone on with", remedy)
    if name == "-":
        yield Output(sys.stdout.buffer)
        return
    if is_special(Path(name)):
        with output_file(name) as staged, staged.open("wb") as stream:
            yield Output(stream)
        return
    if Path(name).is_dir():
        raise InputError(name, None, "is a folder", "name a file")
    path = Path(os.path.realpath(name))
    part_file, progress = (path.with_name(path.name + suffix) for suffix in (PART, PROGRESS))
    head = f"{json.dumps(dict(made_of()))}\n"
    done = _done(Path(name), part_file, progress, parse_json(head), resume)
    begin = head + (LOTS.text(done) if done.records else "")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part_file.open("a+b") as stream, progress.open("ab") as record:
            hold(stream.fileno(), part_file, f"{part_file}: {BUSY}")
            stream.truncate(done.bytes)
            record.truncate(0)
            record.write(begin.encode())
            record.flush()
            output = GrowingOutput(stream, record, done)
            try:
                yield output
            finally:
                _tell_or_remove(output, part_file, progress)
            os.fsync(stream.fileno())
        part_file.replace(path)
        progress.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(name, part_file, error) from error


def _tell_or_remove(output: GrowingOutput, part_file: Path, progress: Path) -> None:
    """After an exception: say what is kept; leave nothing where nothing is done."""
    error = sys.exception()
    if error is None:
        return
    if not output.lot.records:
        for file in (part_file, progress):
            with suppress(OSError):
                file.unlink()
        return
    message = (
        f"the first {output.lot.records} sentences are kept in {part_file}; --resume goes on there"
    )
    if isinstance(error, KeyboardInterrupt):
        raise KeyboardInterrupt(message) from None
    print(message, file=sys.stderr)


def _unwritable(name: str, part_file: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    remedy = "check free space and permissions"
    if part_file.exists():
        remedy += f", and go on with --resume: what is done is kept in {part_file}"
    return InputError(name, None, f"cannot be written ({reason})", remedy)


def _done(name: Path, part_file: Path, progress: Path, made_of: object, resume: bool) -> Lot:
    """What an earlier call has done and this one need not do again."""
    if not part_file.exists():
        if resume and name.exists():
            raise InputError(
                name, None, f"is there, and no {part_file.name} to go on with",
                "it is whole; to translate again leave out --resume",
            )  # fmt: skip
        return Lot()
    lines = [line for line in read_lines(progress) if line] if progress.is_file() else []
    lots: list[Lot] = []
    for number, line in enumerate(lines[1:], start=2):
        with suppress(InputError):  # a line that a kill has cut
            lots.append(LOTS.parse(line, progress, number))
    if not resume and lots:
        raise InputError(
            part_file, None,
            f"holds {lots[-1].records} sentences of a translation that was interrupted",
            "go on with --resume, or remove it",
        )  # fmt: skip
    if not lots:
        return Lot()
    last_whole = _last_whole(part_file, lots)
    if not last_whole.records:
        raise InputError(part_file, None, "is not as it was left", "remove it to begin again")
    _check_same(part_file, lines[0], made_of)
    return last_whole


def _last_whole(part_file: Path, lots: Sequence[Lot]) -> Lot:
    """The last lot of which a file has all bytes."""
    last_whole, crc32 = Lot(), 0
    with part_file.open("rb") as stream:
        for lot in lots:
            crc32 = zlib.crc32(stream.read(lot.bytes - last_whole.bytes), crc32)
            if stream.tell() != lot.bytes or crc32 != lot.crc32:
                break
            last_whole = lot
    return last_whole


def _check_same(part_file: Path, line: str, made_of: object) -> None:
    try:
        before = parse_json(line)
    except ValueError:
        before = None
    if before == made_of:
        return
    if not isinstance(before, dict) or not isinstance(made_of, dict):
        raise InputError(part_file, None, "has a damaged record", "remove it to begin again")
    name = differences(before, made_of)[0]
    raise InputError(
        part_file, None,
        f"was made with another {name} ({before.get(name)}, now {made_of.get(name)})",
        "go on with the same, or remove it to begin again",
    )  # fmt: skip

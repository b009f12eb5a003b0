"""A parse in shards: each is saved whole, kept if the parse is interrupted, and joined at the end.

``OUTPUT.parts/`` has ``identity.json`` and, for shard 7, ``000007.json`` (its cases),
``000007.offsets`` (brackets only) and, written last, ``000007.trees``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from treesyntax.errors import InputError, OptionError, TreeError, TreeSyntaxError
from treesyntax.files import atomic_file, output_file, read_lines, read_object, write_json
from treesyntax.made.lock import HOLDER, locked
from treesyntax.made.reuse import differences
from treesyntax.parsers.cases import Cases, cases_of, read_cases
from treesyntax.parsers.parse_task import ParseTask
from treesyntax.parsers.parser import Parser
from treesyntax.parsers.policy import FAILED, JOINED, Parsed, parse_lines
from treesyntax.parsers.record_text import OFFSETS, offsets_text, record_text
from treesyntax.trees.formats import get_format

TREES, CASES = ".trees", ".json"
IDENTITY = "identity.json"
SUSPICIOUS = 10
"""If the parser fails on all of that many lines, the model is probably at fault."""


class Shard(NamedTuple):
    """Consecutive lines of the text."""

    number: int
    first_line: int
    lines: Sequence[str]


class Parts:
    """The folder of the shards."""

    def __init__(self, task: ParseTask) -> None:
        self.folder = task.output.with_name(task.output.name + ".parts")
        self.suffixes = (CASES, TREES) if task.notation == "conllu" else (CASES, OFFSETS, TREES)
        self.end = get_format(task.notation).end

    def path(self, number: int, suffix: str) -> Path:
        """A file of a shard."""
        return self.folder / f"{number:06d}{suffix}"

    def is_done(self, number: int) -> bool:
        """Whether a shard is complete: all its files are there, and its cases can be read."""
        there = all(self.path(number, suffix).exists() for suffix in self.suffixes)
        return there and self._read_cases(number) is not None

    def save(self, number: int, cases: Cases, records: Sequence[str], offsets: str) -> None:
        """Write a shard's files, each all or nothing, the trees last."""
        texts = {CASES: json.dumps(cases.to_dict()), OFFSETS: offsets}
        texts[TREES] = "".join(record + self.end for record in records)
        for suffix in self.suffixes:
            with atomic_file(self.path(number, suffix)) as staged:
                staged.write_text(texts[suffix], encoding="utf-8", newline="\n")

    def cases(self, number: int) -> Cases:
        """The cases of a complete shard."""
        cases = self._read_cases(number)
        if cases is None:
            raise InputError(self.path(number, CASES), None, "is damaged", "run the command again")
        return cases

    def _read_cases(self, number: int) -> Cases | None:
        return read_cases(read_object(self.path(number, CASES)))

    def join(self, count: int, suffix: str, target: Path) -> None:
        """Write one file from those of all shards."""
        with output_file(target) as staged, staged.open("wb") as stream:
            for number in range(count):
                with self.path(number, suffix).open("rb") as shard:
                    shutil.copyfileobj(shard, stream)

    @contextmanager
    def opened(self, identity: dict[str, Any], overwrite: bool) -> Iterator[None]:
        """Lock the folder, and remove what a killed run left half written.

        Shards of another parse are refused, or removed with ``overwrite``.
        """
        busy = f"{self.folder} is in use by {HOLDER}; wait for it"
        with locked(self.folder / ".lock", busy):
            self._refuse_foreign()
            self._check(identity, overwrite)
            for staged in self.folder.glob(".*.part"):
                staged.unlink()
            yield

    def _refuse_foreign(self) -> None:
        """Stop at a folder that no parse has begun: all in it would be deleted at the end."""
        has_identity = (self.folder / IDENTITY).exists()
        for path in () if has_identity else sorted(self.folder.iterdir()):
            if not path.name.startswith("."):
                cause = f"holds {path.name}, which is of no parse and would be deleted"
                raise InputError(self.folder, None, cause, "move it, or choose another OUTPUT")

    def _check(self, identity: dict[str, Any], overwrite: bool) -> None:
        file = self.folder / IDENTITY
        shards = [*self.folder.glob("[0-9]*")] if file.exists() else []
        changed = differences(self.identity(), identity) if shards else []
        if changed and not overwrite:
            names = ", ".join(changed).replace("_", " ")
            raise OptionError(
                f"{self.folder} has shards of another parse (different: {names}); choose another "
                "OUTPUT or add --overwrite"
            )
        for shard in shards if changed else ():
            shard.unlink()
        write_json(file, identity)

    def identity(self) -> dict[str, Any]:
        """Of the parse that has begun; empty if none has."""
        return read_object(self.folder / IDENTITY)

    def begun(self) -> bool:
        """Whether an earlier run has left shards."""
        return (self.folder / IDENTITY).exists() and any(self.folder.glob("[0-9]*"))

    def remove(self) -> None:
        """Delete the folder, once everything in it is joined; one that no parse has begun stays."""
        if (self.folder / IDENTITY).exists():
            shutil.rmtree(self.folder, ignore_errors=True)

    def digest(self, count: int, suffix: str) -> str:
        """The SHA-256 of the file that `join` writes."""
        checksum = sha256()
        for number in range(count):
            checksum.update(self.path(number, suffix).read_bytes())
        return checksum.hexdigest()


def shards_of(task: ParseTask, shards: Parts) -> Iterator[Shard]:
    """The shards that are not done, read one after the other."""
    lines = read_lines(task.source)
    number = 0
    while chunk := list(islice(lines, task.shard_lines)):
        if not shards.is_done(number):
            yield Shard(number, number * task.shard_lines + 1, chunk)
        number += 1


def parse_shard(
    task: ParseTask, parser: Parser, shard: Shard, tell: Callable[[float], None]
) -> int:
    """Parse and save a shard; returns its number.

    ``tell`` is called while the parser works with the lines done since the last call.
    """
    left = float(len(shard.lines))

    def tell_lines(share: float) -> None:
        nonlocal left
        done = min(left, share * len(shard.lines))
        left -= done
        tell(done)

    dependencies = task.notation == "conllu"
    parsed = parse_lines(parser, shard.lines, dependencies, task.max_words, tell_lines)
    _check_parser(task, shard, parsed)
    records = [
        _record_text(task, number, line, result)
        for number, (line, result) in enumerate(
            zip(shard.lines, parsed, strict=True), start=shard.first_line
        )
    ]
    offsets = "".join(offsets_text(result.spans) + "\n" for result in parsed)
    Parts(task).save(shard.number, cases_of(shard.first_line, parsed), records, offsets)
    tell(left)
    return shard.number


def _record_text(task: ParseTask, number: int, line: str, result: Parsed) -> str:
    try:
        return record_text(line, result.tree, result.spans, task.notation == "conllu")
    except TreeError as error:
        raise InputError(
            task.source, number, error.cause, "change the line on both sides"
        ) from None


def _check_parser(task: ParseTask, shard: Shard, parsed: Sequence[Parsed]) -> None:
    failures = [result for result in parsed if result.case == FAILED]
    given = [result for result in parsed if result.case in ("", JOINED, FAILED)]
    if len(failures) == len(given) >= SUSPICIOUS:
        raise TreeSyntaxError(
            f"{task.config.parser} failed on all {len(given)} lines that it was given from line "
            f"{shard.first_line} on ({failures[0].reason}); check the model {task.config.model}"
        )

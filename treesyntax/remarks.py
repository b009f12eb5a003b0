"""Remarks: what a reader left out of a file, or found odd in it, counted and told once for each kind.

A reader calls `remark` where it finds something; whoever reads a file collects what is found in it:

    with remarks_of(path) as remarks:
        for record in records:
            parse_record(tree_format, path, record)
    print(*remarks.texts(), sep="\\n")

Outside of `remarks_of` nothing is collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple


class Remark(NamedTuple):
    """A kind of finding.

    Attributes:
        content: what lines hold, such as ``traces (-NONE-)``.
        remedy: what was done about it, or what the user may do, in one clause.
        verb: what stands between the lines and ``content``; for a number of them, then for a single one.
    """

    content: str
    remedy: str
    verb: tuple[str, str] = ("hold", "holds")


class Finding(NamedTuple):
    """How often something was found.

    Attributes:
        lines: number of records with it.
        times: how often, which may be several times a record.
        first: the line of the file with the first of these records.
    """

    lines: int
    times: int
    first: int

    def joined(self, other: Finding) -> Finding:
        """The findings in two parts of a file."""
        lines, times = self.lines + other.lines, self.times + other.times
        return Finding(lines, times, min(self.first, other.first))


class Remarks:
    """The findings in one file.

    Args:
        path: the file.

    Attributes:
        line: the line that is read now.
        records: how many records were read: lines, trees or sentences.
        findings: what was found, by kind.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.line = self.records = 0
        self.findings: dict[Remark, Finding] = {}
        self._last: dict[Remark, int] = {}

    def add(self, kind: Remark, count: int = 1) -> None:
        """Count what was found in the line that is read now."""
        new = self._last.get(kind) != self.line
        self._last[kind] = self.line
        self._add(kind, Finding(int(new), count, self.line))

    def extend(self, other: Remarks) -> None:
        """Take over what was found in another part of the file."""
        self.records += other.records
        for kind, finding in other.findings.items():
            self._add(kind, finding)

    def _add(self, kind: Remark, finding: Finding) -> None:
        self.findings[kind] = (
            self.findings[kind].joined(finding) if kind in self.findings else finding
        )

    def texts(self, unit: str = "lines") -> list[str]:
        """A line for each kind: ``FILE:LINE: 3 of 40 lines hold X, 5 in all; REMEDY``."""
        return [finding["text"] for finding in self.to_json(unit)]

    def to_json(self, unit: str = "lines") -> list[dict[str, Any]]:
        """Each kind as plain values, in order of the first line."""
        ordered = sorted(self.findings.items(), key=lambda pair: pair[1].first)
        return [
            {"file": self.path, "line": finding.first, "lines": finding.lines, "count": finding.times,
             "of": self.records, "text": self._text(kind, finding, unit)}
            for kind, finding in ordered
        ]  # fmt: skip

    def _text(self, kind: Remark, finding: Finding, unit: str) -> str:
        verb = kind.verb[finding.lines == 1]
        share = f"{finding.lines:,} of {self.records:,} {unit} {verb} {kind.content}"
        in_all = f", {finding.times:,} in all" if finding.times > finding.lines else ""
        return f"{self.path}:{finding.first}: {share}{in_all}; {kind.remedy}"


_collecting: ContextVar[Remarks | None] = ContextVar("remarks", default=None)


def remark(kind: Remark, count: int = 1) -> None:
    """Count something in the line that is read now, if anybody collects remarks."""
    collector = _collecting.get()
    if collector is not None:
        collector.add(kind, count)


def at_line(line: int) -> None:
    """Say in which line of the file the next findings are, if anybody collects them."""
    collector = _collecting.get()
    if collector is not None:
        collector.line = line


@contextmanager
def remarks_of(path: str | Path) -> Iterator[Remarks]:
    """Collect what readers find in a file meanwhile."""
    remarks = Remarks(path)
    before = _collecting.set(remarks)
    try:
        yield remarks
    finally:
        _collecting.reset(before)

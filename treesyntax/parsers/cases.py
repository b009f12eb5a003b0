"""The special cases of a parse: lines that are not one sentence with one tree, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.errors import InputError, unknown_name

if TYPE_CHECKING:
    from treesyntax.parsers.policy import Parsed

EMPTY = "empty"
JOINED = "several_sentences"
TOO_LONG = "too_long"
FAILED = "parser_failed"
CASES = (EMPTY, JOINED, TOO_LONG, FAILED)

SHOWN_LINES = 100
"""A report lists that many line numbers of each case; its counts are complete."""

STRICT = (TOO_LONG, FAILED)
"""Cases that lose the tree: the errors of ``--strict`` without a list."""

FAULTS = {
    EMPTY: ("is empty", "remove it on both sides"),
    JOINED: ("has several sentences", "split it on both sides"),
    TOO_LONG: (
        "has more words than --max-words, or a word of 20 times as many characters",
        "split it or raise the limit",
    ),
    FAILED: ("cannot be parsed", "correct it"),
}


@dataclass
class Cases:
    """Counts and first line numbers of each case, and the reasons of failures.

    Attributes:
        lines: number of lines.
        words: number of words in their trees.
        first_lines: the first `SHOWN_LINES` line numbers of each case.
        counts: how often each case occurs.
        reasons: how often the parser failed for each reason.
    """

    lines: int = 0
    words: int = 0
    first_lines: dict[str, list[int]] = field(default_factory=lambda: {case: [] for case in CASES})
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, line: int, case: str, reason: str = "") -> None:
        """Count a line of a case."""
        self.counts[case] += 1
        if len(self.first_lines[case]) < SHOWN_LINES:
            self.first_lines[case].append(line)
        if reason:
            self.reasons[reason] += 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "lines": self.lines,
            "words": self.words,
            "cases": {
                case: {"count": self.counts[case], "first_lines": self.first_lines[case]}
                for case in CASES
            },
            "reasons": dict(sorted(self.reasons.items())),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Cases:
        """Undoes `to_dict`."""
        cases = values["cases"]
        return cls(
            values["lines"],
            values["words"],
            {case: list(cases[case]["first_lines"]) for case in CASES},
            Counter({case: cases[case]["count"] for case in CASES}),
            Counter(values["reasons"]),
        )


def read_cases(values: dict[str, Any]) -> Cases | None:
    """The cases in the values of a JSON file; None if it holds none."""
    try:
        cases = Cases.from_dict(values)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    lines = [line for first_lines in cases.first_lines.values() for line in first_lines]
    counts = [cases.lines, cases.words, *cases.counts.values(), *cases.reasons.values(), *lines]
    right = all(type(count) is int and count >= 0 for count in counts)
    return cases if right and all(type(reason) is str for reason in cases.reasons) else None


def cases_of(first_line: int, parsed: Sequence[Parsed]) -> Cases:
    """The cases among consecutive lines."""
    cases = Cases(len(parsed), sum(len(result.spans) for result in parsed))
    for line, result in enumerate(parsed, start=first_line):
        if result.case:
            cases.add(line, result.case, result.reason)
    return cases


def total(all_cases: Iterable[Cases]) -> Cases:
    """The cases of all shards in order."""
    result = Cases()
    for cases in all_cases:
        result.lines += cases.lines
        result.words += cases.words
        result.counts += cases.counts
        result.reasons += cases.reasons
        for case in CASES:
            room = SHOWN_LINES - len(result.first_lines[case])
            result.first_lines[case] += cases.first_lines[case][:room]
    return result


def strict_cases(text: str | None) -> tuple[str, ...]:
    """The cases that ``--strict`` makes errors: those in its list; ``STRICT`` for ""; none for None."""
    if text is None:
        return ()
    names = tuple(text.split(",")) if text else STRICT
    for name in names:
        if name not in CASES:
            raise unknown_name("case", name, CASES, "--strict:")
    return names


def check_strict(path: Path, cases: Cases, strict: Sequence[str]) -> None:
    """Refuse the first line of a case that counts as an error."""
    lines = {cases.first_lines[case][0]: case for case in strict if cases.first_lines[case]}
    if lines:
        line = min(lines)
        fault, remedy = FAULTS[lines[line]]
        raise InputError(path, line, fault, f"{remedy}, or leave {lines[line]} out of --strict")


def in_words(cases: Cases) -> str:
    """The counts of all cases in a clause."""
    counts = [f"{cases.counts[case]} {case.replace('_', ' ')}" for case in CASES]
    return ", ".join(counts)

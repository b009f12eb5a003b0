"""The cases of a parse: how many lines went another way than one sentence, one tree, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError, OptionError
from treesyntax.parsers.policy import CASES, EMPTY, FAILED, JOINED, TOO_LONG, Parsed

SHOWN_LINES = 100
"""Line numbers that a report gives for each case; counts are of all."""

STRICT = (TOO_LONG, FAILED)
"""Cases that lose something: the errors of ``--strict`` without a list."""

FAULTS = {
    EMPTY: ("is empty", "remove it on both sides"),
    JOINED: ("has several sentences", "split it on both sides"),
    TOO_LONG: ("has more words than --max-words", "split it or raise the limit"),
    FAILED: ("cannot be parsed", "correct it"),
}


class Cases:
    """Counts and first line numbers of each case, and the reasons of failures.

    Args:
        lines: number of lines.
        words: number of words in their trees.
        found: the line numbers of each case, at most `SHOWN_LINES` of them.
        counts: how often each case occurs.
        reasons: how often the parser failed for each reason.
    """

    def __init__(
        self,
        lines: int = 0,
        words: int = 0,
        found: dict[str, list[int]] | None = None,
        counts: Counter[str] | None = None,
        reasons: Counter[str] | None = None,
    ) -> None:
        self.lines, self.words = lines, words
        self.found = found or {case: [] for case in CASES}
        self.counts = counts or Counter()
        self.reasons = reasons or Counter()

    def add(self, line: int, case: str, reason: str = "") -> None:
        """Count a line that is such a case."""
        self.counts[case] += 1
        if len(self.found[case]) < SHOWN_LINES:
            self.found[case].append(line)
        if reason:
            self.reasons[reason] += 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; equal cases give equal text."""
        return {
            "lines": self.lines,
            "words": self.words,
            "cases": {
                case: {"count": self.counts[case], "first_lines": self.found[case]}
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
    """The cases in the values of a JSON file; None if it is not one of cases."""
    try:
        cases = Cases.from_dict(values)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    lines = [line for found in cases.found.values() for line in found]
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


def total(parts: Iterable[Cases]) -> Cases:
    """The cases of all shards in order."""
    result = Cases()
    for part in parts:
        result.lines += part.lines
        result.words += part.words
        result.counts += part.counts
        result.reasons += part.reasons
        for case in CASES:
            room = SHOWN_LINES - len(result.found[case])
            result.found[case] += part.found[case][:room]
    return result


def strict_cases(text: str | None) -> tuple[str, ...]:
    """The cases that a value of ``--strict`` makes errors: a list, "" for those that lose trees.

    Raises:
        OptionError: for a case that does not exist.
    """
    if text is None:
        return ()
    names = tuple(text.split(",")) if text else STRICT
    for name in names:
        if name not in CASES:
            raise OptionError(f"--strict has no case {name!r}; there are {', '.join(CASES)}")
    return names


def check_strict(path: Path, cases: Cases, strict: Sequence[str]) -> None:
    """Refuse the first line of a case that is to be an error.

    Raises:
        InputError: with the line.
    """
    lines = {cases.found[case][0]: case for case in strict if cases.found[case]}
    if lines:
        line = min(lines)
        fault, remedy = FAULTS[lines[line]]
        raise InputError(path, line, fault, f"{remedy}, or leave {lines[line]} out of --strict")


def in_words(cases: Cases) -> str:
    """The cases in a clause, for people."""
    counts = [f"{cases.counts[case]} {case.replace('_', ' ')}" for case in CASES]
    return ", ".join(counts)

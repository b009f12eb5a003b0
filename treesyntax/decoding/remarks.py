"""What a model was not trained for, told on standard error while it translates."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from treesyntax import remarks as reader_remarks

SHOWN = 20
"""Lines that are told one by one; the rest are counted."""
WORDS_SHOWN = 5


class Remarks:
    """Tells of lines with unknown words, and of longer and deeper ones than the training data has.

    Args:
        longest, deepest: of the training data; 0 where that is not known.
        quiet: say nothing.

    Attributes:
        lines: how many lines have been told of, or counted.
    """

    def __init__(self, longest: int, deepest: int, quiet: bool = False) -> None:
        self.longest, self.deepest, self.quiet = longest, deepest, quiet
        self.lines = 0
        self._of_reader: reader_remarks.Remarks | None = None
        self._unit = ""

    def add_reading(self, remarks: reader_remarks.Remarks | None, unit: str) -> None:
        """Count what the reader left out of a line or found odd in it, to be told at the end.

        Args:
            remarks: by the reader.
            unit: what it read, ``trees`` or ``lines``.
        """
        self._unit = unit
        if remarks is not None and self._of_reader is None:
            self._of_reader = reader_remarks.Remarks(remarks.path)
        if remarks is not None and self._of_reader is not None:
            self._of_reader.extend(remarks)

    def check(self, line: int, unknown: Iterable[str], length: int, depth: int) -> None:
        """Tell of a line.

        Args:
            line: its number.
            unknown: its tokens that the model does not know.
            length: number of its tokens.
            depth: steps from the root of its tree to the deepest node.
        """
        remarks = []
        if words := list(dict.fromkeys(unknown)):
            more = f" and {len(words) - WORDS_SHOWN} more" * (len(words) > WORDS_SHOWN)
            remarks.append(f"unknown to the model: {', '.join(words[:WORDS_SHOWN])}{more}")
        if 0 < self.longest < length:
            remarks.append(f"{length} tokens, the longest sentence in training has {self.longest}")
        if 0 < self.deepest < depth:
            remarks.append(f"its tree is {depth} deep, the deepest in training is {self.deepest}")
        self.lines += bool(remarks)
        if remarks and self.lines <= SHOWN:
            self._say(f"line {line}: {'; '.join(remarks)}")

    def close(self, malformed: int = 0, format_name: str = "") -> None:
        """Tell how many lines were only counted, and how many outputs their format cannot hold."""
        for text in self._of_reader.texts(self._unit) if self._of_reader else ():
            self._say(text)
        if malformed:
            self._say(
                f"{malformed} outputs cannot be written as {format_name}, each is a lone bracket; see "
                "--tree-constraints"
            )
        if self.lines > SHOWN:
            self._say(
                f"{self.lines - SHOWN} more lines with words unknown to the model, or too long or deep"
            )

    def _say(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

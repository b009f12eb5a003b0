"""fairseq's dictionaries, ``dict.LANG.txt``, counted, written and read without fairseq.

One ``symbol count`` a line, most frequent first, ties in alphabetical order. The special symbols
``<s> <pad> </s> <unk>`` have the ids 0 to 3 and no line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import atomic_file, read_lines

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
BOS, PAD, EOS, UNK = range(4)
PADDING_FACTOR = 8


class Dictionary:
    """Symbols and their ids.

    Attributes:
        symbols: every symbol by id, the four special ones first.
        counts: how often each symbol was counted; 0 for the special ones and for padding.
    """

    def __init__(self, entries: Iterable[tuple[str, int]]) -> None:
        """Number ``(symbol, count)`` pairs as they come, after the special symbols."""
        pairs = [(special, 0) for special in SPECIALS] + list(entries)
        self.symbols = [symbol for symbol, _ in pairs]
        self.counts = [count for _, count in pairs]
        self._ids = {symbol: index for index, symbol in enumerate(self.symbols)}
        # A word that looks like a special symbol must not end or pad a sentence.
        self._ids.update(dict.fromkeys(SPECIALS, UNK))

    def __len__(self) -> int:
        """Number of symbols, with the special ones."""
        return len(self.symbols)

    def index(self, symbol: str) -> int:
        """The id of a symbol found in data; ``<unk>``'s for unknown and special ones."""
        return self._ids.get(symbol, UNK)

    @classmethod
    def build(cls, counts: Mapping[str, int], threshold: int = 0, size: int = 0) -> Dictionary:
        """The dictionary that fairseq-preprocess makes of the same counts.

        Args:
            counts: occurrences of each symbol.
            threshold: symbols that occur less often are left out.
            size: number of symbols to keep with the four special ones, 0 for all; after that,
                ``madeupword0000`` … pad the total to a multiple of 8.
        """
        held = (item for item in counts.items() if item[1] >= threshold and can_hold(item[0]))
        kept = sorted(held, key=lambda item: (-item[1], item[0]))
        if size > 0:
            kept = kept[: max(0, size - len(SPECIALS))]
        known = {symbol for symbol, _ in kept}
        number = 0
        while (len(known) + len(SPECIALS)) % PADDING_FACTOR:
            padding = f"madeupword{number:04d}"
            number += 1
            if padding not in known:
                known.add(padding)
                kept.append((padding, 0))
        return cls(kept)

    def write(self, path: str | Path) -> None:
        """Write ``dict.LANG.txt``.

        Raises:
            InputError: if the file cannot be written.
        """
        lines = zip(self.symbols[len(SPECIALS) :], self.counts[len(SPECIALS) :], strict=True)
        with atomic_file(path) as staged, staged.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(f"{symbol} {count}\n" for symbol, count in lines)

    @classmethod
    def read(cls, path: str | Path) -> Dictionary:
        """Read ``dict.LANG.txt``.

        Raises:
            InputError: if the file cannot be read, or a line has no count or a symbol again.
        """
        entries: dict[str, int] = {}
        for line, text in enumerate(read_lines(path), start=1):
            symbol, _, count = text.rstrip().rpartition(" ")
            if not symbol or not count.isdecimal():
                raise InputError(
                    path,
                    line,
                    f"{text!r} is not a symbol and its count",
                    "one of each, as 'the 42'",
                )
            if symbol in entries or symbol in SPECIALS:
                raise InputError(
                    path,
                    line,
                    f"the symbol {symbol!r} is there already",
                    "remove one of the lines"
                    if symbol in entries
                    else f"remove the line; {' '.join(SPECIALS)} need none",
                )
            entries[symbol] = int(count)
        return cls(entries.items())


def can_hold(symbol: str) -> bool:
    """Whether a line of a dictionary can hold the symbol, so that fairseq reads it back."""
    if not symbol or symbol in SPECIALS or "\n" in symbol or "\r" in symbol:
        return False
    try:
        symbol.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, from a JSON escape
        return False
    return True

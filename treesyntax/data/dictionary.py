"""fairseq's dictionaries, ``dict.LANG.txt``, counted, written and read without fairseq.

One ``symbol count`` a line, most frequent first, ties in alphabetical order. The special symbols
``<s> <pad> </s> <unk>`` have the ids 0 to 3 and no line.

Tokens may be of several kinds, each with an unknown symbol of its own, which then is a symbol like
any other to fairseq: ``<unk>/2`` for the unknown nodes with two children. A function `UnknownOf`
says which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import read_lines, write_lines
from treesyntax.trees.symbols import SEPARATOR, split_symbol

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
BOS, PAD, EOS, UNK = range(4)
PADDING_FACTOR = 8
_COUNT = re.compile("[0-9]{1,18}")

# The unknown symbol that stands for a symbol; for an unknown symbol it is the symbol itself.
UnknownOf = Callable[[str], str]


def one_unknown(symbol: str) -> str:
    """``<unk>`` for every symbol."""
    return SPECIALS[UNK]


class Dictionary:
    """Symbols and their ids.

    Attributes:
        symbols: every symbol by id, the four special ones first.
        counts: how often each symbol was counted; 0 for the special ones and for padding.
        unknown_ids: the ids of the unknown symbols, ``<unk>`` and those of `UnknownOf`.
    """

    def __init__(
        self, entries: Iterable[tuple[str, int]], unknown_of: UnknownOf = one_unknown
    ) -> None:
        """Number ``(symbol, count)`` pairs as they come, after the special symbols."""
        pairs = [(special, 0) for special in SPECIALS] + list(entries)
        self.symbols = [symbol for symbol, _ in pairs]
        self.counts = [count for _, count in pairs]
        self._ids = {symbol: index for index, symbol in enumerate(self.symbols)}
        # A word that looks like a special symbol must not end or pad a sentence.
        self._ids.update(dict.fromkeys(SPECIALS, UNK))
        self._unknown_of = unknown_of
        self.unknown_ids = [
            index for index, symbol in enumerate(self.symbols) if unknown_of(symbol) == symbol
        ]

    def __len__(self) -> int:
        """Number of symbols, with the special ones."""
        return len(self.symbols)

    def index(self, symbol: str) -> int:
        """The id of a symbol found in data; an unknown symbol's for unknown and special ones."""
        symbol_id = self._ids.get(symbol)
        return self._ids.get(self._unknown_of(symbol), UNK) if symbol_id is None else symbol_id

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        threshold: int = 0,
        size: int = 0,
        unknown_of: UnknownOf = one_unknown,
    ) -> Dictionary:
        """The dictionary that fairseq-preprocess makes of the same counts.

        Args:
            counts: occurrences of each symbol.
            threshold: symbols that occur less often are left out.
            size: number of symbols to keep with the special and unknown ones, 0 for all; after
                that, ``madeupword0000`` … pad the total to a multiple of 8.
            unknown_of: with more than one unknown symbol, those of all ``counts`` follow the kept
                symbols, each with the count of what was left out for it.
        """
        stands_for = dict(zip(counts, map(unknown_of, counts), strict=True))
        kept = _by_frequency(
            (symbol, count)
            for symbol, count in counts.items()
            if count >= threshold and stands_for[symbol] != symbol and can_hold(symbol)
        )
        unknown = dict.fromkeys(stands_for.values(), 0)
        unknown.pop(SPECIALS[UNK], None)
        if size > 0:
            kept = kept[: max(0, size - len(SPECIALS) - len(unknown))]
        if unknown:
            known = {symbol for symbol, _ in kept}
            for symbol in counts.keys() - known:
                if stands_for[symbol] in unknown:
                    unknown[stands_for[symbol]] += counts[symbol]
        kept += _by_frequency(unknown.items())
        return cls(_padded(kept), unknown_of)

    def extended(self, symbols: Iterable[str]) -> Dictionary:
        """With more symbols, of count 0, after its own; again a multiple of 8 where it was padded."""
        pairs = list(zip(self.symbols, self.counts, strict=True))[len(SPECIALS) :]
        new = dict.fromkeys(symbol for symbol in symbols if can_hold(symbol))
        pairs += [(symbol, 0) for symbol in new if symbol not in self._ids]
        return Dictionary(_padded(pairs), self._unknown_of)

    def write(self, path: str | Path) -> None:
        """Write ``dict.LANG.txt``."""
        pairs = zip(self.symbols[len(SPECIALS) :], self.counts[len(SPECIALS) :], strict=True)
        write_lines(path, (f"{symbol} {count}" for symbol, count in pairs))

    @classmethod
    def read(cls, path: str | Path, unknown_of: UnknownOf = one_unknown) -> Dictionary:
        """Read ``dict.LANG.txt``, of which ``unknown_of`` chooses the unknown symbols.

        Raises:
            InputError: if the file cannot be read, or a line has no count or a symbol again.
        """
        entries: dict[str, int] = {}
        for line, text in enumerate(read_lines(path, record=True), start=1):
            symbol, _, count = text.rstrip().rpartition(" ")
            if not symbol or not _COUNT.fullmatch(count):
                raise InputError(
                    path,
                    line,
                    f"{text[:40]!r} is not a symbol and its count",
                    "one of each, as 'the 42'",
                )
            if symbol in entries or symbol in SPECIALS:
                raise InputError(
                    path,
                    line,
                    f"the symbol {symbol[:40]!r} already exists",
                    "remove one of the lines"
                    if symbol in entries
                    else f"remove the line; {' '.join(SPECIALS)} need none",
                )
            entries[symbol] = int(count)
        return cls(entries.items(), unknown_of)


def _by_frequency(entries: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    # Two sorts by what the pairs hold are faster than one by keys that are made for it.
    return sorted(sorted(entries), key=itemgetter(1), reverse=True)


def _padded(entries: list[tuple[str, int]]) -> list[tuple[str, int]]:
    known = {symbol for symbol, _ in entries}
    padded = list(entries)
    number = 0
    while (len(padded) + len(SPECIALS)) % PADDING_FACTOR:
        padding = f"madeupword{number:04d}"
        number += 1
        if padding not in known:
            padded.append((padding, 0))
    return padded


def can_hold(symbol: str) -> bool:
    """Whether a line of a dictionary can hold the symbol, so that fairseq reads it back."""
    if not symbol or symbol in SPECIALS or "\n" in symbol or "\r" in symbol:
        return False
    try:
        symbol.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, from a JSON escape
        return False
    return True


UNKNOWN = SPECIALS[UNK]


def unknown_symbol(symbol: str) -> str:
    """What stands for a symbol that a dictionary lacks: ``<unk>/2`` for ``foo/2``.

    For a symbol that is no node it is ``<unk>``.
    """
    if split_symbol(symbol) is None:
        return UNKNOWN
    return f"{UNKNOWN}{SEPARATOR}{symbol.rpartition(SEPARATOR)[2]}"

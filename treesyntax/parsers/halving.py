"""Work in batches; a batch that fails is halved until only the faulty items are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

BATCH_WORDS = 8000
"""Words in a call of a parser, which makes its own batches of them. A failure repeats one call."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class ParseFailure(NamedTuple):
    """The result of an item on which the parser failed."""

    reason: str


def batches(items: Sequence[Item], costs: Sequence[int]) -> Iterator[Sequence[Item]]:
    """Consecutive items that cost at most ``BATCH_WORDS`` together, or one item alone."""
    ends = list(accumulate(costs))
    start = 0
    while start < len(items):
        limit = BATCH_WORDS + (ends[start - 1] if start else 0)
        end = start + 1
        while end < len(items) and ends[end] <= limit:
            end += 1
        yield items[start:end]
        start = end


def in_halves(
    function: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]
) -> list[Result | ParseFailure]:
    """The results for all items. If the function fails, it is called on halves, then on halves of
    these; an item on which it fails alone gives a `ParseFailure`."""
    results: list[Result | ParseFailure] = []
    waiting = [items] if items else []
    while waiting:
        batch = waiting.pop()
        try:
            results += function(batch)
        except Exception as error:
            # A parser may raise any exception on strange text; the reason goes into the report.
            if len(batch) == 1:
                results.append(ParseFailure(_reason(error)))
            else:
                middle = len(batch) // 2
                waiting += [batch[middle:], batch[:middle]]
    return results


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())[:160]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

"""The progress of ``treesyntax parse`` within a shard."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from commands.test_parse import fakes, parse, text

from treesyntax.parsers import halving, parse_file, workers

__all__ = ["fakes", "text"]  # fixtures


class ThreadPool(ThreadPoolExecutor):
    """In place of processes, which would not know the stand-in for a parser."""

    def __init__(self, count, context, start, arguments):
        super().__init__(count)
        workers._done = arguments[1]


@pytest.mark.parametrize("count", [1, 2])
def test_lines_are_told_while_a_shard_is_parsed(count, text, tmp_path, monkeypatch):
    """Before, they were told when a shard of 2,000 was saved: minutes for a slow parser."""
    told = []

    @contextmanager
    def shown(total, done, console):
        yield told.append

    monkeypatch.setattr(workers, "ProcessPoolExecutor", ThreadPool)
    monkeypatch.setattr(parse_file, "shown", shown)
    monkeypatch.setattr(workers, "TICK", 0.005)
    monkeypatch.setattr(halving, "BATCH_WORDS", 8)
    parse(text, tmp_path / "out", "--shard-lines", "25", "--workers", count, "--lang", "5")
    assert sum(told) == pytest.approx(49)
    assert len([lines for lines in told if 0 < lines < 12]) >= 4

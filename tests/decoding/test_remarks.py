"""Remarks of ``treesyntax translate`` on its input."""

from __future__ import annotations

from treesyntax.decoding.remarks import Remarks


def test_remarks_on_many_lines_are_counted(capsys):
    remarks = Remarks(3, 0)
    for line in range(1, 31):
        remarks.check(line, ["x"] * 9 + list("abcdef"), 3, 99)
    remarks.close()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 21
    assert told[0] == "line 1: unknown to the model: x, a, b, c, d and 2 more"
    assert told[-1].startswith("10 more lines with words unknown")

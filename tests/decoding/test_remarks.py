"""Remarks of ``treesyntax translate`` on its input."""

from __future__ import annotations

from treesyntax.decoding.remarks import Remarks
from treesyntax.remarks import remarks_of
from treesyntax.trees.formats import get_format, parse_record
from treesyntax.trees.formats.base import Record


def test_remarks_on_many_lines_are_counted(capsys):
    remarks = Remarks(3, 0)
    for line in range(1, 31):
        remarks.check(line, ["x"] * 9 + list("abcdef"), 3, 99)
    remarks.close()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 21
    assert told[0] == "line 1: unknown to the model: x, a, b, c, d and 2 more"
    assert told[-1].startswith("10 more lines with words unknown")


def test_what_the_reader_of_trees_left_out_is_counted_and_told_at_the_end(capsys):
    remarks = Remarks(0, 0)
    for line in (4, 5, 6):
        with remarks_of("new.ptb") as found:
            found.records = 1
            word = "(-NONE- *)" if line > 4 else "(DT a)"
            parse_record(get_format("ptb"), "new.ptb", Record(line, f"(S (NN b) {word})"))
        remarks.add_reading(found, "trees")
    remarks.add_reading(None, "trees")
    assert capsys.readouterr().err == ""
    remarks.close()
    told = capsys.readouterr().err
    assert told.startswith("new.ptb:5: 2 of 3 trees hold traces (-NONE-); they are removed")

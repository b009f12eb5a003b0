"""What does not fit into a search or an encoding is counted."""

from __future__ import annotations

import pytest

from treesyntax.data.limits import large_trees, long_references

CHAIN = [-1, 0, 1, 2], [0, 0, 0, 0]
WIDE = [-1, 0, 0, 0], [0, 0, 1, 2]


@pytest.mark.parametrize(("a", "b", "positions", "counts"), [
    (0, 200, 1024, ""), (0, 9, 1024, ""), (0, 8, 1024, "1 of 3 references are longer (up to 9 t"),
    (1, 0, 1024, "2 of 3 references"), (0, 200, 9, "1 of 3"), (0, 200, 10, ""), (0.5, 3.5, None, "1 of 3"),
])  # fmt: skip
def test_references_that_no_output_reaches(a, b, positions, counts):
    text = long_references([3, 5, 11], [5, 10, 4], a, b, positions)
    assert text.startswith(counts) is True
    assert bool(text) == bool(counts)


@pytest.mark.parametrize(("depth", "degree", "siblings", "counts"), [
    (3, 3, False, ""), (3, 2, True, ""), (2, 3, False, "1 are deeper than depth=2 steps (up to 3) and 0"),
    (3, 2, False, "0 are deeper than depth=3 steps (up to 3) and 1 have more than degree=2 children (up to 3)"),
    (2, 2, True, "2 are deeper than depth=2 steps (up to 3) and 0"),
])  # fmt: skip
def test_trees_that_an_encoding_cuts(depth, degree, siblings, counts):
    text = large_trees([CHAIN, WIDE, ([], [])], depth, degree, siblings, "source")
    assert text.startswith("of 3 source trees " + counts) if counts else text == ""

"""What a row of a recipe takes from others: all of the row that ``like`` names, and the baseline's data.

A row that says nothing of its data reads and writes what its baseline does. So the shortest row that can be
written, ``rotary: {arch: "tree_rotary_{size}"}``, differs from the baseline in its method alone. One key
of ``binarize`` or ``data`` is enough to say all of the row's data: what it leaves out is as for all rows.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from treesyntax.errors import unknown_name
from treesyntax.study.recipe.checks import DATA, Check
from treesyntax.study.recipe.controls import CONTROLS, kind_of

LIKE, METHODS, ABOUT, BINARIZE = "like", "methods", "about", "binarize"
FIRST = ""
"""Stands for the first row, which is the baseline where the recipe names none."""


def complete_rows(content: Mapping[str, Any], check: Check, giver: str | None) -> dict[str, Any]:
    """A recipe whose rows have what they take from others.

    Args:
        content: the recipe as it is written.
        check: of the recipe.
        giver: the baseline, whose data rows take that say nothing of theirs; None if all rows have
            theirs, as in a resolved recipe.

    Raises:
        OptionError: for a ``like`` that names no row, or rows that are like each other.
    """
    rows = check.mapping(content[METHODS], METHODS)
    if not all(isinstance(row, dict) for row in rows.values()):
        return dict(content)  # which the rules of rows refuse
    rows = {name: _like(name, rows, (), check) for name in rows}
    baseline = "" if giver is None else _baseline(giver, rows)
    for name, row in rows.items() if baseline else ():
        if not kind_of(name) and BINARIZE not in row and DATA not in row:
            row |= {
                key: copy.deepcopy(rows[baseline][key])
                for key in (BINARIZE, DATA)
                if key in rows[baseline]
            }
    return {**content, METHODS: rows}


def _like(
    name: str, rows: Mapping[str, Any], above: tuple[str, ...], check: Check
) -> dict[str, Any]:
    """A row with the entries of the one that it is like; its own count where both have one."""
    row = dict(rows[name])
    if LIKE not in row:
        return row
    place, other = f"{METHODS}.{name}.{LIKE}", row.pop(LIKE)
    if not isinstance(other, str) or other not in rows:
        raise unknown_name("row", str(other), list(rows), f"{check.path}: {place}:")
    if other in (*above, name):
        raise check.error(place, f"goes round in a circle: {' -> '.join((*above, name, other))}")
    taken = _like(other, rows, (*above, name), check)
    for key in (ABOUT, CONTROLS):
        taken.pop(key, None)
    return _merged(taken, row)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    # As `laid_over`, but null stays: in a row it leaves a flag out that all rows have.
    both = {
        key: _merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(key), dict)
    }
    return copy.deepcopy({**below, **above, **both})


def _baseline(named: Any, rows: Mapping[str, Any]) -> str:
    """The method that is the baseline, or whose row is; "" for none."""
    if named == FIRST:
        return next(iter(rows), "")
    fits = (name for name in rows if named == name or str(named).startswith(f"{name}-"))
    return max(fits, key=len, default="")

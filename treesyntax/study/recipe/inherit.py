"""What a row of a recipe takes from others: all of the row that ``like`` names, and the first row's data.

The first row is the baseline, unless another is named. A row that says nothing of its data reads and
writes what the first does. So the shortest row that can be
written, ``rotary: {arch: "tree_rotary_{size}"}``, differs from it in its method alone. One key
of ``binarize`` or ``data`` is enough to say all of the row's data: what it leaves out is as for all rows.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from treesyntax.errors import unknown_name
from treesyntax.study.recipe.checks import DATA, Check
from treesyntax.study.recipe.controls import CONTROLS, kind_of

LIKE, METHODS, ABOUT, BINARIZE = "like", "methods", "about", "binarize"


def complete_rows(content: Mapping[str, Any], check: Check, inherit: bool) -> dict[str, Any]:
    """A recipe whose rows have what they take from others.

    Args:
        content: the recipe as it is written.
        check: of the recipe.
        inherit: whether rows without data take the first row's; those of a resolved recipe have theirs.

    Raises:
        OptionError: for a ``like`` that names no row, or rows that are like each other.
    """
    rows = check.mapping(content[METHODS], METHODS)
    if not all(isinstance(row, dict) for row in rows.values()):
        return dict(content)  # which the rules of rows refuse
    rows = {name: _like(name, rows, (), check) for name in rows}
    # Not that of another row that is named as the baseline: to compare with another changes no row.
    first: dict[str, Any] = next(iter(rows.values()), {})
    for name, row in rows.items() if inherit else ():
        if not kind_of(name) and BINARIZE not in row and DATA not in row:
            row |= {key: copy.deepcopy(first[key]) for key in (BINARIZE, DATA) if key in first}
    return {**content, METHODS: rows}


def changed_rows(written: Mapping[str, Any], whole: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the methods that have the data of the first one, since they say nothing about their own."""
    before, after = written[METHODS], whole[METHODS]
    return tuple(
        name
        for name, row in after.items()
        if isinstance(row, dict)
        and LIKE not in before[name]
        and any(key in row and key not in before[name] for key in (BINARIZE, DATA))
    )


def inherited_line(names: Sequence[str], first: str) -> str:
    """Return a line that says so, "" if there are none."""
    rows = ", ".join(names)
    return (
        f"{rows}: no binarize and no data, so {'it has' if len(names) == 1 else 'they have'} those of {first}"
        if names
        else ""
    )


def _like(
    name: str, rows: Mapping[str, Any], above: tuple[str, ...], check: Check
) -> dict[str, Any]:
    """A row with the entries of the one that it is like; its own count where both have one."""
    row = dict(rows[name])
    if LIKE not in row:
        return row
    like_key, base_name = f"{METHODS}.{name}.{LIKE}", row.pop(LIKE)
    if not isinstance(base_name, str) or base_name not in rows:
        raise unknown_name("row", str(base_name), list(rows), f"{check.path}: {like_key}:")
    if base_name in (*above, name):
        raise check.error(
            like_key, f"goes round in a circle: {' -> '.join((*above, name, base_name))}"
        )
    base_row = _like(base_name, rows, (*above, name), check)
    for key in (ABOUT, CONTROLS):
        base_row.pop(key, None)
    return _merged(base_row, row)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    # As `laid_over`, but null stays: in a row it leaves a flag out that all rows have.
    both = {
        key: _merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(key), dict)
    }
    return copy.deepcopy({**below, **above, **both})

"""Studies over several test sets: a table for each, and a summary beside them."""

from __future__ import annotations

from typing import NamedTuple

from treesyntax.study.recipe.recipe import Recipe

TASK = "task"
"""The axis of studies of different tasks that are joined; its values are names of folders."""


class Domain(NamedTuple):
    """Where a row stands in a study with several test sets.

    Attributes:
        name: of the test set, from the axes that change it, such as ``domain=law``.
        system: the name of the row without that.
    """

    name: str
    system: str


def find_domains(recipe: Recipe) -> dict[str, Domain]:
    """The test set of each row; empty if all rows have the same."""
    tests = dict.fromkeys(method.target.test for method in recipe.methods)
    domains = {}
    for test in tests if len(tests) > 1 else ():
        rows = [method for method in recipe.methods if method.target.test == test]
        others = [method for method in recipe.methods if method.target.test != test]
        set_coordinates = [
            coordinate
            for coordinate in rows[0].point
            if all(coordinate in row.point for row in rows)
            and not all(coordinate in row.point for row in others)
        ]
        name = "-".join(f"{axis}={label}" for axis, label in set_coordinates) or test
        for row in rows:
            rest = (
                f"{axis}={label}"
                for axis, label in row.point
                if (axis, label) not in set_coordinates
            )
            domains[row.name] = Domain(name, "-".join([row.base, *rest]))
    return domains


def short_name(test_set: str) -> str:
    """``task=slog`` as ``slog``."""
    if test_set.startswith(f"{TASK}="):
        return test_set.removeprefix(f"{TASK}=")
    return "-".join(
        coordinate.partition("=")[2] or coordinate for coordinate in test_set.split("-")
    )

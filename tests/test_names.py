"""Names in the library say what they hold."""

import ast
from collections.abc import Iterator

import pytest
from support import ROOT

VAGUE = {
    "asked",
    "found",
    "one",
    "ones",
    "own",
    "part",
    "parts",
    "place",
    "places",
    "taken",
    "told",
}
"""Names that could be anything's."""

FORMATS = {
    "treesyntax/study/report/items.py": {"places"},
    "treesyntax/study/results/rows.py": {"asked"},
}
"""Fields that stand in files which studies have written."""


def names_in(code: str) -> Iterator[tuple[int, str]]:
    """The line and name of what a module defines or assigns."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


@pytest.mark.parametrize("package", ["treesyntax", "fairseq_plugins"])
def test_names_say_what_they_hold(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert len(files) > 20
    vague = []
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        allowed = FORMATS.get(name, set())
        vague += [
            f"{name}:{line}: {identifier}"
            for line, identifier in names_in(file.read_text("utf-8"))
            if identifier.strip("_") in VAGUE - allowed
        ]
    assert vague == []


def test_each_kind_of_name_is_seen():
    code = "def part(own):\n    for one in own:\n        self.told = one\n    found: int = 1\n"
    names = {name for _, name in names_in(code)}
    assert names == {"part", "own", "one", "told", "found"}

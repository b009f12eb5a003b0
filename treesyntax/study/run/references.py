"""Whether rows that write trees can be right at all: a tree has one spelling, and a reference may have another.

``exact`` compares spellings. A row that writes text learns those of its files; one that grows trees gets the spelling
with which the format writes trees. Where the references have another, ``(a(b c))`` for ``( a ( b c ) )``, the best
model would have no line right, and the table would say that trees hurt.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from treesyntax.errors import InputError, OptionError, TreeError
from treesyntax.metrics import compares_spelling
from treesyntax.study.recipe.backbone import target_text
from treesyntax.study.recipe.recipe import DATA, Recipe
from treesyntax.study.run.steps import located
from treesyntax.trees.formats import FORMATS, Record, get_format

SHOWN = 60
"""Characters of a spelling in a message."""


def check_references(recipe: Recipe, folder: Path | None = None) -> None:
    """Refuse a metric that compares spellings where references are not spelt as their format writes them.

    Args:
        recipe: the study's. Formats in a file of the user's own are not looked at: another process imports it.
        folder: the study's; without it files that it will make are not looked at.

    Raises:
        OptionError: with the first such line.
    """
    metrics = [metric for metric in recipe.score if compares_spelling(metric)]
    for method in recipe.methods if metrics else ():
        form, text = target_text(recipe.flags(method, "binarize")), method.target.test
        name = "" if form is None else form.format_name
        if name not in FORMATS.known or (folder is None and f"{{{DATA}}}" in text):
            continue
        file = Path(text) if folder is None else located(text, folder)
        records, lines = _spelt_otherwise(file, name)
        if records:
            line, given, written = records[0]
            raise OptionError(
                f"{recipe.path}: score: {metrics[0]} compares spellings, and {len(records)} of {lines} references in "
                f"{file} have another one than the trees that {method.name} writes (line {line}: {given[:SHOWN]!r}, "
                f"written {written[:SHOWN]!r}): score tree:{name}, or write the file again with read_trees and "
                "write_trees of treesyntax"
            )


@cache
def _spelt_otherwise(file: Path, name: str) -> tuple[list[tuple[int, str, str]], int]:
    """The references that are spelt in another way: line, text and what is written; and the number of all."""
    try:
        records = [*get_format(name).records(file)]
    except InputError:  # binarize names what is wrong with the file
        return [], 0
    spellings = [(record, _written(record, name)) for record in records]
    return [
        (record.line, record.text, written)
        for record, written in spellings
        if written is not None and written.split() != record.text.split()
    ], len(records)


def _written(record: Record, name: str) -> str | None:
    """The spelling of a record's tree; None where the text is no tree, which binarize names."""
    tree_format = get_format(name)
    try:
        return tree_format.write(tree_format.parse(record.text))
    except TreeError:
        return None

"""Whether categories fit their test set: said before a training, since only scoring and the report read them."""

from __future__ import annotations

from pathlib import Path

from treesyntax.errors import unknown_name
from treesyntax.files import count_lines
from treesyntax.metrics.counted import OF, counted_lines, read_categories
from treesyntax.study.recipe.recipe import DATA, Recipe
from treesyntax.study.run.steps import located


def check_categories(recipe: Recipe, folder: Path | None = None) -> None:
    """Refuse categories of another number of lines than their test set, and metrics of a category without lines.

    Args:
        recipe: the study's.
        folder: the study's; without it files that it will make are not looked at.

    Raises:
        InputError: for a file with too many lines or too few.
        OptionError: for the first metric whose category no line has.
    """
    for names in dict.fromkeys((row.categories, row.target.test) for row in recipe.methods):
        if folder is None and any(f"{{{DATA}}}" in name for name in names):
            continue
        path, test = (Path(name) if folder is None else located(name, folder) for name in names)
        if not names[0] or not path.is_file() or not test.is_file():
            continue
        categories = read_categories(path, test, count_lines(test))
        for metric in recipe.score:
            category = metric.partition(OF)[2]
            if category and not any(counted_lines(f"{OF}{category}", None, categories) or ()):
                where = f"{recipe.path}: score: {metric}: in {path}"
                raise unknown_name("category", category, dict.fromkeys(categories), where)

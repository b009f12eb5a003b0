"""List the recipes that come with treesyntax, or copy one to change it.

  treesyntax recipes
  treesyntax recipes copy nmt/dependency my_study.yaml

A recipe runs by its name as by a file (treesyntax study demo/for2lam), and a recipe of your own can
extend it by its name (extends: nmt/dependency). Each file begins with the command that runs it and
says which data it needs; treesyntax new writes a short recipe for data of your own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError
from treesyntax.files import write_text
from treesyntax.jobs.completion import suggest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The list, and copy NAME FILE."""
    parser.add_argument("--json", action="store_true", help="print a JSON list instead")
    commands = parser.add_subparsers(dest="action", metavar="copy")
    copy = commands.add_parser("copy", help="write a recipe to a file of your own")
    name = copy.add_argument(
        "name", metavar="NAME", help="name of the recipe, such as nmt/dependency"
    )
    suggest(name, recipe_names)
    copy.add_argument("file", metavar="FILE", type=Path, help="file to write")


def recipe_names() -> list[str]:
    """The names of all recipes."""
    from treesyntax.study.recipe.shipped import shipped_recipes

    return list(shipped_recipes())


def run(args: argparse.Namespace) -> int:
    """Print a line for each recipe, or copy one."""
    from treesyntax.study.recipe.shipped import shipped_recipe, shipped_recipes

    if args.action == "copy":
        text = copied(shipped_recipe(args.name))
        if os.path.lexists(args.file):  # a link to nothing too
            raise InputError(args.file, None, "already exists", "choose another name")
        write_text(args.file, text)
        print(f"{args.file}: edit it, then run: treesyntax study {args.file}")
        return 0
    titles = {name: title_of(path) for name, path in shipped_recipes().items()}
    if args.json:
        files = {name: str(path) for name, path in shipped_recipes().items()}
        listed = [{"name": name, "title": titles[name], "file": files[name]} for name in titles]
        print(json.dumps(listed, indent=2, ensure_ascii=False))
        return 0
    width = max(map(len, titles), default=0)
    for name, title in titles.items():
        print(f"{name:<{width}}  {title}")
    return 0


def title_of(path: Path) -> str:
    """What a recipe compares, in one line."""
    from treesyntax.study.recipe.checks import Check, replace_variables
    from treesyntax.study.recipe.reading import read_extended

    content: dict[str, Any] = read_extended(path)
    variables = Check(path).resolved(
        {name: str(value) for name, value in content.get("vars", {}).items()}
    )
    return str(replace_variables(content.get("title", ""), variables))


def copied(path: Path) -> str:
    """The text of a recipe as it stands in any folder: what it extends is named in full."""
    from treesyntax.study.recipe.shipped import recipes_folder

    def full(match: re.Match[str]) -> str:
        base = (path.parent / match[2]).resolve().relative_to(recipes_folder().resolve())
        return f"{match[1]}{base.with_suffix('').as_posix()}"

    text = path.read_text(encoding="utf-8")
    return re.sub(r"^(extends: *)(\S+\.yaml)", full, text, flags=re.MULTILINE)

"""Recipe files as nested mappings: YAML, ``extends: FILE``, and ``--set KEY=VALUE``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines
from treesyntax.study.recipe.beside import ADDED, VARS, with_paths
from treesyntax.study.recipe.checks import RESERVED, TRAIN_DEFAULTS, flag_name, variables_used
from treesyntax.study.recipe.keys import (
    KEYS,
    METHOD_KEYS,
    PRETRAINED_DATA_KEYS,
    PRETRAINED_ROW_KEYS,
    SEARCH_KEYS,
)
from treesyntax.study.recipe.shipped import shipped_name, shipped_recipe
from treesyntax.yaml_text import MisreadError, NotYamlError, parse_value, parse_yaml

EXTENDS = "extends"
IMPORT = "import"
OPEN = ("train", "generate", "binarize", "vars")
"""Sections in which an override may add an entry; elsewhere it must name an existing one."""
FLAT = {"axes": 2, "differences": 1, "search": 2}
"""Sections whose keys hold dots, and the depth at which those keys begin; an override may add them."""
MAY_BE_ADDED = (
    *FLAT,
    "analyses",
    "average",
    "baseline",
    "budget",
    IMPORT,
    "primary",
    "skip",
    "train-on",
)
DATA, ROOT, CORPUS = "data", "root", "corpus"
METHODS = "methods"
ROW_KEYS = dict.fromkeys((*METHOD_KEYS, *PRETRAINED_ROW_KEYS))
KNOWN = {"": KEYS, DATA: PRETRAINED_DATA_KEYS, "search": SEARCH_KEYS}
"""Keys, by the section in which they may stand, that null may name in any recipe: below it some may lack them."""
ALIASES = {"metrics": "score"}
"""Keys of a recipe by other names that they are looked for under."""

RESOLVED = "# resolved from"
"""Begins a resolved recipe."""
LARGEST_FILE = 1 << 20
"""Characters of a file; PyYAML reads about a million a second."""
MOST_SHOWN = 200
"""Characters of an override in a message."""


def is_resolved(path: Path) -> bool:
    """Whether a study wrote the recipe, with all that its rows are and paths as the shell named them."""
    if not path.is_file():  # a pipe is read once
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(len(RESOLVED)) == RESOLVED


def imports_folder(path: Path) -> Path:
    """The folder to which ``import`` of a recipe is relative: of one that a study wrote, that of the recipe before."""
    if not is_resolved(path):
        return path.parent
    with path.open(encoding="utf-8", errors="replace") as file:
        return Path(file.readline().removeprefix(RESOLVED).strip()).parent


def read_extended(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The mapping in a recipe file, laid over those of the files that it extends.

    Paths are relative to the recipe's folder; what is not there, to the shell's. The value of
    ``extends`` is the name of a file, relative to the recipe's folder, the name of a recipe of the
    package such as ``nmt/dependency``, or a list of names, later ones over earlier ones. Mappings
    are merged key by key. Any other value replaces the earlier one, null removes it, and a list
    under ``KEY+`` is added to that of ``KEY``.

    Args:
        path: the recipe file.
        above: the files that led to it by ``extends``.
    """
    if path.resolve() in above:
        raise InputError(path, None, "extends itself", f"take {EXTENDS} out of one of the files")
    content = _read_yaml(path)
    if EXTENDS not in content:
        return content if is_resolved(path) else with_paths(content, content, path.parent)
    names = content.pop(EXTENDS)
    merged: dict[str, Any] = {}
    for name in names if isinstance(names, list) else [names]:
        if not isinstance(name, str):
            raise InputError(path, None, f"{EXTENDS} is {name!r}", "give the name of a recipe file")
        extended = _extended(path, name)
        base = read_extended(extended, (*above, path.resolve()))
        if IMPORT in base:
            base[IMPORT] = _moved(base[IMPORT], imports_folder(extended), path.parent)
        merged = _laid_over(merged, base, extended)
    _check_nulls(merged, content, path)
    content = with_paths(content, _laid_over(merged, content, path), path.parent)
    whole = _laid_over(merged, content, path)
    if not above:  # a file in between may name a variable that those above it use
        _check_variables(merged, whole, path)
    return whole


def _check_nulls(
    base: Mapping[str, Any], changes: Mapping[str, Any], path: Path, keys: tuple[str, ...] = ()
) -> None:
    """Refuse a null that takes nothing away, since its name is misspelt."""
    for key, value in changes.items():
        below = base.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _check_nulls(below, value, path, (*keys, str(key)))
        elif value is None and key not in base and not _may_be_absent(str(key), keys):
            near = get_close_matches(str(key), [str(name) for name in base], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(str, base))}"
            section = ".".join(keys) or "the recipe"
            raise InputError(
                path,
                None,
                f"{key}: null takes nothing away, since {section} below has no {key!r}",
                hint,
            )


def _may_be_absent(key: str, keys: tuple[str, ...]) -> bool:
    """Whether null may name what the recipe below lacks: a key of recipes, or a flag of a row, see `check_nulls`."""
    if keys[:1] == (METHODS,):
        return key in ROW_KEYS if len(keys) == 2 else keys[2:3] != () and keys[2] in RESERVED
    return len(keys) < 2 and key in KNOWN.get("".join(keys), ())


def check_nulls(content: Mapping[str, Any], options: Iterable[str], path: Path) -> None:
    """Refuse a null in the flags of a row that leaves nothing out: a misspelt flag would stay as all rows have it.

    Args:
        content: of the whole recipe, checked.
        options: what its axes vary.
        path: its file.
    """
    rows = {name: row or {} for name, row in content[METHODS].items()}
    varied = [option.rpartition(".")[2] for option in options]
    for section in RESERVED:
        flags_of = [row.get(section, {}) for row in (content, *rows.values())]
        known = [flag for flags in flags_of for flag, value in flags.items() if value is not None]
        known += [*varied, *(TRAIN_DEFAULTS if section == "train" else ())]
        names = {_spelt(flag): flag for flag in known}
        for name, row in rows.items():
            for flag, value in row.get(section, {}).items():
                if value is None and _spelt(flag) not in names:
                    near = get_close_matches(_spelt(flag), names, n=1)
                    hint = f"did you mean {names[near[0]]!r}?" if near else "take it out"
                    key = f"{METHODS}.{name}.{section}.{flag}"
                    cause = f"{key}: null leaves nothing out, since no row has {flag!r}"
                    raise InputError(path, None, cause, hint)


def _spelt(flag: object) -> str:
    return flag_name(str(flag)).replace("_", "-")


def _check_variables(base: Mapping[str, Any], whole: Mapping[str, Any], path: Path) -> None:
    """Refuse a variable that changes nothing: it is misspelt, or the recipe below has no use for its own of that name."""
    known, variables = base.get(VARS), whole.get(VARS)
    if not isinstance(known, dict) or not isinstance(variables, dict):
        return
    used = variables_used([base, whole], variables)
    for name in variables:
        near = get_close_matches(str(name), map(str, known), n=1)
        if near and name not in used and variables[name] != known.get(name):
            uses = ", ".join(str(of) for of in variables if of in used) or "none"
            hint = f"it uses {uses}" if name in known else f"did you mean {near[0]!r}?"
            raise InputError(path, None, f"{VARS}.{name}: nothing uses this variable", hint)


def _laid_over(base: Mapping[str, Any], changes: Mapping[str, Any], path: Path) -> dict[str, Any]:
    try:
        return laid_over(base, changes)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None


def _moved(names: Any, folder: Path, other: Path) -> Any:
    """Names of files relative to one folder, relative to another; what lies above a link is above where it leads."""
    before, after = map(os.path.realpath, (folder, other))
    return [
        os.path.relpath(os.path.join(before, name), after) if isinstance(name, str) else name
        for name in (names if isinstance(names, list) else [names])
    ]


def _extended(path: Path, name: str) -> Path:
    beside = path.parent / name
    if not beside.exists() and beside.suffix and (shipped := shipped_name(name)):
        raise OptionError(
            f"{path}: {EXTENDS}: there is no {beside}; the recipe that comes with treesyntax is named "
            f"{shipped}"
        )
    try:
        return beside if beside.exists() or beside.suffix else shipped_recipe(name)
    except OptionError as error:
        raise OptionError(f"{path}: {EXTENDS}: {error}") from None


def laid_over(
    base: Mapping[str, Any], changes: Mapping[str, Any], keys: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Entries of a recipe with changes, as ``extends`` merges them.

    Args:
        base: the entries.
        changes: what is laid over them. Null takes an entry away; a flag that a row below has not, but all rows, it
            leaves out of that row.
        keys: of the section that they are of, from the outermost on.

    Raises:
        OptionError: if something is added to what is no list.
    """
    merged = dict(base)
    of_row = keys[:1] == (METHODS,) and keys[2:] and keys[2] in RESERVED
    for key, value in changes.items():
        if isinstance(key, str) and key.endswith(ADDED):
            add_to(merged, key.removesuffix(ADDED), value)
        elif value is None and (key in base or not of_row):
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = laid_over(merged[key], value, (*keys, str(key)))
        else:
            merged[key] = value
    return merged


def add_to(section: dict[str, Any], key: str, values: Any) -> None:
    """Add to a list of a recipe what it does not hold yet.

    Raises:
        OptionError: if there is no such list, or the values are none.
    """
    present = section.get(key)
    if not isinstance(present, list):
        raise OptionError(
            f"{key}{ADDED} adds to a list {key} of the recipe below, which has none; write {key}"
        )
    if not isinstance(values, list):
        raise OptionError(f"{key}{ADDED} is {values!r}; it must be a list")
    section[key] = [*present, *(value for value in values if value not in present)]


def apply_override(content: dict[str, Any], override: str) -> list[str]:
    """Set one entry of a recipe in place, and return its keys from the outermost on.

    ``root=DIR`` alone means ``vars.root=DIR`` where the recipe has that variable, and so does
    ``data=DIR``. The variable ``corpus``, which titles name, then becomes the name of that folder or file.
    The value null removes the entry, and ``KEY+=[…]`` adds to a list, as in a recipe that extends another.

    Args:
        content: the recipe as nested mappings.
        override: ``key.sub=value``; the value is YAML, so ``[1, 2]`` is a list.
    """
    path, equals, text = override.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise OptionError(f"--set {override}: write it as key=value or key.sub=value")
    override = override[:MOST_SHOWN]
    try:
        value = parse_value(text)
    except MisreadError as error:
        raise OptionError(f"--set {override}: {error}") from None
    except NotYamlError as error:
        raise OptionError(f"--set {override}: the value is not YAML ({error})") from None
    name, plus = keys[0].removesuffix(ADDED), keys[0][len(keys[0].removesuffix(ADDED)) :]
    keys[0] = ALIASES.get(name, name) + plus
    variables = content.get("vars")
    if len(keys) == 1 and isinstance(variables, dict) and keys[0] in variables:
        keys = ["vars", *keys]
    if keys == [DATA] and isinstance(value, str) and ROOT in (variables or {}):
        keys = ["vars", ROOT]
    data = Path(value).name if keys == ["vars", ROOT] and isinstance(value, str) else ""
    if isinstance(variables, dict) and data and CORPUS in variables:
        variables[CORPUS] = data.partition(".")[0] or data
    start = FLAT.get(keys[0], len(keys))
    keys = [*keys[:start], *filter(None, [".".join(keys[start:])])]
    _set(content, keys, value, override)
    return keys


def _set(content: dict[str, Any], keys: list[str], value: Any, override: str) -> None:
    section: Any = content
    for depth, key in enumerate(keys):
        if not isinstance(section, dict):
            raise OptionError(f"--set {override}: {'.'.join(keys[:depth])} has no entries")
        if depth + 1 == len(keys) and key.endswith(ADDED):
            try:
                add_to(section, key.removesuffix(ADDED), value)
            except OptionError as error:
                raise OptionError(f"--set {override}: {error}") from None
            return
        if key not in section and not _may_add(keys, depth):
            section_name = ".".join(keys[:depth]) or "the recipe"
            raise OptionError(
                f"--set {override}: {section_name} has no entry {key!r}; it has {', '.join(section)}"
            )
        if depth + 1 < len(keys):
            section = section.setdefault(key, {})
        elif value is not None or (key not in section and keys[0] == METHODS and depth > 2):
            section[key] = value  # null leaves out of a row what all rows have
        elif key not in section and depth and keys[0] in OPEN:
            section_name = ".".join(keys[:depth])
            raise OptionError(
                f"--set {override}: takes nothing away, since {section_name} has no {key!r}"
            )
        else:
            section.pop(key, None)


def _may_add(keys: list[str], depth: int) -> bool:
    """Flags may be added to a step's flags, the keys of a row to a row, and optional entries."""
    if keys[0] in MAY_BE_ADDED:
        return True
    if keys[0] == METHODS and depth > 1 and keys[2] in ROW_KEYS:
        return True
    inner = keys[2:] if keys[0] == "methods" else keys
    return len(inner) > 1 and inner[0] in OPEN and depth >= len(keys) - len(inner)


def _read_yaml(path: Path) -> dict[str, Any]:
    text = "\n".join(read_lines(path))
    if len(text) > LARGEST_FILE:
        raise InputError(path, None, "is too large for a recipe", "check that it is one")
    try:
        content = parse_yaml(text)
    except MisreadError as error:
        raise InputError(path, error.line, str(error)) from None
    except NotYamlError as error:
        raise InputError(path, error.line, f"is not YAML ({error})") from None
    if not isinstance(content, dict):
        raise InputError(path, None, "holds no recipe", "write keys and values, such as name: demo")
    return _with_own_names(content, path)


def _with_own_names(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """The entries under the names that the library has for them."""
    renamed: dict[str, Any] = {}
    for key, value in content.items():
        plain = key.removesuffix(ADDED) if isinstance(key, str) else key
        name = ALIASES[plain] + key[len(plain) :] if plain in ALIASES else key
        if name in renamed or (name != key and name in content):
            raise InputError(path, None, f"has {key} and {name}, which are one", "keep one of them")
        renamed[name] = value
    return renamed

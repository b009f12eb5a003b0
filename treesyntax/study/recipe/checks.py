"""The rules of a recipe; every message names the file, the key and what is valid."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError
from treesyntax.jobs.flags import LARGEST_SEED

Flags = dict[str, Any]
"""Flags of a command line by name without dashes: text, numbers, true, or lists of those."""

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
AWKWARD = re.compile(r"[\s'\"\\]")
"""What a shell would not leave in its word."""
DATA = "data"
"""``{data}`` stands for a folder inside the study, so it keeps its name in the recipe."""
RENAMED = {f"{side}-linearization": f"{side}-view" for side in ("source", "target", "scoring")}
"""Flags with a newer spelling. A study keeps the older one: its steps are identified by their words,
so those of a finished study must not change."""
RESERVED = {
    "binarize": ("source-lang", "target-lang", "train", "valid", "test", "overwrite"),
    "train": (
        "arch", "task", "user-dir", "seed", "save-dir", "source-lang", "target-lang", "log-format",
        "no-epoch-checkpoints", "restore-file", "leave-out",
    ),
    "generate": (
        "path", "results-path", "gen-subset", "task", "user-dir", "source-lang", "target-lang",
        "nbest", "quiet",
    ),
}  # fmt: skip
"""Flags that the study sets itself."""
SPELT = {False: "no, off and false", True: "yes, on and true"}
"""How YAML spells truth; ``no`` is a language, too."""
TRAIN_DEFAULTS: Flags = {
    "log-interval": 50,
    "save-interval-updates": 250,
    "update-epoch-batch-itr": "True",
}
"""Flags of fairseq-train unless the recipe says otherwise.

Batches are drawn anew in every epoch: fairseq does so after a resume in any case, and only then is
a training that was interrupted the same as one that was not.
A killed run goes on from its last checkpoint, which is written at the end of an epoch and after that
many updates. Each checkpoint is also validated, so the interval is part of how the best checkpoint is chosen.
"""


class Check:
    """Checks values of one recipe; each method returns the value or raises an OptionError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, key: str, message: str) -> OptionError:
        """An error about a key."""
        return OptionError(f"{self.path}: {key or 'the recipe'} {message}")

    def keys(
        self, value: Any, key: str, required: Sequence[str], optional: Iterable[str] = ()
    ) -> None:
        """A mapping with all required keys and none that is unknown."""
        valid = [*required, *optional]
        for name in self.mapping(value, key):
            if name not in valid:
                near = get_close_matches(str(name), valid, n=1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise self.error(
                    key, f"has an unknown key {name!r}; {hint}valid keys are {', '.join(valid)}"
                )
        missing = [name for name in required if name not in value]
        if missing:
            raise self.error(key, f"lacks the key {missing[0]!r}; it needs {', '.join(required)}")

    def mapping(self, value: Any, key: str) -> dict[Any, Any]:
        """A mapping."""
        if not isinstance(value, dict):
            raise self.error(key, f"is {value!r}; it must be a mapping (key: value)")
        return value

    def text(self, value: Any, key: str) -> str:
        """Text."""
        if not isinstance(value, str):
            written = f", as YAML reads {SPELT[value]}" if isinstance(value, bool) else ""
            remedy = "" if isinstance(value, list | dict | None) else ": write it in quotes"
            raise self.error(key, f"is {value!r}{written}; it must be text{remedy}")
        return value

    def count(self, value: Any, key: str) -> int:
        """A whole number from 0 on."""
        if type(value) is not int or value < 0:
            raise self.error(key, f"is {value!r}; it must be a whole number, 0 or more")
        return value

    def truth(self, value: Any, key: str) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            raise self.error(key, f"is {value!r}; it must be true or false")
        return value

    def folder_name(self, value: Any, key: str) -> str:
        """Text that may name a folder."""
        if not isinstance(value, str) or not re.fullmatch(r"\w[\w-]*", value):
            raise self.error(key, f"is {value!r}; use letters, digits, _ and - only")
        return value

    def distinct(self, value: Any, key: str, kind: type) -> list[Any]:
        """A list of different names or whole numbers."""
        noun = "whole numbers" if kind is int else "names"
        fits = isinstance(value, list) and all(type(item) is kind for item in value)
        if not fits or not value:
            raise self.error(key, f"is {value!r}; it must be a list of {noun}")
        if len(set(value)) != len(value):
            raise self.error(key, f"is {value!r}; each may occur only once")
        return value

    def seeds(self, value: Any, key: str) -> tuple[int, ...]:
        """Different seeds that numpy and torch take."""
        for seed in self.distinct(value, key, int):
            if not 0 <= seed <= LARGEST_SEED:
                raise self.error(key, f"has {seed}; a seed is from 0 to {LARGEST_SEED}")
        return tuple(value)

    def files(self, value: Any, key: str, suffix: str) -> list[str]:
        """The name of a file, or several."""
        names = value if isinstance(value, list) else [value]
        for name in names:
            if not isinstance(name, str) or not name.endswith(suffix):
                raise self.error(key, f"is {name!r}; name files that end with {suffix}")
        return names

    def one_of(self, value: Any, key: str, valid: Sequence[str]) -> str:
        """One of several names."""
        if value not in valid:
            raise self.error(key, f"is {value!r}; it must be one of {', '.join(valid)}")
        return str(value)

    def commands(self, value: Any) -> list[str]:
        """Command lines, in which no variable is left."""
        if not isinstance(value, list):
            raise self.error("prepare", f"is {value!r}; it must be a list of command lines")
        for number, command in enumerate(value, start=1):
            self.text(command, f"prepare, command {number},")
        return value

    def command(self, text: str, key: str) -> str:
        """A command line with at least one word."""
        if not text.strip():
            raise self.error(key, f"is {text!r}; it must name a program")
        return text

    def placeholders(self, text: str, key: str) -> str:
        """Text in which no variable is left."""
        for name in PLACEHOLDER.findall(text):
            if name != DATA:
                raise self.error(
                    key,
                    f"holds {{{name}}}, which is not a variable; "
                    f"name it under vars, or use {{{DATA}}} for the study's data folder",
                )
        return text

    def variables(self, value: Any, key: str = "vars") -> dict[str, str]:
        """Variables with their values as text."""
        variables = self.mapping(value, key)
        if DATA in variables:
            raise self.error(f"{key}.{DATA}", "is the study's own folder; choose another name")
        for name, item in variables.items():
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise self.error(f"{key}.{name}", f"is {item!r}; it must be text or a number")
        return {str(name): str(item) for name, item in variables.items()}

    def used(self, name: str, content: Mapping[str, Any], overridden: Mapping[str, Any]) -> None:
        """A variable that something in the recipe uses, directly or through other variables.

        Args:
            name: of the variable.
            content: of the recipe file.
            overridden: the same after all overrides, which may leave no use for it.
        """
        variables = {str(key): str(value) for key, value in overridden["vars"].items()}
        names = variables_used([content, overridden], variables)
        if name in variables and name not in names:
            known = ", ".join(key for key in variables if key in names) or "none"
            raise self.error("", f"has no use for the variable {name}; it uses {known}")

    def resolved(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Variables with the others that their values use replaced; unknown names stay as they are."""

        def value(name: str, users: tuple[str, ...]) -> str:
            if name in users:
                chain = " -> ".join((*users[users.index(name) :], name))
                raise self.error(f"vars.{name}", f"uses itself: {chain}")
            used = {
                other: value(other, (*users, name))
                for other in PLACEHOLDER.findall(variables[name])
                if other in variables
            }
            return str(replace_variables(variables[name], used))

        return {name: value(name, ()) for name in variables}

    def flags(self, value: Any, where: str, section: str) -> Flags:
        """Flags of a command line that the study does not set itself."""
        flags = self.mapping(value, where)
        for name, item in flags.items():
            if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][\w-]*", name):
                raise self.error(where, f"has the flag {name!r}; write flags without dashes before")
            if name.replace("_", "-") in RESERVED[section]:
                raise self.error(f"{where}.{name}", f"is set by the study; {_instead(name)}")
            items = item if isinstance(item, list) else [item]
            if not all(
                argument is None or isinstance(argument, str | int | float) for argument in items
            ):
                raise self.error(
                    f"{where}.{name}", f"is {item!r}; a flag takes text, a number, true or a list"
                )
        return {flag_name(name): item for name, item in flags.items()}

    def differences(self, value: Any) -> dict[str, str]:
        """Reasons by ``SECTION.FLAG``."""
        for key, why in self.mapping(value, "differences").items():
            section, _, flag = str(key).partition(".")
            if section not in RESERVED or not flag:
                raise self.error(
                    "differences", f"has the key {key!r}; write SECTION.FLAG, such as train.lr"
                )
            if not self.text(why, f"differences.{key}").strip():
                raise self.error(f"differences.{key}", "is empty; say why methods differ in it")
        return {option_name(str(key)).replace("_", "-"): why for key, why in value.items()}


def whole_number(value: Any) -> int:
    """The value of a flag as a whole number, 0 where it is none: the flag's program says what is wrong with it."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def flag_name(flag: str) -> str:
    """The name that a study keeps a flag under, see `RENAMED`."""
    return RENAMED.get(flag.replace("_", "-"), flag)


def option_name(option: str) -> str:
    """``SECTION.FLAG`` with the name that a study keeps the flag under."""
    section, dot, flag = option.rpartition(".")
    return f"{section}{dot}{flag_name(flag)}"


def _instead(flag: str) -> str:
    remedies = {
        "seed": "list the seeds under seeds",
        "arch": "give it as the method's arch",
        "leave-out": "write skip: allowed",
    }
    return remedies.get(flag.replace("_", "-"), "leave it out")


def variables_used(recipes: Iterable[Mapping[str, Any]], variables: Mapping[str, Any]) -> set[str]:
    """The variables that recipes use outside ``vars``, directly or in the values of variables that they use."""
    names: set[str] = set()
    more = {
        name
        for content in recipes
        for key, value in content.items()
        if key != "vars"
        for name in _names_in(value)
    }
    while more:
        names |= more
        values = [variables[name] for name in more if name in variables]
        more = {name for value in values for name in _names_in(value)} - names
    return names


def _names_in(value: Any) -> set[str]:
    """The variables that stand in the texts of a value."""
    if isinstance(value, str):
        return set(PLACEHOLDER.findall(value))
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return set().union(*map(_names_in, inner)) if isinstance(inner, list) else set()


def replace_in_command(command: str, variables: Mapping[str, str]) -> str:
    """A command line with its variables replaced: a value with spaces or quotes, such as a path, stays in its word.

    A value that is a word of its own and begins with ``-`` is several options.
    """
    named = PLACEHOLDER.findall(command)
    if not any(AWKWARD.search(variables.get(name, "")) for name in named):
        return str(replace_variables(command, variables))
    try:
        written = shlex.split(command)
    except ValueError:  # a quote of the recipe's own without an end, which the plan will tell
        return command
    words = []
    for word in written:
        alone = PLACEHOLDER.fullmatch(word)
        text = str(replace_variables(word, variables))
        options = alone is not None and (not text or text.startswith("-"))
        words += [text] if options else [shlex.quote(text)]
    return " ".join(words)


def replace_variables(value: Any, variables: Mapping[str, str]) -> Any:
    """Any value with the variables in its texts replaced; others keep their braces."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: variables.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [replace_variables(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: replace_variables(item, variables) for key, item in value.items()}
    return value

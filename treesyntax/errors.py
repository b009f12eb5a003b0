"""Errors a user can cause: one line that says where, what is wrong, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from os import PathLike

MANY = 60
"""Names that a message lists beside the one that was meant; transformers has some 120 settings."""


def in_one_line(text: str) -> str:
    """Escape characters that cannot be printed, such as line breaks and half surrogate pairs."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


class TreeSyntaxError(Exception):
    """Base of all errors that the user can mend; commands print them and exit with status 2."""

    def __str__(self) -> str:
        """The message in one line, whatever names from files are in it."""
        return in_one_line(super().__str__())


class TreeError(TreeSyntaxError):
    """A structure that is not a tree (a cycle, two roots, a head out of range …).

    Args:
        cause: what is wrong, in one clause.
        remedy: what to do about it, in one clause.
    """

    def __init__(self, cause: str, remedy: str = "") -> None:
        self.cause = cause
        self.remedy = remedy
        super().__init__(f"{cause}; {remedy}" if remedy else cause)


class InputError(TreeSyntaxError):
    """A fault in a file: ``FILE:LINE: cause; remedy``.

    Args:
        path: the file as the user named it.
        line: 1-based line number, or None where the whole file is meant.
        cause: what is wrong, in one clause.
        remedy: what to do about it, in one clause.
    """

    def __init__(
        self, path: str | PathLike[str], line: int | None, cause: str, remedy: str = ""
    ) -> None:
        self.path = str(path)
        self.line = line
        self.cause = cause
        self.remedy = remedy
        location = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{location}: {cause}" + (f"; {remedy}" if remedy else ""))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, int | None, str, str]]:
        # Worker processes raise this through a pool, which pickles it.
        return (type(self), (self.path, self.line, self.cause, self.remedy))


class OptionError(TreeSyntaxError):
    """An option, method name or recipe key that does not exist or does not fit."""


def reason_of(error: Exception) -> str:
    """Why a library failed: the first line of its error, or else the kind of error."""
    return str(error).split("\n")[0][:200] or type(error).__name__


def misfit(error: Exception) -> str:
    """How what was read differs from what is expected there, from the error of the code that took it apart."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return f"a value in it is of another kind ({error})"


def need_package(
    module: str, extra: str, purpose: str, newest_python: tuple[int, int] | None = None
) -> None:
    """Refuse what needs a package that is not installed.

    Args:
        module: the package's import name.
        extra: the optional dependencies of this package that install it.
        purpose: what needs it.
        newest_python: the newest Python that the package has a build for, None if it keeps up.
    """
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None and newest_python is not None and sys.version_info[:2] > newest_python:
        newest, here = ".".join(map(str, newest_python)), sys.version_info
        raise OptionError(
            f"{purpose} needs {module}, which has no build for Python {here[0]}.{here[1]}; make an "
            f"environment of Python {newest} (python{newest} -m venv .venv), and there "
            f"pip install 'treesyntax[{extra}]'"
        )
    if spec is None:
        raise OptionError(
            f"{purpose} needs {module}, which is not installed; pip install 'treesyntax[{extra}]'"
        )


def unknown_name(what: str, name: str, names: Iterable[str], where: str = "") -> OptionError:
    """The error for a name that does not exist: it gives the closest name and, if they are a few, all names.

    Args:
        what: the kind of thing, such as "parser".
        name: what the user wrote.
        names: the names that exist.
        where: the flag or key with its colon, if the message should begin with it.
    """
    names = list(names)
    longer = [known_name for known_name in names if known_name.endswith(f"_{name}")]
    near = (longer or get_close_matches(name, names, n=1))[:1]
    hints = [f"did you mean {near[0]!r}?"] if near else []
    if not near or len(names) <= MANY:
        hints.append(f"there are {', '.join(names)}")
    prefix = f"{where} " if where else ""
    return OptionError(f"{prefix}no {what} is named {name!r}; {' '.join(hints)}")

"""Which files under ``{data}`` a prepare command may write, by the words of its command line.

Steps of the study declare what they write. A prepare command is a user's: it may name a file, a folder, or the
beginning of names (``--prefix {data}/train``), or leave names to a shell (``{data}/*.low``, ``{data}/$split.low``).
What stands behind an input sign (``< {data}/$split.raw``) is read alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from posixpath import basename, dirname, normpath

from treesyntax.study.run.steps import OUT

INSIDE = re.compile(r"\{out\}[\w./+=-]*")
"""The text of a path inside the study."""
DATA = f"{OUT}/data"
_REST = re.compile(r"""["']?[$*?\[{%@~#!^\\][^\s;|&<>()`"',:]*""")
"""How a name goes on that is no plain text to its end: by a pattern, a variable, a command."""
_ENDING = re.compile(r"[.+=-][\w.+=-]*$|$")
"""What of that is the end of all names, whatever the shell puts before it."""
_INPUT = re.compile(r"""(?<!<)<\s*["']?$""")


@dataclass(frozen=True)
class PathPattern:
    """A file or folder that a command names, or those whose names begin and end alike.

    Attributes:
        path: without ``//``, ``/./`` and a slash at its end. With an ending it is the beginning of their paths.
        ending: the end of their names, "" for any; None of a path that is named whole.
    """

    path: str
    ending: str | None = None

    @property
    def folder(self) -> str:
        """The path, or the folder in which all of them lie."""
        return self.path if self.ending is None else dirname(self.path)

    def may_be(self, path: str) -> bool:
        """Whether a path may be one of them, or lie in it or around it; or goes on from the name of a whole path."""
        if self.ending is None:
            return meets(self.path, path) or _begins(self.path, path)
        inner = path.removeprefix(f"{self.folder}/")
        if inner == path:
            return meets(self.folder, path)
        name = inner.partition("/")[0]
        return name.startswith(basename(self.path)) and name.endswith(self.ending)

    def may_share(self, other: PathPattern) -> bool:
        """Whether both may name one file, where the other may be the beginning of names too."""
        nested = _begins(self.path, other.path) or _begins(other.path, self.path)
        return nested or self.may_be(other.folder)


def meets(path: str, other: str) -> bool:
    """Whether two paths are the same, or one is inside the other."""
    return path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/")


@cache
def patterns_in(text: str) -> tuple[PathPattern, ...]:
    """What a text names inside the study, in the order in which `INSIDE` finds it."""
    return tuple(pattern for pattern, _ in _patterns(text))


@cache
def patterns_written(text: str) -> tuple[PathPattern, ...]:
    """What a command of that text may write inside the study."""
    return tuple(pattern for pattern, is_input in _patterns(text) if not is_input)


def _patterns(text: str) -> Iterator[tuple[PathPattern, bool]]:
    """Each with whether it is an input alone."""
    for match in INSIDE.finditer(text):
        path, rest = match[0], _REST.match(text, match.end())
        pattern = PathPattern(normpath(path))
        if rest and "/" in rest[0]:
            pattern = PathPattern(normpath(dirname(path)))
        elif rest:
            ending = _ENDING.search(rest[0])
            beginning = f"{normpath(dirname(path))}/{basename(path)}"
            pattern = PathPattern(beginning, ending[0] if ending else "")
        yield pattern, bool(_INPUT.search(text, 0, match.start()))


def _begins(beginning: str, path: str) -> bool:
    return dirname(beginning) == dirname(path) and path.startswith(beginning)

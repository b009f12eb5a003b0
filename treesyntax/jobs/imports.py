"""What users add in files of their own: methods, metrics, tree formats and data sets, found by name.

They come from installed packages, by the entry-point groups of `GROUPS`, and from the files that the
environment variable ``TREESYNTAX_IMPORT`` lists. Child processes and jobs of a cluster inherit it, so a name is
known wherever a step runs. They are imported when a name is looked up that is not one of ours, or when all names
are listed. Importing a file executes it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from treesyntax.errors import InputError, OptionError

VARIABLE = "TREESYNTAX_IMPORT"
METHODS, METRICS, FORMATS, DATA_SETS = GROUPS = (
    "treesyntax.methods", "treesyntax.metrics", "treesyntax.formats", "treesyntax.data_sets",
)  # fmt: skip
SUFFIX = ".py"
_NAME = re.compile("[a-z_][a-z0-9_]*")
Thing = TypeVar("Thing")


class Registry(MutableMapping[str, Thing]):
    """A registry by name of methods, metrics, tree formats or data sets: ours, and those of users.

    Args:
        what: one of them is called, for messages.
        group: the entry points that name modules with more of them.
    """

    def __init__(self, what: str, group: str) -> None:
        self.what, self.group = what, group
        self.known: dict[str, Thing] = {}
        self.origins: dict[str, object] = {}
        self._imported: str | None = None

    def add(self, name: str, thing: Thing, made: Callable[..., Any]) -> None:
        """Make a thing known under a name.

        Args:
            name: by which it is looked up.
            thing: what is found.
            made: its class or a function of it, which says where it is defined.

        Raises:
            ValueError: if another one has that name, or it is no plain word.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a {self.what}: take a-z, 0-9 and _")
        origin = origin_of(made)
        if self.origins.setdefault(name, origin) != origin:
            raise ValueError(f"two {self.what}s are named {name}")
        self.known[name] = thing

    def __getitem__(self, name: str) -> Thing:
        if name not in self.known:
            self.import_all()
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        self.import_all()
        return iter(list(self.known))

    def __len__(self) -> int:
        self.import_all()
        return len(self.known)

    def __setitem__(self, name: str, thing: Thing) -> None:
        self.known[name] = thing

    def __delitem__(self, name: str) -> None:
        del self.known[name]
        self.origins.pop(name, None)

    def import_all(self) -> None:
        """Import the files of users; once, even where one of them looks up a name meanwhile.

        Raises:
            OptionError: if the module of an entry point cannot be imported.
            InputError: if a file cannot be.
        """
        files = os.environ.get(VARIABLE, "")
        before, self._imported = self._imported, files
        if before != files:
            try:
                import_user_files(self.group)
            except BaseException:
                self._imported = before
                raise


def origin_of(made: Callable[..., object]) -> tuple[str | None, str]:
    """The file and name of a class or function: a user's file may be imported by several names."""
    while isinstance(made, partial):
        made = made.func
    file = getattr(sys.modules.get(made.__module__), "__file__", None)
    return (file and os.path.realpath(file)) or made.__module__, made.__qualname__


def listed(environment: Mapping[str, str]) -> list[Path]:
    """The files that the variable lists, as PATH lists folders."""
    return [Path(name) for name in environment.get(VARIABLE, "").split(os.pathsep) if name]


def with_files(files: Sequence[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """The variable with more files, for child processes; {} without any."""
    if not files:
        return {}
    names = [str(file.absolute()) for file in (*listed(environment), *files)]
    return {VARIABLE: os.pathsep.join(dict.fromkeys(names))}


def entries_of(group: str) -> EntryPoints:
    """Return the entry points of a group; they are read again when a package was added or removed."""
    return _entries(group, import_folders())


def import_folders() -> tuple[tuple[str, int], ...]:
    """Return the folders in which packages lie, each with the time when one was added or removed last."""
    folders = [name or "." for name in sys.path]
    return tuple((name, os.stat(name).st_mtime_ns) for name in folders if os.path.exists(name))


@lru_cache(maxsize=len(GROUPS))
def _entries(group: str, _: tuple[tuple[str, int], ...]) -> EntryPoints:
    """The entry points for what `import_folders` says."""
    return entry_points(group=group)


def import_user_files(group: str) -> None:
    """Import what the entry points of a group and the variable name.

    Raises:
        OptionError: if an entry point cannot be imported.
        InputError: if a file cannot be.
    """
    for entry in entries_of(group):
        try:
            entry.load()
        except Exception as error:  # whatever the package raises
            kind = group.rpartition(".")[2].removesuffix("s").replace("_", " ")
            raise OptionError(
                f"the {kind} {entry.name} of the package {_package(entry)} cannot be imported "
                f"({_reason(error)}); mend or uninstall it"
            ) from error
    for file in listed(os.environ):
        import_file(file)


def import_file(file: Path) -> ModuleType:
    """Import, and so execute, a Python file; once only.

    Raises:
        InputError: if there is none, or it raises an error.
    """
    path = file.resolve()
    digest = sha256(str(path).encode()).hexdigest()[:8]
    name = f"treesyntax_own_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    if path.suffix != SUFFIX or not path.is_file():
        raise InputError(file, None, "is no Python file", "name one that ends with .py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file raises
        del sys.modules[name]
        reason = f"cannot be imported ({_reason(error)})"
        raise InputError(file, _line(error, path), reason, "mend it") from error
    return module


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error) or '?').splitlines()[0][:200]}"


def _line(error: Exception, path: Path) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)

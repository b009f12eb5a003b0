"""Modules with methods of a user's own, imported by every process that uses methods.

They come from installed packages, by the entry-point group ``treesyntax.methods``, and from the files
that the environment variable ``TREESYNTAX_IMPORT`` lists. Child processes and jobs of a cluster inherit
it, so a method is known wherever a training runs. Importing a file executes it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from treesyntax.errors import InputError, OptionError

VARIABLE = "TREESYNTAX_IMPORT"
GROUP = "treesyntax.methods"
SUFFIX = ".py"


def listed(environment: Mapping[str, str]) -> list[Path]:
    """The files that the variable lists, as PATH lists folders."""
    return [Path(name) for name in environment.get(VARIABLE, "").split(os.pathsep) if name]


def with_files(files: Sequence[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """The variable with more files, for child processes; {} without any."""
    if not files:
        return {}
    names = [str(file.absolute()) for file in (*listed(environment), *files)]
    return {VARIABLE: os.pathsep.join(dict.fromkeys(names))}


def import_own() -> None:
    """Import what entry points and the variable name.

    Raises:
        OptionError: if an entry point cannot be imported.
        InputError: if a file cannot be.
    """
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:  # whatever the package raises
            raise OptionError(
                f"the method {entry.name} of the package {_package(entry)} cannot be imported "
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
        raise InputError(file, None, "is no Python file", "give the file of a method")
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
    return next((one.lineno for one in reversed(frames) if one.filename == str(path)), None)

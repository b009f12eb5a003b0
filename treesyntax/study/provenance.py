"""The origin of a result: versions and commit."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from treesyntax import __version__

PACKAGES = {"torch": "torch", "fairseq": "ve-fairseq", "sacrebleu": "sacrebleu"}


@cache
def versions() -> dict[str, str]:
    """Versions of treesyntax, Python and the packages that numbers depend on."""
    found = {"treesyntax": __version__, "python": platform.python_version()}
    return found | {name: version_of(name) for name in PACKAGES}


@cache
def version_of(name: str) -> str:
    """The version of a package that numbers depend on."""
    try:
        return version(PACKAGES.get(name, name))
    except PackageNotFoundError:
        return "not installed"


def commit() -> str:
    """The git commit of this package, with "+" if files differ from it; "" outside a repository."""
    package = Path(__file__).parents[1]
    if not _git(package, "ls-files", "--error-unmatch", "__init__.py"):
        return ""  # installed into a folder of another repository
    changed = _git(package, "status", "--porcelain", "--untracked-files=no")
    return _git(package, "rev-parse", "HEAD") + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()

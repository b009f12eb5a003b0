"""The origin of a result: versions and commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from hashlib import file_digest, sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import (
    PackageNotFoundError,
    distribution,
    packages_distributions,
    version,
)
from importlib.util import find_spec
from pathlib import Path

from treesyntax import __version__

PACKAGES = {
    "torch": "torch",
    "fairseq": "ve-fairseq",
    "sacrebleu": "sacrebleu",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "tokenizers": "tokenizers",
    "sentencepiece": "sentencepiece",
    "seqeval": "seqeval",
    "stanza": "stanza",
    "benepar": "benepar",
    "spacy": "spacy",
    "nltk": "nltk",
    "conllu": "conllu",
    "lark": "lark",
    "tree_sitter": "tree-sitter",
    "tree_sitter_javascript": "tree-sitter-javascript",
}
"""The packages that numbers depend on: by the module that is imported the name under which each is installed."""
MISSING = "not installed"
OF_A_REPOSITORY = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"}
"""The variables that tell git to look elsewhere than around a folder."""
INSTALLED = {"dist-packages", "site-packages"}
"""The folders of installed packages. What lies elsewhere is edited there, as ``pip install -e`` leaves it."""


def versions() -> dict[str, str]:
    """Versions of treesyntax and Python."""
    return {"treesyntax": __version__, "python": platform.python_version()}


@cache
def version_of(name: str) -> str:
    """The version of one of `PACKAGES`; of one that is edited where it lies, with the digest of its code."""
    package, folder = PACKAGES.get(name, name), folder_of(name)
    if folder is None or INSTALLED.intersection(folder.parts) or _lies_in(package, folder):
        return _version(package)
    return f"{_version(package)}, edited: {_digest_of_folder(folder / name)}"


def _lies_in(package: str, folder: Path) -> bool:
    """Whether a package was installed into a folder, as by ``pip install --target``: its metadata are there too."""
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        return False
    whole = installed.read_text("METADATA")  # an older PKG-INFO stands beside code that is edited
    return whole is not None and Path(str(installed.locate_file(""))).samefile(folder)


def folder_of(top: str) -> Path | None:
    """The folder in which a package, or a module, lies. Nothing is executed, not even the package."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError, AttributeError):  # importing it says what is wrong
        return None
    if spec is None:
        return None
    locations = [*(spec.submodule_search_locations or ())]
    if locations:
        return Path(locations[0]).parent
    return Path(spec.origin).parent if spec.has_location and spec.origin else None


def _digest_of_folder(package: Path) -> str:
    """The bytes of the code below a folder: of such packages nobody knows what a training imports."""
    digest = sha256()
    for file in sorted(package.rglob("*.*")):
        if file.name.endswith((".py", *EXTENSION_SUFFIXES)) and file.is_file():
            state = file.stat()
            digest.update(f"{file.relative_to(package).as_posix()} ".encode())
            digest.update(_digest_of_file(file, (state.st_size, state.st_mtime_ns, state.st_ino)))
    return digest.hexdigest()[:12]


@cache
def _digest_of_file(file: Path, stamp: tuple[int, ...]) -> bytes:
    """The bytes of a file, read once while its stamp stays: compiled code of torch is a gigabyte."""
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").digest()


def _version(package: str) -> str:
    try:
        return version(package) or MISSING  # None of what an interrupted pip has left
    except PackageNotFoundError:
        return MISSING


def version_of_module(name: str) -> str:
    """The version of any package, by the name under which it is imported; of several that share it, all; "" for none."""
    packages = sorted(
        {*filter(None, _names_of_packages().get(name, ()))}
    )  # damaged ones lack a name
    return ", ".join(f"{package} {_version(package)}" for package in packages)


@cache
def _names_of_packages() -> Mapping[str, list[str]]:
    return packages_distributions()


def look_at_edits() -> None:
    """Look whether other versions of `PACKAGES` are installed, or their code is edited."""
    version_of.cache_clear()


def look_at_names() -> None:
    """Look whether other packages are installed."""
    _names_of_packages.cache_clear()


def revision_of(model: str) -> str:
    """The commit of a model in the cache of Hugging Face, which is what its name stands for today."""
    if find_spec("huggingface_hub") is None:
        return "not cached"
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(model, "config.json")
    except HFValidationError:  # no name of a model, which is told where it is loaded
        file = None
    return Path(file).parent.name if isinstance(file, str) else "not cached"


def commit() -> str:
    """The git commit of this package, with "+" if files differ from it; "" outside a repository."""
    package = Path(__file__).parents[1]
    if not _git(package, "ls-files", "--error-unmatch", "__init__.py"):
        return ""  # installed into a folder of another repository
    changed = _git(package, "status", "--porcelain", "--untracked-files=no")
    return _git(package, "rev-parse", "HEAD") + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    # Hooks of git name their repository in the environment, which may be another one.
    environment = {name: value for name, value in os.environ.items() if name not in OF_A_REPOSITORY}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()

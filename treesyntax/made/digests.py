"""Digests of files and folders: a file that was not touched is read once."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from treesyntax.errors import OptionError
from treesyntax.files import read_object, sha256_of, sha256_of_value, write_json

IDENTITY_FILE = "study.json"
"""In the folder of every study. Its files are no part of a folder around it."""
CACHE_FILE = "digests.json"
FRESH = 2_000_000_000
"""Nanoseconds. A file younger than that may change once more within one tick of its clock."""


class Digests:
    """SHA-256 of files and folders.

    Args:
        folder: of the study, which keeps the digests of files with size, times and inode; what is kept
            has a checksum of its own, and is computed anew where that does not fit.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / CACHE_FILE
        held = read_object(self.file)
        files = held.get("files")
        intact = isinstance(files, dict) and held.get("checksum") == sha256_of_value(files)
        self.known: dict[str, list[object]] = dict(files) if intact and files else {}

    def save(self) -> None:
        """Keep the digests for the next session."""
        content = {"files": self.known, "checksum": sha256_of_value(self.known)}
        write_json(self.file, content, None)

    def of(self, path: str | Path) -> str:
        """Of a file its content; of a folder the names and contents of all files, see `files_in`."""
        path = Path(path)
        if path.is_dir():
            return sha256_of_value([[name, self._of_file(path / name)] for name in files_in(path)])
        return self._of_file(path)

    def _of_file(self, path: Path) -> str:
        name = os.path.abspath(path)
        try:
            state = os.stat(path)
        except OSError:
            return sha256_of(path)  # which says what is wrong
        # The time of a change cannot be set back as that of the content can. Other permissions or a
        # second name move it too: then the file is read once more.
        stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        held = self.known.get(name)
        if held is not None and held[:-1] == stamp:
            return str(held[-1])
        digest = sha256_of(path)
        if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > FRESH:
            self.known[name] = [*stamp, digest]
        return digest

    def check(self, path: Path, digest: str, label: str, since: str, remedy: str) -> None:
        """Stop with the name of a file or folder that is not what it was."""
        if not path.exists() or self.of(path) != digest:
            gone = "has changed" if path.exists() else "is gone"
            raise OptionError(f"{label}: {path} {gone} since {since}; {remedy}")


def files_in(folder: Path) -> list[str]:
    """The names of all files in a folder, sorted; without hidden ones and those of studies."""
    return sorted(_walk(folder))


def size_of(path: Path) -> int:
    """Bytes in a file, or in all files of a folder."""
    files = [path / name for name in files_in(path)] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _walk(folder: Path) -> Iterator[str]:
    seen = set()
    for directory, folders, names in os.walk(folder, followlinks=True):
        state = os.stat(directory)
        if (state.st_dev, state.st_ino) in seen or (
            IDENTITY_FILE in names and Path(directory) != folder
        ):
            folders.clear()
            continue
        seen.add((state.st_dev, state.st_ino))
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(directory, name)
            if not name.startswith(".") and path.is_file():
                yield path.relative_to(folder).as_posix()


def text_of(lines: Sequence[str]) -> bytes:
    """The content of a text file with these lines."""
    return "".join(line + "\n" for line in lines).encode()


def sha256_of_lines(lines: Sequence[str]) -> str:
    """The SHA-256 of a text file with these lines."""
    return hashlib.sha256(text_of(lines)).hexdigest()


def sha256_of_tree(path: Path) -> str:
    """The SHA-256 of a file, or of the names and contents of all files below a folder, hidden ones too."""
    if path.is_file():
        return sha256_of(path)
    digest = hashlib.sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()} {sha256_of(file)}\n".encode())
    return digest.hexdigest()

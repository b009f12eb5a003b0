"""The published files of a data set: from a user's folder, or from their address."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Iterator
from http.client import HTTPException
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

from treesyntax.data.sets.base import DataSet, Input
from treesyntax.errors import InputError, OptionError
from treesyntax.files import NOT_READ, lines_of_stream, there_or_packed, unpacked

MOST_BYTES = 200 << 20
"""Of a file, unpacked."""
TIMEOUT = 60


def read_inputs(data: DataSet, folder: Path | None) -> dict[str, bytes]:
    """The contents of each input, by its first name.

    Args:
        data: the set.
        folder: where the user has the files; None to fetch them.

    Raises:
        InputError: if a file is missing or cannot be read.
        OptionError: if it has no public address, cannot be fetched, or is not what was published.
    """
    contents = {}
    for file in data.inputs:
        if folder is None:
            contents[file.names[0]] = _fetched(data, file)
            continue
        path = _located(data, file, folder)
        contents[file.names[0]] = content = _read(path)
        if file.sha256 and hashlib.sha256(content).hexdigest() != file.sha256:
            print(
                f"{path}: differs from the published file; scores may not compare", file=sys.stderr
            )
    return contents


def _read(path: Path) -> bytes:
    try:
        with unpacked(path) as stream:
            content = stream.read(MOST_BYTES + 1)
    except NOT_READ as error:
        raise InputError(path, None, f"cannot be read ({error})", "check the file") from None
    if len(content) > MOST_BYTES:
        raise InputError(path, None, f"is larger than {MOST_BYTES >> 20} MiB", "check the file")
    return content


def _located(data: DataSet, file: Input, folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError(folder, None, "is no folder", "name the folder that holds the files")
    for candidate in (folder, folder / (data.home or data.name)):
        for name in file.names:
            path = there_or_packed(candidate / name)
            if path is not None:
                return path
    names = " or ".join(dict.fromkeys(file.names))
    raise InputError(folder, None, f"has no {names}", f"{data.name} is made from it; it may be .gz")


def _fetched(data: DataSet, file: Input) -> bytes:
    if not file.address.startswith("https://"):
        raise OptionError(
            f"{data.name} has no public address for {file.names[0]}; get it from its authors "
            f"({data.citation}) and give its folder with --from"
        )
    try:
        with urlopen(file.address, timeout=TIMEOUT) as stream:
            content: bytes = stream.read(MOST_BYTES + 1)
    except (HTTPException, OSError, ValueError) as error:
        reason = str(getattr(error, "reason", None) or error) or type(error).__name__
        raise OptionError(
            f"{file.address} cannot be fetched ({reason}); get the file another way and give its "
            "folder with --from"
        ) from None
    if file.member:
        content = unzipped(content, file.address, file.member)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise OptionError(
            f"{file.address} is not the file that was published (other SHA-256); get the right one and "
            "give its folder with --from"
        )
    return content


def lines_of(content: bytes, name: str) -> list[str]:
    """The lines of a text file, ended as in `read_lines`.

    Raises:
        InputError: as `read_lines`.
    """
    return list(lines_of_stream(BytesIO(content), name))


def rows_of(content: bytes, name: str, columns: int) -> Iterator[list[str]]:
    """The lines of a table, each with so many columns, single spaces between words."""
    for number, line in enumerate(lines_of(content, name), start=1):
        row = [" ".join(column.split()) for column in line.split("\t")]
        if len(row) != columns or not all(row):
            cause = f"has {len(row)} columns or an empty one"
            raise InputError(name, number, cause, f"{columns} are needed, with tabs between")
        yield row


def unzipped(content: bytes, name: str, member: str, password: str = "") -> bytes:
    """One file of a ZIP archive."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            if archive.getinfo(member).file_size > MOST_BYTES:
                raise InputError(name, None, f"{member} is too large", "get the archive again")
            return archive.read(member, pwd=password.encode() or None)
    except InputError:
        raise
    except Exception as error:  # what a damaged archive raises has no end
        raise InputError(name, None, f"{member} cannot be read ({error})", "get it again") from None

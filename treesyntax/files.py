"""Reading text, JSON and checksums of files; writing files and folders all or nothing."""

from __future__ import annotations

import codecs
import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError, OptionError

MOST_LINKS = 40
"""Links to links, as Linux counts them."""
LONGEST_LINE = 1 << 24
"""Most bytes of a line. A tree needs about a hundred times the memory of its text, and a small ``.gz``
file may hold a line of any length."""
STDIN = Path("/dev/stdin")
PACKED = ".gz"
"""Ends the name of a file that is unpacked as it is read."""
_FEWEST_NULS = 4
_KINDS = {
    b"\x1f\x8b": "gzip",
    b"BZh91AY&SY": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "a ZIP archive, as .xlsx and .docx are",
    b"\xd0\xcf\x11\xe0": "a file of an old Excel or Word",
    b"PAR1\x15": "Parquet",
    b"%PDF-1.": "PDF",
}
"""By the first bytes, what a file is that was meant as text."""
NOT_READ = (OSError, EOFError, zlib.error)
"""What reading a file may raise, of a packed one too."""


def check_path(path: str | Path, what: str) -> None:
    """Refuse a path that fairseq cannot take: it splits paths at ``:``, looks up what ``${`` begins, and has options at ``-``.

    All paths that reach fairseq come by here before any work is done: folders of data, of studies and
    of checkpoints.

    Args:
        path: as the user wrote it.
        what: the option or the word of the command line that it is the value of.

    Raises:
        OptionError: if the path holds one of the first two, or begins with the last.
    """
    if str(path).startswith("-"):
        raise OptionError(
            f"{what} {path}: commands take '-' at its beginning for an option; give the whole path from / on"
        )
    for mark, meaning in ((os.pathsep, "the end of a path"), ("${", "the name of a setting")):
        if mark in str(path):
            raise OptionError(
                f"{what} {path}: fairseq takes {mark!r} for {meaning}; choose a name without it"
            )


def read_lines(path: str | Path, record: bool = False) -> Iterator[str]:
    """The lines of a UTF-8 text file without their ends; ``.gz`` files are unpacked on the fly.

    Args:
        path: of the file.
        record: whether it must be a regular file, see `read_record`; users may name pipes, and `STDIN`.

    Only ``\\n`` and ``\\r\\n`` end a line, and ``\\r`` in files without ``\\n``, so other Unicode separators
    never shift the alignment of two files.

    Raises:
        InputError: if the file cannot be opened, a line is not UTF-8, is longer than `LONGEST_LINE`, or
            holds a carriage return: some tools end a line there and others do not.
    """
    path = Path(path)
    try:
        with unpacked(path, record) as stream:
            yield from lines_of_stream(stream, path)
    except NOT_READ as error:
        raise unreadable(path, error) from None


def count_lines(path: str | Path) -> int:
    """The number of lines of a UTF-8 text file, see `read_lines`."""
    return sum(1 for _ in read_lines(path))


@contextmanager
def unpacked(path: Path, record: bool = False) -> Iterator[io.BufferedIOBase]:
    """The bytes of a file, of a packed one what is in it; arguments and what it raises as `read_lines`, or `NOT_READ`."""
    with open_record(path) if record else _open(path) as stream:
        if path.suffix != PACKED:
            yield stream
            return
        with gzip.open(stream) as inner:
            yield inner


def plain_name(path: Path) -> str:
    """The name of a file without the ``.gz`` of a packed one."""
    return path.name.removesuffix(PACKED)


def there_or_packed(path: Path) -> Path | None:
    """The file, or the one with ``.gz`` behind its name; None without either."""
    other = path.with_name(f"{path.name}{PACKED}")
    return next((file for file in (path, other) if file.is_file()), None)


def _open(path: Path) -> io.BufferedReader:
    """A file to read. Standard input is read on from where the process before has left it.

    By its name a file would begin anew, and a socket, as programs of node and sshd give one, cannot be opened.
    """
    if path != STDIN:
        return path.open("rb")
    if not path.is_file():
        return os.fdopen(os.dup(0), "rb")
    stream = path.open("rb")
    stream.seek(os.lseek(0, 0, os.SEEK_CUR))
    return stream


def lines_of_stream(stream: io.BufferedIOBase, path: str | Path) -> Iterator[str]:
    """As `read_lines`, of a file that is open or in memory; the path is for messages."""
    raw_lines = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
    for line, raw in enumerate(raw_lines, start=1):
        if len(raw) > LONGEST_LINE:
            cause = f"the line is longer than {LONGEST_LINE >> 20} MiB"
            remedy = "a line is one sentence or tree: check that the file has line ends"
            raise InputError(path, line, cause, remedy)
        text = _decode(raw, path, line)
        body = text.removesuffix("\n").removesuffix("\r")
        if "\r" not in body:
            yield body
        elif line == 1 and not text.endswith("\n"):
            yield from body.split("\r")  # an old Mac's file: all of it comes as the first line
        else:
            cause = "holds a carriage return inside a line"
            raise InputError(path, line, cause, r"replace it: tr '\r' ' ' < FILE")


def _decode(raw: bytes, path: str | Path, line: int) -> str:
    if line == 1:
        check_kind(raw, path)
    try:
        # A byte order mark is no part of the first line.
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            path,
            line,
            f"byte {error.start + 1} is not UTF-8",
            "convert the file first, for example with iconv -t UTF-8",
        ) from None


def check_kind(raw: bytes, path: str | Path) -> None:
    """Refuse a file whose first line shows that it is packed, or not UTF-8 but UTF-16.

    Args:
        raw: the first line, or its beginning.
        path: of the file, for messages.

    Raises:
        InputError: saying what the file is.
    """
    kind = next((kind for magic, kind in _KINDS.items() if raw.startswith(magic)), None)
    if kind is not None:
        remedy = "unpack it, or export it as text" + " (a gzip file may be named .gz)" * (
            kind == "gzip"
        )
        raise InputError(path, 1, f"is no text, but {kind}", remedy)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        cause = "is UTF-16, as Excel writes Unicode text"
        remedy = "convert the file first, for example with iconv -f UTF-16 -t UTF-8"
        raise InputError(path, 1, cause, remedy)
    if raw.count(0) >= _FEWEST_NULS and 4 * raw.count(0) > len(raw):
        cause = f"has {raw.count(0)} NUL bytes, as UTF-16 without a byte order mark"
        remedy = "convert the file first, for example with iconv -f UTF-16LE -t UTF-8"
        raise InputError(path, 1, cause, remedy)


def unreadable(path: Path, error: Exception) -> InputError:
    """The error for a file that cannot be read."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return InputError(path, None, f"cannot be read ({reason})", "check the name and permissions")


def read_record(path: str | Path) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: if it cannot be read, or is a named pipe, a socket or a device: these wait for ever, or never end.
    """
    with open_record(path) as stream:
        return stream.read()


def open_record(path: str | Path) -> io.BufferedReader:
    """A regular file to read, see `read_record`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is a pipe, a socket or a device", str(path))


def parse_json(text: str | bytes, *, by_user: bool = False) -> Any:
    """The value of a JSON text.

    Args:
        text: the text.
        by_user: whether to refuse an object with a key twice; Python keeps the last without a word.

    Raises:
        ValueError: whatever is wrong with it, too deep nesting too.
    """
    try:
        return json.loads(text, object_pairs_hook=_keys_once if by_user else None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return fields


def read_json(path: str | Path) -> Any:
    """The value in a JSON file.

    Raises:
        InputError: if the file cannot be read or is not JSON.
    """
    path = Path(path)
    try:
        return parse_json(read_record(path))
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        raise InputError(path, None, f"is not JSON ({error})", "write the file again") from None


def read_object(path: str | Path) -> dict[str, Any]:
    """The object in a JSON file, empty if the file is absent, damaged or holds something else."""
    try:
        value = parse_json(read_record(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_json(path: str | Path, value: Any, indent: int | None = 1) -> None:
    """Write a value as a JSON file, all or nothing.

    Args:
        path: of the file.
        value: what ``json`` can write.
        indent: spaces a level; None for one line.

    Raises:
        InputError: if the file cannot be written.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    write_text(path, text + "\n")


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file, all or nothing.

    Raises:
        InputError: if the file cannot be written.
    """
    with atomic_file(path) as staged:
        # File names may hold bytes that are no UTF-8; JSON has an escape for them.
        staged.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write a UTF-8 text file of these lines, see `write_text`."""
    write_text(path, "".join(f"{line}\n" for line in lines))


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        with open_record(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(Path(path), error) from None


def sha256_of_value(value: Any) -> str:
    """The SHA-256 of a value's JSON text, as 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """A temporary name beside ``path``, renamed to it on success and removed on any failure.

    Raises:
        InputError: if the folder cannot be written or the disk is full.
    """
    path = Path(path)
    staged = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield staged
        with staged.open("rb") as stream:
            os.fsync(stream.fileno())
        staged.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):
            staged.unlink()


@contextmanager
def output_file(path: str | Path) -> Iterator[Path]:
    """A temporary name for a file that the user has named, as `atomic_file`.

    Links stay links: what they point to is replaced. Pipes, devices and the files of this process,
    such as /dev/stdout, are written through on success and never replaced.

    Raises:
        InputError: if the file cannot be written.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(path, None, "is a folder", "name a file")
    if not is_special(path):
        with atomic_file(os.path.realpath(path)) as staged:
            yield staged
        return
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / "output"
        yield staged
        try:
            # Not truncated: what a redirected standard output has already got stays there.
            target = os.open(path, os.O_WRONLY | os.O_APPEND)
            with staged.open("rb") as source, os.fdopen(target, "wb") as stream:
                sys.stdout.flush()
                shutil.copyfileobj(source, stream)
        except OSError as error:
            raise _unwritable(path, error) from None


def is_special(path: Path) -> bool:
    """Whether a path is a pipe, a device or, as /dev/stdout, an open file of a process."""
    for _ in range(MOST_LINKS):
        if not path.is_symlink():
            return path.exists() and not path.is_file() and not path.is_dir()
        if path.parent.resolve().is_relative_to("/proc"):
            return True
        path = path.parent / os.readlink(path)
    return False


@contextmanager
def atomic_folder(path: str | Path, new: bool = False) -> Iterator[Path]:
    """A temporary folder beside ``path``; on success it replaces ``path``.

    The old folder at ``path`` stays untouched until then, and stays if anything fails. A link to a
    folder stays a link.

    Args:
        path: of the folder.
        new: whether there is none, or an empty one; what another process makes there meanwhile stays.

    Raises:
        InputError: if the folder cannot be written or the disk is full, or ``path`` is no folder, or the
            one that this process is in, or is to be new and is not.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_dir():
        raise InputError(path, None, "is no folder", "choose another name")
    if path.exists() and Path.cwd().is_relative_to(path):
        cause = "is the folder that you are in, or above it, and would be replaced"
        raise InputError(
            path, None, cause, "name a folder in it, or call the command from elsewhere"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        staged.chmod(0o777 & ~_umask())
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield staged
        if path.exists() and not new:
            retired = staged.with_suffix(".old")
            path.replace(retired)
            try:
                staged.replace(path)
            except OSError:
                retired.replace(path)
                raise
            shutil.rmtree(retired, ignore_errors=True)
        else:
            staged.replace(path)
    except OSError as error:
        if new and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            cause = "was made by another process meanwhile"
            raise InputError(path, None, cause, "name another folder") from None
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    return InputError(
        path, None, f"cannot be written ({reason})", "check free space and permissions"
    )

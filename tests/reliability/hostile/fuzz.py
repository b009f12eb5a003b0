"""Mutated and monstrous files for every reader, tried in one process with little memory.

Run as ``fuzz.py mutated SEED COUNT READER…`` or ``fuzz.py monsters all|some READER…`` it prints one
line of JSON a reader: the number of inputs, and what came out that is no error of ours. The seed
makes the inputs the same every time.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

from reliability.hostile.readers import READERS, Reader  # noqa: E402

from treesyntax.errors import InputError, TreeSyntaxError  # noqa: E402

MEMORY = 4 << 30
SECONDS = 60
LONGEST_MESSAGE = 1500
SHOWN = 3
DEEP = 100_000
HUGE = {"all": 100 << 20, "some": 17 << 20}
"""More than a line may have."""

PIECES = (
    b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\n\n",
    b"\t", b" ", b"\xe2\x80\xa8", b"\xc2\x85", b"\x1c", b"(", b")", b"[", b"]", b"{", b"}", b",",
    b":", b"'", b'"', b"\\", b"-", b"_", b"#", b"*a", b"&a", b"<<: *a", b"!!python/name:os.system",
    b"0", b"-1", b"9" * 20, b"9" * 5000, b"1e999", b"NaN", b"Infinity", b"-0", b"null", b"true",
    b"1-2", b"1.1", b"2001-99-99", b"\\ud800", b"\xf0\x9f\x99\x82", b"D-0\t", b"{data}", b"{x}",
    b"../../x", b"/dev/null", b"a" * 3000,
)  # fmt: skip


def mutated(draw: random.Random, files: list[bytes]) -> bytes:
    """One valid file after one to four changes."""
    data = draw.choice(files)
    for _ in range(draw.choice((1, 1, 2, 4))):
        data = draw.choice(CHANGES)(draw, data, files)
    return data


def _place(draw: random.Random, data: bytes) -> tuple[int, int]:
    start = draw.randrange(len(data) + 1)
    return start, min(len(data), start + draw.choice((1, 1, 2, 4, 8, 40, 400)))


def _flip(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 3)) if data else 0):
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _set(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    start, _ = _place(draw, data)
    return data[:start] + bytes([draw.choice((0, 1, 127, 128, 255))]) + data[start + 1 :]


def _cut(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _delete(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    start, end = _place(draw, data)
    return data[:start] + data[end:]


def _double(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    start, end = _place(draw, data)
    return data[:end] + data[start:end] * draw.choice((1, 1, 2, 50)) + data[end:]


def _insert(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    start, end = _place(draw, data)
    return data[:start] + draw.choice(PIECES) + data[draw.choice((start, end)) :]


def _splice(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    other = draw.choice(files)
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]


def _lines(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    """Doubled, lost and exchanged lines: identifiers that come twice or not at all."""
    lines = data.split(b"\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.randrange(3)
    if kind == 0:
        lines.insert(other, lines[one])
    elif kind == 1:
        del lines[one]
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


_VALUE = re.compile(rb'(?<=[:\[,] )(?:"[^"]*"|-?[0-9.]+|\[|\{)|(?<=: )\S+')


def _value(draw: random.Random, data: bytes, files: list[bytes]) -> bytes:
    """Another value for a key of JSON or YAML."""
    found = list(_VALUE.finditer(data))
    if not found:
        return _insert(draw, data, files)
    start, end = draw.choice(found).span()
    values = (b"null", b"[]", b"{}", b'""', b"0", b"-1", b"1e999", b"[[0]]", b'{"a": 1}', b'"x"')
    return data[:start] + draw.choice(values) + data[end:]


CHANGES: tuple[Callable[[random.Random, bytes, list[bytes]], bytes], ...] = (
    _flip, _set, _cut, _delete, _double, _insert, _insert, _splice, _lines, _value, _value,
)  # fmt: skip


OPENINGS = (
    b"(", b"[", b'["a", ', b"{", b'{"a": ', b"( f ", b"f ( ", b"a: [", b"- ", b"\\+", b"if a <IND> ",
)  # fmt: skip
LONG = (b"(", b"a", b"[", b"a ", b"( f ", b"\\+", b"9,")


def monsters(valid: bytes, everything: bool) -> Iterator[bytes]:
    """Files of which each is too deep, too long or not text, alone and after a valid file."""
    for piece in OPENINGS if everything else OPENINGS[:2]:
        yield piece * DEEP
        if everything:
            yield valid.rstrip(b"\n") + piece * DEEP
    yield _doubling(12)
    yield b"a: &a [*a]\n"
    yield from (b"", b"\0" * 1000, b"\xff" * 1000, b"\r\n\r\r\n" * 99, b"\xef\xbb\xbf" + valid)
    yield from (valid.replace(b"\n", b"\r"), valid.replace(b"\n", b"\r\n"), valid * 3)
    yield from (b"9" * DEEP, b" ".join([b"a"] * DEEP))
    for piece in LONG[:4] if everything else LONG[:1]:
        yield piece * (HUGE["all" if everything else "some"] // len(piece))
    if everything:
        yield from (b"\n" * DEEP, b"\r" * DEEP)
        below = 15 << 20  # less than the limit of lines
        yield from (piece * (below // len(piece)) for piece in LONG)


def _doubling(names: int) -> bytes:
    """A YAML file in which every name stands for nine of the one before."""
    lines = [b"a0: &a0 [x]"]
    for i in range(1, names):
        lines.append(b"a%d: &a%d [%s]" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)))
    return b"\n".join(lines) + b"\n"


class TooSlowError(Exception):
    """An input took longer than `SECONDS` of a processor."""


def _alarm(*_: object) -> None:
    raise TooSlowError


def attempt(reader: Reader, folder: Path, content: bytes) -> str:
    """What is wrong with how a reader takes a file; "" for trees or an error of ours."""
    (folder / reader.file).write_bytes(content)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        reader.read(folder)
    except TreeSyntaxError as error:
        return _fault_of(error, folder)
    except BaseException:
        return traceback.format_exc()[-1500:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _fault_of(error: TreeSyntaxError, folder: Path) -> str:
    message = str(error)
    if "\n" in message.rstrip("\n"):
        return f"the message has several lines: {message[:500]!r}"
    if len(message) > LONGEST_MESSAGE:
        return f"the message has {len(message)} letters: {message[:200]!r}"
    if isinstance(error, InputError) and not message.startswith(str(folder)):
        return f"the message does not begin with the file: {message[:500]!r}"
    return ""


def try_reader(name: str, inputs: Callable[[bytes], Iterator[bytes]]) -> dict[str, object]:
    """Read every input, each in a fresh copy of the valid files."""
    reader, faults, tried = READERS[name], [], 0
    with tempfile.TemporaryDirectory() as place:
        model, folder = Path(place, "valid"), Path(place, "folder")
        model.mkdir()
        reader.prepare(model)
        valid = (model / reader.file).read_bytes()
        shutil.copytree(model, folder)
        wrong = attempt(reader, folder, valid)
        if wrong:
            faults.append(f"the valid file is refused: {wrong}")
        for content in inputs(valid):
            shutil.rmtree(folder)
            shutil.copytree(model, folder)
            tried += 1
            wrong = attempt(reader, folder, content)
            if wrong:
                faults.append(f"{content[:300]!r} ({len(content)} bytes): {wrong}")
            if len(faults) >= SHOWN:
                break
    return {"reader": name, "tried": tried, "faults": faults}


def main(arguments: list[str]) -> None:
    """Try the readers one after the other."""
    signal.signal(signal.SIGPROF, _alarm)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    kind, first, *rest = arguments
    for name in rest[1:] if kind == "mutated" else rest:
        draw = random.Random(f"{first} {name}")

        def inputs(valid: bytes, draw: random.Random = draw) -> Iterator[bytes]:
            if kind == "monsters":
                return monsters(valid, first == "all")
            return (mutated(draw, [valid, valid[::2]]) for _ in range(int(rest[0])))

        print(json.dumps(try_reader(name, inputs)), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main(sys.argv[1:])

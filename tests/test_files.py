import bz2
import gzip
import hashlib
import lzma
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from treesyntax.errors import InputError, unknown_name
from treesyntax.files import (
    atomic_file,
    atomic_folder,
    is_special,
    output_file,
    read_json,
    read_lines,
    sha256_of,
    write_json,
)


def test_only_real_line_ends_end_a_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("a\u2028b\r\nc\x0bd\n\nf".encode())
    assert list(read_lines(path)) == ["a\u2028b", "c\x0bd", "", "f"]


def test_carriage_returns_alone_end_the_lines_of_an_old_mac(tmp_path):
    path = tmp_path / "mac"
    path.write_bytes(b"a\rb\r\rc\r")
    assert list(read_lines(path)) == ["a", "b", "", "c"]


@pytest.mark.parametrize(
    "content", [b"a\nb\nc x\ry\nd\n", b"a\nb\nc\rd", b"a\r\nb\r\nc\r\r\nd", b"\n\n\rc\n"]
)
def test_a_carriage_return_inside_a_line_never_shifts_lines(content, tmp_path):
    path = tmp_path / "shifted"
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"shifted:3: holds a carriage return inside a line; replace"
    ):
        list(read_lines(path))


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfa\nb\n")
    assert list(read_lines(tmp_path / "text")) == ["a", "b"]


READ_TWICE = "from treesyntax.files import read_lines; print([[*read_lines('/dev/stdin')] for _ in range(2)])"


def test_standard_input_goes_on_where_an_earlier_reader_stopped(tmp_path):
    """As in ``{ read -r header; treesyntax …; } < FILE``: by its name the file would begin anew."""
    path = tmp_path / "text"
    path.write_text("header\na\nb\n")
    with path.open("rb", buffering=0) as stream:
        stream.seek(len("header\n"))
        read = subprocess.run(
            [sys.executable, "-c", READ_TWICE], stdin=stream, capture_output=True, check=True
        )
    assert read.stdout == b"[['a', 'b'], ['a', 'b']]\n"


def test_standard_input_may_be_a_socket():
    """As programs of node and sshd give one, which has no name by which it can be opened."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall("a\n日本\n".encode())
        ours.shutdown(socket.SHUT_WR)
        read = subprocess.run(
            [sys.executable, "-c", READ_TWICE], stdin=theirs, capture_output=True, check=True
        )
    assert read.stdout.decode() == "[['a', '日本'], []]\n"


def test_gzip_is_unpacked(tmp_path):
    with gzip.open(tmp_path / "text.gz", "wt") as stream:
        stream.write("a\nb\n")
    assert list(read_lines(tmp_path / "text.gz")) == ["a", "b"]


@pytest.mark.parametrize("damage", [lambda raw: raw[:-9], lambda raw: raw[:12] + b"\xff" * 40])
def test_damaged_gzip_names_the_file(tmp_path, damage):
    path = tmp_path / "text.gz"
    path.write_bytes(damage(gzip.compress(os.urandom(20).hex().encode() * 30)))
    with pytest.raises(InputError, match=r"text\.gz: cannot be read"):
        list(read_lines(path))


def test_a_missing_file_and_bytes_that_are_not_utf8(tmp_path):
    with pytest.raises(InputError, match="absent: cannot be read .No such file"):
        list(read_lines(tmp_path / "absent"))
    (tmp_path / "latin").write_bytes(b"ok\ncaf\xe9\n")
    with pytest.raises(InputError, match="latin:2: byte 4 is not UTF-8; .*iconv"):
        list(read_lines(tmp_path / "latin"))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (gzip.compress(b"a b\n"), r"is no text, but gzip; unpack it.* may be named \.gz"),
        (bz2.compress(b"a b\n"), "is no text, but bzip2; unpack it"),
        (lzma.compress(b"a b\n"), "is no text, but xz; unpack it"),
        (b"PK\x03\x04\x14\0\x06\0", r"is no text, but a ZIP archive, as \.xlsx"),
        ("a b\n".encode("utf-16"), "is UTF-16, as Excel writes"),
        ("the cat\nsat\n".encode("utf-16-le"), "has 7 NUL bytes, as UTF-16 without a byte"),
        ("été à Metz\n".encode("utf-16-be"), "has 11 NUL bytes, as UTF-16 without a byte"),
    ],
    ids=["gzip", "bzip2", "xz", "zip", "utf-16", "utf-16-le", "utf-16-be"],  # gzip holds the time
)
def test_what_is_no_text_is_named(content, fault, tmp_path):
    """The ASCII of UTF-16 is valid UTF-8: it was read with NUL between its letters."""
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(InputError, match=f"text:1: {fault}"):
        list(read_lines(tmp_path / "text"))


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(ValueError, match="boom"), atomic_file(path) as staged:
        staged.write_text("half")
        raise ValueError("boom")
    assert path.read_text() == "before"
    with atomic_file(path) as staged:
        staged.write_text("after")
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out"
    with atomic_folder(path) as staged:
        (staged / "file").write_text("first")
    with pytest.raises(ValueError, match="boom"), atomic_folder(path) as staged:
        (staged / "file").write_text("half")
        raise ValueError("boom")
    assert (path / "file").read_text() == "first"
    with atomic_folder(path) as staged:
        (staged / "other").write_text("second")
    assert [file.name for file in path.iterdir()] == ["other"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_to_be_new_replaces_nothing_that_was_made_meanwhile(tmp_path):
    path = tmp_path / "out"
    path.mkdir()
    with (
        pytest.raises(InputError, match="out: was made by another process meanwhile; name another"),
        atomic_folder(path, new=True) as staged,
    ):
        (staged / "file").write_text("second")
        (path / "file").write_text("first")
    assert (path / "file").read_text() == "first"
    (path / "file").unlink()
    with atomic_folder(path, new=True) as staged:
        (staged / "file").write_text("second")
    assert (path / "file").read_text() == "second"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for opened in (atomic_file, atomic_folder):
        with pytest.raises(InputError, match="cannot be written"), opened(tmp_path / "file" / "x"):
            pass


def test_json_files_are_read_back_and_damaged_ones_are_named(tmp_path):
    path = tmp_path / "facts.json"
    write_json(path, {"café": [1, None]})
    assert read_json(path) == {"café": [1, None]}
    path.write_text("{")
    with pytest.raises(InputError, match=r"facts\.json: is not JSON"):
        read_json(path)
    with pytest.raises(InputError, match=r"absent\.json: cannot be read"):
        read_json(tmp_path / "absent.json")


def test_the_checksum_of_a_file(tmp_path):
    (tmp_path / "file").write_bytes(b"tree")
    assert sha256_of(tmp_path / "file") == hashlib.sha256(b"tree").hexdigest()
    with pytest.raises(InputError, match="absent: cannot be read"):
        sha256_of(tmp_path / "absent")


def test_an_unknown_name_is_answered_with_the_closest_one():
    error = unknown_name("parser", "stanzo", ["benepar", "stanza"], "--parser:")
    assert str(error) == (
        "--parser: no parser is named 'stanzo'; did you mean 'stanza'? there are benepar, stanza"
    )
    many = ["batch_sizes", "train_batch_size", *map(str, range(99))]
    assert str(unknown_name("setting", "batch_size", many)).endswith("mean 'train_batch_size'?")
    assert str(unknown_name("parser", "x", ["stanza"])) == (
        "no parser is named 'x'; there are stanza"
    )


def test_a_folder_is_no_output(tmp_path: Path):
    with pytest.raises(InputError, match="is a folder"), output_file(tmp_path):
        raise AssertionError("nothing may be written")


def test_links_in_a_circle_are_no_device(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert not is_special(tmp_path / "a")

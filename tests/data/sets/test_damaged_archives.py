"""Archives and answers that are damaged: one clear line, whatever the way of packing."""

from __future__ import annotations

import random
import zipfile
from http.client import BadStatusLine, IncompleteRead, RemoteDisconnected
from io import BytesIO
from types import SimpleNamespace

import pytest

from treesyntax.data.sets import reading
from treesyntax.errors import InputError, OptionError

PACKED = {
    "stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA,
}  # fmt: skip


def archive(method: int) -> bytearray:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", method) as file:
        file.writestr("a.txt", random.Random(1).randbytes(500) * 3)
    return bytearray(content.getvalue())


@pytest.mark.parametrize("method", PACKED)
def test_a_damaged_archive_is_one_line(method: str):
    whole, draw = archive(PACKED[method]), random.Random(method)
    wanted = reading.unzipped(bytes(whole), "x.zip", "a.txt")
    said = []
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(draw.choice([1, 3, 30])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        if draw.random() < 0.2:
            del damaged[draw.randrange(len(damaged)) :]
        try:
            assert reading.unzipped(bytes(damaged), "x.zip", "a.txt") == wanted
        except InputError as error:
            said.append(str(error))
    assert len(said) > 50
    assert all(text.startswith("x.zip: a.txt ") and "\n" not in text for text in said)


@pytest.mark.parametrize(
    "fault", [IncompleteRead(b"half", 99), BadStatusLine("odd"), RemoteDisconnected("gone"),
              BadStatusLine(""), TimeoutError(), ConnectionResetError(104, "reset")],
)  # fmt: skip
@pytest.mark.parametrize("when", ["asked", "read"])
def test_a_broken_answer_is_one_line(fault: Exception, when: str, monkeypatch):
    class Answer(BytesIO):
        def read(self, *_: object) -> bytes:
            raise fault

    def ask(*_: object, **__: object) -> Answer:
        if when == "asked":
            raise fault
        return Answer()

    monkeypatch.setattr(reading, "urlopen", ask)
    one = SimpleNamespace(address="https://example.org/x", names=("x",), member="", sha256="")
    with pytest.raises(
        OptionError, match=r"https://example.org/x cannot be fetched \(.+\)"
    ) as told:
        reading._fetched(SimpleNamespace(name="a", citation="b"), one)
    assert "\n" not in str(told.value)

"""Files split in blocks have the records of lines."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.data.binarize import records as binarize_records
from treesyntax.data.binarize.records import count_of, records_of
from treesyntax.errors import InputError
from treesyntax.trees.formats import get_format
from treesyntax.trees.formats.base import Record, line_records


def read_all(records) -> tuple[list[Record], str]:
    found: list[Record] = []
    try:
        found.extend(records)
    except InputError as error:
        return found, str(error)
    return found, ""


def check(path, format_name, size, expected) -> None:
    """Batches of ``size`` of the same records, and the same fault, before which some may miss."""
    records, fault = expected
    batches: list[list[Record]] = []
    told = ""
    try:
        for some in records_of(path, format_name, size):
            batches.append(list(map(Record, *some)))
    except InputError as error:
        told = str(error)
    assert told == fault
    assert all(len(batch) == size for batch in batches[:-1])
    assert all(0 < len(batch) <= size for batch in batches)
    found = [record for batch in batches for record in batch]
    assert found == (records[: len(found)] if fault else records)


PARTS = [b"a", b"b\tc", b"\n", b"\n\n", b"\n\n\n", b" ", b"\t", b"\r\n", b"\r", b"\xef\xbb\xbf",
         b"\xc3\xa9", b"\xff", b"\xe2\x80\xa8", b"#x\n",
         b"# text =\n"]  # fmt: skip
USUAL = [b"a\n", b"#b c\n", b"# text =\n", b"\xc3\xa9\td\n", b"\n", b"e"]


@settings(deadline=None, max_examples=600)
@given(
    st.one_of(
        st.lists(st.sampled_from(PARTS), max_size=12), st.lists(st.sampled_from(USUAL), max_size=20)
    ),
    st.sampled_from(["text", "conllu", "ptb", "mrg"]),
    st.sampled_from([1, 3, 8, 1 << 20]),
    st.booleans(),
    st.sampled_from([1, 2, 3, 100]),
)
def test_blocks_have_the_records_of_lines(
    tmp_path_factory, parts, format_name, block, packed, size
):
    path = tmp_path_factory.getbasetemp() / ("x.gz" if packed else "x")
    content = b"".join(parts)
    path.write_bytes(gzip.compress(content) if packed else content)
    slow = line_records if format_name == "text" else get_format(format_name).records
    expected = read_all(slow(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binarize_records, "BLOCK", block)
        patch.setattr(binarize_records, "AT_ONCE", 2)
        check(path, format_name, size, expected)
        if not expected[1]:
            assert count_of(path, format_name) == len(expected[0])


def test_a_file_of_another_kind_is_refused_by_blocks_too(tmp_path):
    """The ASCII of UTF-16 is valid UTF-8, so blocks of it could be read, with NUL between the letters."""
    path = tmp_path / "x"
    for content, told in (
        ("the cat\nsat\n".encode("utf-16-le"), "NUL bytes"),
        (b"%PDF-1.4\n", "PDF"),
    ):
        path.write_bytes(content)
        expected = read_all(line_records(path))
        assert told in expected[1]
        check(path, "text", 7, expected)
        with pytest.raises(InputError, match=told):
            count_of(path, "text")


def test_a_line_without_end_and_a_cut_file_are_refused_alike(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"a\n" + b"b" * 100)
    for module in ("treesyntax.data.binarize.records", "treesyntax.files"):
        monkeypatch.setattr(f"{module}.LONGEST_LINE", 50)
    monkeypatch.setattr(binarize_records, "BLOCK", 10)
    expected = read_all(line_records(path))
    assert "x:2: the line is longer than" in expected[1]
    check(path, "text", 1, expected)
    packed = tmp_path / "y.gz"
    packed.write_bytes(gzip.compress(b"a\n" * 1000)[:-12])
    expected = read_all(line_records(packed))
    assert "y.gz: cannot be read" in expected[1]
    check(packed, "text", 7, expected)

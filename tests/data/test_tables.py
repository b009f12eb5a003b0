"""Tables as people, pandas and Excel write them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.__main__ import main
from treesyntax.data.tables import KEPT, QUOTED, read_pairs, read_table
from treesyntax.errors import InputError
from treesyntax.remarks import Remarks, remarks_of

EXCEL = '"what is ""up"", doc"\t"answer(exclude(all, x))"\nwho ran\tanswer(x)\n'


def read(path: Path, text: str) -> tuple[list[tuple[int, list[str]]], Remarks]:
    path.write_text(text, encoding="utf-8", newline="")
    with remarks_of(path) as remarks:
        return list(read_table(path)), remarks


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.text('ab "\t,(\n', min_size=1, max_size=6), min_size=2, max_size=2), max_size=5
    )
)
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, quoting, end, rows):
    """pandas writes by this module; the values are the oracle."""
    path = tmp_path_factory.getbasetemp() / "t.tsv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t", quoting=quoting, lineterminator=end).writerows(rows)
    with remarks_of(path) as remarks:
        found = [columns for _, columns in read_table(path)]
    quoted = quoting == csv.QUOTE_ALL or any(set('"\t\n') & set("".join(row)) for row in rows)
    assert found == rows
    assert bool(remarks.findings) == bool(quoted and rows)


def test_excel_quotes_fields_with_commas(tmp_path):
    rows, remarks = read(tmp_path / "t.tsv", EXCEL.replace("\n", "\r\n"))
    assert rows == [
        (1, ['what is "up", doc', "answer(exclude(all, x))"]),
        (2, ["who ran", "answer(x)"]),
    ]
    assert [(kind, *finding) for kind, finding in remarks.findings.items()] == [(QUOTED, 1, 2, 1)]


def test_line_ends_in_fields_keep_the_numbers_of_lines(tmp_path):
    rows, remarks = read(tmp_path / "t.tsv", '"a\nb"\tc\nd\te\n')
    assert rows == [(1, ["a\nb", "c"]), (3, ["d", "e"])]
    assert list(remarks.findings) == [QUOTED]


def test_tabs_in_fields_are_counted_as_quoted(tmp_path):
    rows, remarks = read(tmp_path / "t.tsv", '"a\tb"\tc\nd\t"e ""f"""\n')
    assert rows == [(1, ["a\tb", "c"]), (2, ["d", 'e "f"'])]
    assert [(found.lines, found.times) for found in remarks.findings.values()] == [(2, 2)]


@pytest.mark.parametrize(
    ("text", "remarked"),
    [
        ('who said\t( f "new york" )\n"Stop it!"\t( g )\n', 1),  # a sentence in quotes
        ('"stop" he said\t"x"\n', 1),
        ('he said "so"\t( f "a" )\nx\t"texas"\n', 1),
        ("what, then\t( f x )\n", 0),
    ],
)
def test_quotes_written_by_hand_are_text(tmp_path, text, remarked):
    rows, remarks = read(tmp_path / "t.tsv", text)
    assert [columns for _, columns in rows] == [line.split("\t") for line in text.splitlines()]
    assert list(remarks.findings) == [KEPT] * remarked


def test_pairs_of_excel_are_read_by_new_and_generate(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.tsv").write_text(EXCEL * 20)
    out = ["--out", "o", "--valid", "1", "--test", "1", "--notation", "prolog"]
    Path("own.tsv").write_text("".join(EXCEL.replace("who ran", f"who ran {i}") for i in range(9)))
    assert main(["generate", "questions", "--data", "own.tsv", *out]) == 0
    said = capsys.readouterr().out
    assert "own.tsv:1: 9 of 18 pairs hold fields in double quotes, as pandas and Excel" in said
    sources = Path("o/train.src").read_text() + Path("o/test.src").read_text()
    assert 'what is "up", doc\n' in sources + Path("o/valid.src").read_text()


def test_an_index_of_pandas_and_text_of_excel_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.tsv").write_text("\tquestion\tform\n0\twho\t( f x )\n")
    words = ["new", "my.yaml", "--source", "own.tsv", "--target-format", "sexpr"]
    assert main(words) == 2
    assert "own.tsv:1: has 3 columns; write the question, one tab" in (
        said := capsys.readouterr().err
    )
    assert r"with pandas to_csv(FILE, sep='\t', header=False, index=False)" in said
    Path("own.tsv").write_text("who\t( f x )\n", encoding="utf-16")
    with pytest.raises(
        InputError, match="own.tsv:1: is UTF-16, as Excel writes Unicode text; conve"
    ):
        list(read_table(Path("own.tsv")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "who ran;( f x )\n",
            "own.tsv:1: seems to have semicolons (';') between its columns; write",
        ),
        (
            "sep=\t\nwho ran\t( f x )\n",
            "own.tsv:1: is 'sep=', a line for Excel; remove it and write",
        ),
        ("who ran ( f , x )\n", "own.tsv:1: has 1 columns; write the question, one tab"),
    ],
)
def test_other_separators_are_named(tmp_path, text, message):
    file = tmp_path / "own.tsv"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        list(read_pairs(file))
    assert message in str(caught.value)

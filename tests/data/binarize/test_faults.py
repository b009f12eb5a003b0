"""What is wrong with a record is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from treesyntax.data.binarize.batch import Batch
from treesyntax.data.binarize.encode import encode_batch
from treesyntax.data.binarize.records import Records
from treesyntax.data.encoding import Encoding
from treesyntax.errors import InputError

ENCODING = Encoding("conllu", "words", "copy", "sentencepiece", units="token")


def word(number: int, form: str, head: object, misc: str = "_") -> str:
    return f"{number}\t{form}" + "\t_" * 4 + f"\t{head}\tdep\t_\t{misc}"


# The rows of a record after its comment, and how many rows its start is above the one at fault.
FAULTS = {
    "2 roots (words: 1, 2)": (2, word(1, "a", 0), word(2, "b", 0)),
    "no root": (1, word(1, "a", 2), word(2, "b", 1)),
    "the heads form a cycle": (1, word(1, "a", 0), word(2, "b", 3), word(3, "c", 2)),
    "the head 7 of word 2 is out of range": (2, word(1, "a", 0), word(2, "b", 7)),
    "the HEAD is 'x', not a number": (1, word(1, "a", "x")),
    "the ID is '3', not 2": (2, word(1, "a", 0), word(3, "b", 1)),
    "9 tab-separated columns instead of 10": (2, word(1, "a", 0), word(2, "b", 1)[:-2]),
    "the word has no start_char and end_char": (
        2, word(1, "a", 0, "start_char=0|end_char=1"), word(2, "x", 1)
    ),
    "not after character 0 in a text of 3": (0, word(1, "a", 0, "start_char=2|end_char=9")),
    "begins or ends with a space": (0, word(1, "a", 0, "start_char=0|end_char=2")),
    "is not at character 0 of the text, where 'a b' stands": (1, word(1, "b", 0)),
}  # fmt: skip


@pytest.mark.parametrize("cause", [*FAULTS, "the sentence has no comment '# text ='"])
def test_a_fault_is_told_with_its_line(cause):
    plain = "# text = a b\n" + word(1, "a", 0) + "\n" + word(2, "b", 1)
    row, *rows = FAULTS.get(cause, (0, word(1, "b", 0)))
    faulty = "\n".join(["# text = a b", *rows] if cause in FAULTS else rows)
    starts = [1 + 4 * index for index in range(30)]
    with pytest.raises(InputError) as error:
        encode_batch(ENCODING, Batch(Path("x.conllu"), Records(starts, [plain] * 29 + [faulty])))
    assert str(error.value).startswith(f"x.conllu:{starts[29] + row}: ")
    assert cause in str(error.value)


def test_a_given_text_that_differs_is_told():
    texts = ["# text = a b\n" + word(1, "a", 0) + "\n" + word(2, "b", 1)] * 20
    batch = Batch(Path("x"), Records([1 + 4 * i for i in range(20)], texts))
    lines = ["a b"] * 12 + ["a  b"] + ["a b"] * 7
    with pytest.raises(InputError, match="x:49: the tree is that of 'a b', but the text is 'a  b'"):
        encode_batch(ENCODING, batch._replace(text=lines))


@pytest.mark.parametrize(
    ("comment", "text", "shown"),
    [
        ("a " * 60 + "b .", "a " * 60 + "c .", "…'" + "a " * 10 + "b .', but the text is …'" + "a " * 10 + "c .'"),
        ("é", "e\u0301", "'é', but the text is 'e\u0301' in other Unicode characters (NFC and NFD): normalize both"),
    ],
)  # fmt: skip
def test_texts_that_look_alike_at_first_are_shown_where_they_differ(comment, text, shown):
    records = Records([1], [f"# text = {comment}\n" + word(1, "a", 0)])
    with pytest.raises(InputError) as error:
        encode_batch(ENCODING, Batch(Path("x"), records, text=[text]))
    assert f"x:1: the tree is that of {shown}; give the very text" in str(error.value)

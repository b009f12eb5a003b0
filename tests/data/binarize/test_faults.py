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


FAULTS = {
    "2 roots (words: 1, 2)": lambda rows: [rows[0], word(1, "a", 0), word(2, "b", 0)],
    "no root": lambda rows: [rows[0], word(1, "a", 2), word(2, "b", 1)],
    "the heads form a cycle": lambda rows: [
        rows[0], word(1, "a", 0), word(2, "b", 3), word(3, "c", 2)
    ],
    "the head 7 of word 2 is out of range": lambda rows: [
        rows[0], word(1, "a", 0), word(2, "b", 7)
    ],
    "the HEAD is 'x', not a number": lambda rows: [rows[0], word(1, "a", "x")],
    "the word has no HEAD ('_')": lambda rows: [rows[0], word(1, "a", "_")],
    "the ID is '3', not 2": lambda rows: [rows[0], word(1, "a", 0), word(3, "b", 1)],
    "the FORM is empty": lambda rows: [rows[0], word(1, "", 0)],
    "9 tab-separated columns instead of 10": lambda rows: [
        rows[0], word(1, "a", 0), word(2, "b", 1)[:-2]
    ],
    "the columns are separated by spaces": lambda rows: [
        rows[0], word(1, "a", 0), word(2, "b", 1).replace("\t", " ")
    ],
    "the word has no start_char and end_char": lambda rows: [
        rows[0], word(1, "a", 0, "start_char=0|end_char=1"), word(2, "b", 1)
    ],
    "which is not after character 0 in a text of 3": lambda rows: [
        rows[0], word(1, "a", 0, "start_char=2|end_char=9")
    ],
    "begins or ends with a space": lambda rows: [
        rows[0], word(1, "a", 0, "start_char=0|end_char=2")
    ],
    "is not at character 0 of the text, where 'a b' stands": lambda rows: [
        rows[0], word(1, "b", 0)
    ],
    "the sentence has no comment '# text ='": lambda rows: [word(1, "b", 0)],
}  # fmt: skip
# Rows from the start of the record to the one that is named.
ROW = {"2 roots": 2, "no root": 1, "the heads form": 1, "the head 7": 2, "the HEAD": 1,
       "the word has no HEAD": 1, "the ID": 2, "the FORM": 1, "9 tab": 2, "the columns": 2,
       "the word has no start": 2, "which is not": 0, "begins or": 0, "is not at": 1}  # fmt: skip


def word(number: int, form: str, head: object, misc: str = "_") -> str:
    return f"{number}\t{form}" + "\t_" * 4 + f"\t{head}\tdep\t_\t{misc}"


@pytest.mark.parametrize("cause", FAULTS)
def test_a_fault_is_told_with_its_line(cause):
    plain = "# text = a b\n" + word(1, "a", 0) + "\n" + word(2, "b", 1)
    texts = [plain] * 29 + ["\n".join(FAULTS[cause](["# text = a b"]))] + [plain] * 10
    starts = [1 + 4 * index for index in range(40)]
    row = next((row for begin, row in ROW.items() if cause.startswith(begin)), 0)
    with pytest.raises(InputError) as error:
        encode_batch(ENCODING, Batch(Path("x.conllu"), Records(starts, texts)))
    assert str(error.value).startswith(f"x.conllu:{starts[29] + row}: ")
    assert cause in str(error.value)


def test_a_given_text_that_differs_is_told():
    texts = ["# text = a b\n" + word(1, "a", 0) + "\n" + word(2, "b", 1)] * 20
    batch = Batch(Path("x"), Records([1 + 4 * i for i in range(20)], texts))
    lines = ["a b"] * 12 + ["a  b"] + ["a b"] * 7
    with pytest.raises(InputError, match="x:49: the tree is that of 'a b', but the text is 'a  b'"):
        encode_batch(ENCODING, batch._replace(text=lines))

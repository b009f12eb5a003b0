"""Batches in arrays give what the same records give one after another, faults too."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.binarize_helpers import FORMS, SPACES, check, make_models, outcome

from treesyntax.data.binarize.encode import Batch, Encoding, encode_batch
from treesyntax.data.binarize.records import Records
from treesyntax.data.binarize.sentence import encode_one_by_one
from treesyntax.errors import InputError
from treesyntax.trees.formats.offsets import conllu_comment
from treesyntax.trees.subwords import POLICIES


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path | None]:
    return make_models(tmp_path_factory.mktemp("models"))


def random_record(source: random.Random, faults: float) -> str:
    """A record with multi-word tokens, empty nodes and comments, some of it at fault."""
    size = source.choice([1, 2, 5, 9, 14])
    forms = source.choices(FORMS, k=size)
    order = source.sample(range(1, size + 1), size)
    heads = [0] * size
    for place, word in enumerate(order[1:], start=1):
        heads[word - 1] = order[source.randrange(place)]
    line, rows, until = source.choice(["", "", " "]), [], 0
    own_places = source.random() < 0.8
    if not own_places:  # words are looked for in the line
        forms = ["x" if form == "start_char=1" else form for form in forms]
    for number, (form, head) in enumerate(zip(forms, heads, strict=True), start=1):
        if number > until:
            if number > 1:
                line += source.choice(SPACES if own_places else SPACES[:-1])
            width = source.choice([1, 1, 1, 1, 2, 3])
            until = min(size, number + width - 1)
            misc = f"start_char={len(line)}|end_char={len(line) + len(form)}"
            line += form
            if until > number:
                token = misc if own_places else "_"
                rows.append(f"{number}-{until}\t{form}" + "\t_" * 7 + f"\t{token}")
                misc = "_"
        if not own_places:
            misc = "_"
        elif source.random() < 0.03:
            misc = f"SpaceAfter=No|{misc}"
        elif source.random() < faults:
            misc = source.choice(["_", "start_char=|end_char=3", "start_char=900|end_char=901",
                                  "start_char=0|end_char=1", misc + "x", "x" + misc])  # fmt: skip
        cells = [str(number), form, *"____", str(head), "dep", "_", misc]
        if source.random() < faults:
            cell = source.choice([0, 0, 1, 6, 6, 7])
            cells[cell] = source.choice(
                ["", "0", "00", "01", "_", "x", "99", "1-", "-1", "123456", "٣"]
            )
        if source.random() < faults:
            cells = source.choice([cells[:-1], [*cells, "_"], [" ".join(cells)]])
        rows.append("\t".join(cells))
        if source.random() < 0.02:
            rows.append(f"{number}.1\tgone" + "\t_" * 8)
        if source.random() < faults / 2:
            rows.append(source.choice(["# text = other", "#\t1", "x"]))
    line += source.choice(["", "", " "])
    wrong = source.random() < faults
    comments = [f"# text = {line}{'x' * wrong}", "# sent_id = 1"][: source.choice([1, 1, 2])]
    if source.random() < 0.1:
        comments = source.choice([["# id", *comments], comments[::-1]])
    if source.random() < faults:
        comments = source.choice([[], ["# text ="], ["x", *comments]])
    return "\n".join([*comments, *rows])


@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0, 0, 0.002, 0.02]),
    st.sampled_from(["none", "unigram", "bpe"]),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(["", "token", "line"]),
    st.sampled_from(["words", "preorder", "breadth_first", "bracketed"]),
)
def test_random_records_give_the_same_integers_or_the_same_fault(
    models, seed, faults, model, policy, units, linearization
):
    source = random.Random(seed)
    texts = [random_record(source, faults) for _ in range(24)]
    lines = [1 + sum(text.count("\n") + 2 for text in texts[:i]) for i in range(24)]
    batch = Batch(Path("x.conllu"), Records(lines, texts))
    encoding = Encoding(
        "conllu", linearization, policy, "sentencepiece", models[model], units=units
    )
    check(encoding, batch)
    given = [conllu_comment(text) or "" for text in texts]
    if source.random() < 0.3:
        given[source.randrange(24)] += " "
    check(encoding, batch._replace(text=given))


FAULTS = {
    "two roots (words: 1, 2)": lambda rows: [rows[0], word(1, "a", 0), word(2, "b", 0)],
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
    "which is not a place after 0 in a text of 3": lambda rows: [
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
ROW = {"two roots": 2, "no root": 1, "the heads form": 1, "the head 7": 2, "the HEAD": 1,
       "the word has no HEAD": 1, "the ID": 2, "the FORM": 1, "9 tab": 2, "the columns": 2,
       "the word has no start": 2, "which is not": 0, "begins or": 0, "is not at": 1}  # fmt: skip


def word(number: int, form: str, head: object, misc: str = "_") -> str:
    return f"{number}\t{form}" + "\t_" * 4 + f"\t{head}\tdep\t_\t{misc}"


@pytest.mark.parametrize("cause", FAULTS)
def test_a_fault_is_told_with_its_line(models, cause):
    source = random.Random(1)
    texts = [random_record(source, 0) for _ in range(40)]
    texts[29] = "\n".join(FAULTS[cause](["# text = a b"]))
    starts = [1 + sum(text.count("\n") + 2 for text in texts[:i]) for i in range(40)]
    batch = Batch(Path("x.conllu"), Records(starts, texts))
    encoding = Encoding("conllu", "words", "copy", "sentencepiece", models["bpe"], units="token")
    expected = outcome(encode_one_by_one, encoding, batch)
    assert isinstance(expected, str)
    row = next((row for begin, row in ROW.items() if cause.startswith(begin)), 0)
    told = outcome(encode_batch, encoding, batch)
    assert told == expected
    assert told.startswith(f"x.conllu:{starts[29] + row}: ")
    assert cause.removeprefix("two roots ") in told


def test_a_given_text_that_differs_is_told(models):
    texts = ["# text = a b\n" + word(1, "a", 0) + "\n" + word(2, "b", 1)] * 20
    batch = Batch(Path("x"), Records([1 + 4 * i for i in range(20)], texts))
    encoding = Encoding("conllu", "words", "copy", "sentencepiece", models["bpe"], units="token")
    lines = ["a b"] * 12 + ["a  b"] + ["a b"] * 7
    with pytest.raises(InputError, match="x:49: the tree is that of 'a b', but the text is 'a  b'"):
        encode_batch(encoding, batch._replace(text=lines))

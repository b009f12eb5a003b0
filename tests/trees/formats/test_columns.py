"""CoNLL-U read in columns gives the tree and the spans of CoNLL-U read row by row, faults too."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.binarize_helpers import FORMS, SPACES

from treesyntax.remarks import remarks_of
from treesyntax.trees.formats import conllu
from treesyntax.trees.formats.base import RecordError
from treesyntax.trees.formats.offsets import conllu_comment, conllu_spans


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


def outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except RecordError as error:
        return str(error), error.offset


@settings(deadline=None, max_examples=600)
@example(1_118_793_282, 0.1)  # a word without its last column, and a line with nothing else
@given(st.integers(0, 2**32), st.sampled_from([0, 0.02, 0.1]))
def test_columns_give_what_rows_give(seed, faults):
    text = random_record(random.Random(seed), faults)
    line = conllu_comment(text) or ""
    reads = [lambda: conllu.parse(text), lambda: conllu_spans(text, line)]
    found = [outcome(read) for read in reads]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conllu, "columns", lambda _: None)
        assert [outcome(read) for read in reads] == found


def test_plain_sentences_are_read_in_columns():
    source = random.Random(1)
    texts = [random_record(source, 0) for _ in range(200)]
    plain = [
        text
        for text in texts
        if not any("-" in row[0] or "." in row[0] for row in conllu.rows(text) if row)
    ]
    assert len(plain) > 50
    for text in plain:
        rows = [row for row in conllu.rows(text) if row]
        found = conllu.columns(text)
        expected = [list(column) for column in zip(*rows, strict=True)]
        assert list(found) == [0, 1, 6, 7, 9]
        assert [found[column] for column in (1, 6, 7, 9)] == [
            expected[column] for column in (1, 6, 7, 9)
        ]


@pytest.mark.parametrize(
    "misc",
    [
        "end_char=6|start_char=3",
        "SpaceAfter=No|end_char=6|ner=O|start_char=3",
        "x=1|start_char=3|y|end_char=6",
    ],
)
def test_spans_are_read_in_any_order(misc):
    assert conllu_spans(f"1\tcat\t_\t_\t_\t_\t0\troot\t_\t{misc}", "my cat") == [(3, 6)]


@pytest.mark.parametrize(
    ("line", "starts", "count"),
    [
        ("a b c", (0, 2, 4), 0),
        ("a b c", (50, 52, 54), 0),
        ("a b  c", (0, 2, 4), 1),
        ("“ b c", (50, 52, 54), 1),
    ],
)
def test_words_that_are_not_at_their_place_are_counted(line, starts, count):
    rows = (
        f"{n}\t{form}\t_\t_\t_\t_\t{n - 1}\tx\t_\tstart_char={start}|end_char={start + 1}"
        for n, (form, start) in enumerate(zip("abc", starts, strict=True), start=1)
    )
    with remarks_of("x.conllu") as remarks:
        conllu_spans("\n".join(rows), line)
    assert [finding.times for finding in remarks.findings.values()] == [count] * bool(count)

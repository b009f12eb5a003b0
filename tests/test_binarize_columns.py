"""Batches in arrays give what the same records give one after another, faults too."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import head_lists

from treesyntax import binarize_records
from treesyntax.binarize_columns import encode_usual
from treesyntax.binarize_encode import Batch, EncodedBatch, Encoding, encode_batch
from treesyntax.binarize_records import records_of
from treesyntax.binarize_sentence import encode_each
from treesyntax.errors import InputError
from treesyntax.forest import Forest, merged, preorder
from treesyntax.formats import conllu, get_format
from treesyntax.formats.base import Record, line_records
from treesyntax.formats.offsets import conllu_comment, conllu_spans
from treesyntax.parsers.output import conllu_text
from treesyntax.segment import Segmenter, train_model
from treesyntax.transforms.merging import merge_words
from treesyntax.transforms.subwords import POLICIES
from treesyntax.tree import Tree

EWT = Path(__file__).parents[2] / "shared" / "data" / "treebanks" / "UD_English-EWT"
FORMS = ["the", "cat", "sleeps", "unbelievably", ".", ",", "(", "½-ton", "ﬁve", "naïve", "猫は",
         "\u200b", "x\u00a0y", "10 000", "▁", "a▁", "🙂", "e\u0301", "start_char=1", "#", "1"]  # fmt: skip
SPACES = [" ", " ", " ", "", "  ", "\u00a0", " \u200b "]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path | None]:
    folder = tmp_path_factory.mktemp("models")
    source = random.Random(0)
    lines = [" ".join(source.choices(FORMS[:12], k=8)) for _ in range(200)]
    train_model(lines, 40, "unigram", folder / "unigram", "x")
    train_model(lines, 40, "bpe", folder / "bpe", "x")
    return {"none": None, "unigram": folder / "unigram", "bpe": folder / "bpe"}


def outcome(encode, encoding: Encoding, batch: Batch) -> EncodedBatch | str:
    try:
        return encode(encoding, batch)
    except InputError as error:
        return str(error)


def check(encoding: Encoding, batch: Batch) -> None:
    found, expected = (outcome(f, encoding, batch) for f in (encode_batch, encode_each))
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    assert found.symbols == expected.symbols
    pairs = zip((*found[1:3], *found.trees), (*expected[1:3], *expected.trees), strict=True)
    for ours, theirs in pairs:
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()


# --- random records ------------------------------------------------------------------------


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
)
def test_random_records_give_the_same_integers_or_the_same_fault(
    models, seed, faults, model, policy, units
):
    source = random.Random(seed)
    texts = [random_record(source, faults) for _ in range(24)]
    lines = [1 + sum(text.count("\n") + 2 for text in texts[:i]) for i in range(24)]
    batch = Batch(Path("x.conllu"), list(map(Record, lines, texts)))
    encoding = Encoding("conllu", "words", policy, "sentencepiece", models[model], units=units)
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
    batch = Batch(Path("x.conllu"), list(map(Record, starts, texts)))
    encoding = Encoding("conllu", "words", "copy", "sentencepiece", models["bpe"], units="token")
    expected = outcome(encode_each, encoding, batch)
    assert isinstance(expected, str)
    row = next((row for begin, row in ROW.items() if cause.startswith(begin)), 0)
    told = outcome(encode_batch, encoding, batch)
    assert told == expected
    assert told.startswith(f"x.conllu:{starts[29] + row}: ")
    assert cause.removeprefix("two roots ") in told


def test_a_given_text_that_differs_is_told(models):
    texts = ["# text = a b\n" + word(1, "a", 0) + "\n" + word(2, "b", 1)] * 20
    batch = Batch(Path("x"), [Record(1 + 4 * i, text) for i, text in enumerate(texts)])
    encoding = Encoding("conllu", "words", "copy", "sentencepiece", models["bpe"], units="token")
    lines = ["a b"] * 12 + ["a  b"] + ["a b"] * 7
    with pytest.raises(InputError, match="x:49: the tree is that of 'a b', but the text is 'a  b'"):
        encode_batch(encoding, batch._replace(text=lines))


# --- a treebank ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ewt() -> list[Record]:
    path = EWT / "test.conllu.gz"
    if not path.is_file():
        pytest.skip("the shared treebanks are not here")
    return list(conllu.records(path))


@pytest.fixture(scope="module")
def ewt_model(ewt, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("ewt") / "model"
    train_model([conllu_comment(r.text) or "" for r in ewt], 4000, "unigram", path, "x")
    return path


def as_parsed(record: Record) -> Record:
    line = conllu_comment(record.text) or ""
    spans = conllu_spans(record.text, line)
    return Record(record.line, conllu_text(line, conllu.parse(record.text), spans))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_treebank_gives_the_same_integers(ewt, ewt_model, policy):
    parsed = list(map(as_parsed, ewt))
    for records, units in ((parsed, "token"), (ewt, ""), (ewt[:500], "token")):
        encoding = Encoding("conllu", "words", policy, "sentencepiece", ewt_model, units=units)
        check(encoding, Batch(Path("x"), records))
    without = Encoding("conllu", "words", policy, "sentencepiece", units="token")
    check(without, Batch(Path("x"), parsed))


def test_nearly_all_sentences_of_a_treebank_are_usual(ewt, ewt_model):
    encoding = Encoding("conllu", "words", "copy", "sentencepiece", ewt_model, units="token")
    found = encode_usual(encoding, Batch(Path("x"), list(map(as_parsed, ewt))))
    assert found is not None
    assert found[2].sum() > 0.97 * len(ewt)


# --- forests -------------------------------------------------------------------------------


def forest_of(sentences: list[list[int]]) -> Forest:
    sizes = np.array([len(heads) for heads in sentences])
    total, parents = int(sizes.sum()), []
    for heads in sentences:
        first = len(parents)
        parents += [first + head - 1 if head else total for head in heads]
    return Forest(sizes, np.array(parents))


@settings(deadline=None, max_examples=200)
@given(st.lists(head_lists(max_words=12), min_size=1, max_size=5), st.integers(0, 2**32))
def test_forests_are_what_trees_are(sentences, seed):
    order = preorder(forest_of(sentences))
    trees = [Tree.from_heads(heads, ["x"] * len(heads)) for heads in sentences]
    assert order.parents.tolist() == [p for tree in trees for p in tree.parents.tolist()]
    assert order.branches.tolist() == [b for tree in trees for b in tree.branches.tolist()]
    assert order.numbers.tolist() == [node for tree in trees for node in tree.word_nodes()]
    source = random.Random(seed)
    begins = [[True] + [source.random() < 0.6 for _ in heads[1:]] for heads in sentences]
    fewer = merged(forest_of(sentences), np.array([b for marks in begins for b in marks]))
    expected = []
    for tree, marks in zip(trees, begins, strict=True):
        firsts = [word for word, begin in enumerate(marks) if begin]
        groups = list(zip(firsts, [*firsts[1:], len(marks)], strict=True))
        expected.append(merge_words(tree, groups, ["x"] * len(groups)).heads())
    assert [part.tolist() for part in fewer] == [p.tolist() for p in forest_of(expected)]


def test_long_chains_are_no_problem():
    heads = [0, *range(1, 9999)]
    order = preorder(forest_of([heads, [0]]))
    assert order.parents.tolist() == [*range(-1, 9998), -1]
    assert not order.branches.any()


# --- segmenting ----------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([*FORMS, *SPACES]), max_size=8).map("".join))
def test_parts_segmented_together_have_the_pieces_of_parts(models, text):
    segmenter = Segmenter(models["unigram"])
    (alone,) = segmenter.segments([" " + text])
    (together,) = segmenter.parts([" " + text])
    assert together in (alone, [])
    assert segmenter.forms([text]) == segmenter.words([text]) == segmenter.lines([text])
    if text and text.isascii() and text.split() == [text]:
        assert together == alone


def test_what_is_known_is_forgotten_when_there_is_too_much_of_it(models, monkeypatch):
    monkeypatch.setattr("treesyntax.segment.CACHED_WORDS", 3)
    segmenter = Segmenter(models["bpe"])
    words = ["the", "cat", "sleeps", "."]
    expected = [segmenter.line(word) for word in words]
    assert [segmenter.forms([word])[0] for word in words] == expected
    assert segmenter.forms(words[1:]) == expected[1:]
    assert segmenter.forms(words) == expected


# --- files ---------------------------------------------------------------------------------


def read_all(records) -> tuple[list[Record], str]:
    found: list[Record] = []
    try:
        found.extend(records)
    except InputError as error:
        return found, str(error)
    return found, ""


PARTS = [b"a", b"b\tc", b"\n", b"\n\n", b"\n\n\n", b" ", b"\t", b"\r\n", b"\r", b"\xef\xbb\xbf",
         b"\xc3\xa9", b"\xff", b"\xe2\x80\xa8", b"#x\n"]  # fmt: skip
USUAL = [b"a\n", b"#b c\n", b"\xc3\xa9\td\n", b"\n", b"e"]


@settings(deadline=None, max_examples=600)
@given(
    st.one_of(
        st.lists(st.sampled_from(PARTS), max_size=12), st.lists(st.sampled_from(USUAL), max_size=20)
    ),
    st.sampled_from(["text", "conllu", "ptb", "mrg"]),
    st.sampled_from([1, 3, 8, 1 << 20]),
    st.booleans(),
)
def test_blocks_have_the_records_of_lines(tmp_path_factory, parts, format_name, block, packed):
    path = tmp_path_factory.getbasetemp() / ("x.gz" if packed else "x")
    content = b"".join(parts)
    path.write_bytes(gzip.compress(content) if packed else content)
    slow = line_records if format_name == "text" else get_format(format_name).records
    expected = read_all(slow(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binarize_records, "BLOCK", block)
        assert read_all(records_of(path, format_name)) == expected


def test_a_line_without_end_and_a_cut_file_are_refused_alike(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"a\n" + b"b" * 100)
    for module in ("treesyntax.binarize_records", "treesyntax.files"):
        monkeypatch.setattr(f"{module}.LONGEST_LINE", 50)
    monkeypatch.setattr(binarize_records, "BLOCK", 10)
    expected = read_all(line_records(path))
    assert "x:2: the line is longer than" in expected[1]
    assert read_all(records_of(path, "text")) == expected
    packed = tmp_path / "y.gz"
    packed.write_bytes(gzip.compress(b"a\n" * 1000)[:-12])
    expected = read_all(line_records(packed))
    assert "y.gz: cannot be read" in expected[1]
    assert read_all(records_of(packed, "text")) == expected

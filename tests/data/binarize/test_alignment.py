"""Subwords and words aligned by character spans."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.data.binarize.alignment import (
    check_spans,
    group_subwords,
    group_units,
    segments,
    stretches_outside,
)
from treesyntax.data.binarize.spelling import raw_spans, subword_spans, text_of
from treesyntax.data.sentencepiece import Segmenter, standard_normalised, train_model
from treesyntax.errors import TreeError
from treesyntax.remarks import remarks_of
from treesyntax.trees.alignment import word_spans
from treesyntax.trees.formats import conllu
from treesyntax.trees.formats.base import RecordError
from treesyntax.trees.formats.offsets import (
    ELSEWHERE,
    check_spelling,
    conllu_comment,
    conllu_spans,
    first_misspelt,
    line_spans,
)
from treesyntax.trees.merging import units

# --- groups --------------------------------------------------------------------------------


@st.composite
def lines_in_parts(draw):
    """Words and subwords of one line, both from left to right; words may share their place."""
    size = draw(st.integers(1, 14))

    def cuts(most):
        edges = sorted(draw(st.sets(st.integers(0, size), min_size=2, max_size=most)))
        spans = list(pairwise(edges))
        return [span for span in spans if draw(st.booleans())]

    spans = [span for span in cuts(9) for _ in range(draw(st.sampled_from([1, 1, 1, 2])))]
    return spans, cuts(9)


def slow_groups(spans, places):
    """By characters: owners of each subword, then sets of words that grow until nothing changes."""
    owners = [
        {w for w, span in enumerate(spans) if set(range(*span)) & set(range(*place))}
        for place in places
    ]
    for i, own in enumerate(owners):
        later = [o for o in owners[i:] if o] or [o for o in owners[:i] if o][-1:]
        if not own and later:
            owners[i] = later[0]
    groups = [set(own) for own in owners if own]
    merged = True
    while merged:
        merged = False
        for a in groups:
            for b in groups:
                if a is not b and a & b:
                    groups = [g for g in groups if g is not a and g is not b] + [a | b]
                    merged = True
                    break
            if merged:
                break
    groups.sort(key=min)
    return [
        (min(g), max(g) + 1, [f"p{i}" for i, own in enumerate(owners) if own & g]) for g in groups
    ]


@settings(deadline=None, max_examples=500)
@given(lines_in_parts())
def test_groups_are_what_their_definition_says(case):
    spans, places = case
    if not spans:
        return
    subwords = [f"p{i}" for i in range(len(places))]
    found = [tuple(group) for group in group_subwords(spans, subwords, places)]
    expected = slow_groups(spans, places)
    if subwords and not expected:
        expected = [(0, len(spans), subwords)]
    assert found == expected
    assert [subword for group in found for subword in group[2]] == subwords


def test_subwords_without_words_and_white_space():
    assert group_subwords([(2, 3)], ["▁", "a", "▁"], [None, (2, 3), None]) == [
        (0, 1, ["▁", "a", "▁"])
    ]
    assert group_subwords([(0, 1), (2, 3)], ["▁"], [None]) == [(0, 2, ["▁"])]
    assert group_subwords([], [], []) == []
    with pytest.raises(TreeError, match="the text has subwords, but the tree no words; parse"):
        group_subwords([], ["a"], [(0, 1)])


def test_words_of_one_token_are_one_unit():
    spans = [(0, 2), (0, 2), (3, 7), (7, 8)]
    assert units(spans) == [(0, 2), (2, 3), (3, 4)]
    assert segments("du chat. ", [(0, 2), (3, 7), (7, 8)]) == ["du", " chat", ". "]
    assert segments("", []) == []
    assert group_units([(0, 2), (2, 3)], [["du"], []]) == [(0, 2, ["du"])]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        (
            [(0, 1), (0, 3)],
            "word 2 has the character span 0:3, which is not after character 1 in a",
        ),
        ([(0, 9)], "0:9, which is not after character 0 in a text of 6; give the very text"),
        ([(2, 2)], "word 1 has the character span 2:2, which is not after"),
        ([(0, 3)], "word 1 has the character span 0:3, which begins or ends with a space; give"),
    ],
)
def test_impossible_spans_are_refused(spans, message):
    check_spans("ab cd.", [(0, 2), (0, 2), (3, 5), (5, 6)])
    with pytest.raises(TreeError, match=message):
        check_spans("ab cd.", spans)


# --- spelling ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text", "style", "places"),
    [
        ("the c@@ at", "the  cat", "subword-nmt", [(0, 3), (5, 6), (6, 8)]),
        ("a@@ b@@ c", "a@@ bc", "subword-nmt", [(0, 3), (4, 5), (5, 6)]),
        ("b@@", "b@@", "subword-nmt", [(0, 3)]),
        ("▁the ▁ c a", "the ca", "sentencepiece", [(0, 3), None, (4, 5), (5, 6)]),
        ("▁of▁the", "of the", "sentencepiece", [(0, 6)]),
        ("▁ <0xC3> <0xA9> t", "ét", "sentencepiece", [None, None, (0, 1), (1, 2)]),
        ("▁<0xC3>", "<0xC3>", "sentencepiece", [(0, 6)]),
        ("", " ", "sentencepiece", []),
    ],
)
def test_subwords_find_their_spans(line, text, style, places):
    assert subword_spans(line.split(), text, style) == places


def test_subwords_of_another_text_are_refused():
    with pytest.raises(
        TreeError, match="'ca@@' is not at character 4 of the text, which has 'dog' there"
    ):
        subword_spans(["the", "ca@@", "t"], "the dog", "subword-nmt")
    with pytest.raises(TreeError, match="the subwords end before 'dog' at character 4 of the text"):
        subword_spans(["the"], "the dog", "subword-nmt")


def test_spans_of_the_normalised_line_are_spans_of_the_raw_one():
    text = "ﬁ  ½™ e\N{COMBINING ACUTE ACCENT}t \N{ZERO WIDTH SPACE}１"
    normal, origins = standard_normalised(text)
    assert normal.strip() == "fi 1⁄2TM ét 1"
    subwords = ["▁f", "i", "▁1", "⁄", "2", "TM", "▁é", "t", "▁1"]
    places = raw_spans(subword_spans(subwords, normal, "sentencepiece"), origins)
    covered = [text[start:end].strip() for start, end in places]
    assert covered == ["ﬁ", "ﬁ", "½", "½", "½", "™", "e\N{COMBINING ACUTE ACCENT}", "t", "１"]


# --- offsets in files ----------------------------------------------------------------------


def conllu_record(*rows: str, text: str = "") -> str:
    lines = [f"# text = {text}"] if text else []
    for row in rows:
        number, form, misc = (*row.split("|", 2), "_")[:3]
        lines.append("\t".join([number, form, "_", "_", "_", "_", "0", "root", "_", misc]))
    return "\n".join(lines)


def test_gold_words_are_found_in_the_text():
    record = conllu_record("1|He", "2-3|don't", "2|do", "3|n't", "3.1|go", "4|go 10", "5|.")
    assert conllu_spans(record, "He  don't go 10.") == [(0, 2), (4, 9), (4, 9), (10, 15), (15, 16)]
    two = conllu_record("1-2|du", "1|de", "2|le", "3-4|du", "3|de", "4|le")
    assert conllu_spans(two, "du du") == [(0, 2), (0, 2), (3, 5), (3, 5)]
    with pytest.raises(
        RecordError, match="the word 'go 10' is not at character 10 of the text, whe"
    ) as e:
        conllu_spans(record, "He  don't stop.")
    assert e.value.offset == 5


@pytest.mark.parametrize(
    ("text", "words", "spans"),
    [
        ("a\u200b b.", ("a", "b", "."), [(0, 1), (3, 4), (4, 5)]),
        ("\u200ea \ufeffb\u200f", ("a", "b"), [(1, 2), (4, 5)]),
        ("a \u200bb", ("a", "\u200bb"), [(0, 1), (2, 4)]),
    ],
)
def test_what_nobody_sees_may_stand_between_words(text, words, spans):
    """Treebanks of UD have zero-width spaces in their text, some as a part of words."""
    assert word_spans(text, words) == spans
    record = conllu_record(*(f"{number}|{word}" for number, word in enumerate(words, start=1)))
    assert conllu_spans(record, text) == spans


def test_words_of_a_treebank_may_have_its_escapes_where_the_text_has_signs():
    """CoreNLP writes the brackets, quotes and dashes of the Penn Treebank into CoNLL-U, too."""
    record = conllu_record("1|``", "2|-LRB-", "3|it", "4|'s", "5|-rrb-", "6|--", "7|''")
    spans = [(0, 1), (1, 2), (2, 4), (4, 6), (6, 7), (8, 9), (9, 10)]
    assert conllu_spans(record, "“(it’s) –”") == spans
    with pytest.raises(RecordError, match="the word '-rrb-' is not at character 6 of the text"):
        conllu_spans(record, "“(it’s] –”")


def test_words_in_another_normal_form_are_named():
    record = conllu_record("1|un", "2|thé")
    with pytest.raises(RecordError, match=r"stands in other Unicode .* \(NFC and NFD\): normalize"):
        conllu_spans(record, "un the\u0301 vert")
    with pytest.raises(RecordError, match=r"where 'the' stands;"):
        conllu_spans(record, "un the")


def test_spans_in_misc_that_count_utf16_are_refused():
    record = conllu_record(
        "1|I|start_char=0|end_char=1", "2|😀|start_char=2|end_char=4",
        "3|you|start_char=5|end_char=8",
    )  # fmt: skip
    with pytest.raises(RecordError, match="the spans count UTF-16 units, of which an emoji has"):
        conllu_spans(record, "I 😀 you .")


def test_spans_in_misc_that_count_bytes_are_refused():
    """Most words stand before the accent, so most are right."""
    record = conllu_record(
        "1|I|start_char=0|end_char=1", "2|say|start_char=2|end_char=5",
        "3|it|start_char=6|end_char=8", "4|né|start_char=9|end_char=12",
    )  # fmt: skip
    with pytest.raises(RecordError, match="the spans count bytes of UTF-8"):
        conllu_spans(record, "I say it né .")


@pytest.mark.parametrize("line", ["He  don't go 10. Yes!", "He  don't go 10.!"])
def test_text_behind_the_last_gold_word_is_refused(line):
    """It went to the last word without a remark."""
    record = conllu_record("1|He", "2-3|don't", "2|do", "3|n't", "4|go 10", "5|.")
    with pytest.raises(RecordError, match="the text goes on after the last word of the tree, with"):
        conllu_spans(record, line)


@pytest.mark.parametrize(
    ("text", "spans", "stretches"),
    [
        ("du chat. ", [(0, 2), (0, 2), (3, 7), (7, 8)], 0),
        ("Yes! du chat noir (?)", [(5, 7), (8, 12), (18, 19)], 3),
        (" ", [], 0),
    ],
)
def test_stretches_of_text_outside_all_spans(text, spans, stretches):
    assert stretches_outside(text, spans) == stretches


@pytest.mark.parametrize(
    ("words", "texts", "first", "remarks"),
    [
        (["a", "b", "("], ["a", "b", "-LRB-"], None, 0),
        (["A", "ﬁ", "½"], ["a", "fi", "1⁄2"], None, 0),
        (["``", "a", "''"], ['"', "a", '"'], None, 0),
        (["a", "b", "c", "d"], ["a", "b", "x", "y"], None, 2),
        (["a", "b", "c"], ["a", "x", "y"], 1, 0),
        (["a"], ["x"], None, 1),
    ],
)
def test_words_of_which_most_are_spelt_otherwise_are_named(words, texts, first, remarks):
    with remarks_of("f") as found:
        assert first_misspelt(words, texts, ELSEWHERE) == first
    assert sum(finding.times for finding in found.findings.values()) == remarks


def test_words_that_share_a_span_are_not_compared():
    check_spelling(["de", "le", "chat"], [(0, 2), (0, 2), (3, 7)], "du chat")
    with pytest.raises(
        RecordError, match="the word 'a' is not at 2:3 of the text, where 'b' stands"
    ):
        check_spelling(["a", "b"], [(2, 3), (4, 5)], "a b c")


def test_subwords_spell_their_word():
    assert text_of(["▁na", "<0xC3>", "<0xAF>", "ve"], "sentencepiece") == "naïve"
    assert text_of(["▁", "<0xC3>"], "sentencepiece") == "<0xC3>"
    assert text_of(["na@@", "ï@@", "ve"], "subword-nmt") == "naïve"


def test_spans_in_misc_come_first():
    record = conllu_record(
        "1|X|start_char=0|end_char=2", "2-3|du|start_char=3|end_char=5", "2|de", "3|le"
    )
    assert conllu_spans(record, "XX du") == [(0, 2), (3, 5), (3, 5)]
    plain = conllu_record("1|a.|a=1|start_char=0|end_char=2", "2|b.|start_char=3|end_char=5|b=2")
    assert conllu_spans(plain, "a. b.") == [(0, 2), (3, 5)]
    with pytest.raises(RecordError, match="the word has no start_char"):
        conllu_spans(conllu_record("1|a|start_char=0|end_char=1", "2|b"), "a c")


def test_where_a_word_lacks_its_span_words_are_sought_one_after_another():
    """Versions of stanza give none to a multi-word token of a single word."""
    record = conllu_record(
        '1|It"s|', "2|an|start_char=25|end_char=27", "3|a.|start_char=28|end_char=30"
    )
    assert conllu_spans(record, 'It"s an a.') == [(0, 4), (5, 7), (8, 10)]


def test_offsets_that_count_in_a_document_are_those_of_the_line():
    record = conllu_record(
        "1|I|start_char=21|end_char=22", "2-3|can't|start_char=23|end_char=28", "2|ca", "3|n't",
        "4|.|start_char=28|end_char=29",
    )  # fmt: skip
    assert conllu_spans(record, "I can't.") == [(0, 1), (2, 7), (2, 7), (7, 8)]
    assert conllu_spans(record, "  I can't.") == [(2, 3), (4, 9), (4, 9), (9, 10)]
    # They may lie inside the line by chance, and are still those of the document.
    late = conllu_record("1|go|start_char=3|end_char=5", "2|on|start_char=6|end_char=8")
    assert conllu_spans(late, "go on, all of you") == [(0, 2), (3, 5)]
    assert conllu_spans(late, "We go on") == [(3, 5), (6, 8)]
    with pytest.raises(
        RecordError, match="the word 'go' is not at 3:5 of the text, where 'y ' sta"
    ):
        conllu_spans(late, "Stay there")


def test_comments_and_lines_of_offsets():
    assert conllu_comment("# id = 3\n# text =  a b \n1\tx") == " a b "
    assert conllu_comment("# text =") == ""
    assert conllu_comment("1\t# text = a") is None
    assert line_spans("0:2 3:10") == [(0, 2), (3, 10)]
    with pytest.raises(RecordError, match="is not a list of START:END"):
        line_spans("0:2 3-10")
    assert conllu.parse(conllu_record("1|a", text="a")).labels == ("a",)


# --- SentencePiece on parts of a line ---------------------------------------------------------

TEXT = ["the cat sleeps on the mat.", "dogs don't bark (at cats) ; naïve", "1⁄2 of TM"] * 9


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def segmenter(request, tmp_path_factory) -> Segmenter:
    path = tmp_path_factory.mktemp("model") / "x.model"
    train_model(TEXT, 38, request.param, path, "x")
    return Segmenter(path)


letters = st.text(st.sampled_from("abctks.(½™ﬁ１ï \u00a0\u200b\u00ad▁你\x07"), max_size=20)


@settings(deadline=None, max_examples=300)
@given(text=letters, cuts=st.sets(st.integers(0, 20)))
def test_parts_spell_the_line_as_the_model_normalises_it(segmenter, text, cuts):
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(text)), len(text)]
    parts = [text[a:b] for a, b in pairwise(edges)]
    subwords = segmenter.segments(parts)
    spelled = "".join(subword for part in subwords for subword in part).replace("▁", " ")
    assert spelled.removeprefix(" ") == segmenter.normalised(text)[0].strip()
    assert [len(part) for part in segmenter.segments(parts)] == [len(part) for part in subwords]


def test_a_model_without_a_dummy_prefix_begins_without_a_space(tmp_path):
    import sentencepiece

    prefix = tmp_path / "m"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_prefix=str(prefix), vocab_size=36, minloglevel=2,
        add_dummy_prefix=False,
    )  # fmt: skip
    segmenter = Segmenter(f"{prefix}.model")
    assert "".join(segmenter.segments([" cat", " sat"])[0]) == "cat"

"""Pieces and words brought together by character offsets, and trees over merged words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import constituency_trees, dependency_trees

from treesyntax.data.binarize.alignment import (
    check_spans,
    group_pieces,
    group_units,
    segments,
    units,
)
from treesyntax.data.binarize.spelling import piece_places, raw_places
from treesyntax.data.sentencepiece import Segmenter, standard_normalised, train_model
from treesyntax.errors import TreeError
from treesyntax.trees.formats import conllu
from treesyntax.trees.formats.base import RecordError
from treesyntax.trees.formats.offsets import conllu_comment, conllu_spans, line_spans
from treesyntax.trees.merging import merge_words
from treesyntax.trees.tree import Tree

# --- groups --------------------------------------------------------------------------------


@st.composite
def lines_in_parts(draw):
    """Words and pieces of one line, both from left to right; words may share their place."""
    size = draw(st.integers(1, 14))

    def cuts(most):
        edges = sorted(draw(st.sets(st.integers(0, size), min_size=2, max_size=most)))
        spans = list(pairwise(edges))
        return [span for span in spans if draw(st.booleans())]

    spans = [span for span in cuts(9) for _ in range(draw(st.sampled_from([1, 1, 1, 2])))]
    return spans, cuts(9)


def slow_groups(spans, places):
    """By characters: owners of each piece, then sets of words that grow until nothing changes."""
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
    pieces = [f"p{i}" for i in range(len(places))]
    found = [tuple(group) for group in group_pieces(spans, pieces, places)]
    expected = slow_groups(spans, places)
    if pieces and not expected:
        expected = [(0, len(spans), pieces)]
    assert found == expected
    assert [piece for group in found for piece in group[2]] == pieces


def test_pieces_without_words_and_white_space_pieces():
    assert group_pieces([(2, 3)], ["▁", "a", "▁"], [None, (2, 3), None]) == [
        (0, 1, ["▁", "a", "▁"])
    ]
    assert group_pieces([(0, 1), (2, 3)], ["▁"], [None]) == [(0, 2, ["▁"])]
    assert group_pieces([], [], []) == []
    with pytest.raises(TreeError, match="the text has pieces, but the tree no words; parse"):
        group_pieces([], ["a"], [(0, 1)])


def test_words_of_one_token_are_one_unit():
    spans = [(0, 2), (0, 2), (3, 7), (7, 8)]
    assert units(spans) == [(0, 2), (2, 3), (3, 4)]
    assert segments("du chat. ", [(0, 2), (3, 7), (7, 8)]) == ["du", " chat", ". "]
    assert segments("", []) == []
    assert group_units([(0, 2), (2, 3)], [["du"], []]) == [(0, 2, ["du"])]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 1), (0, 3)], "word 2 stands at 0:3, which is not a place after 1 in a text of 6"),
        ([(0, 9)], "word 1 stands at 0:9, which is not a place after 0 in a text of 6"),
        ([(2, 2)], "word 1 stands at 2:2, which is not a place"),
        ([(0, 3)], "word 1 stands at 0:3, which begins or ends with a space; give the very text"),
    ],
)
def test_places_that_cannot_be_are_refused(spans, message):
    check_spans("ab cd.", [(0, 2), (0, 2), (3, 5), (5, 6)])
    with pytest.raises(TreeError, match=message):
        check_spans("ab cd.", spans)


# --- merging -------------------------------------------------------------------------------


@st.composite
def grouped(draw, trees):
    """A tree and groups of its words; some words are in none, but never all."""
    tree = draw(trees)
    size = len(tree.word_nodes())
    edges = sorted(draw(st.sets(st.integers(0, size))) | {0, size})
    groups = [pair for pair in pairwise(edges) if draw(st.integers(0, 3))]
    return tree, groups or [(0, size)]


def ancestors(heads, word):
    """The words above a word, nearest first."""
    found = []
    while heads[word]:
        word = heads[word] - 1
        found.append(word)
    return found


def slow_heads(heads, groups):
    group_of = {word: g for g, (first, end) in enumerate(groups) for word in range(first, end)}
    found = []
    for first, end in groups:
        top = min(range(first, end), key=lambda word: (len(ancestors(heads, word)), word))
        found.append(next((group_of[a] + 1 for a in ancestors(heads, top) if a in group_of), 0))
    root = found.index(0)
    return [0 if g == root else head or root + 1 for g, head in enumerate(found)]


@settings(deadline=None, max_examples=400)
@given(grouped(dependency_trees().filter(len)))
def test_merged_dependency_trees_are_what_their_definition_says(case):
    tree, groups = case
    forms = [f"g{i}" for i in range(len(groups))]
    merged = merge_words(tree, groups, forms)
    if merged is tree:
        assert groups == [(i, i + 1) for i in range(len(tree))]
        return
    assert merged.heads() == slow_heads(tree.heads(), groups)
    assert merged == Tree.from_heads(merged.heads(), forms, [merged.relations[n] for n in merged.word_nodes()] if merged.relations else ())  # fmt: skip


def slow_prune(tree, node, kept, children):
    """The bracketing without the words that are not kept; None where nothing is left."""
    if tree.words[node] >= 0:
        return kept.get(int(tree.words[node]))
    parts = [slow_prune(tree, child, kept, children) for child in children[node]]
    parts = [part for part in parts if part]
    return f"({tree.labels[node]} {' '.join(parts)})" if parts else None


def brackets(tree, node, children):
    if not children[node]:
        return tree.labels[node]
    inner = " ".join(brackets(tree, child, children) for child in children[node])
    return f"({tree.labels[node]} {inner})"


def words_at_all_leaves(tree):
    return tree.leaves == tree.word_nodes() and len(tree) > 1


@settings(deadline=None, max_examples=300)
@given(grouped(constituency_trees().filter(words_at_all_leaves)))
def test_merged_constituency_trees_are_what_their_definition_says(case):
    tree, groups = case
    forms = [f"g{i}" for i in range(len(groups))]
    merged = merge_words(tree, groups, forms)
    if merged is tree:
        return
    kept = {first: form for (first, _), form in zip(groups, forms, strict=True)}
    expected = slow_prune(tree, 0, kept, tree.children())
    assert brackets(merged, 0, merged.children()) == expected
    assert [merged.labels[node] for node in merged.word_nodes()] == forms


def test_the_leftmost_member_with_a_head_outside_would_make_a_cycle():
    # a <- c, c <- b, b is the root: with a and b merged, a's head c hangs below the group itself.
    tree = Tree.from_heads([3, 0, 2], ["a", "b", "c"], ["x", "root", "y"])
    merged = merge_words(tree, [(0, 2), (2, 3)], ["ab", "c"])
    assert merged.heads() == [0, 1]
    assert merged.relations == ("root", "y")


def test_a_removed_root_leaves_its_place_to_its_first_dependent():
    tree = Tree.from_heads([2, 0, 2, 3], ["a", "b", "c", "d"])
    assert merge_words(tree, [(0, 1), (2, 3), (3, 4)], ["a", "c", "d"]).heads() == [0, 1, 2]


def test_long_chains_merge():
    size = 10_000
    chain = Tree.from_heads(range(size), ["w"] * size)
    groups = [(i, i + 2) for i in range(0, size, 2)]
    assert merge_words(chain, groups, ["w"] * len(groups)).heads() == list(range(size // 2))
    assert merge_words(chain, [(size - 1, size)], ["w"]).heads() == [0]
    spine = Tree([*range(-1, size - 1), size - 2], ["X"] * (size + 1), [-1] * (size - 1) + [0, 1])
    assert len(merge_words(spine, [(0, 2)], ["w"])) == size


def test_other_trees_cannot_be_merged():
    tree = Tree([-1, 0, 1], ["X", "a", "b"], [-1, 0, 1])
    assert merge_words(tree, [(0, 1), (1, 2)], ["a", "b"]) is tree
    with pytest.raises(TreeError, match="neither a dependency tree nor has all its words at its"):
        merge_words(tree, [(0, 2)], ["ab"])


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
def test_pieces_find_their_places(line, text, style, places):
    assert piece_places(line.split(), text, style) == places


def test_pieces_of_another_text_are_refused():
    with pytest.raises(TreeError, match="'ca@@' is not at character 4 of the text, where 'dog'"):
        piece_places(["the", "ca@@", "t"], "the dog", "subword-nmt")
    with pytest.raises(TreeError, match="the pieces end before 'dog' at character 4 of the text"):
        piece_places(["the"], "the dog", "subword-nmt")


def test_places_in_the_normalised_line_are_places_in_the_raw_one():
    text = "ﬁ  ½™ e\N{COMBINING ACUTE ACCENT}t \N{ZERO WIDTH SPACE}１"
    normal, origins = standard_normalised(text)
    assert normal.strip() == "fi 1⁄2TM ét 1"
    pieces = ["▁f", "i", "▁1", "⁄", "2", "TM", "▁é", "t", "▁1"]
    places = raw_places(piece_places(pieces, normal, "sentencepiece"), origins)
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


def test_places_in_misc_come_first():
    record = conllu_record(
        "1|X|start_char=0|end_char=2", "2-3|du|start_char=3|end_char=5", "2|de", "3|le"
    )
    assert conllu_spans(record, "whatever") == [(0, 2), (3, 5), (3, 5)]
    plain = conllu_record("1|a|a=1|start_char=0|end_char=2", "2|b|start_char=3|end_char=5|b=2")
    assert conllu_spans(plain, "whatever") == [(0, 2), (3, 5)]
    with pytest.raises(RecordError, match="the word has no start_char"):
        conllu_spans(conllu_record("1|a|start_char=0|end_char=1", "2|b"), "a b")


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
    pieces = segmenter.segments(parts)
    spelled = "".join(piece for part in pieces for piece in part).replace("▁", " ")
    assert spelled.removeprefix(" ") == segmenter.normalised(text)[0].strip()
    assert [len(part) for part in segmenter.segments(parts)] == [len(part) for part in pieces]


def test_a_model_without_a_dummy_prefix_begins_without_a_space(tmp_path):
    import sentencepiece

    prefix = tmp_path / "m"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_prefix=str(prefix), vocab_size=36, minloglevel=2,
        add_dummy_prefix=False,
    )  # fmt: skip
    segmenter = Segmenter(f"{prefix}.model")
    assert "".join(segmenter.segments([" cat", " sat"])[0]) == "cat"

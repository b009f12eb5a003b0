"""Everything around parsers that needs no parser: lines, joins, flat trees, texts, the registry."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from support.fake_parser import KINDS, FakeParser
from support.parser_fixtures import hostile_lines

from treesyntax.errors import OptionError
from treesyntax.parsers.cases import Cases, cases_of, strict_cases, total
from treesyntax.parsers.halving import BATCH_WORDS, ParseFailure, batches, in_halves
from treesyntax.parsers.joining import (
    flat_constituents,
    flat_dependencies,
    join_constituents,
    join_dependencies,
)
from treesyntax.parsers.parser import ParsedSentence
from treesyntax.parsers.policy import EMPTY, FAILED, JOINED, TOO_LONG, parse_lines
from treesyntax.parsers.progress_bar import shown
from treesyntax.parsers.record_text import conllu_text, offsets_text, ptb_text, read_offsets
from treesyntax.parsers.workers import _visible_devices
from treesyntax.trees.formats import ptb, read_trees
from treesyntax.trees.tree import Tree

FAKE = {name: FakeParser(kind, 0) for name, kind in KINDS.items()}


def parsed_by(name: str, lines: list[str], max_words: int = 20):
    return parse_lines(FAKE[name], lines, name == "fake-dep", max_words)


LINES = ["a b c", "", " \u3000", "one two. three four.", "x " * 21, "a BAD b", "SPLIT", "z"]
CASES = ["", EMPTY, EMPTY, JOINED, TOO_LONG, FAILED, FAILED, ""]


@pytest.mark.parametrize("name", ["fake-dep", "fake-con"])
def test_every_line_gives_a_record_with_its_case(name):
    parsed = parsed_by(name, LINES)
    assert [result.case for result in parsed] == CASES
    for line, result in zip(LINES, parsed, strict=True):
        assert [line[a:b] for a, b in result.spans] == line.split()
        nodes = result.tree.word_nodes()
        assert [result.tree.labels[node] for node in nodes] == line.split()
    assert parsed[5].reason == "ValueError: bad word in two lines"
    assert parsed[6].reason == "RuntimeError: cannot split"


class OneCharacterAWord(FakeParser):
    """As for Chinese: white space says little of words."""

    def _split(self, line: str) -> list[ParsedSentence]:
        places = [place for place, letter in enumerate(line) if not letter.isspace()]
        spans = tuple((place, place + 1) for place in places)
        return [ParsedSentence(tuple(line[place] for place in places), spans)]

    def _parse(self, words):
        if "B" in words:
            raise ValueError("bad")
        return super()._parse(words)


@pytest.mark.parametrize("name", ["fake-dep", "fake-con"])
def test_a_flat_tree_has_the_words_of_the_parser_as_other_trees_do(name):
    """Else a line without spaces would be one word, and a full stop a part of the last one."""
    parser = OneCharacterAWord(KINDS[name], 0)
    lines = ["x" * 21, "aBc.", "ab"]
    parsed = parse_lines(parser, lines, name == "fake-dep", 20)
    assert [result.case for result in parsed] == [TOO_LONG, FAILED, ""]
    for line, result in zip(lines, parsed, strict=True):
        tree = result.tree
        assert [line[a:b] for a, b in result.spans] == list(line)
        assert [tree.labels[node] for node in tree.word_nodes()] == list(line)


def test_a_word_that_is_longer_than_a_sentence_may_be_is_not_given_to_the_parser():
    """A parser splits off each of a hundred thousand brackets in a row, for hours."""
    limit = 20 * 20
    lines = ["(" * limit, "(" * (limit + 1), f"a {'x' * (limit + 1)} b"]
    parsed = parsed_by("fake-con", lines)
    assert [result.case for result in parsed] == ["", TOO_LONG, TOO_LONG]
    assert [len(result.spans) for result in parsed] == [1, 1, 3]


def test_flat_and_joined_dependency_trees():
    parsed = parsed_by("fake-dep", LINES)
    assert parsed[3].tree.heads() == [0, 1, 1, 3]
    nodes = parsed[3].tree.word_nodes()
    relations = [parsed[3].tree.relations[node] for node in nodes]
    assert relations == ["root", "dep", "parataxis", "dep"]
    assert parsed[5].tree.heads() == [0, 1, 1]
    assert set(parsed[5].tree.relations) == {"root", "dep"}


def test_flat_and_joined_constituency_trees():
    texts = [ptb_text(result.tree) for result in parsed_by("fake-con", LINES)]
    assert texts[0] == "(TOP (X a (X b (X c))))"
    assert texts[1] == ""
    assert texts[3] == "(TOP (X one (X two.)) (X three (X four.)))"
    assert texts[5] == "(TOP (XX a) (XX BAD) (XX b))"


def test_a_root_that_says_something_stays_below_top():
    tree = join_constituents([ptb.parse("(S (X a))"), ptb.parse("(ROOT (S (X b) (X c)))")])
    assert ptb_text(tree) == "(TOP (S (X a)) (S (X b) (X c)))"
    assert tree.words[tree.word_nodes()].tolist() == [0, 1, 2]


@given(st.lists(st.sampled_from(["(S (A a) (B b))", "(ROOT (A (B c)))", "(X d)"]), min_size=1))
@settings(deadline=None, max_examples=40)
def test_joining_keeps_every_word_and_bracket(texts):
    joined = ptb_text(join_constituents([ptb.parse(text) for text in texts]))
    inner = [text[6:-1] if text.startswith("(ROOT") else text for text in texts]
    assert joined == f"(TOP {' '.join(inner)})"


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
@settings(deadline=None, max_examples=40)
def test_joined_dependency_trees_have_one_root(sizes):
    parts = [Tree.from_heads(range(n), "x" * n, "r" * n) for n in sizes]
    heads = join_dependencies(parts).heads()
    assert heads.count(0) == 1
    assert len(heads) == sum(sizes)
    assert heads[0] == 0
    assert sum(head == 1 for head in heads) == len(sizes) - 1 + (sizes[0] > 1)


def test_flat_trees_of_one_word():
    assert ptb_text(flat_constituents(["w"])) == "(TOP (XX w))"
    assert flat_dependencies(["w"]).heads() == [0]


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        (ParsedSentence(("a",), ((0, 99),)), "do not fit the line"),
        (ParsedSentence((), ()), "no words"),
    ],
)
def test_words_that_a_splitter_invents_or_loses_are_a_failure(sentence, reason):
    parser = FakeParser(KINDS["fake-con"], 0)
    parser.split = lambda lines: [[sentence] for _ in lines]
    (result,) = parse_lines(parser, ["\u200b"], False, 9)
    assert (result.case, result.spans) == (FAILED, ((0, 1),))
    assert ptb_text(result.tree) == "(TOP (XX \u200b))"
    assert reason in result.reason


def test_white_space_that_a_splitter_takes_for_a_word_is_none():
    parser = FakeParser(KINDS["fake-dep"], 0)
    parser.split = lambda lines: [
        [
            ParsedSentence(("\x85",), ((0, 1),)),
            ParsedSentence(("a", "\x85", "b"), ((1, 2), (2, 3), (3, 4))),
        ]
    ]
    (result,) = parse_lines(parser, ["\x85a\x85b"], True, 100)
    assert result.tree.labels == ("a", "b")
    assert result.spans == ((1, 2), (3, 4))


def test_a_tree_with_other_words_is_a_failure():
    class Forgetful(FakeParser):
        def parse(self, sentences):
            return [[flat_dependencies(["w"])] for _ in sentences]

    results = parse_lines(Forgetful(KINDS["fake-dep"], 0), ["a", "a b"], True, 9)
    assert [result.case for result in results] == ["", FAILED]


@given(st.lists(st.booleans(), max_size=40))
@settings(deadline=None, max_examples=60)
def test_halving_finds_exactly_the_items_that_fail(good):
    calls = []

    def function(items):
        calls.append(len(items))
        if not all(good[item] for item in items):
            raise ValueError("no")
        return [item * 10 for item in items]

    results = in_halves(function, list(range(len(good))))
    wanted = [i * 10 if ok else ParseFailure("ValueError: no") for i, ok in enumerate(good)]
    assert results == wanted
    bad = good.count(False)
    assert len(calls) <= 1 + 2 * bad * 7


@given(st.lists(st.integers(1, BATCH_WORDS * 2), max_size=30))
@settings(deadline=None, max_examples=60)
def test_batches_are_consecutive_full_and_not_too_large(costs):
    found = list(batches(range(len(costs)), costs))
    assert [i for batch in found for i in batch] == list(range(len(costs)))
    sums = [sum(costs[i] for i in batch) for batch in found]
    assert all(s <= BATCH_WORDS or len(b) == 1 for s, b in zip(sums, found, strict=True))
    for batch, following in pairwise(found):
        assert sum(costs[i] for i in batch) + costs[following[0]] > BATCH_WORDS


def test_sentences_are_parsed_in_order_of_length():
    seen = []

    class Watcher(FakeParser):
        def parse(self, sentences):
            seen.extend(len(sentence.words) for sentence in sentences)
            return super().parse(sentences)

    lines = ["a b c", "a", "a b", "a b c d", "a"]
    results = parse_lines(Watcher(KINDS["fake-dep"], 0), lines, True, 9)
    assert seen == [1, 1, 2, 3, 4]
    assert [len(result.tree) for result in results] == [3, 1, 2, 4, 1]


@pytest.mark.parametrize("name", ["fake-dep", "fake-con"])
def test_hostile_lines_stay_aligned(name, tmp_path):
    lines = hostile_lines(1000, 1)
    assert sum(not line.split() for line in lines) > 50
    assert max(len(line.split()) for line in lines) == 5000
    assert not any("\n" in line or "\r" in line for line in lines)
    parsed = parsed_by(name, lines, 150)
    file = tmp_path / "out"
    if name == "fake-dep":
        texts = [conllu_text(line, p.tree, p.spans) for line, p in zip(lines, parsed, strict=True)]
        file.write_text("".join(text + "\n\n" for text in texts), encoding="utf-8", newline="\n")
    else:
        texts = [ptb_text(p.tree) for p in parsed]
        file.write_text("".join(text + "\n" for text in texts), encoding="utf-8", newline="\n")
        offsets = "".join(offsets_text(p.spans) + "\n" for p in parsed)
        (tmp_path / "out.offsets").write_text(offsets)
    notation = KINDS[name].notation
    read = list(read_trees(file, notation))
    places = list(read_offsets(file, notation))
    assert len(read) == len(places) == len(lines)
    for line, tree, spans in zip(lines, read, places, strict=True):
        assert [line[a:b] for a, b in spans] == line.split()
        assert len(tree.word_nodes()) == len(spans)
    assert {p.case for p in parsed} >= {"", EMPTY, TOO_LONG}


def test_cases_add_up_over_shards_and_survive_json():
    parsed = parsed_by("fake-dep", LINES)
    whole = cases_of(1, parsed).to_dict()
    parts = [cases_of(1, parsed[:3]), cases_of(4, parsed[3:])]
    again = [Cases.from_dict(part.to_dict()) for part in parts]
    assert total(again).to_dict() == whole
    assert whole["cases"][EMPTY] == {"count": 2, "first_lines": [2, 3]}
    assert whole["cases"][FAILED]["first_lines"] == [6, 7]
    assert (whole["lines"], whole["words"]) == (8, sum(len(line.split()) for line in LINES))
    assert sum(whole["reasons"].values()) == 2


def test_a_report_lists_only_the_first_lines_of_a_case():
    cases = total(cases_of(i * 80 + 1, parsed_by("fake-dep", [""] * 80)) for i in range(3))
    entry = cases.to_dict()["cases"][EMPTY]
    assert entry == {"count": 240, "first_lines": list(range(1, 101))}


def test_strict_is_a_list_of_cases():
    assert strict_cases(None) == ()
    assert strict_cases("") == (TOO_LONG, FAILED)
    assert strict_cases("empty,several_sentences") == (EMPTY, JOINED)
    with pytest.raises(
        OptionError, match=r"no case is named 'in.txt'; there are empty, several_sentences"
    ):
        strict_cases("in.txt")


def test_progress_has_speed_and_time_left_on_a_terminal_only():
    screen = io.StringIO()
    with shown(1000, 200, Console(file=screen, force_terminal=True, width=100)) as advance:
        advance(300)
    assert "500 of 1,000 lines" in screen.getvalue()
    plain = io.StringIO()
    with shown(10, 0, Console(file=plain)) as advance:
        advance(10)
    assert not plain.getvalue()


def test_a_process_for_each_visible_gpu(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert _visible_devices(2) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,7")
    assert _visible_devices(2) == ["3", "5"]
    with pytest.raises(Exception, match="--gpus is 4, but CUDA_VISIBLE_DEVICES is '3,5,7'"):
        _visible_devices(4)


def test_no_parser_is_imported_before_it_is_used():
    code = (
        "import sys, treesyntax.commands.parse;"
        "print([m for m in ('stanza', 'benepar', 'spacy', 'torch', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

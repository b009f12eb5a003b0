"""Brackets read many at once give what the same lines give one after another, faults too."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.binarize_helpers import check, outcome

from treesyntax.data.binarize.columns import encode_usual
from treesyntax.data.binarize.encode import Batch, Encoding, encode_batch
from treesyntax.data.binarize.records import Records
from treesyntax.data.binarize.sentence import encode_one_by_one
from treesyntax.data.sentencepiece import train_model
from treesyntax.trees.formats import ptb, ptb_columns
from treesyntax.trees.formats.base import Record
from treesyntax.trees.subwords import POLICIES

LABELS = ["NP", "VP", "S", "-NONE-", "NP-SBJ=1", "É", "(", "a\u00a0b", "\\x", ")", "$"]
WORDS = ["the", "cat", "unbelievably", ".", "-LRB-", "a-RRB-b", "½-ton", "naïve", "猫は", "\\", "x\u00a0y",
         "\u200b", "NP", "🙂", "\\-LRB-"]  # fmt: skip
LINEARIZATIONS = ["words", "preorder", "breadth_first", "bracketed", "nary_dfs"]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path | None]:
    folder = tmp_path_factory.mktemp("models")
    source = random.Random(0)
    lines = [" ".join(source.choices([*WORDS, "(", ")"], k=8)) for _ in range(200)]
    train_model(lines, 48, "unigram", folder / "unigram", "x")
    train_model(lines, 48, "bpe", folder / "bpe", "x")
    return {"none": None, "unigram": folder / "unigram", "bpe": folder / "bpe"}


def random_line(source: random.Random, faults: float) -> tuple[str, list[str]]:
    """A tree in brackets and its words; oddly spaced or at fault now and then."""
    words: list[str] = []

    def space() -> str:
        return source.choice(["\t", "  ", " \x0b"]) if source.random() < faults else " "

    def node(depth: int) -> str:
        common = source.random() >= faults
        label = source.choice(LABELS[:6] if common else [*LABELS, ""])
        inside = space() if source.random() < faults else ""
        if depth == 4 or source.random() < 0.3:
            children = source.choices(WORDS[:9] if common else WORDS, k=source.choice([1, 1, 2]))
            words.extend(children)
        else:
            children = [node(depth + 1) for _ in range(source.choice([1, 2, 2, 3]))]
        return f"({inside}{label}{space()}{space().join(children)})"

    text = node(0)
    if source.random() < faults:
        text = source.choice(
            ["", " ", f"({text})", f"( {text} )", f"( ( {text} ))", f"( {text} (X y))", text[:-1],
             f"{text})", f"{text} {text}", "x", f"(X x {text} y)", "(X)", "( X y)", ")", "("]
        )  # fmt: skip
    return text, words


def with_text(source: random.Random, words: list[str], faults: float) -> tuple[str, str]:
    """A raw line and the places of the words in it."""
    line, places = source.choice(["", "", " "]), []
    for word in words:
        form = ptb._unescaped(word)
        line += source.choice([" ", " ", "", "  "]) if places else ""
        places.append(f"{len(line)}:{len(line) + len(form)}")
        line += form
    offsets = " ".join(places)
    if source.random() < faults:
        offsets = source.choice(
            ["", "x", offsets + " ", "  ".join(places), " ".join(places[1:]), offsets + " 1:2",
             offsets.replace(":", "-"), "0:0", "1234567:2", offsets + ":", "٣:٤"]
        )  # fmt: skip
    return line + source.choice(["", "", " "]), offsets


def random_batch(source: random.Random, faults: float, placed: bool) -> Batch:
    trees = [random_line(source, faults) for _ in range(24)]
    records = [Record(number, text) for number, (text, _) in enumerate(trees, start=1)]
    if not placed:
        return Batch(Path("x.ptb"), Records.of(records))
    lines = [with_text(source, words, faults) for _, words in trees]
    offsets = [Record(number, line) for number, (_, line) in enumerate(lines, start=1)]
    return Batch(
        Path("x.ptb"), Records.of(records), text=[line for line, _ in lines],
        offsets_path=Path("x.ptb.offsets"), offsets=Records.of(offsets),
    )  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0, 0.003, 0.01, 0.1]),
    st.sampled_from(["none", "unigram", "bpe"]),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(LINEARIZATIONS),
    st.sampled_from(["", "token"]),
)
def test_random_lines_give_the_same_integers_or_the_same_fault(
    models, seed, faults, model, policy, linearization, units
):
    batch = random_batch(random.Random(seed), faults, bool(units))
    check(
        Encoding("ptb", linearization, policy, "sentencepiece", models[model], units=units), batch
    )


@pytest.mark.parametrize("linearization", LINEARIZATIONS[:-1])
@pytest.mark.parametrize("units", ["", "token"])
def test_usual_lines_are_read_so(models, linearization, units):
    source = random.Random(3)
    batch = random_batch(source, 0, bool(units))
    encoding = Encoding(
        "ptb", linearization, "siblings", "sentencepiece", models["bpe"], units=units
    )
    found = encode_usual(encoding, batch)
    assert found is not None
    usual = 24 if not units else 12
    assert found[2].sum() >= usual


ALONE = ["", " ", "x", "(", ")", "(X)", "(X a", "(X a))", "(X a) (Y b)", "x (X a)", "(X a) x", "( a)",
         "( NP a)", "((NP a))", "( (NP a) )", "(((NP a)))", "( (NP a) (NP b))", "( (NP a) b)", "((NP) a)",
         "(X ( a))", "(X (NP a) () )", "(X\ta)", "(X a\x85b)", "(X\x1c a)", "(X -LRB-a-RCB-)", "(X a)\n",
         "(X\u00a0a b)", "(X  ( Y b))", "(X(Y b)c)", "(X (Y b)c(Z d))", "(X 猫)", "(-LRB- a)"]  # fmt: skip


@pytest.mark.parametrize("line", ALONE)
@pytest.mark.parametrize("linearization", LINEARIZATIONS)
def test_an_unusual_line_among_others(line, linearization):
    texts = ["(S (A a) (B b))"] * 9 + [line] + ["(S c (A a))"] * 9
    records = [Record(number, text) for number, text in enumerate(texts, start=1)]
    check(
        Encoding("ptb", linearization, "copy", "sentencepiece"),
        Batch(Path("x"), Records.of(records)),
    )


def test_a_fault_is_told_with_its_line():
    records = [Record(number, "(S (A a) (B b))") for number in range(1, 31)]
    records[19] = Record(20, "(S (A a) (B b)")
    encoding, batch = (
        Encoding("ptb", "words", "copy", "sentencepiece"),
        Batch(Path("x"), Records.of(records)),
    )
    told = outcome(encode_batch, encoding, batch)
    assert told == outcome(encode_one_by_one, encoding, batch)
    assert told.startswith("x:20: 1 bracket is still open at the end; ")


def test_long_chains_are_no_problem(models):
    deep = "(X " * 10_000 + "unbelievably" + ")" * 10_000
    records = [Record(number, deep) for number in range(1, 17)]
    assert ptb_columns.read([deep]).depths.tolist() == list(range(10_001))
    for linearization in ("words", "bracketed"):
        encoding = Encoding("ptb", linearization, "chain", "sentencepiece", models["bpe"])
        check(encoding, Batch(Path("x"), Records.of(records)))

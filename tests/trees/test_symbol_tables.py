"""Symbols that say the slots of their nodes: slot tables, dictionaries, binarized data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from fairseq.data import Dictionary as FairseqDictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.__main__ import main
from treesyntax.data.dictionary import UNK, UNKNOWN, Dictionary, unknown_symbol
from treesyntax.data.tree_store import TreeStore
from treesyntax.errors import TreeError
from treesyntax.trees.formats import read_trees
from treesyntax.trees.linearizations import LINEARIZATIONS
from treesyntax.trees.symbols import annotate, slot_table, split_symbol

NAMES = ("nary_dfs", "nary_bfs", "lcrs_dfs", "lcrs_bfs")


@pytest.mark.parametrize(
    ("symbol", "label", "slots"),
    [
        ("lambda/3", "lambda", (0, 1, 2)), ("ci0/0", "ci0", ()), ("a/b/1", "a/b", (0,)),
        ("x/L", "x", (0,)), ("x/R", "x", (1,)), ("x/LR", "x", (0, 1)), ("//0", "/", ()),
        ("<unk>/2", "<unk>", (0, 1)), ("</s>/0", "</s>", ()),
    ],
)  # fmt: skip
def test_symbols_of_nodes(symbol, label, slots):
    found, own = split_symbol(symbol)
    assert (found, tuple(own)) == (label, slots)
    assert annotate(label, slots, binary=symbol[-1] in "LR") == symbol
    assert unknown_symbol(symbol) == f"<unk>/{symbol.rpartition('/')[2]}"


NO_NODES = [
    "<s>", "<pad>", "</s>", "<unk>", "madeupword0000", "foo", "foo/", "/2", "", "foo/02", "foo/²",
    "foo/١", "foo/10001", "foo/" + "9" * 5000, "foo/RL", "foo/l", " /0", "a b/0",
]  # fmt: skip


@pytest.mark.parametrize("symbol", NO_NODES, ids=range(len(NO_NODES)))
def test_symbols_of_no_node(symbol):
    assert split_symbol(symbol) is None
    assert unknown_symbol(symbol) == "<unk>"


def test_a_table_of_slots():
    counts, branches = slot_table(["<s>", "f/3", "<unk>/2", "x/R", "y/LR", "z/0", "w/L"])
    assert counts.dtype == branches.dtype == np.int64
    assert counts.tolist() == [-1, 3, 2, 1, 2, 0, 1]
    assert branches.tolist() == [
        [-1, -1, -1], [0, 1, 2], [0, 1, -1], [1, -1, -1], [0, 1, -1], [-1, -1, -1], [0, -1, -1],
    ]  # fmt: skip


@pytest.mark.parametrize("symbols", [NO_NODES, ["a/0"], []])
def test_a_table_has_a_column_in_any_case(symbols):
    counts, branches = slot_table(symbols)
    assert counts.shape == (len(symbols),)
    assert branches.shape == (len(symbols), 1)
    assert (branches == -1).all()


def test_a_table_that_would_fill_the_memory_is_refused():
    with pytest.raises(TreeError, match="^9001 symbols with up to 10000 slots are too many for a"):
        slot_table(["a/10000"] + [f"b{n}/0" for n in range(9_000)])


# Dictionaries

COUNTS = {"f/2": 9, "g/2": 1, "h/2": 1, "a/0": 7, "b/0": 2, "<unk>/0": 3, "k/1": 5, "m/LR": 1}


def lines(dictionary: Dictionary) -> list[tuple[str, int]]:
    return list(zip(dictionary.symbols, dictionary.counts, strict=True))[4:]


def test_rare_symbols_become_the_unknown_ones_of_their_slots():
    dictionary = Dictionary.build(COUNTS, threshold=2, unknown_of=unknown_symbol)
    assert lines(dictionary) == [
        ("f/2", 9), ("a/0", 7), ("k/1", 5), ("b/0", 2),
        ("<unk>/0", 3), ("<unk>/2", 2), ("<unk>/LR", 1), ("<unk>/1", 0),
        *((f"madeupword000{n}", 0) for n in range(4)),
    ]  # fmt: skip
    ids = {symbol: number for number, (symbol, _) in enumerate(lines(dictionary), start=4)}
    wanted = {
        "f/2": "f/2", "g/2": "<unk>/2", "new/2": "<unk>/2", "m/LR": "<unk>/LR", "z/1": "<unk>/1",
        "<unk>/0": "<unk>/0",
    }  # fmt: skip
    for symbol, stand_in in wanted.items():
        assert dictionary.index(symbol) == ids[stand_in]
    for symbol in ("new/3", "new", "<s>", "</s>", "<unk>", "madeupword0000/R"):
        assert dictionary.index(symbol) == UNK
    unknown = [s for s in ids if s.startswith("<unk>")]
    assert dictionary.unknown_ids == [UNK, *(ids[symbol] for symbol in unknown)]


def test_the_size_counts_the_unknown_symbols():
    dictionary = Dictionary.build(COUNTS, size=10, unknown_of=unknown_symbol)
    assert [symbol for symbol, _ in lines(dictionary)[:6]] == [
        "f/2", "a/0", "<unk>/0", "<unk>/1", "<unk>/2", "<unk>/LR",
    ]  # fmt: skip
    assert dict(lines(dictionary))["<unk>/1"] == 5
    smallest = Dictionary.build(COUNTS, size=1, unknown_of=unknown_symbol)
    assert len(smallest) == 8
    assert sum(smallest.counts) == sum(COUNTS.values())


def test_a_written_dictionary_is_read_back_by_us_and_by_fairseq(tmp_path):
    dictionary = Dictionary.build(COUNTS, threshold=2, unknown_of=unknown_symbol)
    dictionary.write(tmp_path / "dict.lf.txt")
    again = Dictionary.read(tmp_path / "dict.lf.txt", unknown_symbol)
    assert lines(again) == lines(dictionary)
    assert again.unknown_ids == dictionary.unknown_ids
    assert again.index("new/2") == dictionary.index("new/2") != UNK
    fairseqs = FairseqDictionary.load(str(tmp_path / "dict.lf.txt"))
    assert fairseqs.symbols == dictionary.symbols
    assert fairseqs.count[4:] == dictionary.counts[4:]


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.sampled_from([*COUNTS, "x", "<s>", "\udc80/2"]), st.integers(1, 9)))
def test_no_count_is_lost_and_other_dictionaries_do_not_change(counts):
    dictionary = Dictionary.build(counts, 3, unknown_of=unknown_symbol)
    lost = sum(n for s, n in counts.items() if dictionary.index(s) == UNK)
    assert sum(dictionary.counts) == sum(counts.values()) - lost
    assert {s for s in counts if dictionary.index(s) == UNK} <= {"x", "<s>"}
    plain = Dictionary.build(counts, 3)
    assert plain.unknown_ids == [UNK]
    kept = {s: n for s, n in counts.items() if n >= 3 and s not in ("<s>", "\udc80/2")}
    assert {s: n for s, n in lines(plain) if n} == kept
    assert all(plain.index(s) == UNK for s in counts if s not in kept)


# Files to files

FORMS = [
    "( lambda $0 e ( and ( flight $0 ) ( from $0 ci0 ) ) )",
    "( lambda $0 e ( and ( flight $0 ) ( to $0 ci1 ) ) )",
    "( count $0 ( and/or ( flight $0 ) ( day $0 da0 ) ) )",
]
RARE = "( lambda $0 e ( airport $0 ci9 ci0 ) )"


def binarize(tmp_path: Path, *options: str) -> int:
    for name, texts in {"train": FORMS * 2, "test": [*FORMS[:1], RARE]}.items():
        (tmp_path / f"{name}.lf").write_text("\n".join(texts) + "\n")
        (tmp_path / f"{name}.en").write_text("show flights\n" * len(texts))
    arguments = ["binarize", str(tmp_path / "bin"), "--source-lang", "en", "--target-lang", "lf"]
    for name in ("train", "test"):
        arguments += [f"--{name}", str(tmp_path / f"{name}.en"), str(tmp_path / f"{name}.lf")]
    return main([*arguments, "--target-format", "sexpr", "--workers", "1", *options])


def tokens_of(tmp_path: Path, split: str) -> list[list[str]]:
    dictionary = FairseqDictionary.load(str(tmp_path / "bin" / "dict.lf.txt"))
    data = MMapIndexedDataset(str(tmp_path / "bin" / f"{split}.en-lf.lf"))
    return [[dictionary[token] for token in data[i].tolist()[:-1]] for i in range(len(data))]


@pytest.mark.parametrize("name", NAMES)
def test_binarized_trees_grow_back(tmp_path, name):
    assert binarize(tmp_path, "--target-linearization", name) == 0
    trees = list(read_trees(tmp_path / "train.lf", "sexpr"))
    found = tokens_of(tmp_path, "train")
    assert [LINEARIZATIONS[name].tree(tokens) for tokens in found] == trees
    store = TreeStore(tmp_path / "bin" / "train.en-lf.lf.tree")
    for number, tree in enumerate(trees):
        assert store[number].token_nodes.tolist() == LINEARIZATIONS[name].token_nodes(tree)
    # Unknown nodes keep their slots, so the tree keeps its shape.
    rare = next(read_trees(_file(tmp_path, RARE), "sexpr"))
    unknown = LINEARIZATIONS[name].tree(tokens_of(tmp_path, "test")[1])
    assert unknown.parents.tolist() == rare.parents.tolist()
    assert Counter(unknown.labels)["<unk>"] >= 2


def _file(tmp_path: Path, text: str) -> Path:
    (tmp_path / "one.lf").write_text(text + "\n")
    return tmp_path / "one.lf"


def test_thresholds_leave_unknown_symbols_that_count_as_unknown(tmp_path):
    assert binarize(tmp_path, "--target-linearization", "nary_dfs", "--target-threshold", "3") == 0
    first, rare = tokens_of(tmp_path, "test")
    assert " ".join(first) == "lambda/3 $0/0 e/0 and/2 flight/1 $0/0 <unk>/2 $0/0 <unk>/0"
    # No node of the training data has the symbol airport/3, but lambda/3 has its slots.
    assert " ".join(rare) == "lambda/3 $0/0 e/0 <unk>/3 $0/0 <unk>/0 <unk>/0"
    splits = json.loads((tmp_path / "bin" / "binarize.json").read_text())["splits"]
    assert splits["test"]["lf"]["unknown"] == 5
    assert splits["test"]["lf"]["unknown_rate"] == round(5 / 16, 6)
    assert splits["test"]["en"]["unknown"] == 0
    dictionary = dict(
        line.rsplit(" ", 1) for line in (tmp_path / "bin" / "dict.lf.txt").read_text().splitlines()
    )
    assert sum(map(int, dictionary.values())) == splits["train"]["lf"]["tokens"]
    assert int(dictionary["<unk>/3"]) == 0
    assert (
        int(dictionary["<unk>/0"]) + int(dictionary["<unk>/2"])
        == (splits["train"]["lf"]["unknown"])
    )


def test_a_given_dictionary_has_its_unknown_symbols_too(tmp_path):
    assert binarize(tmp_path, "--target-linearization", "lcrs_bfs") == 0
    given = tmp_path / "given.txt"
    given.write_text("lambda/L 4\n$0/R 4\n<unk>/LR 0\n")
    options = ["--target-linearization", "lcrs_bfs", "--overwrite", "--target-dict", str(given)]
    assert binarize(tmp_path, *options) == 0
    assert {t for tokens in tokens_of(tmp_path, "test") for t in tokens} == {
        "lambda/L", "$0/R", "<unk>/LR", "<unk>",
    }  # fmt: skip


def test_a_joined_dictionary_needs_such_symbols_on_both_sides(tmp_path, capsys):
    assert binarize(tmp_path, "--target-linearization", "nary_dfs", "--joined-dictionary") == 2
    assert capsys.readouterr().err == (
        "treesyntax binarize: --joined-dictionary: only one side has tokens with slots; "
        "give both sides such a linearization (as nary_dfs) or each its own dictionary\n"
    )
    assert not (tmp_path / "bin").exists()


def test_the_unknown_symbol_is_fairseqs():
    assert FairseqDictionary().unk_word == UNKNOWN

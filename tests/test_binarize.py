"""``treesyntax binarize`` and ``inspect`` from files to files, read back with fairseq."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import re
from pathlib import Path

import numpy as np
import pytest
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset

from treesyntax import binarize_read
from treesyntax.batch import collate
from treesyntax.cli import main
from treesyntax.formats import read_trees
from treesyntax.linearize import get_view
from treesyntax.segment import Segmenter, train_model
from treesyntax.store import TreeStore
from treesyntax.transforms.controls import CONTROLS, control_tree
from treesyntax.transforms.subwords import POLICIES, attach, linearise

SHARED = Path(__file__).parents[2] / "shared" / "data"

TREES = [
    "(S (NP (D the) (N cat)) (VP (V sleeps)))",
    "(S (NP (N dogs)) (VP (V bark) (PP (P at) (NP (N cats)))))",
    "",
    "(X -LRB-)",
    "(S (NP (D the) (N dog)) (VP (V sleeps)))",
]
TEXT = ["katten sover", "hundar skäller på katter", "katten", "(", "hunden sover"]

CONLLU = """\
1\tBig\t_\t_\t_\t_\t2\tamod\t_\t_
2\tdogs\t_\t_\t_\t_\t3\tnsubj\t_\t_
3\tbark\t_\t_\t_\t_\t0\troot\t_\t_

1\t10 000\t_\t_\t_\t_\t2\tnummod\t_\t_
2\tcats\t_\t_\t_\t_\t0\troot\t_\t_

"""


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    data = tmp_path / "in"
    data.mkdir()
    return {
        "ptb": write(data / "train.ptb", TREES * 4),
        "text": write(data / "train.sv", TEXT * 4),
        "words": write(data / "train.en", WORDS_OF_TREES * 4),
        "valid_ptb": write(data / "valid.ptb", [TREES[1], "(S (N unicorns) (V dance))"]),
        "valid_text": write(data / "valid.sv", ["hundar", "dansar"]),
        "bad": data / "bad",
        "dest": tmp_path / "out" / "data-bin",
    }


WORDS_OF_TREES = ["the cat sleeps", "dogs bark at cats", "", "(", "the dog sleeps"]


def command(files: dict[str, Path], *options: object, trees: bool = True) -> list[str]:
    """The arguments of a call; later options override earlier ones."""
    given = ["binarize", files["dest"], "--source-lang", "en", "--target-lang", "sv"]
    given += ["--train", files["ptb" if trees else "words"], files["text"], "--workers", "1"]
    given += ["--source-format", "ptb"] if trees else []
    return [str(item) for item in (*given, *options)]


def binarize(files: dict[str, Path], *options: object, trees: bool = True) -> Path:
    assert main(command(files, *options, trees=trees)) == 0
    return files["dest"]


def refused(files, capsys, *options: object, trees: bool = True) -> str:
    """The one line on stderr of a call that must fail and leave nothing behind."""
    before = {path: path.stat().st_mtime_ns for path in files["dest"].parent.parent.rglob("*")}
    assert main(command(files, *options, trees=trees)) == 2
    after = {path: path.stat().st_mtime_ns for path in files["dest"].parent.parent.rglob("*")}
    before.setdefault(files["dest"].parent, 0)
    after.setdefault(files["dest"].parent, 0)
    assert set(after) == set(before)
    message = capsys.readouterr().err
    assert message.startswith("treesyntax binarize: ")
    assert message.count("\n") == 1
    return message


def read(dest: Path, split: str, language: str, pair: str = "en-sv") -> list[list[str]]:
    """The tokens of a split as fairseq reads them, ends of sentences checked and removed."""
    dictionary = Dictionary.load(str(dest / f"dict.{language}.txt"))
    data = MMapIndexedDataset(str(dest / f"{split}.{pair}.{language}"))
    sentences = [data[i].tolist() for i in range(len(data))]
    assert all(ids[-1] == dictionary.eos() for ids in sentences)
    return [[dictionary[token] for token in ids[:-1]] for ids in sentences]


def sizes_of(prefix: Path) -> np.ndarray:
    # fairseq unmaps the file, and with it its sizes, as soon as the data set is collected.
    data = MMapIndexedDataset(str(prefix))
    return data.sizes.copy()


def check_store(dest: Path, name: str, expected: list[tuple]) -> None:
    """Trees and token nodes are as expected, and the store belongs to fairseq's data."""
    store = TreeStore(dest / f"{name}.tree")
    store.check_tokens(sizes_of(dest / name))
    assert len(store) == len(expected)
    for i, (tree, nodes) in enumerate(expected):
        assert store[i].parents.tolist() == tree.parents.tolist()
        assert store[i].branches.tolist() == tree.branches.tolist()
        assert store[i].token_nodes.tolist() == nodes


# --- round trips ---------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["words", "preorder", "bracketed"])
def test_fairseq_and_the_store_give_back_tokens_and_trees(files, view):
    dest = binarize(
        files, "--source-view", view, "--valid", files["valid_ptb"], files["valid_text"]
    )
    trees = list(read_trees(files["ptb"], "ptb"))
    shown = get_view(view)
    assert read(dest, "train", "en") == [shown.tokens(tree) for tree in trees]
    assert read(dest, "train", "sv") == [line.split() for line in TEXT * 4]
    check_store(dest, "train.en-sv.en", [(tree, shown.token_nodes(tree)) for tree in trees])
    valid = list(read_trees(files["valid_ptb"], "ptb"))
    check_store(dest, "valid.en-sv.en", [(tree, shown.token_nodes(tree)) for tree in valid])
    assert not (dest / "train.en-sv.sv.tree").exists()
    assert read(dest, "valid", "sv") == [["hundar"], ["<unk>"]]
    assert TreeStore(dest / "train.en-sv.en.tree").view == view


def test_the_summary_and_the_manifest_count_what_was_written(files, capsys):
    valid = ("--valid", files["valid_ptb"], files["valid_text"])
    dest = binarize(files, *valid, "--source-view", "words")
    shown = capsys.readouterr()
    assert re.search(r"train en +20 +44 +\d+ +0\.00% +4\n", shown.out)
    assert re.search(r"valid en +2 +6 +\d+ +33\.33% +0\n", shown.out)
    assert "dictionary sv: 16 symbols" in shown.out
    assert shown.err == ""
    manifest = json.loads((dest / "binarize.json").read_text())
    figures = manifest["splits"]["valid"]["en"]
    assert (figures["tokens"], figures["unknown"], figures["unknown_rate"]) == (6, 2, 0.333333)
    assert manifest["splits"]["train"]["en"]["empty"] == 4
    assert manifest["sides"]["source"]["view"] == "words"
    assert manifest["sides"]["source"]["trees"] is True
    assert manifest["options"]["source_format"] == "ptb"
    import hashlib

    digest = hashlib.sha256(files["ptb"].read_bytes()).hexdigest()
    assert manifest["sides"]["source"]["sha256"][str(files["ptb"])] == digest


def test_empty_sentences_stay_aligned(files):
    dest = binarize(files)
    store = TreeStore(dest / "train.en-sv.en.tree")
    sizes = sizes_of(dest / "train.en-sv.en")
    assert [i for i, size in enumerate(sizes) if size == 1] == [2, 7, 12, 17]
    assert store.node_counts[2] == 0
    assert store[3].parents.tolist() == [-1, 0]
    assert read(dest, "train", "sv")[2] == ["katten"]


def test_defaults_are_words_for_dependencies_and_preorder_for_other_trees(files):
    write(files["bad"], [])
    files["bad"].write_text(CONLLU)
    write(files["text"], ["stora hundar", "katter"])
    dest = binarize(files, "--train", files["bad"], files["text"], "--source-format", "conllu")
    # A word with a space is two tokens, as it is in text, and by default two nodes.
    assert read(dest, "train", "en") == [["Big", "dogs", "bark"], ["10", "000", "cats"]]
    store = TreeStore(dest / "train.en-sv.en.tree")
    assert store[0].token_nodes.tolist() == [2, 1, 0]
    assert store[1].parents.tolist() == [-1, 0, 0]
    lambdas = write(files["bad"], ["( f ( g x ) y )", "z"])
    dest = binarize(
        files, "--overwrite", "--train", files["text"], lambdas,
        "--source-format", "text", "--target-format", "sexpr",
    )  # fmt: skip
    assert read(dest, "train", "sv") == [["f", "g", "x", "y"], ["z"]]
    assert (dest / "train.en-sv.sv.tree").exists()
    assert not (dest / "train.en-sv.en.tree").exists()


def test_literal_special_symbols_become_unknown(files):
    write(files["text"], ["<s> a </s>", "<pad> <unk>", "a", "a", "a"] * 4)
    dest = binarize(files)
    assert read(dest, "train", "sv")[:2] == [["<unk>", "a", "<unk>"], ["<unk>", "<unk>"]]


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_output_does_not_depend_on_the_number_of_workers(files, monkeypatch, method):
    monkeypatch.setattr(binarize_read, "BATCH_SENTENCES", 3)
    monkeypatch.setattr(multiprocessing, "get_context", lambda: CONTEXTS[method])
    options = ("--valid", files["valid_ptb"], files["valid_text"], "--subword-vocab", 23)
    one = folder_bytes(binarize(files, *options))
    three = folder_bytes(binarize(files, *options, "--overwrite", "--workers", 3))
    assert set(one) == {
        "binarize.json", "dict.en.txt", "dict.sv.txt", "subwords.en.model", "subwords.sv.model",
        "train.en-sv.en.bin", "train.en-sv.en.idx", "train.en-sv.en.tree",
        "train.en-sv.sv.bin", "train.en-sv.sv.idx", "valid.en-sv.en.bin", "valid.en-sv.en.idx",
        "valid.en-sv.en.tree", "valid.en-sv.sv.bin", "valid.en-sv.sv.idx",
    }  # fmt: skip
    assert one == three
    monkeypatch.setattr(binarize_read, "BATCH_SENTENCES", 2000)
    assert folder_bytes(binarize(files, *options, "--overwrite")) == one


CONTEXTS = {method: multiprocessing.get_context(method) for method in ("fork", "spawn")}


def test_packed_files_are_read(files):
    packed = files["bad"].with_suffix(".gz")
    packed.write_bytes(gzip.compress(files["ptb"].read_bytes()))
    plain = folder_bytes(binarize(files))
    again = folder_bytes(binarize(files, "--overwrite", "--train", packed, files["text"]))
    for name in set(plain) - {"binarize.json"}:
        assert plain[name] == again[name]


# --- dictionaries --------------------------------------------------------------------------


def test_thresholds_sizes_and_joined_dictionaries(files):
    dest = binarize(files, "--source-view", "words", "--source-threshold", 5)
    assert Dictionary.load(str(dest / "dict.en.txt")).symbols[4:6] == ["sleeps", "the"]
    assert read(dest, "train", "en")[1] == ["<unk>"] * 4
    dest = binarize(files, "--overwrite", "--target-vocab-size", 6)
    assert Dictionary.load(str(dest / "dict.sv.txt")).symbols[4:7] == [
        "katten", "sover", "madeupword0000",
    ]  # fmt: skip
    dest = binarize(files, "--overwrite", "--joined-dictionary")
    joined = (dest / "dict.en.txt").read_text()
    assert joined == (dest / "dict.sv.txt").read_text()
    assert "katten 8\n" in joined
    assert "sleeps 8\n" in joined


def test_a_given_dictionary_is_reused(files):
    given = write(files["bad"], ["cat 5", "the 4"])
    dest = binarize(files, "--source-view", "words", "--source-dict", given)
    assert read(dest, "train", "en")[0] == ["the", "cat", "<unk>"]
    assert (dest / "dict.en.txt").read_text() == given.read_text()
    dest = binarize(files, "--overwrite", "--joined-dictionary", "--target-dict", given)
    assert (dest / "dict.en.txt").read_text() == given.read_text()


# --- subwords ------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["siblings", "copy"])
@pytest.mark.parametrize("view", ["words", "preorder"])
def test_pieces_of_a_model_are_attached_to_the_trees(files, policy, view):
    model = files["bad"]
    train_model(WORDS_OF_TREES * 4, 23, "unigram", model, "x")
    dest = binarize(
        files, "--source-subword-model", model, "--subword-policy", policy, "--source-view", view
    )
    segmenter = Segmenter(model)
    expected = []
    for tree in read_trees(files["ptb"], "ptb"):
        words = [tree.labels[node] for node in tree.word_nodes()]
        segmented = attach(tree, segmenter.words(words), policy)
        expected.append((segmented.tree, *linearise(segmented, get_view(view))))
    assert read(dest, "train", "en") == [tokens for _, tokens, _ in expected]
    check_store(dest, "train.en-sv.en", [(tree, nodes) for tree, _, nodes in expected])
    assert (dest / "subwords.en.model").read_bytes() == model.read_bytes()


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_the_text_baseline_and_the_words_view_have_the_same_pieces(files, kind):
    options = ("--subword-vocab", 23, "--subword-type", kind, "--source-view", "words")
    from_trees = folder_bytes(binarize(files, *options))
    from_text = folder_bytes(binarize(files, *options, "--overwrite", trees=False))
    for name in ("train.en-sv.en.bin", "train.en-sv.en.idx", "dict.en.txt", "subwords.en.model"):
        assert from_trees[name] == from_text[name]


def test_joined_subwords_are_one_model(files):
    dest = binarize(files, "--subword-vocab", 33, "--joined-subwords")
    models = [(dest / f"subwords.{language}.model").read_bytes() for language in ("en", "sv")]
    assert models[0] == models[1]
    assert all(Segmenter(dest / "subwords.en.model").line(word) for word in ("katten", "dogs"))


def test_trees_without_words_keep_whole_symbols(files, capsys):
    lambdas = write(files["bad"], ["( argmax ( city x ) y )", "z"] * 10)
    dest = binarize(
        files, "--train", files["ptb"], lambdas, "--target-format", "sexpr",
        "--subword-vocab", 23,
    )  # fmt: skip
    assert read(dest, "train", "sv")[0] == ["argmax", "city", "x", "y"]
    assert (
        "dictionary sv: 16 symbols, no subwords: its trees have no words" in capsys.readouterr().out
    )
    assert not (dest / "subwords.sv.model").exists()


@pytest.mark.parametrize(
    ("style", "pieces"),
    [
        ("sentencepiece", ["▁the ▁ca t ▁sleep s", "▁dogs ▁bark ▁at ▁cat s", "", "▁(", "▁t h e ▁dog ▁s"]),
        ("subword-nmt", ["the ca@@ t sleep@@ s", "dogs bark at cat@@ s", "", "(", "t@@ h@@ e dog s"]),
    ],
)  # fmt: skip
def test_given_pieces_are_attached(files, style, pieces):
    segmented = write(files["bad"], pieces * 4)
    dest = binarize(
        files, "--source-pieces", segmented, "--pieces-style", style, "--source-view", "words"
    )
    assert read(dest, "train", "en") == [line.split() for line in pieces * 4]
    store = TreeStore(dest / "train.en-sv.en.tree")
    # (S (NP (D the) (N ca t)) (VP (V sleep s)))
    assert store[0].parents.tolist() == [-1, 0, 1, 2, 1, 4, 4, 0, 7, 8, 8]
    assert store[0].token_nodes.tolist() == [3, 5, 6, 9, 10]


# --- subword policies against their definition ------------------------------------------------

SENTENCES = {
    "ptb": TREES,
    "conllu": [
        CONLLU.split("\n\n")[0] + "\n",
        "1\tCats\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tsleep\t_\t_\t_\t_\t0\troot\t_\t_\n"
        "3\t(\t_\t_\t_\t_\t4\tpunct\t_\t_\n4\there\t_\t_\t_\t_\t2\tadvmod\t_\t_\n",
    ],
}


class Item:
    """A node as an object: its children, its word or label, its tokens, each on the node or not."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.children: list[Item] = []
        self.tokens: list[tuple[str, bool]] = [(label, True)]


def items_of(tree) -> list[Item]:
    items = [Item(label) for label in tree.labels]
    for node, parent in enumerate(tree.parents.tolist()):
        if parent >= 0:
            items[parent].children.append(items[node])
    return items


def apply_policy(policy: str, item: Item, parent: Item | None, pieces: list[str]) -> list[Item]:
    """The nodes, in surface order, that the word becomes."""
    if policy in ("copy", "first", "last"):
        place = {"copy": range(len(pieces)), "first": [0], "last": [len(pieces) - 1]}[policy]
        item.tokens = [(piece, i in place) for i, piece in enumerate(pieces)]
        return [item]
    item.tokens = [(pieces[0], True)]
    added = [Item(piece) for piece in pieces[1:]]
    if policy == "chain":
        for above, below in zip([item, *added], added, strict=False):
            above.children.append(below)
    elif parent is None:
        item.children[:0] = added
    else:
        place = parent.children.index(item) + 1
        parent.children[place:place] = added
    return [item, *added]


def preorder_of(item: Item) -> list[Item]:
    return [item, *(below for child in item.children for below in preorder_of(child))]


def shown(item: Item, view: str) -> list[tuple[str, Item | None]]:
    """The tokens of a subtree, each with the node it is on."""
    tokens = [(token, item if on_node else None) for token, on_node in item.tokens]
    children = [pair for child in item.children for pair in shown(child, view)]
    if view == "preorder":
        return tokens + children
    escaped = [("\\" + token if token in "()" else token, node) for token, node in tokens]
    if not children:
        return escaped
    return [("(" + tokens[0][0], tokens[0][1]), *escaped[1:], *children, (")", item)]


def expected_arrays(tree, pieces: list[list[str]], policy: str, view: str) -> tuple:
    """Parents, branches, tokens and token nodes."""
    items = items_of(tree)
    surface = []
    for word, node in enumerate(tree.word_nodes()):
        parent = items[tree.parents[node]] if node else None
        surface += apply_policy(policy, items[node], parent, pieces[word])
    order = preorder_of(items[0]) if items else []
    number = {id(item): node for node, item in enumerate(order)}
    parents, branches = [-1] * len(order), [0] * len(order)
    for item in order:
        for branch, child in enumerate(item.children):
            parents[number[id(child)]], branches[number[id(child)]] = number[id(item)], branch
    if view == "words":
        pairs = [(t, item if on else None) for item in surface for t, on in item.tokens]
    else:
        pairs = shown(items[0], view) if items else []
    nodes = [-1 if item is None else number[id(item)] for _, item in pairs]
    return parents, branches, [token for token, _ in pairs], nodes


def cut(word: str) -> list[str]:
    """Pieces of subword-nmt: two letters each."""
    parts = [word[i : i + 2] for i in range(0, len(word), 2)]
    return [f"{part}@@" for part in parts[:-1]] + parts[-1:]


@pytest.mark.parametrize("format_name", SENTENCES)
@pytest.mark.parametrize("kind", ["sentencepiece", "subword-nmt", "words"])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_what_its_definition_says(files, capsys, policy, kind, format_name):
    write(files["bad"], SENTENCES[format_name])
    trees = list(read_trees(files["bad"], format_name))
    words = [[tree.labels[node] for node in tree.word_nodes()] for tree in trees]
    write(files["text"], ["a"] * len(trees))
    options = ["--train", files["bad"], files["text"], "--source-format", format_name]
    options += ["--subword-policy", policy, "--overwrite"]
    pieces = [[[word] for word in line] for line in words]
    if kind == "sentencepiece":
        model = files["words"]
        train_model([" ".join(line) for line in words], 26, "bpe", model, "x")
        pieces = [[Segmenter(model).line(word) for word in line] for line in words]
        options += ["--source-subword-model", model]
    elif kind == "subword-nmt":
        pieces = [[cut(word) for word in line] for line in words]
        lines = [" ".join(piece for word in line for piece in word) for line in pieces]
        options += ["--source-pieces", write(files["words"], lines), "--pieces-style", kind]
    for view in ("words", "preorder", "bracketed"):
        dest = binarize(files, *options, "--source-view", view)
        store, tokens = TreeStore(dest / "train.en-sv.en.tree"), read(dest, "train", "en")
        for i, tree in enumerate(trees):
            expected = expected_arrays(tree, pieces[i], policy, view)
            found = (*(array.tolist() for array in store[i][:2]), tokens[i])
            assert (*found, store[i].token_nodes.tolist()) == expected
        capsys.readouterr()
        assert main(["inspect", str(dest), "--count", "2"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[1] == " ".join(tokens[0])
        batch = collate([store[i] for i in range(len(store))], width=99, left_pad=True)
        for row, stored in enumerate(store[i] for i in range(len(store))):
            columns = batch.token_node[row, 98 - len(stored.token_nodes) :].tolist()
            assert columns == [*stored.token_nodes.tolist(), -1]


# --- control trees -----------------------------------------------------------------------------


@pytest.mark.parametrize("control", CONTROLS)
def test_control_trees_take_the_place_of_trees(files, monkeypatch, control):
    monkeypatch.setattr(binarize_read, "BATCH_SENTENCES", 3)
    options = ("--source-view", "words", "--source-control", control, "--control-seed", 7)
    options += ("--subword-vocab", 23, "--subword-policy", "copy")
    dest = binarize(files, *options)
    trees = [control_tree(tree, control, 7) for tree in read_trees(files["ptb"], "ptb")]
    store = TreeStore(dest / "train.en-sv.en.tree")
    for i, tree in enumerate(trees):
        assert store[i].parents.tolist() == tree.parents.tolist()
        assert set(store[i].token_nodes.tolist()) == set(tree.word_nodes())
    one = folder_bytes(dest)
    assert folder_bytes(binarize(files, *options, "--overwrite", "--workers", 2)) == one
    manifest = json.loads(one["binarize.json"])
    assert manifest["sides"]["source"]["control"] == control
    assert manifest["sides"]["target"]["control"] is None
    assert manifest["options"]["control_seed"] == 7
    given = folder_bytes(binarize(files, *options, "--overwrite", "--source-control", "given"))
    for name in ("train.en-sv.en.bin", "train.en-sv.en.idx", "dict.en.txt", "subwords.en.model"):
        assert given[name] == one[name]


def test_the_seed_and_the_side_of_random_control_trees_count(files):
    programs = write(files["bad"], ["( f ( g x ) y z )", "( f ( g ( h x ) ) y )"] * 10)
    options = ("--train", files["ptb"], programs, "--target-format", "sexpr", "--overwrite")
    parents = []
    for seed in (1, 2):
        dest = binarize(files, *options, "--target-control", "random", "--control-seed", seed)
        source, target = (TreeStore(dest / f"train.en-sv.{side}.tree") for side in ("en", "sv"))
        parents.append([target[i].parents.tolist() for i in range(20)])
        assert read(dest, "train", "sv")[1] == ["f", "g", "h", "x", "y"]
        assert source[0].parents.tolist() == [-1, 0, 1, 2, 1, 4, 0, 6, 7]
        assert parents[-1][:2] == parents[-1][2:4]
    assert parents[0] != parents[1]


def test_control_trees_that_make_no_sense_are_refused(files, capsys):
    programs = write(files["bad"], ["z", "( f ( g x ) y )"] * 10)
    message = refused(
        files, capsys, "--train", files["ptb"], programs, "--target-format", "sexpr",
        "--target-view", "words", "--target-control", "flat",
    )  # fmt: skip
    assert (
        f"{programs}:1: the tree has no words, and its leaves would not be those of the" in message
    )
    assert "choose another view than words" in message


# --- refusals ------------------------------------------------------------------------------


def test_misaligned_files_are_refused_with_both_counts(files, capsys):
    short = write(files["bad"], TEXT)
    message = refused(files, capsys, "--train", files["ptb"], short)
    assert f"{short}: has 5 sentences, but {files['ptb']} has 20" in message
    message = refused(files, capsys, "--source-pieces", short)
    assert f"{short}: has 5 sentences, but {files['ptb']} has 20; aligned files have" in message


@pytest.mark.parametrize(
    ("format_name", "text", "line"),
    [
        ("ptb", "(S (N a))\n(S (N a)\n", 2),
        ("ptb", "(S (N a))\n(S (N a)))\n", 2),
        ("conllu", CONLLU.replace("\t3\tnsubj", "\t9\tnsubj"), 2),
        ("conllu", CONLLU.replace("\t0\troot", "\t2\troot", 1), 1),
        ("conllu", CONLLU.replace("\t3\tnsubj", "\t0\tnsubj"), 3),
        ("jsonl", '["a", "b"]\n["a", "b c"]\n', 2),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_malformed_trees_are_refused_with_their_line(
    files, capsys, format_name, text, line, workers
):
    files["bad"].write_text(text)
    write(files["text"], ["a", "b"])
    message = refused(
        files, capsys, "--train", files["bad"], files["text"], "--source-format", format_name,
        "--workers", workers,
    )  # fmt: skip
    assert f"{files['bad']}:{line}: " in message
    assert "; " in message


def test_pieces_of_other_words_are_refused_with_their_line(files, capsys):
    pieces = write(files["bad"], ["▁the ▁cat ▁sle eps", "▁dogs ▁bark ▁at", "", "▁(", "▁a"] * 4)
    message = refused(files, capsys, "--source-pieces", pieces)
    assert f"{pieces}:2: the pieces make 3 words, but the tree at {files['ptb']}:2 has 4" in message
    assert "--pieces-style" in message


def test_unreadable_files_are_refused(files, capsys, tmp_path):
    missing = tmp_path / "in" / "missing"
    assert f"{missing}: cannot be read" in refused(files, capsys, "--train", missing, files["text"])
    files["bad"].write_bytes(b"a\n\xff\n")
    assert f"{files['bad']}:2: byte 1 is not UTF-8" in refused(
        files, capsys, "--train", files["ptb"], files["bad"]
    )
    assert "missing: cannot be read" in refused(files, capsys, "--source-subword-model", missing)
    message = refused(files, capsys, "--source-subword-model", files["text"])
    assert "train.sv: is not a SentencePiece model" in message
    assert "missing: cannot be read" in refused(files, capsys, "--source-dict", missing)
    message = refused(files, capsys, "--source-dict", files["text"])
    assert "train.sv:1: 'katten sover' is not a symbol and its count" in message
    message = refused(files, capsys, "--train", tmp_path / "in", files["text"])
    assert "in: is not a regular file; inputs are read twice" in message
    write(files["bad"], [])
    message = refused(files, capsys, "--test", files["bad"], files["bad"])
    assert "bad: has no sentences; leave the split out" in message


def test_impossible_subword_vocabularies_are_refused_with_the_limit(files, capsys):
    message = refused(files, capsys, "--subword-vocab", 9000)
    assert re.search(r"train\.ptb: the text has too few .* of 9000; the largest .* is \d+", message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--source-format", "xml"], "--source-format: no format is named 'xml'; there are text, "),
        (["--source-view", "x"], "--source-view: no view is named 'x'; there are words, preorder,"),
        (["--target-view", "preorder"], "--target-view preorder needs trees, but --target-format"),
        (
            ["--source-control", "x"],
            "--source-control: no control tree is named 'x'; there are given",
        ),
        (["--target-control", "flat"], "--target-control flat needs trees, but --target-format is"),
        (["--target-pieces", "f"], "--target-pieces belong to trees, but --target-format is text"),
        (["--source-pieces", "f", "g"], "--source-pieces has 2 files for 1 splits (train)"),
        (
            ["--source-pieces", "f", "--source-subword-model", "g"],
            "--source-pieces and --source-subword-model exclude each other",
        ),
        (["--target-lang", "en"], "both sides are named 'en'; give --target-lang another name"),
        (["--target-lang", "s-v"], "--target-lang 's-v': a name without white space, dots,"),
        (["--joined-subwords"], "--joined-subwords trains one model for both sides: give --subw"),
        (["--subword-vocab", "-1"], "--subword-vocab must be a positive number"),
        (
            ["--subword-vocab", "9", "--joined-subwords", "--source-subword-model", "g"],
            "--joined-subwords: one side has pieces or a subword model already",
        ),
        (
            ["--subword-vocab", "9", "--source-subword-model", "g", "--target-subword-model", "g"],
            "--subword-vocab: both sides have pieces or a subword model already",
        ),
        (["--source-threshold", "-1"], "--source-threshold must not be negative"),
        (["--target-vocab-size", "-1"], "--target-vocab-size must not be negative"),
        (["--workers", "0"], "--workers 0: at least 1 is needed"),
        (
            ["--joined-dictionary", "--source-dict", "f", "--target-dict", "g"],
            "--joined-dictionary takes --source-dict or --target-dict, not both",
        ),
        (
            ["--joined-dictionary", "--source-threshold", "3"],
            "--joined-dictionary needs the same --source-threshold and --target-threshold",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(files, capsys, options, message):
    assert message in refused(files, capsys, *options)


def test_nothing_is_overwritten_by_accident(files, capsys):
    dest = binarize(files)
    capsys.readouterr()
    assert f"{dest}: is there already and not empty" in refused(files, capsys)
    binarize(files, "--overwrite")
    capsys.readouterr()
    inside = write(dest / "mine.ptb", TREES * 4)
    message = refused(files, capsys, "--overwrite", "--train", inside, files["text"])
    assert f"{inside}: lies in the folder to be overwritten" in message
    (dest / "binarize.json").unlink()
    assert f"{dest}: has no binarize.json, so --overwrite could" in refused(
        files, capsys, "--overwrite"
    )
    files["dest"] = files["text"]
    assert "train.sv: is a file; name a folder" in refused(files, capsys)


def test_a_failed_overwrite_keeps_the_old_data(files, capsys):
    before = folder_bytes(binarize(files))
    capsys.readouterr()
    write(files["ptb"], [*TREES * 3, *TREES[:4], "(S"])
    assert "train.ptb:20: " in refused(files, capsys, "--overwrite")
    assert folder_bytes(files["dest"]) == before


def _die(encoding, batch):
    os._exit(9)


def test_a_dead_worker_is_reported(files, capsys, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_context", lambda: CONTEXTS["fork"])
    monkeypatch.setattr("treesyntax.binarize.encode_batch", _die)
    message = refused(files, capsys, "--workers", 2)
    assert "a worker process died, perhaps for want of memory; try fewer --workers" in message


def test_the_help_shows_an_example(capsys):
    for name in ("binarize", "inspect"):
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert f"treesyntax {name} data-bin/en-sv" in capsys.readouterr().out


# --- inspect -------------------------------------------------------------------------------


def test_inspect_draws_tokens_and_trees(files, capsys):
    dest = binarize(files, "--source-view", "words")
    capsys.readouterr()
    assert main(["inspect", str(dest), "--count", "2"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["train.en-sv.en 0: 3 tokens", "the cat sleeps"]
    assert [line.split() for line in shown[2:7]] == [
        ["node", "parent", "slot"],
        ["0", "-1", "0", "·"],
        ["1", "0", "0", "·"],
        ["2", "1", "0", "·"],
        ["3", "2", "0", "0:the"],
    ]
    assert "train.en-sv.en 1: 4 tokens" in shown
    assert main(["inspect", str(dest), "--side", "target", "--index", "19", "--count", "9"]) == 0
    assert capsys.readouterr().out.splitlines() == ["train.en-sv.sv 19: 2 tokens", "hunden sover"]


def test_inspect_draws_a_long_chain(files, capsys):
    size = 10_000
    write(files["ptb"], ["(X " * size + "a" + ")" * size])
    write(files["text"], ["a"])
    dest = binarize(files)
    capsys.readouterr()
    assert main(["inspect", str(dest)]) == 0
    shown = capsys.readouterr().out
    assert f"(depth {size}) {size}:a" in shown
    assert len(shown) < 200 * size


def inspect_refused(capsys, *options: object) -> str:
    assert main(["inspect", *map(str, options)]) == 2
    return capsys.readouterr().err


def test_inspect_names_what_is_wrong(files, capsys, tmp_path):
    dest = binarize(files)
    capsys.readouterr()
    assert "has sentences 0 to 19" in inspect_refused(capsys, dest, "--index", 20)
    assert "no single test split: it has none" in inspect_refused(capsys, dest, "--split", "test")
    assert "has none" in inspect_refused(capsys, tmp_path / "nowhere")
    write(dest / "dict.en.txt", ["the 3"])
    assert "dict.en.txt: has 5 symbols, but train.en-sv.en.idx uses number" in inspect_refused(
        capsys, dest
    )
    for suffix in ("bin", "idx"):
        (dest / f"train.en-sv.en.{suffix}").write_bytes(
            (dest / f"train.en-sv.sv.{suffix}").read_bytes()
        )
    assert "the trees do not belong to this data" in inspect_refused(capsys, dest)
    (dest / "train.en-de.en.idx").write_bytes(b"")
    assert "it has data of several pairs (en-de, en-sv)" in inspect_refused(capsys, dest)


# --- real data -----------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data sets are not here")
def test_gold_dependency_trees_and_their_text_give_the_same_pieces(files):
    treebank = SHARED / "treebanks" / "UD_English-LinES" / "test.conllu.gz"
    target = SHARED / "lines_ensv" / "test.sv"
    words = [
        " ".join(" ".join(tree.labels[node] for node in tree.word_nodes()).split())
        for tree in read_trees(treebank, "conllu")
    ]
    text = write(files["bad"], words)
    options = ("--subword-vocab", 1500, "--source-view", "words")
    trees = folder_bytes(
        binarize(files, *options, "--train", treebank, target, "--source-format", "conllu")
    )
    plain = folder_bytes(
        binarize(files, *options, "--train", text, target, "--source-format", "text", "--overwrite")
    )
    for name in ("train.en-sv.en.bin", "train.en-sv.en.idx", "dict.en.txt", "subwords.en.model"):
        assert trees[name] == plain[name]
    assert len(words) == 914

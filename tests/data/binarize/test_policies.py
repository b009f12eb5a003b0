"""Subword policies against their definition on objects."""

from __future__ import annotations

import pytest
from support.binarize_helpers import CONLLU, TREES, binarize, read, write

from treesyntax.cli import main
from treesyntax.data.sentencepiece import Segmenter, train_model
from treesyntax.data.tree_store import TreeStore
from treesyntax.nn.tree_batch import collate
from treesyntax.trees.formats import read_trees
from treesyntax.trees.subwords import POLICIES

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


def shown(item: Item, linearization: str) -> list[tuple[str, Item | None]]:
    """The tokens of a subtree, each with the node it is on."""
    tokens = [(token, item if on_node else None) for token, on_node in item.tokens]
    children = [pair for child in item.children for pair in shown(child, linearization)]
    if linearization == "preorder":
        return tokens + children
    escaped = [("\\" + token if token in "()" else token, node) for token, node in tokens]
    if not children:
        return escaped
    return [("(" + tokens[0][0], tokens[0][1]), *escaped[1:], *children, (")", item)]


def expected_arrays(tree, pieces: list[list[str]], policy: str, linearization: str) -> tuple:
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
    if linearization == "words":
        pairs = [(t, item if on else None) for item in surface for t, on in item.tokens]
    else:
        pairs = shown(items[0], linearization) if items else []
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
    for linearization in ("words", "preorder", "bracketed"):
        dest = binarize(files, *options, "--source-linearization", linearization)
        store, tokens = TreeStore(dest / "train.en-sv.en.tree"), read(dest, "train", "en")
        for i, tree in enumerate(trees):
            expected = expected_arrays(tree, pieces[i], policy, linearization)
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

"""Subword policies against their definition on objects."""

from __future__ import annotations

import pytest
from support.binarize_helpers import CONLLU, TREES, binarize, read, write
from support.oracles import subwords_on_tree

from treesyntax.__main__ import main
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
            new, *expected = subwords_on_tree(tree, pieces[i], policy, linearization)
            assert store[i].parents.tolist() == new.parents.tolist()
            assert store[i].branches.tolist() == new.branches.tolist()
            assert [tokens[i], store[i].token_nodes.tolist()] == expected
        if kind == "sentencepiece":
            assert (dest / "subwords.en.model").read_bytes() == model.read_bytes()
        capsys.readouterr()
        assert main(["inspect", str(dest), "--count", "2"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[1] == " ".join(tokens[0])
        batch = collate([store[i] for i in range(len(store))], width=99, left_pad=True)
        for row, stored in enumerate(store[i] for i in range(len(store))):
            columns = batch.token_node[row, 98 - len(stored.token_nodes) :].tolist()
            assert columns == [*stored.token_nodes.tolist(), -1]

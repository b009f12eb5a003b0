"""Labels of nodes: which ones, their dictionary, and the stores with and without them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from support.binarize_helpers import CONLLU, binarize, folder_bytes, refused, write

from treesyntax.data.manifest import read_data
from treesyntax.data.tree_store import TreeStore
from treesyntax.errors import InputError

LABELS = ["--source-labels", "--source-label-threshold", "1"]
SPLITS = ("train", "valid")


def with_valid(files) -> list[object]:
    return ["--valid", files["valid_ptb"], files["valid_text"]]


def stores(dest) -> list[TreeStore]:
    return [TreeStore(dest / f"{split}.en-sv.en.tree") for split in SPLITS]


def lines_of(dest) -> list[str]:
    """The labels of labels.en.txt, most frequent first."""
    text = (dest / "labels.en.txt").read_text(encoding="utf-8")
    return [line.rpartition(" ")[0] for line in text.splitlines()]


def test_categories_are_kept_and_words_have_one_label(files):
    dest = binarize(files, *with_valid(files), *LABELS)
    names = ["<unk>", *lines_of(dest)]
    train, valid = stores(dest)
    assert [names[label] for label in train[0].labels] == [
        "S", "NP", "D", "<word>", "N", "<word>", "VP", "V", "<word>"
    ]  # fmt: skip
    assert [names[label] for label in valid[1].labels] == ["S", "N", "<word>", "V", "<word>"]
    assert names[1] == "<word>"
    assert len(train[2].labels) == 0
    again = pickle.loads(pickle.dumps(train))
    assert np.array_equal(again[0].labels, train[0].labels)
    assert [path.read_bytes()[8] for path in (store.path for store in (train, valid))] == [2, 2]


def test_labels_that_are_rare_in_training_or_new_later_are_unknown(files):
    write(files["bad"], ["(Y (Z w))"] * 2)
    dest = binarize(files, "--valid", files["bad"], files["valid_text"], *LABELS[:1],
                    "--source-label-threshold", "5")  # fmt: skip
    assert "X" not in lines_of(dest)  # 4 times
    train, valid = stores(dest)
    assert train[3].labels[0] == 0
    assert valid[0].labels.tolist() == [0, 0, 1]


def test_relations_of_dependency_trees(files):
    files["ptb"] = write(files["bad"], [CONLLU])
    files["text"] = write(files["words"], ["a", "b"])
    dest = binarize(files, "--source-format", "conllu", *LABELS)
    names = ["<unk>", *lines_of(dest)]
    store = TreeStore(dest / "train.en-sv.en.tree")
    trees = [[names[label] for label in store[i].labels] for i in range(2)]
    assert trees == [["root", "nsubj", "amod"], ["root", "nummod", "subword"]]


def test_all_else_is_as_without_labels(files):
    plain = folder_bytes(binarize(files, *with_valid(files)))
    dest = binarize(files, *with_valid(files), *LABELS, "--overwrite")
    labelled = folder_bytes(dest)
    own = {"binarize.json", "labels.en.txt", *(f"{split}.en-sv.en.tree" for split in SPLITS)}
    for name in plain.keys() | labelled.keys():
        assert (plain.get(name) == labelled.get(name)) == (name not in own), name
    assert plain["train.en-sv.en.tree"][8] == 1
    assert stores(dest)[0][0].labels is not None
    binarize(files, *with_valid(files), *LABELS, "--overwrite", "--workers", "2")
    parallel = folder_bytes(dest)
    assert all(parallel[name] == labelled[name] for name in labelled if name != "binarize.json")


def test_given_labels_and_the_record(files):
    dictionary = write(files["bad"], ["VP 7", "NP 3"])
    dest = binarize(files, "--source-labels", "--source-label-dict", dictionary)
    store = TreeStore(dest / "train.en-sv.en.tree")
    assert store[0].labels.tolist() == [0, 2, 0, 0, 0, 0, 1, 0, 0]
    data = read_data(dest)
    assert data.source.encoding.labels
    assert data.labels(data.source).symbols[4:] == ["VP", "NP"]
    assert data.labels(data.target) is None


def test_labels_need_trees(files, capsys):
    message = refused(files, capsys, "--source-labels", trees=False)
    assert "--source-labels needs trees" in message
    negative = ["--source-labels", "--source-label-threshold", "-1"]
    assert "must not be negative" in refused(files, capsys, *negative)


def test_labels_that_are_not_the_datas_are_refused(files):
    dest = binarize(files, *LABELS)
    path = dest / "labels.en.txt"
    path.write_text("".join(f"{label} 1\n" for label in sorted(lines_of(dest))))
    data = read_data(dest)
    with pytest.raises(InputError, match="labels.en.txt: is not the file that binarize.json desc"):
        data.labels(data.source)

"""Token files and tree stores: what is written is what fairseq and we read back."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset, make_builder
from hypothesis import given, settings
from hypothesis import strategies as st
from support import write_store
from support.strategies import rich_trees

from treesyntax.data.dictionary import EOS
from treesyntax.data.token_files import TokenData, append_to_each, write_tokens
from treesyntax.data.tree_store import PREAMBLE, TreeArrays, TreeStore, deepest
from treesyntax.errors import InputError
from treesyntax.trees.tree import Tree


def ints(values) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def arrays(trees: list[Tree], token_nodes: list[list[int]]) -> TreeArrays:
    return TreeArrays(
        ints([len(tree) for tree in trees]),
        ints([len(nodes) for nodes in token_nodes]),
        ints([p for tree in trees for p in tree.parents.tolist()]),
        ints([b for tree in trees for b in tree.branches.tolist()]),
        ints([n for nodes in token_nodes for n in nodes]),
    )


def write_both(prefix: Path, trees: list[Tree], token_nodes: list[list[int]], batch: int = 3):
    """Token files whose tokens are all symbol 5, and the store beside them."""
    sizes = [len(nodes) for nodes in token_nodes]
    fingerprint = write_tokens(prefix, [(ints([5] * sum(sizes)), ints(sizes))], 10, EOS)
    starts = range(0, len(trees), batch)
    batches = (arrays(trees[i : i + batch], token_nodes[i : i + batch]) for i in starts)
    write_store(f"{prefix}.tree", "words", batches, fingerprint)
    return TreeStore(f"{prefix}.tree")


# --- token files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vocab_size", "dtype"), [(65499, np.uint16), (65500, np.int32), (200000, np.int32)]
)
def test_fairseq_reads_the_tokens_in_the_narrowest_type(tmp_path, vocab_size, dtype):
    largest = vocab_size - 1
    batches = [(ints([4, 5, largest]), ints([2, 0, 1])), (ints([7]), ints([1]))]
    fingerprint = write_tokens(tmp_path / "x", batches, vocab_size, EOS)
    data = MMapIndexedDataset(str(tmp_path / "x"))
    assert data._index.dtype == dtype
    assert [data[i].tolist() for i in range(len(data))] == [[4, 5, 2], [2], [largest, 2], [7, 2]]
    assert data.sizes.tolist() == [3, 1, 2, 2]
    assert fingerprint[:2] == (4, 8)


@settings(deadline=None, max_examples=25)
@given(sentences=st.lists(st.lists(st.integers(4, 900), max_size=8), min_size=1, max_size=12))
def test_files_are_byte_for_byte_those_of_fairseq(tmp_path_factory, sentences):
    import torch

    folder = tmp_path_factory.mktemp("tokens")
    builder = make_builder(str(folder / "theirs.bin"), "mmap", vocab_size=1000)
    for sentence in sentences:
        builder.add_item(torch.IntTensor([*sentence, EOS]))
    builder.finalize(str(folder / "theirs.idx"))
    flat = [token for sentence in sentences for token in sentence]
    sizes = [len(sentence) for sentence in sentences]
    write_tokens(folder / "ours", [(ints(flat), ints(sizes))], 1000, EOS)
    for suffix in ("bin", "idx"):
        ours, theirs = folder / f"ours.{suffix}", folder / f"theirs.{suffix}"
        assert ours.read_bytes() == theirs.read_bytes()
    data = TokenData(folder / "ours")
    assert [data[i].tolist() for i in range(len(data))] == [[*s, EOS] for s in sentences]


def test_append_to_each_handles_empty_runs():
    assert append_to_each(ints([]), ints([0, 0]), 2).tolist() == [2, 2]
    assert append_to_each(ints([]), ints([]), 2).tolist() == []
    assert append_to_each(ints([8, 9]), ints([0, 2, 0]), 2).tolist() == [2, 8, 9, 2, 2]


def test_token_data_names_the_damaged_file(tmp_path):
    prefix = tmp_path / "x"
    with pytest.raises(InputError, match=r"x\.idx: cannot be read \(No such file"):
        TokenData(prefix)
    write_tokens(prefix, [(ints([4, 5]), ints([2]))], 10, EOS)
    index, tokens = (tmp_path / "x.idx").read_bytes(), (tmp_path / "x.bin").read_bytes()
    for name, content, message in (
        ("x.bin", tokens[:-1], r"x\.bin: has 5 bytes, but x\.idx describes 6; binarize"),
        ("x.idx", index[:-1], r"x\.idx: is damaged: \d+ bytes"),
        ("x.idx", b"TNTIDX\x00\x00" + index[8:], r"x\.idx: is not a memory-mapped fairseq index"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            TokenData(prefix)
    (tmp_path / "x.idx").write_bytes(index)
    (tmp_path / "x.bin").unlink()
    with pytest.raises(InputError, match=r"x\.bin: cannot be read"):
        TokenData(prefix)


# --- tree stores ---------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(data=st.data(), trees=st.lists(rich_trees(), max_size=8), batch=st.integers(1, 8))
def test_store_gives_back_the_trees(tmp_path_factory, data, trees, batch):
    token_nodes = [
        data.draw(st.lists(st.integers(-1, len(tree) - 1), max_size=10)) for tree in trees
    ]
    path = tmp_path_factory.mktemp("store") / "x"
    store = write_both(path, trees, token_nodes, batch)
    assert len(store) == len(trees)
    assert store.linearization == "words"
    assert store.node_counts.tolist() == [len(tree) for tree in trees]
    assert store.token_counts.tolist() == [len(nodes) for nodes in token_nodes]
    for i, (tree, nodes) in enumerate(zip(trees, token_nodes, strict=True)):
        stored = store[i]
        assert all(array.dtype == np.int64 for array in stored[:3])
        assert stored.labels is None
        assert stored.parents.tolist() == tree.parents.tolist()
        assert stored.branches.tolist() == tree.branches.tolist()
        assert stored.token_nodes.tolist() == nodes


@pytest.mark.parametrize("size", [100, 32769, 40000])
def test_roots_stay_negative_in_narrow_and_wide_types(tmp_path, size):
    chain = Tree(range(-1, size - 1), ["x"] * size)
    one = Tree([-1], ["x"])
    store = write_both(tmp_path / "x", [one, chain, one], [[-1], [0, size - 1, -1], []])
    assert store[1].parents.tolist() == list(range(-1, size - 1))
    assert store[1].token_nodes.tolist() == [0, size - 1, -1]
    assert [store[i].parents.tolist() for i in (0, 2)] == [[-1], [-1]]
    header = header_of(tmp_path / "x.tree")
    assert header["sentences"] == 3
    assert all(entry["offset"] % 64 == 0 for entry in header["arrays"].values())
    types = {name: entry["dtype"] for name, entry in header["arrays"].items()}
    assert types["parents"] == ("<i2" if size - 2 <= 32767 else "<i4")
    assert types["token_nodes"] == ("<i2" if size - 1 <= 32767 else "<i4")
    assert types["branches"] == "<i2"


def test_store_is_picklable_and_indexed_like_a_sequence(tmp_path):
    store = write_both(tmp_path / "x", [Tree([-1, 0], ["a", "b"]), Tree([], [])], [[0, 1], []])
    again = pickle.loads(pickle.dumps(store))
    assert len(pickle.dumps(store)) < 1000
    assert again[0].parents.tolist() == [-1, 0]
    assert again[-1].parents.tolist() == []
    for outside in (2, -3):
        with pytest.raises(IndexError, match=f"sentence {outside} of 2"):
            store[outside]


def header_of(path: Path) -> dict:
    raw = path.read_bytes()
    length = PREAMBLE.unpack_from(raw)[2]
    return json.loads(raw[PREAMBLE.size : PREAMBLE.size + length])


def flip(path: Path, position: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[position] ^= 1
    path.write_bytes(raw)


def test_damage_is_found_wherever_it_is(tmp_path):
    tree = Tree([-1, 0, 0], ["a", "b", "c"])
    path = tmp_path / "x.tree"
    write_both(tmp_path / "x", [tree] * 4, [[0, 1, 2]] * 4)
    good = path.read_bytes()
    for name, entry in header_of(path)["arrays"].items():
        flip(path, entry["offset"] + 3)
        with pytest.raises(InputError, match=rf"x\.tree: the checksum of {name} differs.*again"):
            TreeStore(path)
        path.write_bytes(good)
    flip(path, PREAMBLE.size + 5)
    with pytest.raises(InputError, match=r"x\.tree: the checksum of the header differs"):
        TreeStore(path)
    for content, message in (
        (good[:-1], r"x\.tree: is cut short or padded: \d+ bytes, \d+ exp"),
        (good[:10], r"x\.tree: is not a tree store"),
        (b"PK" + good[2:], r"x\.tree: is not a tree store; treesyntax binarize"),
        (good[:8] + b"\x03" + good[9:], "is a tree store of version 3, not 1 or 2; run treesyntax"),
        (good[:8] + b"\x02" + good[9:], "its header is not that of a tree store"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            TreeStore(path)
    with pytest.raises(InputError, match=r"y\.tree: cannot be read \(No such file"):
        TreeStore(tmp_path / "y.tree")


def test_trees_of_other_data_are_refused(tmp_path):
    tree = Tree([-1, 0], ["a", "b"])
    store = write_both(tmp_path / "x", [tree, tree], [[0, 1], [1]])
    store.check_tokens(ints([3, 2]))
    store.check_files(TokenData(tmp_path / "x"))
    told = r"x\.tree: the trees do not belong to this data \(sentence 1 has 1 tokens here, 4 there\); run"
    with pytest.raises(InputError, match=told):
        store.check_tokens(ints([3, 5]))
    with pytest.raises(InputError, match=r"do not belong to this data \(2 trees, 3 sentences\)"):
        store.check_tokens(ints([3, 2, 1]))
    # The same lengths in another integer type: not the file written together with the trees.
    write_tokens(tmp_path / "y", [(ints([5, 5, 5]), ints([2, 1]))], 70000, EOS)
    with pytest.raises(InputError, match=r"y\.idx is not the file written with them"):
        store.check_files(TokenData(tmp_path / "y"))
    write_tokens(tmp_path / "y", [(ints([5, 5, 5]), ints([1, 2]))], 10, EOS)
    with pytest.raises(InputError, match=r"this data \(sentence 0 has 2 tokens here, 1 there\)"):
        store.check_files(TokenData(tmp_path / "y"))


def test_a_failed_store_leaves_nothing(tmp_path):
    def broken():
        yield arrays([Tree([-1], ["a"])], [[0]])
        raise InputError("trees.txt", 7, "broken")

    fingerprint = write_tokens(tmp_path / "x", [(ints([5]), ints([1]))], 10, EOS)
    with pytest.raises(InputError, match=r"trees\.txt:7: broken"):
        write_store(tmp_path / "x.tree", "words", broken(), fingerprint)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bin", "x.idx"]


@pytest.mark.parametrize("sizes", [[], [0, 0], [1], [5, 0, 1, 9], [300, 2]])
def test_the_deepest_node_of_chains_and_of_other_trees(sizes):
    """It once took the square of a chain's length: 5 seconds for 3,000 nodes."""
    none = np.zeros(0, np.int32)
    chains = [np.arange(-1, size - 1, dtype=np.int16) for size in sizes]
    random = np.random.default_rng(1)
    bushes = [
        np.array([-1, *(random.integers(0, node) for node in range(1, size))][:size], np.int16)
        for size in sizes
    ]
    for parents in (chains, bushes):
        expected = 0
        for one in parents:
            depths = []
            for parent in one.tolist():
                depths.append(depths[parent] + 1 if parent >= 0 else 0)
            expected = max([expected, *depths])
        joined = np.concatenate([none, *parents]).astype(np.int16)
        counts = np.array(sizes, np.int32)
        assert deepest(TreeArrays(counts, counts, joined, joined, none)) == expected

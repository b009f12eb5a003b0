"""Damage is found and named."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from reliability.figures import amount, count
from reliability.hostile.readers import PREFIX, READERS, tokens
from support import write_store
from support.study_helpers import result
from support.study_runs import check_complete, study

from treesyntax.__main__ import main
from treesyntax.data.dictionary import EOS
from treesyntax.data.manifest import check_tokens
from treesyntax.data.token_files import TokenData, write_tokens
from treesyntax.data.tree_store import TreeArrays, TreeStore
from treesyntax.errors import InputError
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.study.results.results import read_results, write_results

SEED = 11
# The study of all tests of reliability is made first: other modules compare its figures with drawn ones.
pytestmark = pytest.mark.usefixtures("quick", "empty_figures")


def everything(folder: Path) -> list:
    """All that a store and its token files say."""
    data, store = TokenData(folder / PREFIX), TreeStore(folder / f"{PREFIX}.tree")
    store.check_files(data)
    trees = [array.tolist() for tree in store for array in tree if array is not None]
    tokens = [data[i].tolist() for i in range(len(data))]
    return [store.linearization, trees, data.sizes.tolist(), tokens]


def damages(whole: bytes, cuts: int, flips: int) -> Iterator[bytes]:
    """A file cut off at many places, and with one bit changed at many places."""
    draw = random.Random(SEED)
    places = range(len(whole)) if len(whole) <= cuts else draw.sample(range(len(whole)), cuts)
    yield from (whole[:place] for place in places)
    yield whole + b"\0"
    bits = range(8 * len(whole))
    for bit in bits if len(bits) <= flips else draw.sample(bits, flips):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.parametrize("suffix", [".tree", ".idx"])
def test_damaged_stores_and_indices_are_named(tmp_path: Path, suffix: str):
    tokens(tmp_path)
    path, wanted = tmp_path / f"{PREFIX}{suffix}", everything(tmp_path)
    found = unnoticed = 0
    for damaged in damages(path.read_bytes(), amount(100, 10_000), amount(600, 100_000)):
        path.write_bytes(damaged)
        try:
            same = everything(tmp_path) == wanted
        except InputError as error:
            assert re.match(rf"{re.escape(str(tmp_path / PREFIX))}\.(tree|idx|bin): ", str(error))  # noqa: PT017
            found += 1
        else:
            assert same, "damage that changes what is read went unnoticed"
            unnoticed += 1
    count("corruption: cuts and flipped bits", found + unnoticed)
    assert found > unnoticed or suffix == ".tree"
    assert found > 100


def test_damaged_tokens_are_named(tmp_path: Path):
    reader = READERS["binarize.json"]
    reader.prepare(tmp_path)
    path = tmp_path / "data/train.a-b.a.bin"
    whole = path.read_bytes()
    check_tokens(TokenData(path.with_suffix("")))
    for damaged in damages(whole, 10, 1000):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a-b\.a\.bin: (is not the file|has \d+ bytes)"):
            check_tokens(TokenData(path.with_suffix("")))


def test_an_index_alone_is_checked_for_sizes_and_offsets(tmp_path: Path):
    tokens(tmp_path)
    path = tmp_path / f"{PREFIX}.idx"
    whole = path.read_bytes()
    for position, byte in ((26, 6), (26 + 3, 0x80), (38, 1), (38 + 8, 9)):
        changed = bytearray(whole)
        changed[position] = byte
        path.write_bytes(changed)
        with pytest.raises(InputError, match=r"\.idx: is damaged: its sizes and offsets are not"):
            TokenData(tmp_path / PREFIX)


def test_a_store_of_numbers_that_make_no_trees_is_refused(tmp_path: Path):
    """Its checksums are right: whoever wrote it had no trees."""
    ids, sizes = np.array([4, 5]), np.array([2])
    fingerprint = write_tokens(tmp_path / "x", [(ids, sizes)], 8, EOS)
    right = TreeArrays(sizes, sizes, np.array([-1, 0]), np.array([0, 0]), np.array([1, -1]))
    write_store(tmp_path / "x.tree", "words", [right], fingerprint)
    assert TreeStore(tmp_path / "x.tree")[0].parents.tolist() == [-1, 0]
    for change in (
        {"parents": np.array([-1, 1])}, {"parents": np.array([-2, 0])},
        {"token_nodes": np.array([2, 0])}, {"token_nodes": np.array([-2, 0])},
        {"branches": np.array([0, -1])},
    ):  # fmt: skip
        write_store(tmp_path / "x.tree", "words", [right._replace(**change)], fingerprint)
        with pytest.raises(InputError, match=r"x\.tree: its numbers are not those of trees; run"):
            TreeStore(tmp_path / "x.tree")
    for change in ({"node_counts": np.array([3])}, {"token_counts": np.array([1])}):
        write_store(tmp_path / "x.tree", "words", [right._replace(**change)], fingerprint)
        with pytest.raises(InputError, match="its offsets are not those of sentences in a row"):
            TreeStore(tmp_path / "x.tree")


def test_damaged_results_are_named(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    found = [result(), result(metric="bleu"), result(seed=2)]
    write_results(path, found)
    whole = path.read_bytes()
    noticed = tried = 0
    for damaged in damages(whole, amount(100, 10_000), amount(600, 100_000)):
        path.write_bytes(damaged)
        tried += 1
        try:
            read = read_results(path)
        except InputError as error:
            assert str(error).startswith(f"{path}:")  # noqa: PT017
            noticed += 1
            continue
        # A line without its end was never written: the study writes it again.
        ends = damaged.count(b"\n")
        assert read == found[: len(read)]
        assert len({one.seed for one in read}) == ends
    count("corruption: cuts and flipped bits", tried)
    assert noticed > amount(500, 9000)


def test_lines_that_results_have_lost_are_written_again(quick: Path, tmp_path: Path, capsys):
    """Cut off or removed by hand: the study takes them from the files of the run."""
    shutil.copytree(quick, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "out" / "runs.jsonl"
    whole = read_results(path)
    spoils = (lambda raw: raw[:-40], lambda raw: raw.split(b"\n", 1)[1], lambda raw: b"")
    for spoil in spoils[: amount(1, 3)]:
        path.write_bytes(spoil(path.read_bytes()))
        assert len(read_results(path)) < len(whole)
        assert study(tmp_path).returncode == 0
        check_complete(tmp_path)
        again = {one.key: replace(one, date="") for one in read_results(path)}
        assert again == {one.key: replace(one, date="") for one in whole}
    damaged = path.read_bytes().replace(b'"value": 5', b'"value": 6', 1)
    path.write_bytes(damaged)
    words = ["study", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert re.search(
        r"runs\.jsonl:\d: its checksum differs: the line is damaged; restore the line, or remove "
        "it and run the study again",
        capsys.readouterr().err,
    )


def test_damaged_checkpoints_are_named(tmp_path: Path):
    path = tmp_path / "checkpoint_best.pt"
    state = {"model": {"a": torch.arange(40.0), "b": torch.ones(3, 3)}, "cfg": {"x": "y" * 20}}
    torch.save(state, path)
    whole, noticed = path.read_bytes(), 0
    for damaged in damages(whole, amount(50, 2000), amount(200, 20_000)):
        path.write_bytes(damaged)
        try:
            read = load_checkpoint(path)
        except InputError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
            noticed += 1
            continue
        # Bits between the parts of the archive mean nothing.
        assert all(torch.equal(read["model"][name], state["model"][name]) for name in "ab")
        assert read["cfg"] == state["cfg"]
    count("corruption: cuts and flipped bits", amount(250, 22_000))
    assert noticed > amount(60, 2000)
    # Headers that have torch read a tensor from another place, or not at all.
    header, entry = whole.index(b"PK\x03\x04", whole.index(b"byteorder") + 9), b"PK\x01\x02"
    last = whole.rindex(entry, 0, whole.rindex(b"/data/0"))
    for position, bit, reason in ((header + 27, 1, "cannot be read"), (last + 38, 16, "a folder")):
        changed = bytearray(whole)
        changed[position] ^= bit
        path.write_bytes(changed)
        with pytest.raises(InputError, match=rf"best\.pt: is damaged \(.*{reason}"):
            load_checkpoint(path)
    changed = bytearray(whole)
    changed[whole.index(torch.arange(40.0).numpy().tobytes()) + 7] ^= 64
    path.write_bytes(changed)
    with pytest.raises(
        InputError, match=r"best\.pt: is damaged \(the checksum of .*/data/\d differs"
    ):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty; load only checkpoints written by fairseq-train"),
        (b"no checkpoint at all\n", "is no checkpoint, or is damaged or cut short"),
        (b"PK\3\4 and no more", "is no checkpoint, or is damaged or cut short"),
        (bytes(range(256)), "is no checkpoint, or is damaged or cut short"),
    ],
)
def test_what_is_no_checkpoint_is_named_in_our_words(tmp_path: Path, content: bytes, says: str):
    path = tmp_path / "checkpoint_best.pt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        load_checkpoint(path)
    with pytest.raises(InputError, match="cannot be read .No such file"):
        load_checkpoint(tmp_path / "absent.pt")

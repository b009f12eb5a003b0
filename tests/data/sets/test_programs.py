"""Random FOR programs and the data sets made of them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from functools import cache
from statistics import fmean, pstdev

import pytest
from support import ROOT, SHARED, needs_data

from treesyntax.data.sets.for2lam import For2LamOptions, fitted_size, generate_splits
from treesyntax.data.sets.for_programs import Style, draw_program
from treesyntax.errors import OptionError
from treesyntax.trees.formats.for2lam import FOR
from treesyntax.trees.tree import Tree

REFERENCE = SHARED / "data" / "for2lam_valid"
FINGERPRINT = "09b388828f2fe3e48222ac490f8f765973b8ab893f9939cc216eb7a1819bc391"
SCRIPT = """
import hashlib
from treesyntax.trees.formats.for2lam import FOR
from treesyntax.data.sets.for2lam import For2LamOptions, generate_splits
splits = generate_splits(60, 20, 20, For2LamOptions(seed=7))
text = "\\n".join(FOR.write(tree) for trees in splits.values() for tree in trees)
print(hashlib.sha256(text.encode()).hexdigest())
"""


@cache
def drawn() -> list[Tree]:
    rng = random.Random(2018)
    return [draw_program(rng, Style.DRISSI, 15) for _ in range(10_000)]


def label_shares(trees: list[Tree]) -> dict[str, float]:
    count = Counter(label for tree in trees for label in tree.labels)
    return {label: number / len(trees) for label, number in count.items()}


def test_random_programs_have_the_published_statistics() -> None:
    sizes = sorted(map(len, drawn()))
    assert fmean(sizes) == pytest.approx(21.6, abs=0.6)
    assert pstdev(sizes) == pytest.approx(15.0, abs=0.6)
    assert abs(sizes[9_000] - 42) <= 1
    single = fmean(tree.labels[0] == "<ASSIGN>" for tree in drawn())
    assert single == pytest.approx(0.395, abs=0.02)


@needs_data(REFERENCE)
def test_random_programs_have_the_labels_of_the_reference() -> None:
    lines = (REFERENCE / "valid.src").read_text().splitlines()
    expected, found = label_shares(list(map(FOR.parse, lines))), label_shares(drawn())
    common = {label for label, share in expected.items() if share > 0.1}
    assert {"<FOR>", "<LE>", "10", "a2"} <= common
    for label in common:
        assert found[label] == pytest.approx(expected[label], rel=0.08), label


def test_right_operands_are_single_in_the_style_of_chen() -> None:
    rng = random.Random(1)
    for _ in range(300):
        tree = draw_program(rng, Style.CHEN, 50)
        for node, children in enumerate(tree.children()):
            label = tree.labels[node]
            if label in ("<PLUS>", "<MINUS>"):
                assert tree.labels[children[1]] in ("<VAR>", "<CONST>")
            if label == "<SEQ>":
                assert tree.labels[children[1]] in ("<ASSIGN>", "<IF>", "<FOR>")


def test_variables_pass_over_the_reserved_names() -> None:
    rng = random.Random(1)
    labels = {label for _ in range(20) for label in draw_program(rng, Style.CHEN, 2_000).labels}
    assert {"a7", "a10"} <= labels
    assert not {"a8", "a9"} & labels


def declared_after(tree: Tree, node: int, declared: set[str]) -> set[str]:
    """The variables declared after a statement; fails if it reads any other."""
    children = tree.children()

    def reads(*expressions: int) -> set[str]:
        last = tree.last_descendants
        nodes = (n for start in expressions for n in range(start, last[start] + 1))
        return {tree.labels[n] for n in nodes if tree.labels[n].startswith("a")}

    parts = children[node]
    match tree.labels[node]:
        case "<ASSIGN>":
            assert reads(parts[1]) <= declared
            return declared | reads(parts[0])
        case "<SEQ>":
            return declared_after(tree, parts[1], declared_after(tree, parts[0], declared))
        case "<IF>":
            assert reads(parts[0]) <= declared
            for branch in parts[1:]:
                declared_after(tree, branch, declared)
        case "<FOR>":
            assert reads(parts[1]) <= declared
            inside = declared | {tree.labels[parts[0]]}
            assert reads(parts[2], parts[3]) <= inside
            declared_after(tree, parts[4], inside)
    return declared


@pytest.mark.parametrize("style", Style)
def test_only_declared_variables_are_read(style: Style) -> None:
    rng = random.Random(3)
    for _ in range(100):
        declared_after(draw_program(rng, style, 60), 0, {"a0"})


@pytest.mark.parametrize("style", Style)
@pytest.mark.parametrize("repeats", [False, True])
def test_splits_have_the_sizes_asked_for_and_no_program_in_common(style: Style, repeats: bool):
    splits = generate_splits(400, 100, 50, For2LamOptions(style=style, repeats=repeats))
    assert {split: len(trees) for split, trees in splits.items()} == {
        "train": 400, "valid": 100, "test": 50,
    }  # fmt: skip
    sets = {split: set(trees) for split, trees in splits.items()}
    assert not sets["train"] & sets["valid"]
    assert not sets["train"] & sets["test"]
    assert not sets["valid"] & sets["test"]
    distinct = all(len(sets[split]) == len(trees) for split, trees in splits.items())
    assert distinct is not repeats


def test_splits_have_the_same_distribution() -> None:
    splits = generate_splits(2_000, 1_000, 1_000, For2LamOptions())
    means = [fmean(map(len, trees)) for trees in splits.values()]
    assert max(means) - min(means) < 2.0  # sd 13, so about 3.5 standard errors


def test_a_seed_gives_the_same_programs_everywhere() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert printed == [FINGERPRINT, FINGERPRINT]


def test_small_programs_can_be_left_out() -> None:
    trees = generate_splits(200, 0, 0, For2LamOptions(min_nodes=9))["train"]
    assert min(map(len, trees)) >= 9
    assert not any(tree.labels[0] == "<ASSIGN>" for tree in trees)


def test_progress_is_told_of_each_program() -> None:
    steps: list[None] = []
    generate_splits(7, 2, 1, For2LamOptions(), lambda: steps.append(None))
    assert len(steps) == 10


@pytest.mark.parametrize("length", [20, 50])
def test_the_mean_length_is_met(length: int) -> None:
    options = For2LamOptions(style=Style.CHEN, length=length)
    splits = generate_splits(1_000, 500, 500, options)
    for trees in splits.values():
        mean = fmean(len(FOR.write(tree).split()) for tree in trees)
        assert mean == pytest.approx(length, rel=0.1)


def test_the_size_does_not_depend_on_the_seed() -> None:
    sizes = {
        fitted_size(For2LamOptions(style=Style.CHEN, length=20, seed=seed)) for seed in range(3)
    }
    assert len(sizes) == 1
    assert fitted_size(For2LamOptions(size=99)) == 99


@pytest.mark.parametrize("repeats", [False, True])
def test_a_space_that_is_too_small_is_reported(repeats: bool) -> None:
    with pytest.raises(OptionError) as caught:
        generate_splits(5, 3, 2, For2LamOptions(size=15, min_nodes=10_000, repeats=repeats))
    assert str(caught.value) == (
        "10 programs are asked for, but only 0 distinct ones of at least 10000 nodes were found "
        "before 10000 draws in a row gave none; ask for fewer or smaller programs, or raise the size"
    )


def test_too_many_distinct_programs_are_refused() -> None:
    with pytest.raises(OptionError, match=r"^3000 programs are asked for, but only \d+ distinct"):
        generate_splits(3_000, 0, 0, For2LamOptions(size=0))
    assert len(generate_splits(3_000, 0, 0, For2LamOptions(size=0, repeats=True))["train"]) == 3_000


def test_a_length_that_no_size_gives_is_refused() -> None:
    with pytest.raises(OptionError, match="^no size gives a mean length of 10 tokens, the nearest"):
        fitted_size(For2LamOptions(style=Style.CHEN, length=10, min_nodes=60))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": -1}, "size is -1; it must be 0 or more"),
        ({"min_nodes": -2}, "min_nodes is -2; it must be 0 or more"),
        ({"seed": -3}, "seed is -3; it must be 0 or more"),
        ({"length": 20}, "the style drissi takes a size; only chen takes a length"),
        ({"style": Style.CHEN, "length": 9}, "length is 9; it must be 10 to 500 tokens"),
        ({"style": Style.CHEN, "length": 501}, "length is 501; it must be 10 to 500 tokens"),
    ],
)
def test_options_out_of_range_are_refused(options: dict, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        For2LamOptions(**options)
    assert str(caught.value) == message


def test_a_negative_number_of_programs_is_refused() -> None:
    with pytest.raises(OptionError, match="^valid is -1; it must be 0 or more$"):
        generate_splits(1, -1, 0, For2LamOptions())

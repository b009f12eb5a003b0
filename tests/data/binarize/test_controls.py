"""Control trees in ``treesyntax binarize``."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from support import ROOT
from support.binarize_helpers import binarize, folder_bytes, read, refused, write

from treesyntax.data.binarize import read as binarize_read
from treesyntax.data.manifest import read_data
from treesyntax.data.tree_store import TreeStore
from treesyntax.decoding.output import make_to_text
from treesyntax.study.run.hypotheses import main as collect
from treesyntax.trees.controls import CONTROLS, control_tree
from treesyntax.trees.formats import get_format, read_trees


@pytest.mark.parametrize("control", CONTROLS)
def test_control_trees_take_the_place_of_trees(files, monkeypatch, control):
    monkeypatch.setattr(binarize_read, "BATCH_SENTENCES", 3)
    options = ("--source-linearization", "words", "--source-control", control, "--control-seed", 7)
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
    forms = ("--target-format", "sexpr", "--target-linearization", "nary_dfs")
    options = ("--train", programs, programs, "--source-format", "sexpr", *forms, "--overwrite")
    parents = []
    for seed in (1, 2):
        dest = binarize(files, *options, "--source-control", "random", "--control-seed", seed)
        source, target = (TreeStore(dest / f"train.en-sv.{side}.tree") for side in ("en", "sv"))
        parents.append([source[i].parents.tolist() for i in range(20)])
        assert read(dest, "train", "en")[1] == ["f", "g", "h", "x", "y"]
        assert target[0].parents.tolist() == [-1, 0, 1, 0, 0]
        assert parents[-1][:2] == parents[-1][2:4]
    assert parents[0] != parents[1]


def test_control_trees_that_make_no_sense_are_refused(files, capsys):
    programs = write(files["bad"], ["z", "( f ( g x ) y )"] * 10)
    message = refused(
        files, capsys, "--train", programs, files["text"], "--source-format", "sexpr",
        "--source-linearization", "words", "--source-control", "flat",
    )  # fmt: skip
    assert (
        f"{programs}:1: the tree has no words, and its leaves would not be those of the" in message
    )
    assert "choose another linearization than words" in message


FORMS = ["( f ( g x y ) z )", "( and ( f y ) ( g z x ) ( f x ) )", "( g ( f z ) ( f ( g x y ) ) )"]


@pytest.mark.parametrize("view", ["nary_dfs", "nary_bfs", "lcrs_dfs", "bracketed"])
def test_tokens_of_shuffled_targets_are_read_as_their_text(files, tmp_path, view):
    """By the step of a study, and by what translate writes."""
    forms = write(files["bad"], (FORMS * 7)[:20])
    options = ("--train", files["ptb"], forms, "--target-format", "sexpr", "--overwrite")
    options += ("--target-linearization", view, "--control-seed", 5)
    given = read(binarize(files, *options), "train", "sv")
    dest = binarize(files, *options, "--target-control", "shuffled")
    tokens = read(dest, "train", "sv")
    assert tokens != given
    assert [len(line) for line in tokens] == [len(line) for line in given]
    to_text = make_to_text(read_data(dest).target)
    expected = [to_sexpr(line) for line in (FORMS * 7)[:20]]
    assert [to_text(line) for line in tokens] == expected
    generated, out = tmp_path / "generate-test.txt", tmp_path / "hypotheses"
    lines = [f"D-{number}\t0\t{' '.join(line)}\n" for number, line in enumerate(tokens)]
    generated.write_text("".join(lines), encoding="utf-8")
    words = ["--reference", str(forms), "--linearization", view, "--notation", "sexpr"]
    assert collect([str(generated), str(out), *words, "--shuffle-seed", "5"]) == 0
    assert out.read_text("utf-8").splitlines() == expected


def test_the_control_of_the_docs(files):
    """The rows that docs/targets.md prints differ in the order of children alone."""
    page = (ROOT / "docs/targets.md").read_text("utf-8")
    (block,) = re.findall(r"```yaml\n(nary_dfs:.*?)```", page, re.S)
    forms = write(files["bad"], (FORMS * 7)[:20])
    options = ("--train", files["ptb"], forms, "--target-format", "sexpr", "--overwrite")
    tokens = []
    for row in yaml.safe_load(block).values():
        flags = [word for key, value in row["binarize"].items() for word in (f"--{key}", value)]
        tokens.append(read(binarize(files, *options, *flags), "train", "sv"))
    given, shuffled = tokens
    assert given != shuffled
    assert [sorted(line) for line in given] == [sorted(line) for line in shuffled]


def to_sexpr(line: str) -> str:
    notation = get_format("sexpr")
    return notation.write(notation.parse(line))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--target-linearization nary_dfs --target-control random",
         "--target-control random makes trees that do not print the target's text; for targets in"),
        ("--target-format conllu --target-control shuffled",
         "shuffled is for targets whose tokens determine the tree, and those of the linearization"),
        ("--source-control shuffled", "--source-control shuffled is for targets, whose text it"),
    ],
)  # fmt: skip
def test_controls_of_the_other_side_are_refused(files, capsys, options, message):
    forms = write(files["bad"], (FORMS * 7)[:20])
    words = ("--train", files["ptb"], forms, "--target-format", "sexpr", *options.split())
    assert message in refused(files, capsys, *words)

"""Published data sets read from the shared folder: their trees against their targets."""

from __future__ import annotations

import contextlib
import io
import itertools
from functools import cache

import pytest
from reliability.figures import SOAK
from support import shared

from treesyntax.data.sets import get_set
from treesyntax.data.sets.base import Part
from treesyntax.data.sets.reading import read_inputs
from treesyntax.data.sets.scan import parse
from treesyntax.trees.formats import get_format
from treesyntax.trees.tree import Tree


@cache
def made(name: str, folder: str) -> tuple[dict[str, Part], str]:
    """The parts of a data set, and what reading its files said."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        texts = read_inputs(get_set(name), shared("data", folder))
    return get_set(name).make(texts, 1), said.getvalue()


TURNS = {"left": ["I_TURN_LEFT"], "right": ["I_TURN_RIGHT"]}


def actions(tree: Tree, node: int = 0) -> list[str]:
    """What a command means, by the rules of Lake & Baroni 2018."""
    below, label = tree.children()[node], tree.labels[node]
    words = [
        tree.labels[leaf] for leaf in tree.leaves if node < leaf <= tree.last_descendants[node]
    ]
    if label == "C":
        parts = [actions(tree, child) for child in below if tree.labels[child] == "S"]
        return list(itertools.chain(*(parts[::-1] if "after" in words else parts)))
    if label == "S":
        return actions(tree, below[0]) * {"twice": 2, "thrice": 3}.get(words[-1], 1)
    verb, turn = words[0], TURNS.get(words[-1], [])
    own = [] if verb == "turn" else [f"I_{verb.upper()}"]
    if "around" in words:
        return (turn + own) * 4
    return turn * (2 if "opposite" in words else 1) + own


@pytest.mark.parametrize(
    ("command", "meaning"),
    [
        ("jump", "I_JUMP"),
        ("turn opposite left after run twice", "I_RUN I_RUN I_TURN_LEFT I_TURN_LEFT"),
        ("look around right and walk left", "I_TURN_RIGHT I_LOOK " * 4 + "I_TURN_LEFT I_WALK"),
    ],
)
def test_the_trees_of_commands_mean_their_actions(command, meaning):
    assert actions(parse(command)) == meaning.split()


@pytest.mark.parametrize(
    "command", ["", "hop", "jump and", "walk and run and look", "jump twice left"]
)
def test_other_commands_are_refused(command):
    with pytest.raises(ValueError, match=r"is no action|more than one"):
        parse(command)


@pytest.mark.parametrize("split", ["length", "around_right", *(["add_jump"] if SOAK else [])])
def test_published_commands_mean_their_actions(split):
    parts, _ = made(f"scan_{split}", "scan")
    for part in parts.values():
        some = list(zip(part.trees, part.targets, strict=True))[::50]
        for tree, target in some:
            assert actions(get_format("ptb").parse(tree)) == target.split()


@pytest.mark.parametrize(
    ("name", "folder", "sizes"),
    [
        ("atis", "atis_lambda_dl", [4433, 491, 448, 354]),
        ("geo", "geo_lambda_dl", [None, 50, 280, None]),
        ("jobs", "jobs_prolog_dl", [None, 50, 140, None]),
        ("atis_funql_length", "atis_funql_length", [4017, 942, 331]),
        ("active_logical", "active_logical", [10_000, 1_250, 1_250, 1_250, 1_250, 2_500]),
    ],
)
def test_published_sets_have_their_sizes(name, folder, sizes):
    parts, said = made(name, folder)
    assert not said  # the checksums are those of the published files
    order = ("train", "valid", "test")
    assert sorted(parts, key=(*order, *parts).index)[:3] == list(order)
    found = [len(parts[part]) for part in sorted(parts, key=(*order, *parts).index)]
    assert all(size in (None, own) for size, own in zip(sizes, found, strict=True))


def test_active_logical_trees_are_on_both_sides():
    part = made("active_logical", "active_logical")[0]["gen"]
    assert set(part.categories) == {
        f"ood_{kind}_{way}_logical" for kind in ("long", "new") for way in ("to", "from")
    }
    for source, tree in list(zip(part.sources, part.trees, strict=True))[::100]:
        sexpr, ptb = get_format("sexpr").parse(source), get_format("ptb").parse(tree)
        assert (sexpr.labels, sexpr.parents.tolist()) == (ptb.labels, ptb.parents.tolist())

"""A training refuses a decoder that would read off what a search has to guess."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import chain

import pytest
import torch
from torch import nn

import treesyntax as ts
from treesyntax.model.composition import Composition
from treesyntax.model.foresight import refuse_foresight
from treesyntax.nn.injection import methods_of
from treesyntax.nn.masks import USER_RELATIONS
from treesyntax.testing.methods import SITE, TREES, make_decoder
from treesyntax.trees.linearizations import get_linearization


class Branches(ts.Injection):
    """An encoding that is known when a token comes: of the branch of its node."""

    def __init__(self, site: ts.Site) -> None:
        super().__init__(site)
        self.vector = nn.Parameter(torch.zeros(site.d_model))

    def number(self, tree):
        return tree.at_tokens(tree.branch, 0)

    def node_encoding(self, tree):
        return self.number(tree).unsqueeze(2) * self.vector


class Children(Branches):
    """How many children each node will have."""

    def number(self, tree):
        is_child = tree.parent.unsqueeze(2) == torch.arange(tree.parent.shape[1])
        return tree.at_tokens(is_child.sum(1), 0)


class ShareOfTheLength(Branches):
    """Where a token is in the whole target, which needs no tree."""

    needs_tree = False

    def number(self, tree):
        return torch.linspace(0, 1, tree.token_node.shape[1]).expand(tree.token_node.shape)


SINGLES = [
    name
    for name in methods_of("decoder")
    if not (built := Composition(name, SITE)).misplaced("decoder")
    and built.leaks_future() is None
    and not built.needs_slots
]
GROWTHS = ("nary_dfs", "lcrs_bfs", "bracketed_twice")


def refuse_in(growth: str, spec: str) -> None:
    lines = [get_linearization(growth).tokens(tree) for tree in TREES]
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *sorted({*chain(*lines)})]
    rows = [torch.tensor([2, *map(symbols.index, line)]) for line in lines]
    tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1)
    refuse_foresight(make_decoder(spec, growth, symbols), tokens)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize(
    ("method", "refused"), [(Branches, False), (Children, True), (ShareOfTheLength, True)]
)
def test_what_changes_when_more_follows_is_refused(monkeypatch, growth, method, refused):
    monkeypatch.setitem(ts.METHODS, "mine", method)
    message = r'mine sees the future: .* first \d tokens .*check_method\("mine"\) passes'
    with pytest.raises(ts.OptionError, match=message) if refused else nullcontext():
        refuse_in(growth, "mine+relation_mask")


def test_so_is_a_relation_that_its_user_took_for_causal(monkeypatch):
    def alike(tree):
        is_child = tree.parent.unsqueeze(2) == torch.arange(tree.parent.shape[1])
        children = tree.at_tokens(is_child.sum(1), 0)
        return children.unsqueeze(1) == children.unsqueeze(2)

    monkeypatch.setitem(USER_RELATIONS, "alike", alike)
    monkeypatch.setattr("treesyntax.nn.masks.CAUSAL_RELATIONS", {"alike"})
    monkeypatch.setattr("treesyntax.methods.pairs.relation_mask.CAUSAL_RELATIONS", {"alike"})
    with pytest.raises(ts.OptionError, match="relation_mask sees the future"):
        refuse_in("nary_dfs", "relation_mask(relations='alike')")


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("spec", [*SINGLES, "tree_rotary+tree_rotation+stack_pe"])
def test_none_of_ours_is(spec, growth):
    refuse_in(growth, spec)

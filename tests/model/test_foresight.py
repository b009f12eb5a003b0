"""A training refuses a user's method whose decoder would read off what a search has to guess."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
from torch import nn

import treesyntax as ts
from treesyntax.model.foresight import refuse_foresight
from treesyntax.testing.methods import TREES, make_decoder
from treesyntax.trees.linearizations import get_linearization


class Depths(ts.Injection):
    """An encoding that is known when a token comes: of the branch of its node."""

    def __init__(self, site: ts.Site) -> None:
        super().__init__(site)
        self.vector = nn.Parameter(torch.zeros(site.d_model))

    def number(self, tree):
        return tree.at_tokens(tree.branch, 0)

    def node_encoding(self, tree):
        return self.number(tree).unsqueeze(2) * self.vector


class Children(Depths):
    """How many children each node will have."""

    def number(self, tree):
        is_child = tree.parent.unsqueeze(2) == torch.arange(tree.parent.shape[1])
        return tree.at_tokens(is_child.sum(1), 0)


class ShareOfTheLength(Depths):
    """Where a token is in the whole target, which needs no tree."""

    needs_tree = False

    def number(self, tree):
        return torch.linspace(0, 1, tree.token_node.shape[1]).expand(tree.token_node.shape)


@pytest.mark.parametrize("growth", ["nary_dfs", "lcrs_bfs", "bracketed_twice"])
@pytest.mark.parametrize(
    ("method", "refused"), [(Depths, False), (Children, True), (ShareOfTheLength, True)]
)
def test_what_changes_when_more_follows_is_refused(monkeypatch, growth, method, refused):
    monkeypatch.setitem(ts.METHODS, "mine", method)
    lines = [get_linearization(growth).tokens(tree) for tree in TREES]
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *sorted({*chain(*lines)})]
    rows = [torch.tensor([2, *map(symbols.index, line)]) for line in lines]
    tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1)
    decoder = make_decoder("mine+relation_mask", growth, symbols)
    if not refused:
        return refuse_foresight(decoder, tokens)
    message = r'mine sees the future: .* first \d tokens .*check_method\("mine"\) passes'
    with pytest.raises(ts.OptionError, match=message):
        refuse_foresight(decoder, tokens)

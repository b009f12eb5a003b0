"""A search warns once of references and trees that do not fit."""

from __future__ import annotations

import logging
from argparse import Namespace

import pytest
from support.helpers import stored
from torch import nn

from fairseq_plugins.limits import tell_limits
from treesyntax.methods.stack_pe import StackEncoding
from treesyntax.nn.injection import Site
from treesyntax.trees.tree import Tree


def test_what_does_not_fit_is_told_with_counts(caplog: pytest.LogCaptureFixture):
    site = Site(8, 2, 1)
    encodings = [StackEncoding(site, depth=2, parameters=1, degree=n, tree="nary") for n in (2, 4)]
    model = Namespace(encoder=nn.ModuleList(encodings), max_decoder_positions=lambda: 64)
    pairs = Namespace(src_sizes=[4, 4], tgt_sizes=[9, 3])
    trees = [stored(Tree([-1, 0, 1, 2], list("abcd"))), stored(Tree([-1, 0, 0, 0], list("abcd")))]
    data = {"test": Namespace(dataset=pairs, store=trees)}
    with caplog.at_level(logging.WARNING):
        tell_limits(data, [model], Namespace(max_len_a=1, max_len_b=2))
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(" (")[0] for text in said] == [
        "test: 1 of 2 references are longer",
        "test: of 2 trees 1 are deeper than depth=2 steps",
        "test: of 2 trees 1 are deeper than depth=2 steps",
    ]
    assert "1 have more than degree=2 children (up to 3)" in said[2]
    assert "0 have more than degree=4 children" in said[1]
    caplog.clear()
    tell_limits(
        {"test": Namespace(dataset=Namespace(tgt_sizes=None), store=None)}, [model], Namespace()
    )
    assert not caplog.records

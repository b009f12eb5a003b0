"""A search warns once of references and trees that do not fit."""

from __future__ import annotations

import logging
from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary
from support.helpers import stored
from torch import nn

from fairseq_plugins.limits import in_one_line, tell_limits
from treesyntax.errors import OptionError
from treesyntax.methods.encodings.stack_pe import StackEncoding
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.injection import Site
from treesyntax.trees.tree import Tree


def model_of(encoder: nn.Module, decoder: nn.Module) -> Namespace:
    return Namespace(encoder=encoder, decoder=decoder, max_decoder_positions=lambda: 64)


class Targets(list[torch.Tensor]):
    """References as fairseq keeps them: token ids with the end-of-sentence mark."""

    def __init__(self, lines: list[str], linearization: str) -> None:
        self.tgt_dict = Dictionary()
        super().__init__(self.tgt_dict.encode_line(line).long() for line in lines)
        self.tgt, self.src_sizes, self.tgt_sizes = self, [9] * len(lines), list(map(len, self))
        self.decoder = nn.ModuleDict()
        self.decoder.trees = GrowingTrees(self.tgt_dict.symbols, linearization)


@pytest.mark.parametrize(("linearization", "chain", "wide"), [
    ("nary_dfs", "a/1 b/1 c/0", "a/3 b/0 c/0 d/0"), ("nary_bfs", "a/1 b/1 c/0", "a/3 b/0 c/0 d/0"),
    ("lcrs_dfs", "a/L b/L c/0", "a/L b/R c/R d/0"),
])  # fmt: skip
def test_target_trees_that_do_not_fit_are_counted(linearization, chain, wide, caplog):
    targets = Targets([chain, wide, wide], linearization)
    targets.decoder["path"] = StackEncoding(
        Site(8, 2, 1), depth=1, degree=2, parameters=1, tree="nary"
    )
    with caplog.at_level(logging.WARNING):
        tell_limits(
            {"test": Namespace(dataset=targets, store=None)},
            [model_of(nn.Module(), targets.decoder)],
            Namespace(),
        )
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(
        "test: of 3 target trees 1 are deeper than depth=1 steps (up to 2) and 2"
    )
    assert "more than degree=2 children (up to 3)" in said


def test_what_does_not_fit_is_told_with_counts(caplog: pytest.LogCaptureFixture):
    site = Site(8, 2, 1)
    encodings = [StackEncoding(site, depth=2, parameters=1, degree=n, tree="nary") for n in (2, 4)]
    model = model_of(nn.ModuleList(encodings), nn.Module())
    pairs = Namespace(src_sizes=[4, 4], tgt_sizes=[9, 3])
    trees = [stored(Tree([-1, 0, 1, 2], list("abcd"))), stored(Tree([-1, 0, 0, 0], list("abcd")))]
    data = {"test": Namespace(dataset=pairs, store=trees)}
    with caplog.at_level(logging.WARNING):
        tell_limits(data, [model], Namespace(max_len_a=1, max_len_b=2))
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(" (")[0] for text in said] == [
        "test: 1 of 2 references are longer",
        "test: of 2 source trees 1 are deeper than depth=2 steps",
        "test: of 2 source trees 1 are deeper than depth=2 steps",
    ]
    assert "1 have more than degree=2 children (up to 3)" in said[2]
    assert "0 have more than degree=4 children" in said[1]
    caplog.clear()
    tell_limits(
        {"test": Namespace(dataset=Namespace(tgt_sizes=None), store=None)}, [model], Namespace()
    )
    assert not caplog.records


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Exception("Size of sample #3\n is invalid"), "Size of sample #3 is invalid"),
        (AssertionError("Index file doesn't match expected format. Make"), "Index file doesn't"),
        (AssertionError("--sampling-topk requires --sampling"), "topk requires --sampling"),
        (AssertionError("--temperature must be greater than 0"), "must be greater than 0"),
        (
            AssertionError("min_len cannot be larger than max_len, please"),
            "min_len cannot be larger",
        ),
        (
            FileNotFoundError("Dataset not found: test (data)"),
            "binarize that split, or name another",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried"),
            "out of memory; give a smaller --max-",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            "out of memory; give a smaller",
        ),
    ],
)
def test_what_the_user_can_help_is_told_in_one_line(error: Exception, told: str):
    with pytest.raises(OptionError, match=told), in_one_line():
        raise error


def test_other_exceptions_stay_as_they_are():
    with pytest.raises(RuntimeError, match="shapes differ"), in_one_line():
        raise RuntimeError("shapes differ")

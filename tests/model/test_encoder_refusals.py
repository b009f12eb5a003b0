"""Trees that an encoder refuses, with what to do instead."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from treesyntax.errors import OptionError
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig, padding_index_of
from treesyntax.nn.tree_batch import batch_trees
from treesyntax.trees.tree import Tree

PADDING = 1
TREE = Tree([-1, 0, 1, 1, 0], list("abcde"))


def build(spec: str) -> Encoder:
    config = TransformerConfig(d_model=16, d_ff=16, heads=4, layers=1, injection=spec)
    return Encoder(config, nn.Embedding(9, 16, PADDING)).eval()


@pytest.mark.parametrize("spec", ["relation_mask", "stack_pe", "none"])
@pytest.mark.parametrize(
    ("trees", "tokens"), [(1, (2, 5)), (2, (1, 5)), (1, (1, 7)), (1, (1, 4)), (0, (1, 5))]
)
def test_trees_over_other_tokens_are_refused(spec: str, trees: int, tokens: tuple[int, int]):
    batch = batch_trees([TREE] * trees, width=5)
    message = (
        rf"are over tokens \[{trees}, 5\], but the tokens are \[{tokens[0]}, {tokens[1]}\]; give"
    )
    with pytest.raises(OptionError, match=message):
        build(spec)(torch.full(tokens, 4), batch)


@pytest.mark.parametrize(
    ("tree", "kind"), [(TREE, "Tree"), ([TREE], "list"), (batch_trees([TREE]).to_dict(), "dict")]
)
def test_what_is_no_batch_of_trees_is_refused(tree: object, kind: str):
    message = rf"^trees come as a TreeBatch, not as a {kind}; make one with batch_trees\(\["
    with pytest.raises(OptionError, match=message):
        build("relation_mask")(torch.full((1, 5), 4), tree)


@pytest.mark.parametrize(("rows", "width"), [(2, 5), (2, 8), (0, 5), (2, 0), (0, 0)])
def test_trees_over_the_tokens_are_taken(rows: int, width: int):
    batch = batch_trees([TREE] * rows, [range(min(width, 5))] * rows, width)
    shape = build("relation_mask")(torch.full((rows, width), 4), batch).memory.shape
    assert shape == (rows, width, 16)


@pytest.mark.parametrize("spec", ["relation_mask", "stack_pe"])
def test_trees_over_padding_are_refused(spec: str):
    """Padded on the right beside tokens padded on the left, each word would have the node of another one."""
    tokens = torch.tensor([[4, 4, 4, 4, 4, 2], [PADDING] * 2 + [4, 4, 4, 2]])
    trees, nodes = [TREE, Tree([-1, 0, 0], list("abc"))], [[0, 1, 2, 3, 4, -1], [0, 1, 2, -1]]
    encoder = build(spec)
    encoder(tokens, batch_trees(trees, nodes, left_pad=True))
    with pytest.raises(
        OptionError, match="padded on another side .*; give batch_trees left_pad=Tr"
    ):
        encoder(tokens, batch_trees(trees, nodes))


def test_tokens_of_32_bits_are_taken():
    tokens = torch.full((2, 5), 4)
    for spec, batch in (("none", None), ("relation_mask", batch_trees([TREE] * 2))):
        encoder = build(spec)
        short, long = (encoder(one, batch).memory for one in (tokens.int(), tokens))
        assert torch.equal(short, long)


def test_an_embedding_without_padding_is_refused():
    with pytest.raises(ValueError, match="needs a padding index"):
        padding_index_of(nn.Embedding(3, 2))

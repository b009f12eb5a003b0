"""A decoder's methods get the labels of the nodes that it has grown, and no others."""

from __future__ import annotations

import pytest
import torch
from support.helpers import encoded
from torch import Tensor, nn

from treesyntax.methods import METHODS
from treesyntax.model.bracket_growth import BRACKETS, GROWING, growing_trees
from treesyntax.model.decoder import Decoder, KVCache
from treesyntax.model.encoder import EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GROWING_LINEARIZATIONS
from treesyntax.nn.injection import Injection
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.trees.tree import Tree

TREES = [Tree([-1, 0, 1, 1, 0], list("abcab")), Tree([-1, 0], list("cb"))]
PADDING = 1


class OfLabels(Injection):
    """An encoding of the label of each token's node, another one where no node is."""

    needs_labels = True

    def node_encoding(self, tree: TreeBatch) -> Tensor:
        """[B, T, d_model], the label in each column."""
        label = tree.at_tokens(tree.label, -1).float()
        return label.unsqueeze(2).expand(-1, -1, self.site.d_model)


@pytest.fixture(autouse=True)
def of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "of_labels", OfLabels)


def build(linearization: str, symbols: list[str], next_slot: bool) -> Decoder:
    config = TransformerConfig(
        d_model=16, d_ff=16, heads=4, layers=1, injection="of_labels", next_slot=next_slot
    )
    embedding = nn.Embedding(len(symbols), 16, PADDING)
    return Decoder(config, embedding, trees=growing_trees(symbols, linearization)).eval()


@pytest.mark.parametrize(
    ("linearization", "next_slot"),
    [*((one, False) for one in GROWING), *((one, True) for one in GROWING_LINEARIZATIONS)],
)
@torch.no_grad()
def test_labels_step_by_step_are_those_of_all_at_once(linearization: str, next_slot: bool):
    tokens, symbols = encoded(TREES, linearization)
    decoder = build(linearization, symbols, next_slot)
    source = EncoderOutput(torch.randn(2, 3, 16), None)
    full, cache = decoder.decode(tokens, source), KVCache()
    for step in range(1, tokens.shape[1] + 1):
        last = decoder.decode(tokens[:, :step], source, cache)[:, 0]
        torch.testing.assert_close(last, full[:, step - 1], atol=1e-5, rtol=1e-5)
    assert decoder.decode(tokens[:, :0], source).shape == (2, 0, 16)


@pytest.mark.parametrize("linearization", GROWING)
def test_the_label_of_a_token_is_that_of_its_node(linearization: str):
    tokens, symbols = encoded(TREES, linearization)
    decoder = build(linearization, symbols, False)
    seen: list[Tensor] = []
    method = decoder.injections["of_labels"]
    encode = method.node_encoding
    method.node_encoding = lambda tree: seen.append(encode(tree)[..., 0]) or encode(tree)
    decoder.decode(tokens, EncoderOutput(torch.randn(2, 3, 16), None))
    growing = decoder.trees
    placed = growing.grow(tokens).tree.token_node >= 0
    closing = torch.tensor([symbol == ")" for symbol in symbols])[tokens]
    opening = placed & ~closing if linearization == BRACKETS else placed
    assert torch.equal(seen[0][opening], growing.labels[tokens][opening].float())
    assert seen[0][opening].unique().numel() > 1
    assert bool((seen[0][~placed] == -1).all())


@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
def test_the_label_of_the_next_slot_is_unknown(linearization: str):
    tokens, symbols = encoded(TREES, linearization)
    slots = growing_trees(symbols, linearization).grow(tokens).next_slots
    assert slots.label is not None
    assert int(slots.label.abs().max()) == 0

"""A model of random numbers, and constrained search with it."""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import nn

from fairseq_plugins.generator import ConstrainedGenerator
from treesyntax.decoding.constraints import Constraints
from treesyntax.decoding.grammar import any_tree
from treesyntax.nn.growth import GrowingTrees

NARY = [*(f"a{i}/0" for i in range(3)), *(f"f{i}/1" for i in range(4)), "g/2", "h/3", "word"]
BINARY = [f"{label}/{slots}" for label in "abc" for slots in ("0", "L", "R", "LR")]
BEAM = 3
ORDERS, FORMS = ("dfs", "bfs"), ("nary", "lcrs")


class SourceEncoder(FairseqEncoder):
    """The mean of random vectors."""

    def __init__(self, dictionary):
        super().__init__(dictionary)
        self.embed = nn.Embedding(len(dictionary), 8)

    def forward(self, src_tokens, **unused):
        return {"encoder_out": self.embed(src_tokens).mean(1)}

    def reorder_encoder_out(self, encoder_out, new_order):
        return {"encoder_out": encoder_out["encoder_out"].index_select(0, new_order)}


class RandomDecoder(FairseqIncrementalDecoder):
    """Random logits from the source, the last token and the position."""

    def __init__(self, dictionary):
        super().__init__(dictionary)
        self.embed = nn.Embedding(len(dictionary), 8)
        self.position = nn.Embedding(64, 8)
        self.output = nn.Linear(8, len(dictionary))
        nn.init.normal_(self.output.weight, std=1.5)

    def forward(self, prev_output_tokens, encoder_out, incremental_state=None):
        last = self.embed(prev_output_tokens[:, -1])
        position = self.position.weight[prev_output_tokens.shape[1] - 1]
        features = torch.sin(last + position + 3 * encoder_out["encoder_out"])
        return self.output(features).unsqueeze(1), None

    def max_positions(self):
        return 64


def dictionary_of(symbols):
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return dictionary


def random_model(dictionary, seed=0):
    torch.manual_seed(seed)
    return FairseqEncoderDecoderModel(SourceEncoder(dictionary), RandomDecoder(dictionary)).eval()


def sources(count, dictionary):
    tokens = torch.randint(4, len(dictionary), (count, 6))
    return {"net_input": {"src_tokens": tokens, "src_lengths": torch.full((count,), 6)}}


def constraints_of(dictionary, order, form="nary", grammar=any_tree):
    """``grammar``: makes one from how the tokens grow trees."""
    trees = GrowingTrees(dictionary.symbols, f"{form}_{order}")
    return Constraints(trees, dictionary.eos(), grammar(trees))


def generator_of(model, dictionary, constraints, limit, beam=BEAM, **options):
    return ConstrainedGenerator(
        [model],
        dictionary,
        tree_constraints=constraints,
        max_len_b=limit,
        beam_size=beam,
        **options,
    )

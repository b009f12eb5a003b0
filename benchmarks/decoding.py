"""Step-by-step decoding of whole trees with each method on the decoder, as a ratio to the plain one.

Every row is a random tree of exactly that many tokens, whose tokens are given one by one, as beam
search does: caches are reordered at every step, and each step ends in the logits.

    python benchmarks/decoding.py                  # one CPU thread, 50 and 200 tokens, 40 rows
    python benchmarks/decoding.py --lengths 200 --methods relation_mask up_down --linearization lcrs_bfs
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
from timing import medians, print_ratios
from torch import Tensor, nn
from trees import random_trees

from treesyntax.data.dictionary import EOS, PAD, SPECIALS
from treesyntax.model.decoder import Decoder, KVCache
from treesyntax.model.encoder import EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GROWING_LINEARIZATIONS, GrowingTrees
from treesyntax.nn.injection import METHODS
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

SMALL = TransformerConfig(
    d_model=256, d_ff=1024, heads=8, layers=4
)  # Shiv & Quirk 2019, semantic parsing
SOURCE_LENGTH = 20
THREE = "stack_pe+relation_mask+relative_depth"


def random_targets(rows: int, length: int, linearization: str) -> tuple[Tensor, list[str]]:
    """Decoder input [rows, length] and the symbols by id."""
    parents = random_trees(rows, length)[0].tolist()
    lines = [get_linearization(linearization).tokens(Tree(own, ["x"] * length)) for own in parents]
    symbols = [*SPECIALS, *sorted({symbol for line in lines for symbol in line})]
    ids = {symbol: index for index, symbol in enumerate(symbols)}
    return torch.tensor([[EOS, *(ids[symbol] for symbol in line[:-1])] for line in lines]), symbols


def build_decoder(spec: str, symbols: list[str], linearization: str) -> Decoder:
    """A decoder of random weights."""
    torch.manual_seed(0)
    settings = SMALL if spec == "none" else TransformerConfig(**{**vars(SMALL), "injection": spec})
    embedding = nn.Embedding(len(symbols), settings.d_model, PAD)
    return Decoder(
        settings, embedding, share_output=True, trees=GrowingTrees(symbols, linearization)
    ).eval()


@torch.no_grad()
def decode(decoder: Decoder, tokens: Tensor, source: EncoderOutput) -> None:
    """All steps."""
    cache, order = KVCache(), torch.arange(len(tokens), device=tokens.device)
    for step in range(1, tokens.shape[1] + 1):
        decoder.output_projection(decoder.decode(tokens[:, :step], source, cache))
        cache.reorder(order)


def main() -> None:
    """Print a line of ratios for every length."""
    methods = [name for name in METHODS if name not in ("sequence", "linearized")]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--rows", type=int, default=40, help="sentences times beam")
    parser.add_argument("--methods", nargs="+", default=[*methods, THREE])
    parser.add_argument("--linearization", choices=GROWING_LINEARIZATIONS, default="nary_dfs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for length in args.lengths:
        tokens, symbols = random_targets(args.rows, length, args.linearization)
        memory = torch.randn(args.rows, SOURCE_LENGTH, SMALL.d_model, device=args.device)
        source = EncoderOutput(memory, None)
        actions: dict[str, Callable[[], object]] = {
            spec: partial(
                decode,
                build_decoder(spec, symbols, args.linearization).to(args.device),
                tokens.to(args.device),
                source,
            )
            for spec in ["none", *args.methods]
        }
        print_ratios(f"n = {length}", medians(actions, args.repeats), "none")


if __name__ == "__main__":
    main()

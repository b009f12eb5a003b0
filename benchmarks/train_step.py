"""A whole training step of an encoder-decoder, as a ratio to the plain Transformer's.

Forward, backward and Adam at the size of fairseq's transformer_iwslt_de_en (width 512, 6 + 6
layers) or of Transformer-Tiny (width 128, 4 + 4 layers). All rows share one model and differ in what is injected into its encoder alone. The last
row is the stack encoding by itself, forward and backward, as a share of the plain step.

    python benchmarks/train_step.py                      # one CPU thread, source length 64 and 512
    python benchmarks/train_step.py --width 128 --lengths 64 --methods relation_mask stack_pe

There was a CPU kernel of our own for what methods add to pairs (371 lines). Plain autograd took its
place (treesyntax/nn/pairs.py), as whole steps gained too little. One thread of a busy machine,
processor time, medians of 5 interleaved repeats, 1,024 tokens (512 wide: 256), dropout 0.1; step time
as a ratio to the plain Transformer's, kernel / plain autograd, and what the kernel gained:

    width, length   relation_mask        relative_depth       with stack_pe, all three
    128,   32       0.95 / 0.92  -3 %    1.00 / 0.92  -9 %    0.97 / 1.00  +4 %
    128,   64       1.05 / 1.05   0 %    0.99 / 1.04  +5 %    1.17 / 1.06 -10 %
    128,  256       1.22 / 1.13  -8 %    1.22 / 1.18  -4 %    1.32 / 1.37  +4 %
    128, 1024       1.22 / 1.31  +6 %    1.46 / 1.34  -9 %    1.73 / 1.55 -11 %
    512,   64       0.96 / 0.99  +3 %    0.96 / 0.95  -2 %    1.02 / 1.03  +1 %
    512,  256       1.06 / 1.11  +4 %    1.06 / 1.03  -3 %    1.12 / 1.12   0 %

At lengths 32 and 64 plain autograd is the mean of three runs, which differ by up to
0.2. A whole step at width 128 and length 1,024 with relation masks held 687 / 738 MiB.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from timing import medians, print_ratios
from torch import Tensor, nn
from trees import random_trees

from treesyntax.model.composition import Composition
from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.injection import Site, methods_of
from treesyntax.nn.tree_batch import TreeBatch

SIZES = {
    512: TransformerConfig(d_model=512, d_ff=1024, heads=4, layers=6, dropout=0.1),
    128: TransformerConfig(d_model=128, d_ff=256, heads=4, layers=4, dropout=0.1),
}
SYMBOLS = 8000
PADDING = 1
THREE = "stack_pe+relation_mask+relative_depth"


class Step:
    """One model and its training step; what the encoder injects is exchanged between steps."""

    def __init__(
        self, size: TransformerConfig, specs: list[str], batch: int, length: int, device: str
    ) -> None:
        torch.manual_seed(0)
        source, target = (nn.Embedding(SYMBOLS, size.d_model, PADDING) for _ in range(2))
        settings = dataclasses.replace(size, max_positions=length + 2)
        site = Site(size.d_model, size.heads, size.layers)
        self.encoder = Encoder(settings, source).to(device)
        self.decoder = Decoder(settings, target, share_output=True).to(device)
        self.injections = {spec: Composition(spec, site).to(device) for spec in specs}
        base = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimizers = {
            spec: torch.optim.Adam([*base, *injected.parameters()])
            for spec, injected in self.injections.items()
        }
        self.tree = TreeBatch(*(x.to(device) for x in random_trees(batch, length)))
        self.tokens = torch.randint(4, SYMBOLS, (batch, length), device=device)

    def run(self, spec: str) -> None:
        """Forward, backward, update."""
        self.encoder.injections = self.injections[spec]
        memory: EncoderOutput = self.encoder.encode(self.tokens, self.tree)
        features = self.decoder.decode(self.tokens, memory)
        logits: Tensor = self.decoder.output_projection(features)
        F.cross_entropy(logits.flatten(0, 1), self.tokens.flatten()).backward()
        self.optimizers[spec].step()
        self.optimizers[spec].zero_grad()

    def encode_stack(self) -> None:
        """The stack encoding alone, forward and backward."""
        encoding = self.injections["stack_pe"].encode(self.tree)
        assert encoding is not None
        encoding.sum().backward()
        self.injections["stack_pe"].zero_grad()


def main() -> None:
    """Print a line of ratios for every length."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--width", type=int, choices=SIZES, default=512)
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--tokens", type=int, default=1024, help="source tokens in a batch")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--methods", nargs="+", default=[*methods_of("encoder"), THREE])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    # One batch again and again: soon the softmax of the output underflows into denormal numbers,
    # with which a CPU computes several times slower. No training has them.
    torch.set_flush_denormal(True)
    specs = list(dict.fromkeys(["none", *args.methods, "stack_pe"]))
    for length in args.lengths:
        step = Step(SIZES[args.width], specs, max(args.tokens // length, 1), length, args.device)
        actions: dict[str, Callable[[], object]] = {
            spec: partial(step.run, spec) for spec in ["none", *args.methods]
        }
        actions["(stack encoding alone)"] = step.encode_stack
        print_ratios(f"n = {length}", medians(actions, args.repeats), "none")


if __name__ == "__main__":
    main()

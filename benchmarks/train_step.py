"""A whole training step of an encoder-decoder, as a ratio to the plain Transformer's.

Forward, backward and Adam at the size of fairseq's transformer_iwslt_de_en (width 512, 6 + 6
layers) or of Transformer-Tiny (width 128, 4 + 4 layers). All rows share one model and differ in what is
injected into its encoder alone; ``decoder:SPEC`` injects into the decoder, over the trees of the target,
and ``copy`` lets it copy the source. The last
row is the stack encoding by itself, forward and backward, as a share of the plain step.

    python benchmarks/train_step.py                      # one CPU thread, source length 64 and 512
    python benchmarks/train_step.py --width 128 --lengths 64 --methods relation_mask decoder:pushdown copy

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
A smaller kernel came later, for a bias from one table (treesyntax/nn/kernels/table.py): docs/costs.md.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from timing import medians, print_ratios, print_table
from torch import Tensor, nn
from trees import random_trees

from treesyntax.model.composition import Composition
from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.copying import Copying
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.injection import METHODS, Site, methods_of
from treesyntax.nn.tree_batch import TreeBatch

SIZES = {
    512: TransformerConfig(d_model=512, d_ff=1024, heads=4, layers=6, dropout=0.1),
    128: TransformerConfig(d_model=128, d_ff=256, heads=4, layers=4, dropout=0.1),
}
SYMBOLS = 8000
PADDING = 1
THREE = "stack_pe+relation_mask+relative_depth"
DECODER, COPY = "decoder:", "copy"
ALONE = [f"{DECODER}{name}" for name in METHODS if "encoder" not in METHODS[name].sides]
SLOTS = 16  # symbol 16 r + c of the target has c children


class Step:
    """One model and its training step; what is injected is exchanged between steps."""

    def __init__(
        self, size: TransformerConfig, specs: list[str], batch: int, length: int, device: str
    ) -> None:
        torch.manual_seed(0)
        source, target = (nn.Embedding(SYMBOLS, size.d_model, PADDING) for _ in range(2))
        settings = dataclasses.replace(size, max_positions=length + 2)
        site = Site(size.d_model, size.heads, size.layers)
        self.encoder = Encoder(settings, source).to(device)
        self.decoder = Decoder(settings, target, share_output=True).to(device)
        self.injections = {spec: _injected(spec, site).to(device) for spec in specs}
        self.plain = Composition("none", site)
        symbols = [f"w{index}/{index % SLOTS}" for index in range(SYMBOLS)]
        self.growing = GrowingTrees(symbols, "nary_dfs").to(device)
        base = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimizers = {
            spec: torch.optim.Adam([*base, *injected.parameters()])
            for spec, injected in self.injections.items()
        }
        self.tree = TreeBatch(*(x.to(device) for x in random_trees(batch, length)))
        above = self.tree.parent.clamp(min=0)
        children = torch.zeros_like(above).scatter_add(1, above, (self.tree.parent >= 0).long())
        words = torch.randint(1, SYMBOLS // SLOTS, (batch, length), device=device)
        self.tokens = SLOTS * words + children.clamp(max=SLOTS - 1)
        self.shifted = F.pad(self.tokens[:, :-1], (1, 0), value=2)

    def run(self, spec: str) -> None:
        """Forward, backward, update."""
        injected, grows, copies = self.injections[spec], spec.startswith(DECODER), spec == COPY
        self.encoder.injections = self.plain if grows or copies else injected
        self.decoder.injections = injected if grows else self.plain
        self.decoder.trees = self.growing if grows else None
        self.decoder.copying = injected if copies else None
        memory: EncoderOutput = self.encoder.encode(self.tokens, self.tree)
        logits: Tensor = self.decoder(self.shifted, memory)
        loss = F.cross_entropy(logits.flatten(0, 1), self.tokens.flatten())
        if memory.loss is not None:  # of a method, summed over tokens
            loss = loss + memory.loss / self.tokens.numel()
        loss.backward()
        self.optimizers[spec].step()
        self.optimizers[spec].zero_grad()

    def encode_stack(self) -> None:
        """The stack encoding alone, forward and backward."""
        encoding = self.injections["stack_pe"].encode(self.tree)
        assert encoding is not None
        encoding.sum().backward()
        self.injections["stack_pe"].zero_grad()


def _injected(spec: str, site: Site) -> nn.Module:
    if spec == COPY:
        return Copying(site.d_model, site.d_model, torch.arange(SYMBOLS).unsqueeze(0))
    return Composition(spec.removeprefix(DECODER), site)


def main() -> None:
    """Print a line of ratios for every length, and all of them as a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--width", type=int, choices=SIZES, default=512)
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--tokens", type=int, default=1024, help="source tokens in a batch")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument(
        "--methods", nargs="+", default=[*methods_of("encoder"), THREE, *ALONE, COPY]
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    # One batch again and again: soon the softmax of the output underflows into denormal numbers,
    # with which a CPU computes several times slower. No training has them.
    torch.set_flush_denormal(True)
    specs = list(dict.fromkeys(["none", *args.methods, "stack_pe"]))
    table: dict[str, dict[str, float]] = {}
    for length in args.lengths:
        step = Step(SIZES[args.width], specs, max(args.tokens // length, 1), length, args.device)
        actions: dict[str, Callable[[], object]] = {
            spec: partial(step.run, spec) for spec in ["none", *args.methods]
        }
        actions["(stack encoding alone)"] = step.encode_stack
        table[f"n = {length}"] = medians(actions, args.repeats)
        print_ratios(f"n = {length}", table[f"n = {length}"], "none")
    print_table(table, "none")


if __name__ == "__main__":
    main()

"""One training step over one large tree in a process of its own: what it took, as JSON.

``python one_step.py SPEC NODES SIDE``: methods on the encoder or the decoder.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time

import torch
from torch import nn

from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

PADDING = 1


def random_tree(size: int) -> Tree:
    """Any shape can come up; about sqrt(size) deep."""
    generator, parents, path = random.Random(1), [], []
    for node in range(size):
        parents.append(path[-1] if path else -1)
        path.append(node)
        del path[len(path) - generator.choice([0, 1, 1, 1, 2, 3][: len(path)]) :]
    return Tree(parents, ["a"] * size)


def peak_bytes() -> int:
    """Most memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def step(spec: str, tree: Tree, side: str) -> float:
    """Forward, backward and an update; the loss."""
    settings = TransformerConfig(
        d_model=16, d_ff=16, heads=2, layers=1, injection=spec, max_positions=len(tree) + 2
    )
    torch.manual_seed(0)
    if side == "encoder":
        model: nn.Module = Encoder(settings, nn.Embedding(8, 16, PADDING))
        tokens = torch.full((1, len(tree) + 1), 4)
        nodes = torch.cat([torch.arange(len(tree)), torch.tensor([-1])])[None]
        batch = TreeBatch(
            torch.as_tensor(tree.parents.astype("int64"))[None],
            torch.as_tensor(tree.branches.astype("int64"))[None],
            nodes,
        )
        output = model.encode(tokens, batch).memory
    else:
        line = get_linearization("nary_dfs").tokens(tree)
        symbols = ["<s>", "<pad>", "</s>", "<unk>", *sorted(set(line))]
        tokens = torch.tensor([[2, *map(symbols.index, line)]])
        embedding = nn.Embedding(len(symbols), 16, PADDING)
        model = Decoder(settings, embedding, True, GrowingTrees(symbols, "nary_dfs"))
        output = model.decode(tokens, EncoderOutput(torch.ones(1, 2, 16), None))
    loss = output.float().square().sum(-1).sqrt().mean()
    loss.backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    return float(loss.detach())


def main(spec: str, nodes: str, side: str) -> None:
    """Say the peak above what was there before the step, and the seconds."""
    torch.set_num_threads(1)
    tree = random_tree(int(nodes))
    step(spec, random_tree(64), side)
    before, begun = peak_bytes(), time.perf_counter()
    loss = step(spec, tree, side)
    taken = {"bytes": peak_bytes() - before, "seconds": time.perf_counter() - begun, "loss": loss}
    print(json.dumps({**taken, "bytes_a_pair": taken["bytes"] / int(nodes) ** 2}))


if __name__ == "__main__":
    main(*sys.argv[1:])

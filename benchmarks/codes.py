"""Milliseconds from stored integers to what a batch's layers share: padding and codes of pairs.

python benchmarks/codes.py                     # 32 trees of 64 nodes, one CPU thread
python benchmarks/codes.py --trees 8 --nodes 512
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import torch
from timing import medians
from trees import random_trees

from treesyntax.methods import METHODS
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.nn.tree_batch import collate


class Stored(NamedTuple):
    """What a tree store gives for a sentence."""

    parents: np.ndarray
    branches: np.ndarray
    token_nodes: np.ndarray


def main() -> None:
    """Print a line for every pairwise method."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trees", type=int, default=32)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=51)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = zip(*(part.numpy() for part in random_trees(args.trees, args.nodes)), strict=True)
    trees = [Stored(*row) for row in rows]
    compositions = {name: Composition(name, Site(512, 8, 6)) for name in METHODS}
    batch = collate(trees, args.nodes + 1)
    pairwise = {
        name: composition
        for name, composition in compositions.items()
        if (pairs := composition.code_pairs(batch)).coded or pairs.scaled
    }

    def action(composition: Composition) -> object:
        return composition.code_pairs(collate(trees, args.nodes + 1))

    seconds = medians({n: lambda c=c: action(c) for n, c in pairwise.items()}, args.repeats)
    for name, value in seconds.items():
        print(f"{name:<18} {value * 1000:6.2f} ms")


if __name__ == "__main__":
    main()

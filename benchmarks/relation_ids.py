"""Milliseconds from stored integers to what a batch's layers share: padding and relation ids.

python benchmarks/relation_ids.py                     # 32 trees of 64 nodes, one CPU thread
python benchmarks/relation_ids.py --trees 8 --nodes 512
"""

from __future__ import annotations

import argparse

import torch
from timing import medians
from trees import random_trees

from treesyntax.methods import METHODS
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.nn.tree_batch import collate


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
    parts = (part.numpy() for part in random_trees(args.trees, args.nodes))
    trees = list(zip(*parts, strict=True))
    compositions = {name: Composition(name, Site(512, 8, 6)) for name in METHODS}
    batch = collate(trees, args.nodes + 1)
    pairwise = {
        name: composition
        for name, composition in compositions.items()
        if composition.relate(batch)(0)
    }

    def action(composition: Composition) -> object:
        return composition.relate(collate(trees, args.nodes + 1))

    seconds = medians({n: lambda c=c: action(c) for n, c in pairwise.items()}, args.repeats)
    for name, value in seconds.items():
        print(f"{name:<18} {value * 1000:6.2f} ms")


if __name__ == "__main__":
    main()

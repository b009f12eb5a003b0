"""A learned bias for the steps up and down between two nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import depth
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.relations import by_rows, path_lengths
from treesyntax.nn.tree_batch import TreeBatch

MOST_STEPS = 180  # beyond, there are more ids than a 16-bit integer holds


@register("up_down")
class UpDown(Injection):
    """A learned number per layer, head and way from one node to another: steps up, then down.

    ``softmax(QK' / sqrt(d) + b_(up, down))``. The ways are those of Kim et al. 2021 ("Code
    prediction by feeding trees to Transformers"). They encode the unique path between two nodes as
    its numbers of steps up and down. Here they are added as a bias, which is how Graphormer (Ying
    et al. 2021) uses path lengths.

    It tells apart what ``TreeDistance`` does not, such as grandparent
    and sibling, and what the relations of McDonald & Chiang do not, such as uncle and cousin.

    Args:
        site: where the method is built in.
        clip: most steps up, and down, with a number of their own.

    Attributes:
        table: [layers, heads, (clip + 1)^2 + 1], the last column for pairs without a path;
            starts at 0.
    """

    paper = "Kim et al. 2021, as a bias"
    equation = "softmax(QK'/sqrt(d) + b_(steps up, steps down))"
    cost = (
        "relation ids once a batch, a table lookup a pair and layer; "
        "a whole step of width 128 took 1.09 times the plain one at 64 tokens, 1.19 at 512"
        " (the price of these lookups)"
    )

    def __init__(self, site: Site, clip: int = 8) -> None:
        """Raises OptionError for a clip out of range."""
        super().__init__(site)
        if not 1 <= clip <= MOST_STEPS:
            raise OptionError(f"up_down: clip must be 1 to {MOST_STEPS}, not {clip}")
        self.clip, self.no_path = clip, (clip + 1) ** 2
        self.table = nn.Parameter(torch.zeros(site.layers, site.heads, self.no_path + 1))

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """Integers [B, T, T]: up * (clip + 1) + down, clipped, from the query to the key."""
        depths = tree.at_tokens(depth(tree))

        def ids(rows: slice) -> Tensor:
            lengths = path_lengths(tree, rows)
            # length = up + down and depth_key - depth_query = down - up.
            lower = depths.unsqueeze(1) - depths[:, rows].unsqueeze(2)
            up, down = (lengths - lower) // 2, (lengths + lower) // 2
            row_ids = up.clamp(max=self.clip) * (self.clip + 1) + down.clamp(max=self.clip)
            row_ids = row_ids.masked_fill(lengths < 0, self.no_path)
            return row_ids.to(torch.uint8 if self.no_path < 256 else torch.int16)

        return by_rows(tree, ids)

    def bias_table(self, layer: int) -> Tensor:
        """[H, (clip + 1)^2 + 1]."""
        return self.table[layer]

"""What rotary encodings of tokens and of nodes share: pairs of channels turned by coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import depth, root
from treesyntax.nn.injection import Injection, Site
from treesyntax.nn.node_maps import Turns
from treesyntax.nn.tree_batch import TreeBatch

COORDINATES = ("depth", "branch", "preorder", "position")


class Rotary(Injection):
    """Pairs of a head's channels turned by ``coordinate * frequency`` (Su et al. 2021, Eq. 34).

    Coordinates are dealt to the pairs in turn. One with m pairs has the frequencies
    ``base^(-i / m)``, i = 0 … m - 1, so a single coordinate has exactly the paper's. Where a head
    has fewer pairs than there are coordinates, a pair turns by the sum of several angles.

    Attributes:
        name: of the method, for messages.
        coordinates: those in use, by index in ``owner``.
        owner: LongTensor [K], the coordinate of each frequency.
        frequencies: [heads or 1, K] if they are learned, else None.
    """

    name: str
    replaces_positions = True
    owner: Tensor
    rank: Tensor
    count: Tensor
    like: Tensor

    def __init__(
        self, site: Site, dealt: Sequence[str], base: float, learned: bool, per_head: bool
    ) -> None:
        """Raises OptionError for a head of odd width, a base of 1 or less, or fixed frequencies per head."""
        super().__init__(site)
        width = site.d_model // site.heads
        if width % 2:
            raise OptionError(f"{self.name}: the {width} channels of a head make no pairs")
        if per_head and not learned:
            raise OptionError(
                f"{self.name}: per_head=True is for frequencies that are learned=True"
            )
        if base <= 1:
            raise OptionError(f"{self.name}: base must be above 1, not {base}")
        self.pairs, self.base = width // 2, float(base)
        self.coordinates = list(dict.fromkeys(dealt))
        indices = [self.coordinates.index(name) for name in dealt]
        owner = [indices[k % len(dealt)] for k in range(max(self.pairs, len(dealt)))]
        # Integers keep their value in a model of half precision.
        for name, values in {
            "owner": owner,
            "rank": [owner[:k].count(index) for k, index in enumerate(owner)],
            "count": [owner.count(index) for index in owner],
        }.items():
            self.register_buffer(name, torch.tensor(values), persistent=False)
        # Tells the type of the model, also where there is no parameter.
        self.register_buffer("like", torch.empty(0), persistent=False)
        self.frequencies = None
        if learned:
            self.frequencies = nn.Parameter(self.rates().repeat(site.heads if per_head else 1, 1))

    def rates(self) -> Tensor:
        """[K]: the paper's frequencies, in 32 bits at least."""
        exponents = -self.rank.to(torch.promote_types(self.like.dtype, torch.float32)) / self.count
        return self.base**exponents

    def node_map(self, tree: TreeBatch) -> Turns:
        """Turns by the sums of coordinate times frequency; no turn for tokens without a node."""
        frequencies = self.rates() if self.frequencies is None else self.frequencies
        frequencies = frequencies.to(torch.promote_types(frequencies.dtype, torch.float32))
        values = torch.stack([_coordinate(tree, name) for name in self.coordinates], 2)
        angles = values[..., self.owner].unsqueeze(1) * frequencies.view(-1, 1, len(self.owner))
        folded = F.pad(angles, (0, -len(self.owner) % self.pairs)).unflatten(3, (-1, self.pairs))
        return Turns.by(folded.sum(3), last="position" in self.coordinates)


def _coordinate(tree: TreeBatch, name: str) -> Tensor:
    """LongTensor [B, T]: a coordinate of each token."""
    if name == "position":
        width = tree.token_node.shape[1]
        return torch.arange(width, device=tree.token_node.device).expand_as(tree.token_node)
    if name == "preorder":
        nodes = torch.arange(tree.parent.shape[1], device=tree.parent.device)
        return tree.at_tokens(nodes - root(tree), 0)
    return tree.at_tokens(depth(tree) if name == "depth" else tree.branch, 0)

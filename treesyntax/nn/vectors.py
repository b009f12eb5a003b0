"""What methods with vectors of pairs share: learned tables, chosen by a relation id or a distance."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Injection, Site


class PairVectors(Injection):
    """Base of methods that read vectors of pairs from learned tables.

    Attributes:
        key_table: [layers, …, d], or None for no vectors on the keys.
        value_table: the same for the values.
    """

    key_table: nn.Parameter | None
    value_table: nn.Parameter | None

    def make_tables(self, shape: tuple[int, ...], keys: bool, values: bool) -> None:
        """Register a table of a shape [layers, …, d] for each side that is wanted."""
        for side, wanted in (("key_table", keys), ("value_table", values)):
            table = nn.Parameter(torch.empty(shape)) if wanted else None
            self.register_parameter(side, table)
            if table is not None:
                nn.init.xavier_uniform_(table.view(-1, shape[-1]))

    def vector_tables(self, layer: int) -> tuple[Tensor | None, Tensor | None]:
        """The tables of a layer."""
        keys, values = self.key_table, self.value_table
        return None if keys is None else keys[layer], None if values is None else values[layer]


class DistanceVectors(PairVectors):
    """A learned vector per clipped distance on the key side, the value side or both.

    Tables are per layer. They are shared by all heads (Shaw et al. 2018, section 3.3) unless
    ``per_head`` is set. Relation ids run from 0 (distance <= -clip) to 2 * clip (distance >=
    clip); :attr:`no_vector` is the id of pairs without a distance.

    Attributes:
        name: of the method, for messages.
        key_table: [layers, 2 * clip + 1, d], or [layers, heads, 2 * clip + 1, d].
        value_table: the same.
    """

    name: str

    def __init__(
        self,
        site: Site,
        clip: int = 2,
        keys: bool = True,
        values: bool = True,
        per_head: bool = False,
    ) -> None:
        """Raises OptionError for a clip below 1 or vectors on neither side."""
        super().__init__(site)
        if clip < 1:
            raise OptionError(f"{self.name}: clip must be 1 or more, not {clip}")
        if not (keys or values):
            raise OptionError(f"{self.name}: keys and values are both off, which leaves nothing")
        self.clip, self.no_vector = clip, 2 * clip + 1
        heads = (site.heads,) if per_head else ()
        shape = (site.layers, *heads, 2 * clip + 1, site.d_model // site.heads)
        self.make_tables(shape, keys, values)

    def clipped(self, distance: Tensor) -> Tensor:
        """Relation ids of integer distances, in as few bytes as hold them."""
        ids = distance.clamp(-self.clip, self.clip) + self.clip
        return ids.to(torch.uint8 if self.no_vector < 256 else torch.int16)

    def vector_tables(self, layer: int) -> tuple[Tensor | None, Tensor | None]:
        """The tables of a layer with a row of zeros for :attr:`no_vector` at their end."""
        tables = super().vector_tables(layer)
        padded = [None if t is None else nn.functional.pad(t, (0, 0, 0, 1)) for t in tables]
        return padded[0], padded[1]

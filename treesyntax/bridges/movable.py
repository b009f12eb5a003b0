"""Batches that go to a device as those of transformers do."""

from __future__ import annotations

from typing import Any

from torch.utils._pytree import MappingKey, register_pytree_node


class Movable(dict[str, Any]):
    """Tensors by their names, and dicts of such, that go to a device as the batches of transformers do.

    Loops of one's own write ``batch.to(device)`` or ``{name: x.to(device) for name, x in batch.items()}``.
    """

    def to(self, *args: Any, **kwargs: Any) -> Movable:
        """All tensors by the words of `torch.Tensor.to`; as there, what is returned has moved."""
        return Movable((name, value.to(*args, **kwargs)) for name, value in self.items())


def _flatten(batch: Movable) -> tuple[list[Any], list[str]]:
    return list(batch.values()), list(batch)


def _flatten_with_keys(batch: Movable) -> tuple[list[tuple[Any, Any]], list[str]]:
    return [(MappingKey(name), value) for name, value in batch.items()], list(batch)


# torch.export and torch.func look into plain dicts, and into what they know.
register_pytree_node(
    Movable,
    _flatten,
    lambda values, names: Movable(zip(names, values, strict=True)),
    serialized_type_name="treesyntax.Movable",
    flatten_with_keys_fn=_flatten_with_keys,
)

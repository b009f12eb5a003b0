"""Tree stores written in one call."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from treesyntax.data.token_files import Fingerprint
from treesyntax.data.tree_store import TreeArrays
from treesyntax.data.tree_store_write import TreeStoreWriter


def write_store(
    path: str | Path, view: str, batches: Iterable[TreeArrays], tokens: Fingerprint
) -> None:
    writer = TreeStoreWriter(Path(path).parent)
    for batch in batches:
        writer.append(batch)
    writer.write(path, view, tokens)

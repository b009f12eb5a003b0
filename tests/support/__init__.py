"""Helpers of the tests, and the folders that they look into."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from treesyntax.data.token_files import Fingerprint
    from treesyntax.data.tree_store import TreeArrays

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "fairseq_plugins"
SHARED = ROOT.parent / "shared"
"""Data sets and models beside the repository, which are not on every machine."""
EMPTY_DRAWING = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt" viewBox="0 0 9 9"/>\n'
)


def shared(*parts: str) -> Path:
    """A file or folder under `SHARED`; skips the test where it does not exist."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    return path


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Look until a condition holds; it must within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def needs_data(*folders: Path) -> pytest.MarkDecorator:
    """Skips a test where one of the folders does not exist."""
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} does not exist")


def write_store(path: str | Path, view: str, batches: Iterable[TreeArrays], tokens: Fingerprint):
    """A tree store, written in one call."""
    from treesyntax.data.tree_store_write import TreeStoreWriter

    writer = TreeStoreWriter(Path(path).parent)
    for batch in batches:
        writer.append(batch)
    writer.write(path, view, tokens)


def binarize(out: Path, source: Path, target: Path, *flags: object) -> Path:
    """Two files as fairseq data, all splits the same; their suffixes name the languages."""
    from treesyntax.__main__ import main

    splits = [word for s in ("train", "valid", "test") for word in (f"--{s}", source, target)]
    languages = ["--source-lang", source.suffix[1:], "--target-lang", target.suffix[1:]]
    words = ["binarize", out, *splits, *languages, "--workers", "1", *flags]
    assert main([str(word) for word in words]) == 0
    return out

"""Tiny models and data for tests of finetuning, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.pretrained import write_model, write_rows


@pytest.fixture(scope="session")
def pretrained(once: Callable[..., Path]) -> Path:
    """A folder with train, valid and test, and a model of each kind; tests leave it as it is."""

    def make(folder: Path) -> None:
        write_rows(folder)
        for kind in ("bert", "t5", "gpt2"):
            write_model(folder / kind, kind)

    return once("pretrained", make)

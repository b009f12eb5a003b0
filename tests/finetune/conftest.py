"""Tiny models and data for tests of finetuning, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pretrained import write_model, write_rows


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train, valid and test, and a model of each kind."""
    folder = tmp_path_factory.mktemp("pretrained")
    write_rows(folder)
    for kind in ("bert", "t5", "gpt2"):
        write_model(folder / kind, kind)
    return folder

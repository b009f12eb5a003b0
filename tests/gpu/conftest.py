"""Tests that need a CUDA GPU: ``pytest tests/gpu``. Elsewhere they are skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

DEVICE = torch.device(os.environ.get("TREESYNTAX_TEST_DEVICE", "cuda"))
"""``TREESYNTAX_TEST_DEVICE=cpu`` runs on a CPU what can run there: to try the tests themselves."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder where there is no GPU."""
    if torch.cuda.is_available() or DEVICE.type == "cpu":
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA GPU"))


@pytest.fixture(scope="session")
def device() -> torch.device:
    return DEVICE

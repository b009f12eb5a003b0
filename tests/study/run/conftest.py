"""Fixtures for the tests of how studies run."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def without_drawings(empty_figures: None) -> None:
    """What a study runs does not depend on what its figures look like."""

"""Fixtures for the tests of studies."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.study_helpers import write_recipe


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small recipe over stand-ins for the real programs."""
    return write_recipe(tmp_path)

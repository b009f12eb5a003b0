"""What the tests of trainings share: one server of fairseq jobs, and data in three orders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fairseq_jobs import Server, binarize
from study_helpers import write_recipe


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe and its study over stand-ins for the programs; copy it to change it."""
    from test_study_run import study

    folder = tmp_path_factory.mktemp("quick")
    write_recipe(folder, seeds=[1])
    assert study(folder).returncode == 0
    return folder


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``nary_dfs``, ``nary_bfs`` and ``lcrs_bfs``: 32 formulas to themselves."""
    folder = tmp_path_factory.mktemp("formulas")
    for view in ("nary_dfs", "nary_bfs", "lcrs_bfs"):
        binarize(folder, view)
    return folder

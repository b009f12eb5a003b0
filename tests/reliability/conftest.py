"""A finished study to copy, and trees in three orders to train on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from reliability.fairseq_jobs import binarize
from support.study_helpers import recipe_content, write_recipe
from support.study_runs import study


@pytest.fixture(scope="session")
def quick(once: Callable[..., Path]) -> Path:
    """A folder with a recipe and its study over stand-ins for the programs; copy it to change it."""

    def make(folder: Path) -> None:
        train = {**recipe_content()["train"], "batch-size": 4}  # fairseq's own flags are checked
        write_recipe(folder, seeds=[1], train=train)
        assert study(folder).returncode == 0

    return once("quick", make)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``nary_dfs``, ``nary_bfs`` and ``lcrs_bfs``: 32 formulas to themselves."""
    folder = tmp_path_factory.mktemp("formulas")
    for linearization in ("nary_dfs", "nary_bfs", "lcrs_bfs"):
        binarize(folder, linearization)
    return folder

"""Fixtures for the tests of studies."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.fake_programs import start_here
from support.study_helpers import write_recipe
from support.study_runs import start_forked, version_read_once

from treesyntax import source
from treesyntax.jobs import processes
from treesyntax.study import provenance
from treesyntax.study.report import report
from treesyntax.study.run import code, executor


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small recipe over stand-ins for the real programs."""
    return write_recipe(tmp_path)


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins that a study in the test's own process starts are forks of it."""
    monkeypatch.setattr(processes, "start", start_forked)


@pytest.fixture(autouse=True)
def versions_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a study reads the metadata of several packages, a fifth of a small study's time."""
    monkeypatch.setattr(provenance, "_version", version_read_once)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins act in the test's own process, and reports have no figures."""
    monkeypatch.setattr(processes, "start", partial(start_here, processes.start))
    monkeypatch.setattr(report, "make_sections", lambda *_: [])  # figures take a second
    monkeypatch.setattr("support.fake_programs.NAP", 0)
    monkeypatch.setattr(executor, "POLL", 0.001)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of our source that studies take for their own code, so that a test may edit it."""
    root = tmp_path / "source"
    for name in code.OURS:
        shutil.copytree(code.ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for file in (root / name).rglob("*.py"):  # parsed once for all copies
            read = source.read_source(code.ROOT / file.relative_to(root))
            source._READ[file] = source._stamp(file), read
            source._FOLDERS[file.parent] = source._stamp(file.parent)
    monkeypatch.setattr(code, "ROOT", root)
    code.look_again()
    yield root
    monkeypatch.undo()
    for known in (source._READ, source._FOLDERS):
        for path in [path for path in known if path.is_relative_to(root)]:
            del known[path]
    code.look_again()

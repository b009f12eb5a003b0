"""Fixtures for all tests; what costs much is made once for all processes."""

import gc
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from hypothesis import settings

torch.set_num_threads(1)

# Continuous integration tries the same examples every time; everybody else tries new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


LONGEST = (
    "study/test_end_to_end.py",
    "recipes/test_nmt.py",
    "docs/test_tutorial.py",
    "docs/test_notebook.py",
)
"""Files with tests of half a minute and more."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: no process then waits for another one in the end."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


def pytest_collection_finish() -> None:
    """Neither the garbage collector nor a fork goes through what all tests share again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a folder once, by its name, for all processes that pytest-xdist has at work."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = root / name, root / f"{name}.done"
        with FileLock(root / f"{name}.lock"):
            if not done.exists():
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture
def quick_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study checks the flags of trainings in a fork, which need not load fairseq or Hugging Face's again."""
    from types import SimpleNamespace

    from support import forked_programs

    from treesyntax.study.run import early

    forked_programs.load(*forked_programs.LOADED)
    monkeypatch.setattr(early, "subprocess", SimpleNamespace(run=forked_programs.check_flags))


@pytest.fixture(scope="module")
def empty_figures() -> Iterator[None]:
    """Figures are made, but written as empty drawings: matplotlib takes a quarter of the time of a small study.

    Drawn figures of studies are in `study/test_end_to_end.py` and in `study/report`.
    """
    from support import EMPTY_DRAWING

    from treesyntax.study.results import figure_files

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure_files, "svg_text", lambda *_: EMPTY_DRAWING)
        yield


@pytest.fixture(scope="session")
def models(once: Callable[..., Path]) -> Path:
    """A folder with a tiny model of every parser; tests leave it as it is."""
    from support.parser_models import make_all

    return once("models", make_all)


@pytest.fixture(scope="session")
def loaded(models: Path) -> Callable:
    """Parsers, each loaded once."""
    from support.parser_fixtures import settings

    from treesyntax.parsers import load_parser

    cache: dict[tuple, object] = {}

    def get(name: str, **changes: object) -> object:
        key = (name, *sorted(changes.items()))
        if key not in cache:
            cache[key] = load_parser(settings(name, models, **changes))
        return cache[key]

    return get


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection would be an error."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def same_depth() -> Iterator[None]:
    """A user's relation, of all pairs at once."""
    from treesyntax.nn.coordinates import depth
    from treesyntax.nn.masks import USER_RELATIONS, register_relation

    @register_relation("same_depth", causal=True)
    def same(tree):
        depths = tree.at_tokens(depth(tree))
        return (depths.unsqueeze(1) == depths.unsqueeze(2)) & (depths >= 0).unsqueeze(1)

    yield
    del USER_RELATIONS["same_depth"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Small files to call ``treesyntax binarize`` with."""
    from support.binarize_helpers import make_files  # it loads fairseq, which most tests do without

    return make_files(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests keep for the next time is not what the user of this machine has kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREESYNTAX_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield

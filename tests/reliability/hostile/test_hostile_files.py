"""Whatever bytes a file has, a reader gives what is in it or one of our errors, soon."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reliability.figures import SOAK, amount, count
from reliability.hostile.readers import READERS
from support import ROOT
from support.study_helpers import recipe_content

from treesyntax.errors import InputError, TreeSyntaxError

FUZZ = Path(__file__).with_name("fuzz.py")
SEED = 7
every_reader = pytest.mark.parametrize("name", READERS)


def fuzz(*arguments: object, seconds: int) -> Callable[[str], dict]:
    """What `fuzz.py` finds for a reader: of one process for all of them, or, in the long version, of
    a process for each, which workers share."""

    @cache
    def found(*names: str) -> dict[str, dict]:
        words = [sys.executable, str(FUZZ), *map(str, arguments), *names]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return {line["reader"]: line for line in map(json.loads, done.stdout.splitlines())}

    return lambda name: found(*((name,) if SOAK else READERS))[name]


@pytest.fixture(scope="module")
def mutated() -> Callable[[str], dict]:
    return fuzz("mutated", SEED, amount(25, 1500), seconds=amount(400, 1500))


@pytest.fixture(scope="module")
def monsters() -> Callable[[str], dict]:
    return fuzz("monsters", "all" if SOAK else "some", seconds=amount(400, 1500))


@every_reader
def test_changed_files_are_read_or_refused(name: str, mutated: Callable[[str], dict]):
    found = mutated(name)
    count("hostile: changed files tried", found["tried"])
    assert not found["faults"], "\n\n".join(found["faults"])
    assert found["tried"] == amount(25, 1500)


@every_reader
def test_deep_long_and_binary_files_are_read_or_refused(name: str, monsters: Callable[[str], dict]):
    found = monsters(name)
    count("hostile: deep, long and binary files tried", found["tried"])
    assert not found["faults"], "\n\n".join(found["faults"])
    assert found["tried"] > 12


def test_the_fuzzer_finds_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A crash, a hang and an endless message are told apart from errors of ours."""
    import reliability.hostile.fuzz as fuzzer

    def read(folder: Path) -> None:
        text = (folder / "file").read_bytes()
        if text == b"crash":
            raise KeyError("x")
        if text == b"hang":
            raise fuzzer.TooSlowError
        raise InputError(folder / "file", 1, "y" * 9999 if text == b"long" else "z")

    def prepare(folder: Path) -> None:
        (folder / "file").write_bytes(b"ours")

    reader = fuzzer.Reader("file", prepare, read)
    monkeypatch.setitem(fuzzer.READERS, "toy", reader)
    contents = [b"crash", b"hang", b"long", b"ours"]
    found = fuzzer.try_reader("toy", lambda valid: iter(contents))
    kinds = ("KeyError", "TooSlowError", "10", "")
    assert len(found["faults"]) == 3
    assert all(kind in fault for kind, fault in zip(kinds, found["faults"], strict=False))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
JSON_READERS = ["results", "study.json", "failures.json", "manifest.json"]
JSON_READERS += ["parse report", "binarize.json", "jsonl", "recipe"]


def places(value: object, path: tuple = ()) -> list[tuple]:
    """The path of every value inside a value."""
    listed = range(len(value)) if isinstance(value, list) else ()
    keys = value if isinstance(value, dict) else listed
    inner = [place for key in keys for place in places(value[key], (*path, key))]  # type: ignore[index]
    return [path, *inner]


def replaced(value: object, path: tuple, new: object) -> object:
    """A value with another one at a path."""
    if not path:
        return new
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]  # type: ignore[index]
    inner[path[-1]] = new  # type: ignore[index]
    return changed


@pytest.mark.parametrize("name", JSON_READERS)
def test_any_value_in_any_place_is_read_or_refused(name: str, tmp_path_factory):
    reader, model = READERS[name], tmp_path_factory.mktemp("model")
    reader.prepare(model)
    path = model / reader.file
    text = path.read_text()
    lines = [json.dumps(recipe_content())] if name == "recipe" else text.split("\n")
    if name in ("manifest.json", "binarize.json", "parse report"):
        lines = [text]

    @settings(
        deadline=None, max_examples=amount(15, 1000), database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        content = json.loads(data.draw(st.sampled_from([line for line in lines if line])))
        place = data.draw(st.sampled_from(places(content)))
        changed = replaced(content, place, data.draw(json_values))
        first = name.startswith("results") and changed != json.loads(lines[0])
        written = [*lines[:first], json.dumps(changed)]
        path.write_text("".join(f"{line}\n" for line in written))
        count("hostile: values of another type tried")
        try:
            reader.read(model)
        except TreeSyntaxError as error:
            assert "\n" not in str(error).rstrip("\n")  # noqa: PT017

    check()

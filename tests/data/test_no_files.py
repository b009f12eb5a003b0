"""Data whose files are pipes, links to themselves or devices: refused in one line, never waited for."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from treesyntax.__main__ import main
from treesyntax.data.dictionary import Dictionary
from treesyntax.data.token_files import TokenData
from treesyntax.data.tree_store import TreeStore
from treesyntax.errors import InputError
from treesyntax.model.checkpoint import load_checkpoint

READERS: dict[str, Callable[[Path], object]] = {
    "train.idx": lambda path: TokenData(path.with_suffix("")),
    "train.tree": TreeStore,
    "dict.a.txt": Dictionary.read,
    "model.pt": load_checkpoint,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device", "loop"])
def test_what_is_no_file_is_refused(name: str, kind: str, tmp_path: Path):
    def late(*_: object) -> None:
        raise AssertionError("it is waited for")

    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else name)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    try:
        with pytest.raises(InputError, match=name):
            READERS[name](path)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_recipe_that_is_a_link_to_itself_is_one_line(tmp_path: Path, capsys):
    link = tmp_path / "loop.yaml"
    link.symlink_to("loop.yaml")
    assert main(["study", str(link), "--plan"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("odd", [{1, 2}, torch.tensor(1.0), b"x"])
def test_facts_that_are_no_numbers_are_refused(odd: object, tmp_path: Path, capsys):
    state = {
        "cfg": {"model": {"encoder_injection": ""}}, "model": {"a": torch.ones(3)},
        "extra_state": {"val_loss": odd, "previous_training_time": 2.0},
        "optimizer_history": [{"num_updates": 5}],
    }  # fmt: skip
    torch.save(state, tmp_path / "model.pt")
    assert main(["analyse", "facts", str(tmp_path / "model.pt")]) == 2
    assert "is no checkpoint of a training" in capsys.readouterr().err

"""The command line as a whole: each command is quick to start."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from treesyntax.__main__ import COMMANDS, main
from treesyntax.files import output_file

SLOW = (
    "fairseq", "matplotlib", "numpy", "sacrebleu", "scipy", "sentencepiece", "torch", "transformers",
)  # fmt: skip
LOADED = f"""
import contextlib, io, json, sys
from treesyntax import __main__ as cli
loaded = {{}}
for command in cli.COMMANDS:
    help = io.StringIO()
    with contextlib.redirect_stdout(help), contextlib.suppress(SystemExit):
        cli.main([command, "--help"])
    assert help.getvalue().startswith(f"usage: treesyntax {{command}}")
    loaded[command] = [name for name in {SLOW} if name in sys.modules]
print(json.dumps(loaded))
"""


def test_the_package_runs_as_a_module():
    words = [sys.executable, "-m", "treesyntax", "plugins"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("fairseq_plugins\n")
    assert (
        importlib.metadata.entry_points(group="console_scripts", name="treesyntax")[
            "treesyntax"
        ].load()
        is main
    )


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """The slow libraries that are loaded after the help of each command."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_loads_no_slow_library(loaded: dict, command: str):
    assert loaded[command] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["study", "a recipe.yaml"], "what is done is kept; to go on: treesyntax study 'a recipe.yaml'"),
        (["score", "--reference", "a", "--hypothesis", "b", "--metric", "bleu"], "to begin again: treesyntax score --ref"),
    ],
)  # fmt: skip
def test_an_interrupted_command_says_how_to_go_on(words, told, capsys, monkeypatch):
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    module = importlib.import_module(COMMANDS[words[0]].module)
    monkeypatch.setattr(module, "run", interrupted)
    assert main(words) == 130
    error = capsys.readouterr().err
    assert f"treesyntax {words[0]}: interrupted; {told}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("shell", "told"),
    [("treesyntax methods <&- >&-", ""), ("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 treesyntax methods", "relation_mask")],
)  # fmt: skip
def test_streams_that_are_closed_or_lack_letters_are_no_fault(shell: str, told: str):
    words = ["bash", "-c", shell.replace("treesyntax", f"{sys.executable} -m treesyntax")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert told in done.stdout


def test_a_signal_leaves_nothing_half_written(monkeypatch, tmp_path, capsys):
    def asked_to_end(_: object) -> int:
        with output_file(tmp_path / "out"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        return 0

    monkeypatch.setattr(importlib.import_module(COMMANDS["plugins"].module), "run", asked_to_end)
    assert main(["plugins"]) == 130
    assert "interrupted; to begin again: treesyntax plugins" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())

"""A torchaudio that cannot be imported stands in nobody's way once treesyntax is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from reliability.figures import SOAK
from support import ROOT

pytest.importorskip("transformers")
BROKEN = "raise OSError('Could not load this library: _torchaudio.abi3.so')"
MODEL = "from transformers import BertModel"


FORKS = """
import json, os, sys
# Once for all programs, with the slowest of what a model loads besides transformers; none loads torchaudio.
import scipy.optimize, sympy, torch, torch._dynamo, torch.distributed.tensor
assert "torchaudio" not in sys.modules
for name, lines in json.loads(sys.argv[1]).items():
    if not os.fork():
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), 1)
        exec("\\n".join(lines))
        sys.stdout.flush()
        os._exit(0)
    if os.wait()[1]:
        sys.exit(name)
"""
FAILING = ("try:", f"    {MODEL}", "except OSError as error:", "    print(error)")
UNTOUCHED = "assert not {'torchaudio', 'transformers'} & {*sys.modules}"
USED = "assert sys.modules['torchaudio'].__version__ == '1'"
HIDDEN = "assert sys.modules['torchaudio'] is None"
PROGRAMS = {
    "ours first": ("import treesyntax", MODEL, HIDDEN),
    "ours before the first model": ("import transformers", "import treesyntax", MODEL, HIDDEN),
    "after the fault": (*FAILING, "import treesyntax", MODEL),
    "a working one": ("sys.path.insert(0, 'working')", "import treesyntax", UNTOUCHED, MODEL, USED),
}
if not SOAK:  # which has the other two hide it
    del PROGRAMS["ours before the first model"]


def run(folder: Path, *words: str) -> None:
    """Python code in a process of its own, in which torchaudio is a module of the folder."""
    paths = os.pathsep.join(map(str, (folder, ROOT)))
    command, environment = [sys.executable, "-c", *words], {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_broken_one_is_hidden_by_ours_also_after_the_fault(tmp_path: Path):
    """The other order fails as docs/troubleshooting.md says; in a notebook it can then be mended.

    A working one is imported by transformers alone.
    """
    (tmp_path / "torchaudio.py").write_text(BROKEN)
    (tmp_path / "working").mkdir()
    (tmp_path / "working/torchaudio.py").write_text("__version__ = '1'")
    run(tmp_path, FORKS, json.dumps(PROGRAMS))
    printed = (tmp_path / "after the fault").read_text().strip()
    assert printed == "Could not load this library: _torchaudio.abi3.so"
    page = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    assert "Could not load this library: …_torchaudio" in page


def test_ours_alone_imports_none_of_them(tmp_path: Path):
    check = "assert not {'torchaudio', 'torch', 'transformers'} & {*sys.modules}"
    run(tmp_path, "\n".join(("import sys, treesyntax", check)))

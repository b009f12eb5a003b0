"""A torchaudio that cannot be imported stands in nobody's way once treesyntax is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

pytest.importorskip("transformers")
BROKEN = "raise OSError('Could not load this library: _torchaudio.abi3.so')"
MODEL = "from transformers import BertModel"


FORKS = """
import json, os, sys
import torch  # once for all programs
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
HIDDEN = "assert sys.modules['torchaudio'] is None"
PROGRAMS = {
    "ours first": ("import treesyntax", MODEL, HIDDEN),
    "ours before the first model": ("import transformers", "import treesyntax", MODEL, HIDDEN),
    "after the fault": (*FAILING, "import treesyntax", MODEL),
}


def run(folder: Path, torchaudio: str, *words: str) -> None:
    """Python code in a process of its own, in which torchaudio is a module with this source."""
    (folder / "torchaudio.py").write_text(torchaudio)
    paths = os.pathsep.join(map(str, (folder, ROOT)))
    command, environment = [sys.executable, "-c", *words], {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_broken_one_is_hidden_by_ours_also_after_the_fault(tmp_path: Path):
    """The other order fails as docs/troubleshooting.md says; in a notebook it can then be mended."""
    run(tmp_path, BROKEN, FORKS, json.dumps(PROGRAMS))
    printed = (tmp_path / "after the fault").read_text().strip()
    assert printed == "Could not load this library: _torchaudio.abi3.so"
    page = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    assert "Could not load this library: …_torchaudio" in page


def test_a_working_one_is_imported_by_transformers_alone(tmp_path: Path):
    check = "assert not {'torchaudio', 'torch', 'transformers'} & {*sys.modules}"
    used = "assert sys.modules['torchaudio'].__version__ == '1'"
    run(tmp_path, "__version__ = '1'", "\n".join(("import sys, treesyntax", check, MODEL, used)))

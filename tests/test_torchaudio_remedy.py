"""A torchaudio that cannot be imported stands in nobody's way once treesyntax is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

pytest.importorskip("transformers")
BROKEN = "raise OSError('Could not load this library: _torchaudio.abi3.so')"
MODEL = "from transformers import BertModel"


def run(tmp_path: Path, torchaudio: str, *lines: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, in which torchaudio is a module with this source."""
    (tmp_path / "torchaudio.py").write_text(torchaudio)
    paths = os.pathsep.join(map(str, (tmp_path, ROOT)))
    command = [sys.executable, "-c", "\n".join(("import sys", *lines))]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)


@pytest.mark.parametrize(
    "lines",
    [("import treesyntax", MODEL), ("import transformers", "import treesyntax", MODEL)],
    ids=["ours first", "ours before the first model"],
)
def test_with_ours_before_a_model_a_broken_one_is_hidden(tmp_path: Path, lines: tuple[str, ...]):
    found = run(tmp_path, BROKEN, *lines, "assert sys.modules['torchaudio'] is None")
    assert found.returncode == 0, found.stderr


def test_after_the_fault_ours_mends_the_same_session(tmp_path: Path):
    """The other order fails as docs/troubleshooting.md says; in a notebook it can then be mended."""
    failing = ("try:", f"    {MODEL}", "except OSError as error:", "    print(error)")
    found = run(tmp_path, BROKEN, *failing, "import treesyntax", MODEL)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "Could not load this library: _torchaudio.abi3.so"
    page = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    assert "Could not load this library: …_torchaudio" in page


def test_a_working_one_is_imported_by_transformers_alone(tmp_path: Path):
    check = "assert not {'torchaudio', 'torch', 'transformers'} & {*sys.modules}"
    used = "assert sys.modules['torchaudio'].__version__ == '1'"
    found = run(tmp_path, "__version__ = '1'", "import treesyntax", check, MODEL, used)
    assert found.returncode == 0, found.stderr

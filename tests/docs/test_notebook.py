"""The notebook docs/notebooks/first_look.ipynb runs as it is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import ROOT

NOTEBOOK = ROOT / "docs/notebooks/first_look.ipynb"
CELLS = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
CODE = [cell["source"] for cell in CELLS if cell["cell_type"] == "code"]


def test_what_needs_no_training_runs_everywhere():
    """Trees and pictures, without a kernel: all cells before that of the study."""
    import matplotlib

    matplotlib.use("agg")
    names: dict = {}
    for cell in CODE[
        : next(n for n, cell in enumerate(CODE) if "treesyntax" in cell and "study" in cell)
    ]:
        exec(cell, names)
    assert names["relations"].shape == (12, 12)
    assert names["vectors"].shape == (12, 64)


def test_the_whole_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Three short trainings; make docs installs what it needs."""
    nbclient = pytest.importorskip("nbclient", reason="the extra notebook is not installed")
    pytest.importorskip("ipykernel", reason="the extra notebook is not installed")
    pytest.importorskip("pandas", reason="the extra notebook is not installed")
    import nbformat

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        book, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    runs = next(cell for cell in book.cells if cell.source.startswith("import pandas"))
    (table,) = (output for output in runs.outputs if output.output_type == "execute_result")
    scores = re.findall(r"^(\S+) +1 +\d+ +(\d+\.\d)", table["data"]["text/plain"], re.M)
    assert [row for row, _ in scores] == ["sequence", "tree2tree", "tree2tree/random"]
    assert any(float(exact) for _, exact in scores), "a table of zeros shows a reader nothing"
    assert (tmp_path / "runs/first-look/report.html").exists()

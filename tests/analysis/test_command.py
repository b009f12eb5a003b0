"""``treesyntax analyse`` and the scripts of the top-level folder ``analysis``."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT
from support.analysis_helpers import analyse, build_methods, save_methods

from treesyntax.analysis.arguments import ARGUMENTS

SCRIPTS = sorted((ROOT / "analysis").glob("*.py"))


def test_help_lists_every_analysis_in_a_line(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        analyse("--help")
    lines = capsys.readouterr().out.splitlines()
    for name in ARGUMENTS:
        assert [
            line for line in lines if line.strip().startswith(f"{name} ") or line.strip() == name
        ]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_help_of_an_analysis_teaches(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as end:
        analyse(name, "--help")
    assert end.value.code == 0
    assert f"Example: treesyntax analyse {name} " in capsys.readouterr().out


def test_help_loads_neither_torch_nor_matplotlib():
    heavy = "{'torch', 'matplotlib', 'numpy'} & set(sys.modules)"
    code = f"""
import sys
from treesyntax.__main__ import main
try:
    main(["analyse", "run", "--help"])
except SystemExit:
    print(sorted({heavy}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_is_short_and_says_how_it_is_called(script: Path):
    source = script.read_text(encoding="utf-8")
    assert source.count("\n") <= 20
    assert f"\npython analysis/{script.name} " in (ast.get_docstring(ast.parse(source)) or "")


def test_every_figure_has_a_script_and_the_scripts_are_no_package():
    assert {script.stem for script in SCRIPTS} == {*ARGUMENTS} - {"facts", "run", "study"}


@pytest.mark.parametrize(
    ("name", "spec", "figures"),
    [
        ("mask_strengths", "relation_mask", {"mask_strengths.svg"}),
        ("encoding_similarity", "stack_pe(depth=4)",
         {"encoding_similarity.svg", "encoding_similarity_moved.svg"}),
    ],
)  # fmt: skip
def test_a_script_draws_what_the_command_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, name: str, spec: str, figures: set
):
    path = save_methods(tmp_path / "c.pt", build_methods(spec), spec)
    script = str(ROOT / "analysis" / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [script, str(path), "--out", str(tmp_path / "script")])
    runpy.run_path(script, run_name="__main__")
    assert analyse(name, path, "--out", tmp_path / "command") == 0
    assert {file.name for file in (tmp_path / "script").iterdir()} == figures
    for figure in figures:
        drawn = [(tmp_path / by / figure).read_bytes() for by in ("script", "command")]
        assert drawn[0] == drawn[1]
    path.write_bytes(b"no checkpoint")
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(script, run_name="__main__")
    told = capsys.readouterr().err
    assert told.startswith(f"{name}.py: {path}: ")
    assert told.count("\n") == 1

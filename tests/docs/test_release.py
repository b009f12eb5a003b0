"""The checks of ``make release`` find what they are for."""

from __future__ import annotations

import runpy
import tarfile
import zipfile
from pathlib import Path

import pytest
from support import ROOT

RELEASE = runpy.run_path(str(ROOT / ".ci/release.py"))
METADATA = "Summary: s\nLicense-Expression: MIT\nRequires-Python: >=3.11\n\n# treesyntax\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name, text in {
        "treesyntax/__init__.py": '__version__ = "0.2.0"\n',
        "treesyntax/trees.py": "",
        "fairseq_plugins/__init__.py": "",
        "recipes/demo/a.yaml": "",
        "CITATION.cff": "version: 0.2.0\n",
        "CHANGELOG.md": "# Changes\n\n## 0.2.0\n\n## 0.1.0\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def wheel(folder: Path, leave_out: str = "", add: str = "", metadata: str = METADATA) -> Path:
    names = {
        "treesyntax/__init__.py",
        "treesyntax/trees.py",
        "fairseq_plugins/__init__.py",
        "treesyntax/recipes/demo/a.yaml",
        add,
    }
    path = folder / "treesyntax-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(names - {leave_out, ""}):
            archive.writestr(name, "")
        archive.writestr("treesyntax-0.2.0.dist-info/METADATA", metadata)
    return path


def test_a_release_that_agrees_has_no_faults(tree: Path, tmp_path: Path):
    assert RELEASE["version_faults"](tree) == []
    assert RELEASE["wheel_faults"](wheel(tmp_path), tree) == []


@pytest.mark.parametrize("file", ["CITATION.cff", "CHANGELOG.md"])
def test_another_version_is_found(tree: Path, file: str):
    text = (tree / file).read_text("utf-8")
    (tree / file).write_text(text.replace("0.2.0", "0.3.0"), encoding="utf-8")
    (fault,) = RELEASE["version_faults"](tree)
    assert file in fault
    assert "0.2.0" in fault


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"leave_out": "treesyntax/recipes/demo/a.yaml"}, "lacks treesyntax/recipes/demo/a.yaml"),
        ({"leave_out": "fairseq_plugins/__init__.py"}, "lacks fairseq_plugins/__init__.py"),
        ({"add": "tests/secret.py"}, "has tests/secret.py beside the package"),
        ({"metadata": METADATA.replace("# treesyntax", "")}, "description is not the README"),
        ({"metadata": METADATA.replace("Summary: s\n", "")}, "has no Summary"),
    ],
)
def test_a_wheel_with_a_fault_is_found(tree: Path, tmp_path: Path, changes: dict, fault: str):
    (shown,) = RELEASE["wheel_faults"](wheel(tmp_path, **changes), tree)
    assert fault in shown


def test_a_source_package_that_lacks_the_tests_is_found(tmp_path: Path):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("README.md", "LICENSE", "CITATION.cff", "CHANGELOG.md", "pyproject.toml"):
            archive.add(ROOT / name, f"treesyntax-0.2.0/{name}")
    assert RELEASE["source_faults"](path) == ["the source package lacks tests/test_imports.py"]


def test_the_command_of_a_wheel_that_does_not_start_is_found(tmp_path: Path):
    path = tmp_path / "treesyntax-0.2.0-py3-none-any.whl"
    info = "treesyntax-0.2.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("treesyntax/__init__.py", "")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: treesyntax\nVersion: 0.2.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{info}/entry_points.txt", "[console_scripts]\ntreesyntax = treesyntax:gone\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    (fault,) = RELEASE["start_faults"](path)
    assert "ImportError" in fault

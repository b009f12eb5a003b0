"""Who may import whom: the house rules of the packages, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TORCH_FREE = (
    "tree", "errors", "files", "formats", "transforms", "linearize", "store", "dictionary",
    "indexed", "worker", "segment", "binarize", "generate", "metrics", "score", "study", "cli", "plugins",
    "arity", "equivalence", "tree_scores", "alignment", "spelling", "forest", "binarize_batch",
    "binarize_columns", "binarize_offsets", "binarize_records", "binarize_sentence",
)  # fmt: skip
MODULES = sorted((ROOT / "treesyntax").rglob("*.py"))


def imported(file: Path) -> set[str]:
    """Full names of everything that a file imports, at any place."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


def roots(file: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(file)}


def test_there_is_something_to_check():
    assert len(MODULES) > 20


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_library_does_not_know_fairseq_or_the_plugins(file):
    assert not roots(file) & {"fairseq", "fairseq_cli", "fairseq_plugins", "analysis"}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_data_modules_do_not_load_torch(file):
    part = file.relative_to(ROOT / "treesyntax").parts[0].removesuffix(".py")
    if part in TORCH_FREE:
        assert "torch" not in roots(file)


METHOD_FILES = sorted((ROOT / "treesyntax" / "methods").glob("[!_]*.py"))


@pytest.mark.parametrize("file", METHOD_FILES, ids=lambda file: file.stem)
def test_a_method_does_not_import_another(file):
    assert not {name for name in imported(file) if name.startswith("treesyntax.methods")}


@pytest.mark.parametrize(
    "file", sorted((ROOT / "analysis").glob("*.py")), ids=lambda file: file.stem
)
def test_analyses_read_checkpoints_without_fairseq(file):
    assert not roots(file) & {"fairseq", "fairseq_cli", "fairseq_plugins"}


def test_the_tree_imports_nothing_but_numpy_and_errors():
    assert roots(ROOT / "treesyntax" / "tree.py") <= {
        "__future__", "collections", "numpy", "treesyntax",
    }  # fmt: skip
    inner = {n for n in imported(ROOT / "treesyntax" / "tree.py") if n.startswith("treesyntax")}
    assert inner <= {"treesyntax.errors", "treesyntax.errors.TreeError"}

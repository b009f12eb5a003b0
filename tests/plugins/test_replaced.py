"""The table of what is replaced in fairseq is whole, and names a test for each row."""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from pathlib import Path

import pytest
from support import ROOT

from fairseq_plugins.replaced import REPLACED

PLUGINS = ROOT / "fairseq_plugins"


@pytest.mark.parametrize("row", REPLACED, ids=lambda row: f"{row.name}-{row.ours.__name__}")
def test_ours_is_in_its_place_and_has_a_test(row):
    found = importlib.import_module(row.module)
    for part in row.name.split("."):
        found = getattr(found, part)
    last = [other for other in REPLACED if (other.module, other.name) == (row.module, row.name)][-1]
    assert found.__wrapped__ is not found
    assert found.__code__.co_filename == last.ours.__code__.co_filename
    file, _, name = row.test.partition("::")
    assert f"def {name}(" in (ROOT / "tests" / file).read_text("utf-8")
    assert row.why


def test_only_saving_is_wrapped_twice_and_the_warning_last():
    times = Counter((row.module, row.name) for row in REPLACED)
    assert {name for (_, name), count in times.items() if count > 1} == {"save_checkpoint"}
    saving = [row.ours.__name__ for row in REPLACED if row.name == "save_checkpoint"]
    assert saving == ["keeping_ends_of_epochs", "ending_at_the_warning"]


def assigned_in_fairseq(file: Path) -> list[str]:
    """What a file assigns to names that it imports from fairseq."""
    tree = ast.parse(file.read_text("utf-8"))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("fairseq")
        and not (node.module or "").startswith("fairseq_plugins")
        for alias in node.names
    }
    targets = [
        target
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        for target in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(target, ast.Attribute)
    ]
    return [
        ast.unparse(target) for target in targets if ast.unparse(target).split(".")[0] in imported
    ]


def test_nothing_else_is_replaced():
    # While a checkpoint is loaded, and only then, its optimiser's state is brought into our order.
    known = {"resume.py": {"checkpoint_utils.load_checkpoint_to_cpu"}}
    for file in PLUGINS.rglob("*.py"):
        assert {*assigned_in_fairseq(file)} == known.get(file.name, set()), file


def test_an_assignment_elsewhere_is_found(tmp_path: Path):
    file = tmp_path / "made_up.py"
    file.write_text(
        "from fairseq import options\nfrom fairseq.trainer import Trainer\nTrainer.a, options.b = 1, 2\n"
    )
    assert assigned_in_fairseq(file) == ["Trainer.a", "options.b"]

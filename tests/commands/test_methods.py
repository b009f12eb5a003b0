"""``treesyntax methods``: the built-in ones, and a user's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support import ROOT

from treesyntax.__main__ import main
from treesyntax.commands.methods import CATALOGUE, catalogue
from treesyntax.methods import METHODS
from treesyntax.model.composition import PRESETS

OWN = '''
from treesyntax.nn.injection import Injection, register

@register("{name}")
class Own(Injection):
    """One of {name}."""

    paper = "me"
    equation = "x"
    cost = "none"

    def leaks_future(self):
        return "looks ahead"
'''


def test_each_method_says_its_cost_hooks_and_sides(capsys):
    assert main(["methods", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    facts = {one["name"]: one for one in listed["methods"]}
    assert list(facts) == list(METHODS)
    assert [one["name"] for one in listed["presets"]] == list(PRESETS)
    assert facts["relation_mask"]["hooks"] == ["relation_ids", "relation_of_pair", "bias_table"]
    assert facts["relation_mask"]["sides"] == ["encoder", "decoder"]
    assert facts["relation_mask"]["parameters"] == 432
    assert facts["relation_mask"]["arguments"]["form"] == "exp"
    assert facts["sequence"]["hooks"] == []
    assert not facts["sequence"]["needs_tree"]
    assert facts["stack_pe"]["replaces_positions"]
    assert {one["linearization"] for one in facts.values()} >= {"words", "preorder", "bracketed"}
    for name, one in facts.items():
        assert one["cost"], name
        assert (ROOT / one["file"]).is_file(), name
    assert main(["methods"]) == 0
    printed = capsys.readouterr().out
    assert "  hooks         relation_ids, relation_of_pair, bias_table\n" in printed
    assert "  sides         encoder and decoder\n" in printed


def test_the_catalogue_is_what_the_classes_say():
    """``make figures`` writes it anew."""
    shipped = json.loads(CATALOGUE.read_text("utf-8"))
    assert shipped == json.loads(json.dumps(catalogue())), "make figures writes it anew"


def test_the_shipped_methods_are_listed_without_torch():
    script = (
        "import sys; from treesyntax.__main__ import main; "
        "assert main(['methods', 'relation_mask']) == 0; assert 'torch' not in sys.modules"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TREESYNTAX_IMPORT"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.decode()
    assert printed.startswith("relation_mask\n  paper ")
    assert "stack_pe\n" not in printed


def test_some_methods_by_name(capsys):
    assert main(["methods", "relation_mask", "depth_and_position_omote"]) == 0
    printed = capsys.readouterr().out
    assert "relation_mask\n  paper" in printed
    assert "depth_and_position_omote\n" in printed
    assert "tree_distance\n" not in printed
    assert main(["methods", "relation_maks"]) == 2
    assert "no method 'relation_maks'; did you mean relation_mask" in capsys.readouterr().err


def test_methods_of_files_and_of_installed_packages_are_listed(tmp_path: Path):
    """One named by TREESYNTAX_IMPORT, one by the entry point of a package on the path."""
    (tmp_path / "mine.py").write_text(OWN.format(name="mine"), encoding="utf-8")
    package = tmp_path / "site/theirs"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "method.py").write_text(OWN.format(name="theirs"), encoding="utf-8")
    facts = tmp_path / "site/theirs-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[treesyntax.methods]\ntheirs = theirs.method\n")
    environment = {"PYTHONPATH": str(tmp_path / "site"), "TREESYNTAX_IMPORT": "mine.py"}
    done = subprocess.run(
        [sys.executable, "-m", "treesyntax", "methods", "--json"],
        cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    listed = {one["name"]: one for one in json.loads(done.stdout)["methods"]}
    assert set(listed) == {*METHODS, "mine", "theirs"}
    assert listed["mine"]["file"] == str(tmp_path / "mine.py")
    assert listed["theirs"]["file"] == str(package / "method.py")
    assert listed["mine"]["sides"] == ["encoder"]
    assert listed["mine"]["not_on_decoder"] == "mine looks ahead"

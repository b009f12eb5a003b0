"""Methods of a user's own in a study: which files, in which processes, and what a change means."""

from __future__ import annotations

import os
import shutil
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml
from study.run.growing_studies import run, trained
from support.study_helpers import recipe_with, write_recipe
from support.study_runs import refused

from treesyntax.errors import InputError, OptionError
from treesyntax.jobs import imports, processes
from treesyntax.jobs.imports import VARIABLE, import_file, with_files
from treesyntax.methods import METHODS
from treesyntax.study.recipe.identity import make_identity, write_identity
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.code import NO_MODULES, code_of, look_again, mixed_parts

pytestmark = pytest.mark.usefixtures("quick")
MINE = """from treesyntax.nn.injection import Injection, register
@register("mine")
class Mine(Injection): ...
"""


def write_own(folder: Path, text: str = MINE) -> Path:
    file = folder / "own.py"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_recipe_names_files_beside_it_and_one_that_extends_it_finds_them(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    base = write_recipe(tmp_path / "inner", **{"import": "own.py"})
    assert read_recipe(base).own_files == [tmp_path / "inner/own.py"]
    other = tmp_path / "other.yaml"
    other.write_text("extends: inner/recipe.yaml\n", encoding="utf-8")
    read = read_recipe(other)
    assert read.imports == ("inner/own.py",)
    assert read.own_files == [tmp_path / "inner/own.py"]
    assert read_recipe(other, ["import=[a.py, b.py]"]).imports == ("a.py", "b.py")


def test_the_recipe_that_a_study_wrote_finds_them_too(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    recipe = read_recipe(write_recipe(tmp_path / "inner", **{"import": "own.py"}))
    (tmp_path / "out").mkdir()
    write_identity(tmp_path / "out", recipe, make_identity(recipe, {}, {}))
    assert read_recipe(tmp_path / "out/recipe.yaml").own_files == [tmp_path / "inner/own.py"]
    other = tmp_path / "other.yaml"
    other.write_text("extends: out/recipe.yaml\n", encoding="utf-8")
    assert read_recipe(other).own_files == [tmp_path / "inner/own.py"]


@pytest.mark.parametrize("value", [1, ["own"], {"a": "own.py"}, "own.txt"])
def test_anything_else_than_python_files_is_refused(tmp_path: Path, value: object):
    with pytest.raises(OptionError, match=r"import is .*; name files that end with \.py"):
        recipe_with(tmp_path, **{"import": value})


def test_a_file_that_is_missing_is_told_before_anything_runs(tmp_path: Path):
    write_recipe(tmp_path, **{"import": "own.py"})
    assert "recipe.yaml: import: no such file: " in refused(tmp_path)
    assert not (tmp_path / "out").exists()


def test_reading_a_recipe_or_a_study_executes_nothing(tmp_path: Path):
    write_own(tmp_path, f"open({str(tmp_path / 'executed')!r}, 'w')\n" + MINE)
    write_recipe(tmp_path, **{"import": "own.py"})
    recipe = read_recipe(tmp_path / "recipe.yaml")
    assert own_parts("--arch tree_mine_mini", recipe.own_files)
    run(tmp_path, **{"import": "own.py"})  # stand-ins train; the report reads
    assert (tmp_path / "out/report.html").exists()
    assert not (tmp_path / "executed").exists()
    assert yaml.safe_load((tmp_path / "out/recipe.yaml").read_text())["import"] == "own.py"


def test_every_command_of_the_study_inherits_the_files(tmp_path: Path, monkeypatch):
    seen = []
    start = processes.start

    def spy(words, log, stdout, environment):
        seen.append(environment.get(VARIABLE))
        return start(words, log, stdout, environment)

    monkeypatch.setattr(processes, "start", spy)
    write_own(tmp_path)
    run(tmp_path, seeds=[1], **{"import": "own.py"})
    assert seen
    assert set(seen) == {str(tmp_path / "own.py")}


def test_files_of_the_environment_stay(tmp_path: Path):
    before = {VARIABLE: "/a.py"}
    assert with_files([], before) == {}
    assert with_files([tmp_path / "b.py", Path("/a.py")], before) == {
        VARIABLE: os.pathsep.join(["/a.py", str(tmp_path / "b.py")])
    }
    assert with_files([Path("b.py")], {}) == {VARIABLE: str(Path.cwd() / "b.py")}


def test_after_a_change_runs_of_the_method_are_not_mixed(tmp_path: Path, capsys):
    methods = {name: {"arch": f"tree_{name}_mini"} for name in ("sequence", "mine")}
    changes = {"methods": methods, "import": "own.py"}
    write_own(tmp_path)
    assert trained(run(tmp_path, seeds=[1], **changes)) == ["mine-1", "sequence-1"]
    write_own(tmp_path, MINE + "changed = True\n")
    capsys.readouterr()
    assert not trained(run(tmp_path, seeds=[1, 2], status=2, **changes))
    message = capsys.readouterr().err
    assert "train: own/own.py" in message
    assert f"come from the code: restore {tmp_path}/own.py, choose another --out, or" in message
    started = run(tmp_path, "--mix-versions", seeds=[1, 2], **changes)
    assert trained(started) == ["mine-2", "sequence-2"]


def own_parts(command: str, files: list[Path]) -> dict[str, str]:
    """What a training records of the user's own modules."""
    look_again()
    parts = code_of("train", command.split(), files)
    return {
        name: digest for name, digest in parts.items() if "own/" in name and digest != NO_MODULES
    }


def test_a_file_counts_for_the_methods_that_it_registers(tmp_path: Path):
    file = write_own(tmp_path)
    for words, counts in (
        ("--arch tree_mine_mini", True),
        ("--arch=tree_mine", True),
        ("--encoder-injection mine(clip=2)+relation_mask", True),
        ("--decoder_injection mine", True),
        ("--encoder-injection mines", False),
        ("--arch tree_sequence_mini --save-dir mine", False),
    ):
        assert bool(own_parts(words, [file])) is counts, words
    first = own_parts("--arch tree_mine", [file])
    write_own(tmp_path, MINE + "x = 1\n")
    assert own_parts("--arch tree_mine", [file]) != first


@pytest.mark.parametrize(
    "text",
    [
        "import this\n",
        MINE.replace('"mine"', "name"),
        MINE.replace(", register", ", register as r"),
    ],
)
def test_a_file_of_which_nobody_knows_what_it_registers_counts_always(tmp_path: Path, text: str):
    assert own_parts("--arch tree_sequence_mini", [write_own(tmp_path, text)])


def test_a_method_is_watched_with_the_modules_that_it_imports(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    (helper := tmp_path / "helper.py").write_text("import inner.deep\n")
    (deep := tmp_path / "inner/deep.py").write_text("x = 1\n")
    (other := tmp_path / "other.py").write_text("x = 1\n")
    file = write_own(tmp_path, f"def late():\n    from helper import inner\n{MINE}")
    first = own_parts("--arch tree_mine", [file])
    for imported in (helper, deep):
        before = imported.read_text()
        imported.write_text(before + "y = 2\n")
        assert own_parts("--arch tree_mine", [file]) != first
        imported.write_text(before)
    other.write_text("y = 2\n")
    assert own_parts("--arch tree_mine", [file]) == first


def test_what_a_method_uses_of_ours_counts_for_it(tmp_path: Path, package: Path):
    text = f"import treesyntax.nn.walks as made\n{MINE}\n"
    file = write_own(tmp_path, text)
    first = own_parts("--arch tree_mine", [file])
    with (package / "treesyntax/nn/walks.py").open("a") as stream:
        stream.write("EDITED = 1\n")
    assert own_parts("--arch tree_mine", [file]) != first


def test_files_of_the_environment_count(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(write_own(tmp_path)))
    assert own_parts("--arch tree_mine", [])
    assert not own_parts("--arch tree_sequence", [])


def test_an_installed_package_is_watched_with_its_modules(tmp_path: Path, monkeypatch):
    """The entry has another name than the method; only what the package imports of itself counts."""
    package = tmp_path / "my_package"
    (package / "methods").mkdir(parents=True)
    for name, text in {
        "__init__.py": f"open({str(tmp_path / 'executed')!r}, 'w')\n",
        "methods/__init__.py": "",
        "methods/first.py": f"from ..helper import x\nfrom . import near\n{MINE}",
        "methods/near.py": "",
        "helper.py": "x = 1\n",
        "apart.py": "x = 1\n",
    }.items():
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("any_name", "my_package.methods.first", imports.METHODS)
    monkeypatch.setattr(
        imports, "entries_of", lambda group: [entry] if group == imports.METHODS else []
    )
    first = own_parts("--arch tree_mine_mini", [])
    assert list(first) == ["train: own/my_package.methods.first", "train: own/mine"]
    assert not own_parts("--arch tree_sequence_mini", [])
    for name in (
        "__init__.py",
        "methods/__init__.py",
        "methods/first.py",
        "methods/near.py",
        "helper.py",
        "apart.py",
    ):
        before = (package / name).read_text()
        (package / name).write_text(before + "y = 2\n")
        assert (own_parts("--arch tree_mine", []) != first) is (name != "apart.py"), name
        (package / name).write_text(before)
    assert not (tmp_path / "executed").exists()


def test_packages_that_a_method_imports_count_edited_ones_with_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`pip install -e` leaves a package in its folder; what is installed otherwise has a version."""
    of_lab, other, installed = tmp_path / "of_lab", tmp_path / "other", tmp_path / "site-packages"
    for folder, name, text in (
        (of_lab, "my_lab/__init__.py", f"open({str(tmp_path / 'executed')!r}, 'w')\n"),
        (of_lab, "my_lab/inner.py", "import others_too\n"),
        (of_lab, "my_lab/apart.py", ""),
        (other, "others_too.py", "from mine_installed import x\n"),
        (installed, "mine_installed/__init__.py", ""),
        (installed, "named_apart-1.0.dist-info/METADATA", "Name: named-apart\nVersion: 1.0\n"),
        (installed, "named_apart-1.0.dist-info/top_level.txt", "mine_installed\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for folder in (of_lab, other, installed):
        monkeypatch.syspath_prepend(folder)
    file = write_own(tmp_path, f"import json, torch, helper\nfrom my_lab import inner\n{MINE}")
    (tmp_path / "helper.py").write_text("import nowhere_at_all\n")
    assert not own_parts("--arch tree_sequence", [file])
    first = own_parts("--arch tree_mine", [file])
    packages = {name: value for name, value in first.items() if "package" in name}
    names = ("my_lab", "others_too", "mine_installed", "nowhere_at_all")
    assert packages.keys() == {f"train: own/package {name}" for name in names}
    assert packages["train: own/package mine_installed"] == "named-apart 1.0"
    for edited, label in (
        (of_lab / "my_lab/__init__.py", "my_lab"),
        (of_lab / "my_lab/inner.py", "my_lab"),
        (of_lab / "my_lab/apart.py", None),
        (other / "others_too.py", "others_too"),
    ):
        before = edited.read_text()
        edited.write_text(f"{before}y = 2\n")
        now = own_parts("--arch tree_mine", [file])
        changed = {name for name in now if now[name] != first[name]}
        assert changed == ({f"train: own/package {label}"} if label else set())
        edited.write_text(before)
    (newer := installed / "named_apart-2.0.dist-info").mkdir()
    (installed / "named_apart-1.0.dist-info").rename(newer)
    (newer / "METADATA").write_text("Name: named-apart\nVersion: 2.0\n")
    now = own_parts("--arch tree_mine", [file])
    assert now["train: own/package mine_installed"] == "named-apart 2.0"
    assert not (tmp_path / "executed").exists()


COMPILED = EXTENSION_SUFFIXES[0]


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("try:\n    import elsewhere\nexcept ImportError: ...\n", "lab/elsewhere.py"),
        ("import compiled\n", f"lab/compiled{COMPILED}"),
        ("from many import x\n", f"lab/many/inner{COMPILED}"),
        ("import loose\n", "site-packages/loose.py"),
        ("import nameless\n", "site-packages/nameless.py"),
    ],
)
def test_a_package_is_watched_whatever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, edited: str
):
    """One that is installed later, one without source, and installed ones of which no version is known."""
    for name, content in {
        f"lab/compiled{COMPILED}": "1",
        "lab/many/__init__.py": "from . import inner\n",
        f"lab/many/inner{COMPILED}": "1",
        "site-packages/loose.py": "",
        "site-packages/nameless.py": "",
        "site-packages/nameless-1.0.dist-info/top_level.txt": "nameless\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    for folder in ("lab", "site-packages"):
        monkeypatch.syspath_prepend(tmp_path / folder)
    file = write_own(tmp_path, f"import near\n{text}{MINE}")
    (tmp_path / "near").mkdir()  # no package from elsewhere, and none that is missing
    first = own_parts("--arch tree_mine", [file])
    assert own_parts("--arch tree_mine", [file]) == first
    (tmp_path / edited).write_text("x = 2\n")
    (changed,) = mixed_parts([first, own_parts("--arch tree_mine", [file])])
    assert changed.startswith("train: own/package ")
    assert not mixed_parts([{}, first])  # older records do not know it


def test_after_a_change_of_a_package_the_way_back_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Files of the recipe were asked for, which are as they were."""
    methods = {name: {"arch": f"tree_{name}_mini"} for name in ("sequence", "mine")}
    changes = {"methods": methods, "import": "own.py"}
    (tmp_path / "lab").mkdir()
    (package := tmp_path / "lab/of_my_lab.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path / "lab")
    write_own(tmp_path, f"try:\n    import of_my_lab\nexcept ImportError: ...\n{MINE}")
    run(tmp_path, seeds=[1], **changes)
    package.write_text("x = 2\n")
    capsys.readouterr()
    assert not trained(run(tmp_path, seeds=[1, 2], status=2, **changes))
    message = capsys.readouterr().err
    assert (
        "come from the code: go back to the former of_my_lab, choose another --out, or" in message
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\nx = 1 / 0\n", r":2: cannot be imported \(ZeroDivisionError: division by zero\)"),
        ("x = 1\ndef\n", r":2: cannot be imported \(SyntaxError: invalid syntax"),
        (MINE.replace("mine", "sequence"), r":2: cannot be imported \(ValueError: two methods are"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_with_its_line(
    tmp_path: Path, text: str, told: str
):
    assert "sequence" in METHODS
    with pytest.raises(InputError, match=told):
        import_file(write_own(tmp_path, text))
    with pytest.raises(InputError, match=r"own\.txt: is no Python file; name one that ends with"):
        import_file(tmp_path / "own.txt")


def test_a_file_is_executed_once(tmp_path: Path):
    file = write_own(tmp_path, "import random\nnumber = random.random()\n")
    assert import_file(file).number == import_file(file).number


class Broken:
    """An entry point of a package whose module is gone."""

    name, module, value, dist = "gone", "gone_package.gone", "gone_package.gone", None

    def load(self):
        raise ModuleNotFoundError("No module named 'gone_package'")


def test_a_package_whose_method_cannot_be_imported_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        imports, "entries_of", lambda group: [Broken()] if group == imports.METHODS else []
    )
    with pytest.raises(
        OptionError, match=r"the method gone of the package gone_package\.gone cannot"
    ):
        imports.import_user_files(imports.METHODS)
    assert "train: own/gone_package.gone" in own_parts("--arch tree_sequence", [])


def methods_with(*names: str) -> dict:
    """Rows without an edit of the recipe but their names."""
    return {name: {"arch": f"tree_{name}_mini"} for name in names}


def test_an_edit_of_a_method_that_is_trained_is_told(tmp_path: Path, capsys):
    """Else the former scores would be taken for those of the edited method."""
    changes = {"methods": methods_with("sequence", "mine"), "import": "own.py"}
    write_own(tmp_path)
    run(tmp_path, seeds=[1, 2], **changes)
    assert "other code" not in capsys.readouterr().out
    write_own(tmp_path, MINE + "changed = True\n")
    for options in ((), ("--plan",)):
        assert run(tmp_path, *options, seeds=[1, 2], **changes) == ""
        said = capsys.readouterr().out
        assert "mine-1, mine-2: made by other code than the present (train: own/own.py, " in said
        assert f"to have it made anew, delete {tmp_path}/out/runs/mine-1 and so on, or " in said
    for seed in (1, 2):
        shutil.rmtree(tmp_path / f"out/runs/mine-{seed}")
    # They count no more: with them a third seed would be refused.
    again = trained(run(tmp_path, seeds=[1, 2, 3], **changes))
    assert again == ["mine-1", "mine-2", "mine-3", "sequence-3"]
    assert "other code" not in capsys.readouterr().out


def test_an_edit_of_a_method_whose_settings_were_searched_is_told(tmp_path: Path, capsys):
    changes = {
        "methods": methods_with("sequence", "mine"),
        "import": "own.py",
        "search": {"over": {"train.lr": [0.25, 0.5]}},
    }
    write_own(tmp_path)
    run(tmp_path, seeds=[1], **changes)
    assert "trials of mine" not in capsys.readouterr().out
    write_own(tmp_path, MINE + "changed = True\n")
    for options in ((), ("--plan",)):
        assert run(tmp_path, *options, seeds=[1], **changes) == ""
        said = capsys.readouterr().out
        assert (
            "2 trials of mine were made by other code than the present (train: own/own.py, " in said
        )
        assert "trials of sequence" not in said
    (tmp_path / "out/search.jsonl").unlink()
    for folder in ("search", "runs/mine-1"):
        shutil.rmtree(tmp_path / "out" / folder)
    assert len(trained(run(tmp_path, seeds=[1], **changes))) == 4 + 1
    assert "other code" not in capsys.readouterr().out


def test_a_data_set_of_the_users_own_that_changed_is_told(tmp_path: Path, capsys):
    text = MINE + 'register_data_set(DataSet("my_set"))\n'
    changes = {"prepare": ["treesyntax data make my_set {data}/p"], "import": "own.py"}
    write_own(tmp_path, text)
    run(tmp_path, seeds=[1], **changes)
    write_own(tmp_path, text + "changed = True\n")
    capsys.readouterr()
    assert run(tmp_path, seeds=[1], **changes) == ""
    said = capsys.readouterr().out
    assert (
        "prepare-1: made by other code than the present (prepare: own/own.py, prepare: own/my_set)"
        in said
    )
    assert "to have it made anew, choose another --out" in said


def test_a_newer_file_of_a_method_is_other_code(tmp_path: Path, capsys):
    """``v1.py`` and ``v2.py`` have the same method: no run of the one stands beside one of the other."""
    methods = {"methods": methods_with("sequence", "mine")}
    for version in (1, 2):
        (tmp_path / f"v{version}.py").write_text(f"{MINE}version = {version}\n")
    run(tmp_path, seeds=[1], **methods, **{"import": "v1.py"})
    capsys.readouterr()
    run(tmp_path, seeds=[1, 2], status=2, **methods, **{"import": "v2.py"})
    message = capsys.readouterr().err
    assert "different code (train: own/mine, generate: own/mine)" in message
    assert "name the former files under import again (mine), choose another --out" in message


def test_a_file_without_a_name_that_comes_or_goes_is_other_code(tmp_path: Path, capsys):
    """It may change all trainings, such as one with an optimiser for fairseq."""
    (tmp_path / "patch.py").write_text("import torch\n")
    run(tmp_path, seeds=[1], **{"import": "patch.py"})
    capsys.readouterr()
    run(tmp_path, seeds=[1, 2], status=2)
    assert "train: own/of no name" in capsys.readouterr().err


def test_two_files_of_the_same_name_count_both(tmp_path: Path):
    files = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / "own.py")
        files[-1].write_text(MINE.replace('"mine"', f'"{name}"'))
    before = own_parts("--arch tree_first", files)
    assert before
    files[0].write_text(files[0].read_text() + "x = 1\n")
    assert own_parts("--arch tree_first", files)["train: own/first"] != before["train: own/first"]


@pytest.mark.parametrize(("folder", "counts"), [("lib", True), ("python3/site-packages", False)])
def test_modules_on_the_users_path_count_and_installed_packages_do_not(
    folder: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    helper = tmp_path / folder / "of_my_lab.py"
    helper.parent.mkdir(parents=True)
    helper.write_text("x = 1\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["relative", str(helper.parent)]))
    file = write_own(tmp_path, f"import of_my_lab\n{MINE}")
    before = own_parts("--arch tree_mine", [file])
    helper.write_text("x = 2\n")
    assert (own_parts("--arch tree_mine", [file]) != before) is counts

"""The wheel carries the plugins, and they work from where it is installed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support import ROOT

from treesyntax.decoding.engine import NEWEST_PYTHON


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *options, "-w", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("treesyntax-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith("dist-info")} == {
        "treesyntax", "fairseq_plugins",
    }  # fmt: skip
    target = folder / "site"
    subprocess.run([*pip, "install", *options, "--target", str(target), str(wheel)], check=True)
    return target


def run(site: Path, *command: str, text: str) -> str:
    """What Python prints with the packages of a folder; it reads the text."""
    words, environment = [sys.executable, "-P", *command], {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.check_output(words, input=text, text=True, env=environment, cwd=site)


RUN_EACH = """
import json, sys
from treesyntax.__main__ import main
for words in json.loads(sys.stdin.read()):
    assert main(words) == 0, words
    print(end="\\f")
"""


def test_an_installed_wheel_has_recipes_and_serves_fairseq(installed: Path):
    """Before it prints the commands, the study has fairseq check their flags, with the folder of plugins."""
    commands = [["plugins"], ["recipes"], ["study", "demo/for2lam", "--dry-run"]]
    printed = run(installed, "-c", RUN_EACH, text=json.dumps(commands))
    folder, recipes, study, _ = printed.split("\f")
    assert Path(folder.strip()) == installed / "fairseq_plugins"
    assert len(recipes.splitlines()) == len([*(ROOT / "recipes").glob("*/*.yaml")])
    assert study.startswith("treesyntax generate for2lam --out runs/for2lam-demo/data/programs")


def interpreter(version: str) -> str:
    """A Python of this version; skips the test where there is none."""
    for found in filter(None, (sys.executable, shutil.which(f"python{version}"))):
        words = [found, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return found
    pytest.skip(f"no Python {version} on this machine")


PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Those of the classifiers in pyproject.toml."""
WITH_FAIRSEQ = PYTHONS[:2]


def environment(wheel: Path, python: str, folder: Path) -> Path:
    """The interpreter of a fresh environment with nothing but the wheel."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--python", folder / "bin/python", "install", "--no-deps", "--no-compile"]
    subprocess.run([*pip, *options, wheel], check=True)
    return folder / "bin/python"


def test_the_classifiers_name_the_pythons_that_are_tested():
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    prefix = "Programming Language :: Python :: "
    named = [one.removeprefix(prefix) for one in metadata["classifiers"] if prefix in one]
    assert named == [*PYTHONS]
    assert metadata["requires-python"] == f">={PYTHONS[0]}"
    (fairseq,) = metadata["optional-dependencies"]["fairseq"]
    marker = Requirement(fairseq).marker
    assert marker is not None
    held = [one for one in PYTHONS if marker.evaluate({"python_version": one})]
    assert held == [*WITH_FAIRSEQ]
    assert WITH_FAIRSEQ[-1] == ".".join(map(str, NEWEST_PYTHON))


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_starts_in_an_empty_environment(installed: Path, version: str, tmp_path: Path):
    """Nothing but the wheel: no clone, and none of its dependencies."""
    (wheel,) = installed.parent.glob("treesyntax-*.whl")
    python = environment(wheel, interpreter(version), tmp_path / "v")
    script = tmp_path / "v/bin/treesyntax"
    clean = {"PATH": os.environ["PATH"]}
    shown = subprocess.check_output([script, "study", "--help"], text=True, env=clean, cwd=tmp_path)
    assert "usage: treesyntax study" in shown
    folder = tmp_path / f"v/lib/python{version}/site-packages"
    refused = subprocess.run(
        [script, "plugins"], capture_output=True, text=True, env=clean, cwd=tmp_path, check=False
    )
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "pip install 'treesyntax[fairseq]'" in refused.stderr
    no_build = f"has no build for Python {version}; make an environment of Python 3.12"
    assert (no_build in refused.stderr) == (version not in WITH_FAIRSEQ)
    assert (folder / "treesyntax/py.typed").exists()
    assert (folder / "treesyntax/recipes/demo/for2lam.yaml").exists()
    subprocess.run([python, "-m", "compileall", "-q", folder], check=True)  # its syntax is known


EVERY_MODULE = """
import importlib, pkgutil, sys
import treesyntax
assert treesyntax.__file__.startswith(sys.prefix), treesyntax.__file__
for package in sys.argv[1:]:
    found = importlib.import_module(package)
    for module in pkgutil.walk_packages(found.__path__, package + "."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name in ("benepar", "stanza", "spacy", "transformers"), error
tree = treesyntax.parse_tree("(S (NP the cat) (VP sleeps))", "ptb")
assert treesyntax.align(tree, [(0, 3), (4, 7), (8, 14)], "the cat sleeps") == [2, 3, 5]
assert len(list(treesyntax.read_trees("x.ptb", "ptb"))) == 1
"""
STEP = """
import torch, treesyntax as ts
tree = ts.parse_tree("(S (NP the cat) (VP sleeps))", "ptb")
settings = ts.TransformerConfig(16, 32, 4, 2, injection="stack_pe+relation_mask")
encoder = ts.Encoder(settings, torch.nn.Embedding(9, 16, 1))
encoder(torch.tensor([[4, 5, 6]]), ts.batch_trees([tree], [[2, 3, 5]])).memory.sum().backward()
"""
COMMANDS = (
    ["binarize", "bin", "--source-lang", "a", "--target-lang", "b", "--source-format", "ptb",
     "--source-linearization", "preorder", "--workers", "2",
     *(part for split in ("train", "valid", "test") for part in (f"--{split}", "x.ptb", "x.txt"))],
    ["methods", "stack_pe"],
    ["generate", "for2lam", "--out", "programs", "--train", "2", "--test", "1"],
    ["score", "--reference", "x.txt", "--hypothesis", "x.txt", "--metric", "exact"],
)  # fmt: skip


def use_everything(python: Path, folder: Path) -> None:
    """Import every module, take a step of training and run commands, in an environment without fairseq."""
    (folder / "x.ptb").write_text("(S a b)\n", encoding="utf-8")
    (folder / "x.txt").write_text("c d\n", encoding="utf-8")
    clean = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    everything = [python, "-c", EVERY_MODULE + STEP + RUN_EACH, "treesyntax"]
    done = subprocess.run(
        everything, input=json.dumps(COMMANDS), capture_output=True, text=True, env=clean, cwd=folder,
        check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    study = [python.parent / "treesyntax", "study", "demo/for2lam"]
    done = subprocess.run(study, capture_output=True, text=True, env=clean, cwd=folder, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "training and searching needs fairseq" in done.stderr


def test_all_but_training_works_in_an_environment_without_fairseq(installed: Path, tmp_path: Path):
    """The packages of this environment but fairseq and what it brings along, and the wheel."""
    (wheel,) = installed.parent.glob("treesyntax-*.whl")
    python = environment(wheel, sys.executable, tmp_path / "v")
    left_out = ("treesyntax", "fairseq", "ve_fairseq", "hydra", "omegaconf", "antlr4")
    others = tmp_path / "others"
    others.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.split(r"[-_.]", entry.name.lstrip("_"))[0].startswith(left_out):
            (others / entry.name).symlink_to(entry)
    (site,) = (tmp_path / "v/lib").glob("python*/site-packages")
    (site / "others.pth").write_text(f"{others}\n")
    needed = [Requirement(one) for one in importlib.metadata.requires("treesyntax") or ()]
    for need in needed:
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            assert importlib.metadata.version(need.name) in need.specifier
    use_everything(python, tmp_path)
    refused = subprocess.run(
        [python, "-c", "import fairseq"], capture_output=True, text=True, check=False
    )
    assert "No module named 'fairseq'" in refused.stderr


@pytest.mark.parametrize("version", PYTHONS[2:])
def test_a_newer_python_reads_trees(installed: Path, version: str, tmp_path: Path):
    """With numpy alone, or with everything where this Python has torch."""
    python = interpreter(version)
    (wheel,) = installed.parent.glob("treesyntax-*.whl")
    fresh = environment(wheel, python, tmp_path / "v")
    (site,) = (tmp_path / "v/lib").glob("python*/site-packages")
    found = "import numpy, sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", found], capture_output=True, text=True, check=False)
    if not own.returncode:
        (site / "own.pth").write_text(own.stdout)
        with_torch = [python, "-c", "import torch, sacrebleu, sentencepiece, lark"]
        if not subprocess.run(with_torch, capture_output=True, check=False).returncode:
            use_everything(fresh, tmp_path)
            return
    else:
        pip = [sys.executable, "-m", "pip", "--python", fresh, "--quiet", "--retries", "0"]
        options = ["--timeout", "5", "--only-binary", ":all:", "numpy>=2", "lark"]
        if subprocess.run([*pip, "install", *options], capture_output=True, check=False).returncode:
            pytest.skip(f"no numpy for Python {version} here, and none can be fetched")
    (tmp_path / "x.ptb").write_text("(S a b)\n", encoding="utf-8")
    code = [fresh, "-c", EVERY_MODULE, "treesyntax.trees"]
    subprocess.run(code, check=True, cwd=tmp_path, env={"PATH": os.environ["PATH"]})


def test_the_recipes_template_files_are_packed(installed: Path):
    sources = {
        file.relative_to(ROOT / "treesyntax")
        for file in (ROOT / "treesyntax").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert not {file for file in sources if not (installed / "treesyntax" / file).exists()}


def test_the_lock_file_with_hashes_has_the_pins_of_the_lock_file():
    lock = runpy.run_path(str(ROOT / ".ci/hash_lock.py"))
    names = ("LOCK", "HASHES", "CPU", "CUDA")
    texts = {name: lock[name].read_text("utf-8") for name in names}
    pins, hashed, cpu, cuda = (lock["read"](texts[name]) for name in names)
    (torch,) = cpu
    assert {*hashed, torch} == {*pins}
    assert torch not in hashed
    assert {*cuda} & {*pins} == {torch}
    assert not cuda[torch] & cpu[torch]
    for hashes in (*hashed.values(), *cpu.values(), *cuda.values()):
        assert hashes
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes)
    assert not [name for name in names if "://" in texts[name]]


def test_a_lock_file_with_hashes_is_read_as_it_was_written(tmp_path: Path):
    lock = runpy.run_path(str(ROOT / ".ci/hash_lock.py"))
    file, locked = (
        tmp_path / "some.lock",
        {"a-b==1": {"sha256:2", "sha256:1"}, "c==0.2+cpu": {"sha256:3"}},
    )
    lock["write"](file, "# About.\n", locked)
    assert lock["read"](file.read_text("utf-8")) == locked
    assert lock["canonical"]("Types_Py.YAML==6.0") == "types-py-yaml==6.0"


def test_the_install_page_names_the_packages_under_the_gpl():
    """Those that the extra ``parsers`` brings; seen as far as it is installed."""
    pytest.importorskip("stanza")
    pytest.importorskip("benepar")
    wanted, seen, found = ["stanza", "benepar", "spacy", "transformers"], set(), set()
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        try:
            one = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name in seen:
            continue
        seen.add(name)
        wanted += [re.split(r"[^\w.-]", need)[0] for need in one.requires or () if ";" not in need]
        words = [one.metadata.get("License-Expression"), one.metadata.get("License")]
        words += one.metadata.get_all("Classifier", [])
        if re.search(r"\b[AL]?GPL|General Public", " ".join(filter(None, words))):
            found.add(name)
    page = (ROOT / "docs/install.md").read_text("utf-8")
    assert found == set(re.findall(r"`([\w-]+)`\s\([AL]?GPL", page))

"""The wheel carries the plugins, and they work from where it is installed."""

from __future__ import annotations

import importlib.metadata
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import ROOT


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


def run(site: Path, *command: str) -> str:
    words, environment = [sys.executable, "-P", *command], {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.check_output(words, text=True, env=environment, cwd=site)


def test_the_plugin_folder_of_an_installed_wheel_serves_fairseq(installed: Path):
    folder = run(installed, "-m", "treesyntax", "plugins").strip()
    assert Path(folder) == installed / "fairseq_plugins"
    shown = run(installed, "-m", "fairseq_cli.train", "--user-dir", folder, "--help")
    assert "tree_translation" in shown


def interpreter(version: str) -> str:
    """A Python of this version; skips the test where there is none."""
    for found in filter(None, (sys.executable, shutil.which(f"python{version}"))):
        words = [found, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return found
    pytest.skip(f"no Python {version} on this machine")


@pytest.mark.parametrize("version", ["3.11", "3.12"])
def test_the_wheel_starts_in_an_empty_environment(installed: Path, version: str, tmp_path: Path):
    """Nothing but the wheel: no clone, and none of its dependencies."""
    subprocess.run(
        [interpreter(version), "-m", "venv", "--without-pip", tmp_path / "v"], check=True
    )
    python = tmp_path / "v/bin/python"
    (wheel,) = installed.parent.glob("treesyntax-*.whl")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "--python",
        python,
    ]
    subprocess.run([*pip, "install", "--no-deps", "--no-compile", wheel], check=True)
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
    assert (folder / "treesyntax/py.typed").exists()
    assert (folder / "treesyntax/recipes/demo/for2lam.yaml").exists()
    subprocess.run([python, "-m", "compileall", "-q", folder], check=True)  # its syntax is known


def test_the_recipes_template_files_are_packed(installed: Path):
    sources = {
        file.relative_to(ROOT / "treesyntax")
        for file in (ROOT / "treesyntax").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert not {file for file in sources if not (installed / "treesyntax" / file).exists()}


def test_the_recipes_are_packed_and_run_by_name(installed: Path):
    listed = run(installed, "-m", "treesyntax", "recipes").splitlines()
    assert len(listed) == len([*(ROOT / "recipes").glob("*/*.yaml")])
    commands = run(installed, "-m", "treesyntax", "study", "demo/for2lam", "--dry-run")
    assert commands.startswith("treesyntax generate for2lam --out runs/for2lam-demo/data/programs")


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
    assert found == set(re.findall(r"`([\w-]+)` \([AL]?GPL", page))

"""Build the packages of a release into dist/ and check them: python .ci/release.py

The source package is built from the tree, and the wheel from the source package, as an index's users build it. Then:
versions and changelog agree, the wheel has every file of the package and nothing else, and it starts in an empty
environment. Nothing is uploaded.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PACKAGES = ("treesyntax", "fairseq_plugins")
BUILD = [sys.executable, "-m", "hatchling", "build", "--directory"]


def version_faults(root: Path) -> list[str]:
    """Where the version of the package is not that of the citation, or has no changes."""
    (version,) = re.findall(
        r'^__version__ = "(.*)"$', (root / "treesyntax/__init__.py").read_text("utf-8"), re.M
    )
    cited = re.findall(r"^version: (.*)$", (root / "CITATION.cff").read_text("utf-8"), re.M)
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    faults = []
    if cited != [version]:
        faults.append(
            f"CITATION.cff has version {', '.join(cited)}, treesyntax/__init__.py {version}"
        )
    newest = re.findall(r"^## (.*)$", changes, re.M)[:1]
    if newest != [version]:
        faults.append(
            f"CHANGELOG.md begins with “{''.join(newest)}”; a release of {version} has it on top"
        )
    return faults


def wheel_faults(wheel: Path, root: Path) -> list[str]:
    """What a wheel lacks of the package, has beside it, or says wrongly of itself."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(archive.read(metadata).decode("utf-8"))
    held = {name for name in names if ".dist-info/" not in name}
    tracked = {
        str(path.relative_to(root))
        for package in PACKAGES
        for path in (root / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    recipes = {
        f"treesyntax/{path.relative_to(root)}"
        for path in (root / "recipes").rglob("*")
        if path.is_file()
    }
    faults = [f"the wheel lacks {name}" for name in sorted((tracked | recipes) - held)]
    faults += [
        f"the wheel has {name} beside the package" for name in sorted(held - tracked - recipes)
    ]
    faults += [
        f"the wheel has no {key}"
        for key in ("Summary", "License-Expression", "Requires-Python")
        if not about[key]
    ]
    if "# treesyntax" not in str(about.get_payload()):
        faults.append("the wheel's description is not the README")
    return faults


def source_faults(source: Path) -> list[str]:
    """What a source package lacks."""
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = (
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "CHANGELOG.md",
        "pyproject.toml",
        "tests/test_imports.py",
    )
    return [f"the source package lacks {name}" for name in needed if name not in names]


def start_faults(wheel: Path) -> list[str]:
    """Whether the command of a wheel starts where nothing else is installed."""
    with tempfile.TemporaryDirectory() as place:
        python = Path(place) / "bin/python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            "--python",
            str(python),
        ]
        subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
        shown = subprocess.run(
            [Path(place) / "bin/treesyntax", "--version"],
            capture_output=True,
            text=True,
            check=False,
            cwd=place,
        )
    version = wheel.name.split("-")[1]
    return (
        []
        if shown.stdout == f"treesyntax {version}\n"
        else [f"treesyntax --version: {shown.stdout}{shown.stderr}"]
    )


def build(root: Path, dist: Path) -> tuple[Path, Path]:
    """Build the source package, and the wheel from what it unpacks to."""
    shutil.rmtree(dist, ignore_errors=True)
    subprocess.run([*BUILD, str(dist), "--target", "sdist"], check=True, cwd=root)
    (source,) = dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(source) as archive:
            archive.extractall(place, filter="data")
        (folder,) = Path(place).iterdir()
        subprocess.run([*BUILD, str(dist), "--target", "wheel"], check=True, cwd=folder)
    (wheel,) = dist.glob("*.whl")
    return source, wheel


def main() -> int:
    """Build, print what is wrong, and fail if something is."""
    source, wheel = build(ROOT, DIST)
    faults = [
        *version_faults(ROOT),
        *source_faults(source),
        *wheel_faults(wheel, ROOT),
        *start_faults(wheel),
    ]
    print(
        *(f"release: {fault}" for fault in faults),
        sep="\n",
        file=sys.stderr,
        end="\n" if faults else "",
    )
    if not faults:
        print(f"{source}\n{wheel}\nready")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())

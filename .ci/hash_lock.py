"""Write the lock files with hashes: requirements-hashes.lock, and for torch -cpu.lock or -cuda.lock beside it.

Run by ``make hashes``, in an environment that has uv, which need be nowhere else. uv tells the hashes of all
files of each pinned release, and what the package index's torch needs for CUDA on Linux. torch for the CPU is
where pip's configuration offers another build than the index's: run this wherever it does, on Linux. Hashes of
before stay as long as the pin does.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK, HASHES, CPU, CUDA = (
    ROOT / f"requirements{end}.lock" for end in ("", "-hashes", "-cpu", "-cuda")
)
ABOUT = """\
# %s, with the hashes of the files.
# Written by make hashes; docs/install.md says how to use it.
"""
ABOUT_HASHES, ABOUT_CPU, ABOUT_CUDA = (
    ABOUT % what
    for what in (
        "The pins of requirements.lock without torch",
        "torch for the CPU, Linux on x86-64",
        "torch for CUDA and what it needs, Linux on x86-64",
    )
)
PYTHONS = ("3.11", "3.12")
PLATFORM = "manylinux_2_28_x86_64"
Locked = dict[str, set[str]]
"""Hashes by pin, as ``name==version``; names as package indexes compare them."""


def canonical(pin: str) -> str:
    """A pin as package indexes compare names."""
    name, _, version = pin.strip().partition("==")
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={version}"


def read(text: str) -> Locked:
    """The pins of a lock file and their hashes."""
    found: Locked = {}
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            found[canonical(line.split()[0])] = set(re.findall(r"--hash=(\S+)", line))
    return found


def write(file: Path, about: str, locked: Locked) -> None:
    """Write pins and hashes in the form that pip reads."""
    lines = [about]
    for pin, hashes in sorted(locked.items()):
        lines.append(" \\\n    ".join([pin, *(f"--hash={one}" for one in sorted(hashes))]) + "\n")
    file.write_text("".join(lines), encoding="utf-8")


def of_the_index(pins: list[str], python: str) -> Locked:
    """What uv finds on the package index: the pins, and what they need on Linux."""
    options = ["--quiet", "--no-config", "--no-header", "--no-annotate", "--generate-hashes"]
    options += ["--python-version", python, "--python-platform", f"x86_64-{PLATFORM[:-7]}"]
    words = [sys.executable, "-m", "uv", "pip", "compile", *options, "-"]
    done = subprocess.run(
        words, input="\n".join(pins), stdout=subprocess.PIPE, text=True, check=True
    )
    return read(done.stdout)


def of_pip(pin: str, python: str) -> str:
    """The hash of the file that pip takes here for a pin."""
    options = ["--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"]
    options += ["--python-version", python, "--platform", PLATFORM]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = [sys.executable, "-m", "pip", "install", *options, "--target", folder]
        subprocess.run([*words, "--report", report, pin], check=True)
        (taken,) = json.loads(report.read_text("utf-8"))["install"]
    return "sha256:" + taken["download_info"]["archive_info"]["hashes"]["sha256"]


def main() -> None:
    """Write the files."""
    pins = list(read(LOCK.read_text("utf-8")))
    found: Locked = {}
    for python in PYTHONS:
        for pin, hashes in of_the_index(pins, python).items():
            found.setdefault(pin, set()).update(hashes)
    (torch,) = (pin for pin in pins if pin.startswith("torch=="))
    before = read(CPU.read_text("utf-8")) if CPU.exists() else {}
    here = {of_pip(torch, python) for python in PYTHONS}
    write(HASHES, ABOUT_HASHES, {pin: found.pop(pin) for pin in pins if pin != torch})
    write(CPU, ABOUT_CPU, {torch: before.get(torch, set()) | here - found[torch]})
    write(CUDA, ABOUT_CUDA, found)


if __name__ == "__main__":
    main()

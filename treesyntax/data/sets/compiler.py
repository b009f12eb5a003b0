"""The CoffeeScript compiler: installed by npm, run by node, one process for many programs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from treesyntax.errors import InputError, OptionError

PACKAGE = "coffeescript@2.7.0"
DRIVER = Path(__file__).with_name("compile_coffeescript.js")
_GET_NODE = "install Node.js with npm (https://nodejs.org)"


def install_compiler(folder: Path) -> None:
    """Install the compiler in a folder with npm, unless it is installed."""
    if installed_version(folder) == PACKAGE:
        return
    # By the absolute path: npm would look for a package.json in the parent folders.
    options = ["--prefix", str(folder.resolve()), "--no-audit", "--no-fund", "--loglevel", "error"]
    command = ["npm", "install", *options, PACKAGE]
    if shutil.which("npm") is None:
        raise OptionError(f"npm is needed to install the compiler; {_GET_NODE}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(folder, None, f"cannot be written ({error.strerror})") from None
    if done.returncode or installed_version(folder) != PACKAGE:
        raise InputError(
            folder,
            None,
            f"npm could not install {PACKAGE} ({_main_line(done.stderr)})",
            f"check the network, or run npm install --prefix {folder} {PACKAGE} where there is one",
        )


def installed_version(folder: Path) -> str:
    """``coffeescript@VERSION`` of the compiler below a folder, "" without one."""
    try:
        text = (folder / "node_modules" / "coffeescript" / "package.json").read_text("utf-8")
        return f"coffeescript@{json.loads(text)['version']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def compile_programs(folder: Path, programs: Sequence[str]) -> list[str]:
    """The JavaScript of CoffeeScript programs, without wrapper and header."""
    text = "".join(json.dumps(program) + "\n" for program in programs)
    command = ["node", str(DRIVER), str(folder)]
    if shutil.which("node") is None:
        raise OptionError(f"node is needed to run the compiler; {_GET_NODE}")
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    # Not splitlines, which also splits at signs that a program may hold.
    answers = done.stdout.split("\n")[:-1]
    if done.returncode or len(answers) != len(programs):
        raise InputError(
            folder,
            None,
            f"the compiler does not run ({_main_line(done.stderr)})",
            "delete the folder to install it again",
        )
    return [
        _javascript(json.loads(answer), program)
        for answer, program in zip(answers, programs, strict=True)
    ]


def _javascript(answer: dict[str, str], program: str) -> str:
    if "error" in answer:
        raise OptionError(f"not CoffeeScript ({answer['error']}): {program[:80]!r}")
    return answer["js"]


def _main_line(text: str) -> str:
    """The most useful line of a message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["no message"])[0]

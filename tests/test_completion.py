"""What bash completes with the script of ``treesyntax completion``."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from treesyntax.__main__ import COMMANDS, main, make_parser
from treesyntax.jobs.completion import SHELLS, script, suggest
from treesyntax.study.recipe.shipped import shipped_recipes

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_shtab_treesyntax
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "script"
    file.write_text(script(make_parser(COMMANDS), "bash"), encoding="utf-8")
    return file


def completed(file: Path, *words: str, folder: Path | None = None) -> list[str]:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    asked = ["bash", "-c", ASK, "ask", str(file), "treesyntax", *words]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=folder)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["rec"], ["recipes"]),
        ([""], [*COMMANDS]),
        (["--v"], ["--version"]),
        (["data", ""], ["list", "make", "get"]),
        (["data", "get", "slo"], ["slog"]),
        (["study", "demo/"], ["demo/for2lam"]),
        (["recipes", "copy", ""], [*shipped_recipes()]),
        (["study", "demo/for2lam", "--cluster-a"], ["--cluster-all"]),
        (["study", "demo/for2lam", "--cluster", "s"], ["slurm"]),
        (["study", "demo/for2lam", "--cluster", "slurm", "--pla"], ["--plan"]),
        (["data", "make", ""], ["for2lam", "coffeescript", "split", "pairs", "questions"]),
        (["binarize", "out", "--source-view", "pre"], ["preorder"]),
        (["analyse", "mask_strengths", "--side", ""], ["encoder", "decoder"]),
    ],
)  # fmt: skip
def test_bash_completes(printed: Path, words: list[str], found: list[str]):
    assert completed(printed, *words) == found


@pytest.mark.parametrize("words", [["study", "--out", ""], ["parse", ""], ["report", ""]])
def test_files_are_offered_where_no_name_is_known(printed: Path, tmp_path: Path, words: list[str]):
    (tmp_path / "some_file").touch()
    (tmp_path / "folder").mkdir()
    assert set(completed(printed, *words, folder=tmp_path)) == {"some_file", "folder"}


def test_bash_completes_every_option_of_every_command(printed: Path):
    left: list[tuple[list[str], argparse.ArgumentParser]] = [([], make_parser(COMMANDS))]
    for words, parser in left:
        flags = [name for action in parser._actions for name in action.option_strings]
        assert completed(printed, *words, "--") == [flag for flag in flags if flag[:2] == "--"]
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                left += [([*words, name], one) for name, one in action.choices.items()]
    assert len(left) > 30


def test_names_are_asked_for_when_the_script_is_printed_and_not_before():
    parser = argparse.ArgumentParser()
    asked = []
    suggest(parser.add_argument("--one"), lambda: asked.append(1) or ["ape", "bee"])
    parser.parse_args(["--one", "x"])
    assert not asked
    assert "one_choices=(ape bee)" in script(parser, "bash")
    assert asked


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(shell: str, capsys: pytest.CaptureFixture):
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == script(make_parser(COMMANDS), shell) + "\n"

"""Commands printed in README.md and on the pages use flags that exist."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import ROOT

from treesyntax.__main__ import COMMANDS

PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").glob("*/*.md")]
# Programs of others, and the shell's own words. What is neither here nor treesyntax is a fault.
OTHERS = {
    "fairseq-train", "fairseq-generate", "torchrun", "srun", "python", "python3", "pip", "make", "source", "git", "cd",
    "for", "done", "do", "wait", "tensorboard", "export", "mkdir", "cat", "head",
}  # fmt: skip


RUN = {
    "README.md": "tests/docs/test_readme.py",
    "docs/tutorial.md": "tests/docs/test_tutorial.py",
    "docs/own-method.md": "tests/docs/test_tutorial.py",
    "docs/extending.md": "tests/docs/test_extending.py",
    "docs/huggingface.md": "tests/bridges/test_page.py",
    "docs/pytorch.md": "tests/bridges/test_torch.py",
    "docs/statistics.md": "tests/docs/test_commands.py",
    "docs/statistics-test.md": "tests/docs/test_commands.py",
}
"""The pages whose blocks a test runs. Blocks on others say in a comment before them why not."""
MARK = re.compile(r"<!-- (?:not run by a test: .+|run by (\S+\.py), .+) -->")


@cache
def flags_of(command: str) -> frozenset[str]:
    """The flags of a command and of its own subcommands."""
    parser = argparse.ArgumentParser()
    importlib.import_module(COMMANDS[command].module).add_arguments(parser)
    found: set[str] = set()
    left = [parser]
    while left:
        for action in left.pop()._actions:
            found.update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                left += action.choices.values()
    return frozenset(found)


def commands_in(text: str) -> list[list[str]]:
    """The words of each command in the blocks of shell of a page."""
    blocks = re.findall(r"```(?:bash|sh|shell|console)\n(.*?)```", text, re.S)
    found = []
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";|&"):
                found += [words] if words else []
                words = []
            elif words or not re.match(r"\w+=", word):  # settings of the environment come first
                words.append(word)
    return found


def faults_of(text: str) -> list[str]:
    faults = []
    for program, *words in commands_in(text):
        if program != "treesyntax":
            faults += [] if program in OTHERS else [f"{program}: unknown program"]
        elif words[0] in COMMANDS:
            flags = {word.partition("=")[0] for word in words if word.startswith("--")}
            faults += [f"{words[0]} {flag}" for flag in flags - flags_of(words[0])]
        elif not words[0].startswith("-"):
            faults.append(f"treesyntax {words[0]}: unknown command")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_use_flags_that_exist(page: Path):
    assert faults_of(page.read_text(encoding="utf-8")) == []


def test_wrong_flags_commands_and_programs_are_found():
    text = "```bash\nA=1 treesyntax study x --gpu 0 \\\n  --josb=2 | foo  # --no\ntreesyntax stduy\n```"
    assert sorted(faults_of(text)) == [
        "foo: unknown program", "study --gpu", "study --josb", "treesyntax stduy: unknown command"
    ]  # fmt: skip


def unmarked(text: str) -> list[str]:
    """The first lines of blocks of code without a mark before them."""
    lines = text.splitlines()
    starts = [
        at for at, line in enumerate(lines) if re.match(r" *```(?:bash|python|yaml|toml)$", line)
    ]
    return [lines[at + 1] for at in starts if not MARK.fullmatch(lines[at - 2].strip())]


@pytest.mark.parametrize(
    "page",
    [
        *RUN,
        *sorted({str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")} - {*RUN}),
    ],
)
def test_every_block_is_run_by_a_test_or_says_why_not(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    if page in RUN:
        assert Path(page).name in (ROOT / RUN[page]).read_text(encoding="utf-8")
    else:
        assert unmarked(text) == []
    for file in filter(None, MARK.findall(text)):
        assert page in (ROOT / file).read_text(encoding="utf-8")


def test_a_block_without_a_mark_is_found():
    block = "```bash\ntreesyntax study x\n```\n"
    assert unmarked(f"Text\n\n{block}") == ["treesyntax study x"]
    assert unmarked(f"<!-- not run by a test: takes days -->\n\n{block}") == []


def test_the_code_of_the_pages_on_statistics():
    names = ("statistics.md", "statistics-test.md")
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in names)
    blocks = re.findall(r"```python\n(.*?)```", pages, re.S)
    draw = np.random.default_rng(1)
    names = {
        "row": draw.random((40, 3)) + 2,
        "baseline": draw.random((40, 3)),
        "control": draw.random((40, 3)),
        "copies": np.ones(40),
        "base_500": draw.random((40, 3)),
        "base_1000": draw.random((40, 3)) + 1,
        "base_2000": draw.random((40, 3)) + 3,
    }
    results = []
    for code in blocks:
        exec(code, names)
        results.append(names["found"])
    assert results[0].word == "syntax helps"
    assert results[-1].p < 0.05
    assert names["worth"].times[0].times == pytest.approx(2**1.5, rel=0.1)

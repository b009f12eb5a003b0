"""-q, -v and progress with the time left."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import pytest

from treesyntax.__main__ import COMMANDS, main, make_parser
from treesyntax.jobs.terminal import NORMAL, as_asked, loudness, tracked
from treesyntax.study.report.table import PLAIN_WIDTH, make_console


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


def parsers_below(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    below = [
        one
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for one in action.choices.values()
    ]
    return below + [deeper for one in below for deeper in parsers_below(one)]


def test_every_command_takes_both():
    for parser in parsers_below(make_parser(COMMANDS)):
        assert {"-q", "--quiet", "-v", "--verbose"} <= set(parser._option_string_actions)


@pytest.mark.parametrize("words", [["-q", "list"], ["list", "-q"]])
def test_they_may_stand_before_and_after_the_inner_command(words: list[str]):
    assert make_parser(["data"]).parse_args(["data", *words]).quiet is True


@pytest.mark.parametrize(("flags", "bar"), [({}, True), ({"quiet": True}, False)])
def test_a_bar_with_the_time_left_on_a_terminal(
    flags: dict, bar: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with as_asked(argparse.Namespace(**flags)):
        for item in tracked([1, 2], "checkpoints"):
            assert [*tracked("ab", "inner")] == ["a", "b"], item
    shown = sys.stderr.getvalue()
    assert ("checkpoints" in shown) is bar
    assert ("0:00:0" in shown) is bar
    assert "inner" not in shown
    assert loudness() == NORMAL


@pytest.mark.parametrize("variable", ["NO_VARIABLE", "FORCE_COLOR", "TTY_COMPATIBLE"])
def test_no_bar_and_wide_tables_in_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str
):
    """rich takes any file for a terminal by these variables, which servers that test code set."""
    monkeypatch.setenv(variable, "1")
    assert make_console().width == PLAIN_WIDTH
    assert [*tracked([1, 2], "checkpoints")] == [1, 2]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("flag", ["-q", "-v"])
def test_where_an_error_comes_from_is_told_on_demand(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["inspect", str(tmp_path), flag]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("treesyntax inspect: ")
    assert (lines[0] == "Traceback (most recent call last):") is (flag == "-v")
    assert (len(lines) == 1) is (flag == "-q")

"""What can be known to be wrong before anything is prepared: metrics, flags, methods, notations."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence

from treesyntax import errors
from treesyntax.data.binarize.options import option_fault
from treesyntax.data.encoding import TEXT
from treesyntax.errors import OptionError
from treesyntax.jobs.flags import Fault
from treesyntax.jobs.imports import listed, with_files
from treesyntax.metrics import metric_fault
from treesyntax.study.recipe.backbone import target_text
from treesyntax.study.recipe.checks import PLACEHOLDER, flag_name
from treesyntax.study.recipe.recipe import DATA, Method, Recipe
from treesyntax.study.recipe.search import SEARCH
from treesyntax.study.recipe.trainer import INJECTION, MODEL
from treesyntax.study.run.categories import check_categories
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.process import FINETUNE, safe_environment
from treesyntax.study.run.references import check_references
from treesyntax.study.run.sound_commands import SoundCommands
from treesyntax.study.run.steps import Command
from treesyntax.trees.formats import FORMATS
from treesyntax.trees.formats.base import line_records

OURS = {"score": metric_fault, "binarize": option_fault}
"""What finds the fault of a command line of ours."""
SECTIONS = {
    "binarize": "binarize",
    "fairseq-train": "train",
    "fairseq-generate": "generate",
    FINETUNE: "train",
}
"""The section of a recipe that has the flags of each program."""

AS_KEYS = {
    "binarize": ((r"--([a-z-]+) (text|[a-z]+_[a-z]+)\b", r"\1: \2"),),
    FINETUNE: ((r"--columns (\w+)=(\w+)", r"columns: {\1: \2}"), (r"--(tree-)?(format|each|header)\b", r"data.\2")),
}  # fmt: skip
"""Flags in a message of a program, and the keys of a recipe that a user writes instead."""


def check_early(plan: Plan, checker: Sequence[str] | None = None) -> None:
    """Refuse metrics, flags, methods and notations that would fail only hours later.

    Args:
        plan: the study's.
        checker: the words of the program that checks the flags of trainings, by default that of
            their trainer; without words they are not checked.

    Raises:
        OptionError: for the first fault, with the key of the recipe.
    """
    recipe, method = plan.recipe, plan.recipe.methods[0]
    checker = plan.trainer.checker if checker is None else checker
    commands: dict[Command, Method] = {("score", metric): method for metric in recipe.score}
    for run in plan.runs[: len(recipe.methods)]:
        for command in plan.commands_of(run):
            commands.setdefault(command, run.method)
    for command, method in commands.items():
        _refuse(recipe, method, command[0], _left_over(command))
        if command[0] in OURS and not recipe.own_files:
            fault = OURS[command[0]](command[1:]) or _loses_text(recipe, command, method)
            _refuse(recipe, method, command[0], fault)
    # Files of the user's own may have metrics, formats and methods; they are imported in another process.
    delegated = {
        command: method
        for command, method in commands.items()
        if command[0] not in OURS or recipe.own_files
    }
    user_files = with_files(recipe.own_files, os.environ)
    for (command, method), fault in zip(
        delegated.items(), _ask(checker, list(delegated), user_files), strict=True
    ):
        _refuse(recipe, method, command[0], fault or _loses_text(recipe, command, method))
    check_references(recipe)
    check_categories(recipe)


def _loses_text(recipe: Recipe, command: Command, method: Method) -> Fault | None:
    """A target of dependency trees, written as words, or of trees over several lines: outputs are scored line by line."""
    if command[0] != "binarize":
        return None
    flags = recipe.flags(method, "binarize")
    notation = str(flags.get("target-format") or TEXT)
    if notation == TEXT:
        return None
    if target_text(flags) is not None:
        return _no_lines(notation)
    return Fault(
        "target-format",
        f"is {notation}, and the row writes its words alone: no {notation} can be made of them to be scored; "
        f"take target-format: {TEXT} with files of text",
    )


def _no_lines(notation: str) -> Fault | None:
    """Trees over several lines: outputs are scored line by line."""
    if notation not in FORMATS.known or FORMATS[notation].records is line_records:
        return None
    return Fault(
        "target-format",
        f"is {notation}, whose trees are no lines, and outputs are scored line by line; write the files in another "
        f"format, with read_trees and write_trees of treesyntax, or take target-format: {TEXT} with files of text",
    )


def _left_over(command: Command) -> Fault | None:
    """A value that still names a variable."""
    flag = ""
    for word in command:
        flag = word.partition("=")[0][2:] if word.startswith("--") else flag
        for name in PLACEHOLDER.findall(word):
            if name not in (DATA, "out"):
                return Fault(flag, f"holds {{{name}}}, which is not a variable; name it under vars")
    return None


def _ask(
    checker: Sequence[str], commands: Sequence[Command], variables: Mapping[str, str]
) -> list[Fault | None]:
    if not checker:
        return [None] * len(commands)
    sound = SoundCommands(checker, listed(variables))
    faults: dict[Command, Fault | None] = {
        command: None for command in commands if command[0] not in OURS and command in sound
    }
    left = [command for command in commands if command not in faults]
    if left:
        faults |= zip(left, _ask_all(checker, left, variables), strict=True)
        # What is wrong with a command of ours may depend on files and packages, too.
        sound.add(command for command in left if command[0] not in OURS and not faults[command])
    return [faults[command] for command in commands]


def _ask_all(
    checker: Sequence[str], commands: Sequence[Command], variables: Mapping[str, str]
) -> list[Fault | None]:
    done = subprocess.run(
        checker,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        env={**os.environ, **safe_environment(checker, os.environ), **variables},
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        kind, _, ours = reason.partition(": ")
        if kind.startswith(errors.__name__):  # a method of the user's own
            raise OptionError(ours)
        raise OptionError(f"the flags of trainings cannot be checked: {reason}")
    answers = json.loads(done.stdout.splitlines()[-1])
    return [None if answer is None else Fault(*answer) for answer in answers]


def _refuse(recipe: Recipe, method: Method, program: str, fault: Fault | None) -> None:
    """Name the key of the recipe that a fault belongs to."""
    if fault is None:
        return
    if program == "score":
        raise OptionError(f"{recipe.path}: score: {fault.problem}")
    section, flag = SECTIONS[program], fault.flag
    row_flags, shared_flags = (
        {flag_name(name).replace("_", "-") for name in getattr(at, section)}
        for at in (method, recipe)
    )
    stored_name = flag_name(flag).replace("_", "-")
    axis_name = next((axis.name for axis in recipe.axes if f"{section}.{flag}" in axis.options), "")
    if flag == DATA:
        key = DATA
    elif axis_name == SEARCH:
        key = f"{SEARCH}: {section}.{flag}"
    elif flag == MODEL and method.arch == recipe.content[MODEL]:
        key = MODEL
    elif flag in (MODEL, INJECTION):
        key = f"methods.{method.name}.{flag}"
    elif flag == "arch":
        key = f"methods.{method.name}.arch"
    elif (
        flag
        and stored_name not in row_flags
        and (stored_name in shared_flags or program != "binarize")
    ):
        key = f"{section}.{flag}"
    else:
        key = ".".join(filter(None, ("methods", method.name, section, flag)))
    problem = fault.problem
    for written, as_key in AS_KEYS.get(program, ()):
        problem = re.sub(written, as_key, problem)
    raise OptionError(f"{recipe.path}: {key}: {problem}")

"""Check trainings of a study before anything is prepared.

Run as ``python -m treesyntax.finetune.checking`` it reads a JSON list of command lines from its standard
input and writes a JSON list with the fault of each, ``[flag, problem]`` or null.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from treesyntax.errors import OptionError, TreeSyntaxError
from treesyntax.finetune.command import add_arguments, job_of
from treesyntax.metrics import metric_fault

FLAG = "train."
"""How a message about a setting begins."""


def check(words: Sequence[str]) -> tuple[str, str] | None:
    """The first fault of a training: a setting that does not exist, a model that is not there, a method
    that does not fit it.

    Args:
        words: of the command, the program first.
    """
    if words[0] == "score":
        return metric_fault(words[1:])
    from treesyntax.finetune.models import check_model, split_spec
    from treesyntax.finetune.training import arguments_of

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(list(words[1:]))
    try:
        job = job_of(args)
        arguments_of(job, Path("out"), 1)
    except OptionError as error:
        text = str(error)
        flag, _, problem = text.removeprefix(FLAG).partition(" ")
        return (flag.rstrip(":"), problem) if text.startswith(FLAG) else ("", text)
    try:
        split_spec(job.injection)
    except TreeSyntaxError as error:
        return "injection", str(error)
    try:
        check_model(job)
    except OptionError as error:
        return "model", str(error)
    return None


if __name__ == "__main__":
    print(json.dumps([check(words) for words in json.load(sys.stdin)]))

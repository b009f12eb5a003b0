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
from treesyntax.finetune.command import SPLITS, add_arguments, job_of
from treesyntax.finetune.data import check_first
from treesyntax.metrics import metric_fault

FLAG = "train."
"""How a message about a setting begins."""


def check(words: Sequence[str]) -> tuple[str, str] | None:
    """The first fault of a training: a setting that does not exist, a model that is not there, a method
    that does not fit it. Or, with ``--write-data``, of the first example of each file.

    Args:
        words: of the command, the program first.
    """
    if words[0] == "score":
        return metric_fault(words[1:])
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(list(words[1:]))
    if args.write_data is not None:
        return _data_fault(args)
    from treesyntax.finetune.models import check_model, split_spec
    from treesyntax.finetune.training import arguments_of

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


def _data_fault(args: argparse.Namespace) -> tuple[str, str] | None:
    try:
        job = job_of(args)
        for split in SPLITS:
            if (file := getattr(args, split)) is not None:
                beside = (getattr(args, f"{split}_{what}") for what in ("trees", "target"))
                check_first(job, file, *beside)
    except TreeSyntaxError as error:
        return "data", str(error)
    return None


if __name__ == "__main__":
    print(json.dumps([check(words) for words in json.load(sys.stdin)]))

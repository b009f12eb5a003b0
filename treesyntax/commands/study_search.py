"""The search of ``treesyntax translate``: that of the study which trained the checkpoint."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError, TreeSyntaxError

DEFAULTS: dict[str, Any] = {
    "beam": 5, "max_len_a": 0.0, "max_len_b": 200, "lenpen": 1.0, "tree_constraints": "auto",
}  # fmt: skip
"""As of fairseq-generate; here by the names of the options."""
MISSING = (
    "min-len", "unnormalized", "no-early-stop", "no-repeat-ngram-size", "unkpen", "temperature",
    "sampling", "sampling-topk", "sampling-topp", "diverse-beam-groups", "diversity-rate",
    "match-source-len", "lm-path",
)  # fmt: skip
"""Flags of fairseq-generate that change the search, and that translate does not have."""


def take_search(args: argparse.Namespace) -> None:
    """Fill in the options of the search that are not given; standard error says where from."""
    flags = _study_flags(Path(args.path.split(os.pathsep)[0]))
    flags_taken = []
    for name, default in DEFAULTS.items():
        if getattr(args, name) is not None:
            continue
        flag = name.replace("_", "-")
        value = flags.get(flag)
        if value is not None:
            flags_taken.append(f"--{flag} {value}")
        try:
            setattr(args, name, default if value is None else type(default)(value))
        except (TypeError, ValueError):
            raise OptionError(f"the study searched with --{flag} {value}; give --{flag}") from None
    if flags_taken:
        print(f"search as in the study: {' '.join(flags_taken)}", file=sys.stderr)
    if lost := [f"--{name}" for name in MISSING if flags.get(name) not in (None, False)]:
        print(
            f"the study also searched with {', '.join(lost)}, which translate does not have",
            file=sys.stderr,
        )


def _study_flags(checkpoint: Path) -> dict[str, Any]:
    """The generate flags of the row that a checkpoint is of; none if it is of no study."""
    from treesyntax.study.recipe.recipe import RECIPE_FILE, read_recipe
    from treesyntax.study.recipe.rows import row_of_run
    from treesyntax.study.trained import study_of

    study, run = study_of(checkpoint) or (Path(), "")
    if not run:
        return {}
    try:
        recipe = read_recipe(study / RECIPE_FILE)
    except TreeSyntaxError as error:
        print(f"{error}; translate searches with its own defaults", file=sys.stderr)
        return {}
    row, _ = row_of_run(run)
    flags = (recipe.flags(method, "generate") for method in recipe.methods if method.name == row)
    return next(flags, {})

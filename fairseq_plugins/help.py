"""Make ``fairseq-train --help`` name what this plugin adds.

fairseq shows ``--task TASK`` and ``--arch ARCH`` and hides all names behind these two words; an
epilog below its options is the one place that it leaves to others.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from functools import wraps
from typing import Any

from fairseq_plugins.archs import architecture_names
from treesyntax.methods import METHODS


def with_epilog(add_model_args: Callable[[ArgumentParser], Any]) -> Callable[[ArgumentParser], Any]:
    """End fairseq's training parser with our task and architectures."""

    @wraps(add_model_args)
    def add(parser: ArgumentParser) -> Any:
        names = ", ".join(name for method in METHODS for name in architecture_names(method))
        parser.epilog = f"treesyntax adds: --task tree_translation; --arch {names}"
        return add_model_args(parser)

    return add

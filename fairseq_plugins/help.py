"""Make ``fairseq-train --help`` name what this plugin adds.

fairseq shows ``--task TASK`` and ``--arch ARCH`` and hides all names behind these two words; an
epilog below its options is the one place that it leaves to others.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from fairseq import options

from fairseq_plugins.archs import architecture_names
from treesyntax.methods import METHODS

_add_model_args = options.add_model_args


def _with_epilog(parser: ArgumentParser) -> Any:
    names = ", ".join(name for method in METHODS for name in architecture_names(method))
    parser.epilog = f"treesyntax adds: --task tree_translation; --arch {names}"
    return _add_model_args(parser)


def name_our_additions() -> None:
    """Let fairseq's training parser end with our task and architectures."""
    options.add_model_args = _with_epilog

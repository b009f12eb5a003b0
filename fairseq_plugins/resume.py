"""Let a training by several processes go on from its checkpoint.

In fairseq 0.12.3 the first process reads the checkpoint and sends it to the others, in classes that
``torch.load`` refuses under ``weights_only=True``, its default today. Its own flag
``--load-checkpoint-on-all-dp-ranks`` has every process read the file instead, so that nothing more
needs to be allowed; it becomes the default.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from fairseq import options

_add_checkpoint_args = options.add_checkpoint_args


def _with_default(parser: ArgumentParser) -> Any:
    group = _add_checkpoint_args(parser)
    parser.set_defaults(load_checkpoint_on_all_dp_ranks=True)
    return group


def resume_in_every_process() -> None:
    """Change the default in fairseq's training parser."""
    options.add_checkpoint_args = _with_default

"""How a training is launched: what cannot work is refused in one line, and one writes in a folder.

fairseq does without a word what it can: under torchrun on CPUs each process takes itself for the only
one, and all of them write the same checkpoints.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from fairseq.distributed import utils as distributed_utils
from torch.multiprocessing import ProcessExitedException

from fairseq_plugins.parsed import NO_PATH
from fairseq_plugins.training.mixed import has_bfloat16
from treesyntax.errors import OptionError, TreeSyntaxError
from treesyntax.files import check_path
from treesyntax.jobs.flags import LARGEST_SEED
from treesyntax.jobs.node import SAVED
from treesyntax.made.lock import training_in

logger = logging.getLogger(__name__)

COPIES = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")
"""Variables by which torchrun, srun and mpirun tell how many processes they have started."""
TWO_ON_CPUS = (
    "start each process yourself with --distributed-world-size N --distributed-rank 0 (1, …) "
    "--distributed-no-spawn --distributed-backend gloo --ddp-backend legacy_ddp "
    "--distributed-init-method tcp://HOST:PORT, see docs/cluster.md"
)

LAST = "checkpoint_last.pt"
"""What fairseq goes on from unless another file is named; it may be missing."""

RESETS = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")
"""Options that begin anew what a checkpoint says."""

INTERVALS = (
    ("checkpoint", "save_interval"), ("dataset", "validate_interval"), ("common", "log_interval"),
)  # fmt: skip
"""Options by which fairseq divides, with their sections."""

_held = ExitStack()


def check_launch(cfg: Any, environment: Mapping[str, str], gpus: int) -> None:
    """Refuse options that end in a traceback, and processes that do not know of each other.

    Args:
        cfg: of fairseq.
        environment: of the process.
        gpus: how many it sees.
    """
    if not cfg.checkpoint.no_save:
        check_path(cfg.checkpoint.save_dir, "--save-dir")
    _check_restored(cfg.checkpoint)
    common, distributed = cfg.common, cfg.distributed_training
    if not 0 <= common.seed <= LARGEST_SEED:
        raise OptionError(f"--seed {common.seed}: a seed is from 0 to {LARGEST_SEED}")
    on_cpu, world = common.cpu or not gpus, distributed.distributed_world_size
    if common.bf16:
        instead = "use --amp, which is bfloat16 on a CPU" if on_cpu else "use --fp16"
        raise OptionError(f"--bf16 is for TPUs in fairseq 0.12.3; {instead}")
    if common.fp16 and on_cpu and not common.fp16_no_flatten_grads:
        raise OptionError("--fp16 is for GPUs; on a CPU use --amp, or leave it out")
    if common.amp and on_cpu and not has_bfloat16():
        logger.warning(
            "--amp: this processor has no products in bfloat16; leave it out to be quicker"
        )
    if distributed.distributed_init_method is not None:
        return
    copies = [name for name in COPIES if int(environment.get(name) or 1) > 1]
    if copies and (on_cpu or world == 1):
        count = environment[copies[0]]
        instead = (
            TWO_ON_CPUS if on_cpu else "let each see all GPUs of its machine, see docs/cluster.md"
        )
        raise OptionError(
            f"{count} processes were started ({copies[0]}={count}), and each would train alone and "
            f"write to {cfg.checkpoint.save_dir}; {instead}"
        )
    if on_cpu and common.cpu and world > 1:
        raise OptionError(f"--cpu --distributed-world-size {world}: {TWO_ON_CPUS}")
    if world > max(gpus, 1) and distributed.distributed_port <= 0 and not copies:
        raise OptionError(
            f"--distributed-world-size {world}, but there are {gpus} GPUs; "
            + (TWO_ON_CPUS if on_cpu else "for several machines see docs/cluster.md")
        )


def _check_restored(checkpoint: Any) -> None:
    """Refuse a checkpoint to begin with that is not there, or that is not alone.

    fairseq would train from random numbers without a word, and begin anew where a training was interrupted.
    """
    last = os.path.join(checkpoint.save_dir, LAST)
    restored = checkpoint.restore_file if checkpoint.restore_file != LAST else None
    named = {"--restore-file": restored}
    if not os.path.isfile(last):  # else the training goes on from that one
        named["--finetune-from-model"] = checkpoint.finetune_from_model
        named["--continue-once"] = checkpoint.continue_once
    for flag, file in named.items():
        if file is not None and "://" not in file and not os.path.isfile(file):
            inside = os.path.join(checkpoint.save_dir, file)
            hint = f"; there is {inside}" if os.path.isfile(inside) else ""
            raise OptionError(
                f"{flag} {file}: no such file{hint}; give a checkpoint, or leave it out to go on from {LAST} in --save-dir"
            )
    resets = ", ".join(
        f"--{reset.replace('_', '-')}" for reset in RESETS if getattr(checkpoint, reset)
    )
    if checkpoint.finetune_from_model is not None and (restored or resets):
        raise OptionError(
            f"--finetune-from-model begins all else anew by itself; leave out {resets or '--restore-file'}"
        )
    if restored is None or checkpoint.no_save or not os.path.isfile(last):
        return
    folder = os.path.dirname(restored) or "."
    if os.path.realpath(folder) != os.path.realpath(checkpoint.save_dir):
        more = f" and {resets}" if resets else ""
        raise OptionError(
            f"--restore-file {restored}: a training would begin anew from it and write over {last}; leave it out"
            f"{more} to go on from that one, or name another --save-dir"
        )


def check_complete(cfg: Any, validates: bool) -> None:
    """Refuse a command that lacks what no command can do without, or a number; fairseq ends in a traceback.

    Args:
        cfg: of fairseq.
        validates: whether the command is fairseq-validate; else it is fairseq-train.
    """
    if cfg.dataset.max_tokens is None and cfg.dataset.batch_size is None:
        program = "fairseq-validate" if validates else "fairseq-train"
        raise OptionError(f"--batch-size is missing; {program} needs it or --max-tokens")
    if validates and cfg.common_eval.path is None:
        raise OptionError(NO_PATH)
    if not validates and cfg.optimizer is None:
        raise OptionError("--optimizer is missing; give one, such as adam")
    for section, name in INTERVALS if not validates else ():
        if (interval := getattr(getattr(cfg, section), name)) < 1:
            flag = name.replace("_", "-")
            raise OptionError(
                f"--{flag} {interval}: at least 1 is needed; leave it out for the default"
            )


def checked_main(fairseq_main: Callable[..., None]) -> Callable[..., None]:
    """Check how a program is launched before it begins."""

    @wraps(fairseq_main)
    def call_main(cfg: Any, main: Callable[..., None], **kwargs: Any) -> None:
        if hasattr(cfg, "common"):
            check_launch(cfg, os.environ, torch.cuda.device_count())
            validates = "override_args" in kwargs
            if (
                validates or cfg.common_eval.path is None
            ):  # not fairseq-eval-lm, fairseq-interactive
                check_complete(cfg, validates)
        try:
            fairseq_main(cfg, main, **kwargs)
        except (
            ProcessExitedException
        ) as error:  # one of the processes that fairseq starts, a GPU each
            if error.exit_code == SAVED:
                sys.exit(SAVED)
            raise

    return call_main


def hold_folder(cfg: Any) -> None:
    """Keep the folder of checkpoints for this training until the process ends.

    Raises:
        OptionError: if another training writes there.
    """
    if cfg.checkpoint.no_save or not distributed_utils.is_master(cfg.distributed_training):
        return
    _held.enter_context(training_in(Path(cfg.checkpoint.save_dir), "--save-dir"))


def _one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, TreeSyntaxError):
        print(error, file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def show_one_line() -> None:
    """Show what users can mend in one line, without a traceback."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _one_line

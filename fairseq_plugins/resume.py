"""Resuming from a checkpoint: in every process, by one training, and only with data that fit it.

In fairseq 0.12.3 the first process reads the checkpoint and sends it to the others, in classes that
``torch.load`` refuses under ``weights_only=True``, its default today. Its own flag
``--load-checkpoint-on-all-dp-ranks`` has every process read the file instead, which needs
no such class; it becomes the default.

In training fairseq does not pass the checkpoint to the task, so the data are compared here.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils

from fairseq_plugins.data_record import ESSENTIAL, FIELDS
from fairseq_plugins.limits import best_fault
from fairseq_plugins.training.ending import end_if_over
from fairseq_plugins.training.launch import RESETS, hold_folder
from fairseq_plugins.training.moments import reorder_moments
from fairseq_plugins.training.patience import count_on
from fairseq_plugins.training.plateau import count_last_validation
from fairseq_plugins.training.warning import heed_warnings
from treesyntax.errors import InputError, OptionError
from treesyntax.jobs.flags import Fault
from treesyntax.model.checkpoint import peek
from treesyntax.model.composition import parse_spec

LONGEST = 400
"""Characters of torch's error that a message shows."""

OTHER = {
    "Optimizer does not match": ("--optimizer", "--reset-optimizer"),
    "Criterion does not match": ("--criterion", "--reset-optimizer"),
    "'best'": ("--lr-scheduler", "--reset-lr-scheduler"),
}
"""How fairseq's errors begin where a flag is not that of the checkpoint, with the flag and the one that begins it anew."""


def resuming_in_every_process(add_args: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``--load-checkpoint-on-all-dp-ranks`` the default of fairseq's training."""

    @wraps(add_args)
    def add_checkpoint_args(parser: ArgumentParser) -> Any:
        group = add_args(parser)
        parser.set_defaults(load_checkpoint_on_all_dp_ranks=True)
        return group

    return add_checkpoint_args


def resuming_on_data_that_fit(fairseq_load: Callable[..., Any]) -> Callable[..., Any]:
    """Compare the data of a checkpoint with the trainer's own before it resumes.

    It raises InputError if they do not fit.
    """

    @wraps(fairseq_load)
    def load_checkpoint(trainer: Any, filename: str, *rest: Any, **named: Any) -> Any:
        return checked_load(fairseq_load, trainer, filename, *rest, **named)

    return load_checkpoint


def checked_load(
    fairseq_load: Callable[..., Any],
    trainer: Any,
    filename: str,
    reset_optimizer: bool = False,
    *rest: Any,
    **named: Any,
) -> Any:
    """Resume a training from a checkpoint of the same data, methods and order of parameters."""
    hold_folder(trainer.cfg)
    heed_warnings()
    if fault := _best_fault(trainer.cfg):
        raise OptionError(f"--{fault.flag} {fault.problem}")
    find_misfit = getattr(trainer.task, "find_misfit", None)
    if find_misfit is not None and Path(filename).is_file():
        # Fine-tuning (--finetune-from-model sets a reset) may use trees of another kind.
        flags = trainer.cfg.checkpoint
        anew = reset_optimizer or any(getattr(flags, reset) for reset in RESETS)
        fields = ESSENTIAL if anew else FIELDS
        content = peek(filename)
        misfit = find_misfit(content.get("task_state") or {}, fields)
        if misfit is not None:
            remedy = "go on with the data of its training, or train anew in another --save-dir"
            raise InputError(filename, None, misfit.cause, misfit.remedy if anew else remedy)
        if not anew:
            _check_methods(content, getattr(trainer.cfg, "model", None), filename)
        if not (reset_optimizer or flags.reset_meters):
            _check_best(content, trainer.cfg, filename)
    load = checkpoint_utils.load_checkpoint_to_cpu

    def load_in_our_order(*words: Any, **options: Any) -> Any:
        state = load(*words, **options)
        if not (reset_optimizer or state.get("last_optimizer_state")):
            raise InputError(
                filename, None, "holds no state of the optimizer, so training would begin at update 0 "
                "in the midst of its data (--no-save-optimizer-state, or a mean of checkpoints)",
                "give it as --finetune-from-model with another --save-dir, or add --reset-optimizer",
            )  # fmt: skip
        reorder_moments(state, trainer.get_model(), filename)
        return state

    checkpoint_utils.load_checkpoint_to_cpu = load_in_our_order
    try:
        extra_state = fairseq_load(trainer, filename, reset_optimizer, *rest, **named)
    except (AssertionError, KeyError) as error:
        flags = next(
            (flags for begin, flags in OTHER.items() if str(error).startswith(begin)), None
        )
        if flags is None:
            raise
        cause = f"was trained with another {flags[0]}"
        raise InputError(filename, None, cause, f"go on with that one, or add {flags[1]}") from None
    except Exception as error:  # fairseq's has no name of its own
        if not str(error).startswith("Cannot load model parameters"):
            raise
        # Parameters that are missing or too many stand in the error of torch, which fairseq hides.
        reason = " ".join(str(error.__context__).split())[:LONGEST]
        cause = f"holds the parameters of another model ({reason})"
        remedy = "give the --arch and the options of its training, or train without it"
        raise InputError(filename, None, cause, remedy) from None
    finally:
        checkpoint_utils.load_checkpoint_to_cpu = load
    if not (reset_optimizer or trainer.cfg.checkpoint.reset_meters):
        count_on(extra_state)
    if extra_state is not None and not reset_optimizer:
        if not trainer.cfg.checkpoint.reset_lr_scheduler:
            count_last_validation(trainer, extra_state)
        end_if_over(trainer, filename)
    return extra_state


def _best_fault(cfg: Any) -> Fault | None:
    criterion = getattr(cfg, "criterion", None)
    if criterion is None or cfg.dataset.disable_validation:
        return None
    return best_fault(cfg.checkpoint, criterion._name, criterion, cfg.task)


def _check_methods(content: dict[str, Any], model: Any, filename: str) -> None:
    """Refuse to go on with other methods or positions than those of a checkpoint of ours.

    Absolute positions have no parameters, so a model without them would take those of one with them.
    """
    cfg = content.get("cfg")
    then = cfg.get("model") if isinstance(cfg, dict) else None
    then = vars(then) if isinstance(then, Namespace) else then
    for side in ("encoder", "decoder"):
        for what, read in (("injection", parse_spec), ("positions", str)):
            name = f"{side}_{what}"
            if not isinstance(then, dict) or not isinstance(then.get(name), str):
                continue
            now = str(getattr(model, name, then[name]))
            if read(then[name]) != read(now):
                flag = "--" + name.replace("_", "-")
                raise InputError(
                    filename, None, f"was trained with {flag} {then[name]!r}, not with {now!r}",
                    f"go on with {flag} {then[name]!r}, or train anew in another --save-dir",
                )  # fmt: skip


def _check_best(content: dict[str, Any], cfg: Any, filename: str) -> None:
    """Refuse to compare the best validation of a checkpoint with another number, or with that of other pairs.

    The best checkpoint might never be replaced, and --patience would count on from it.
    """
    written = content.get("cfg")
    for group, name in (("checkpoint", "best_checkpoint_metric"), ("dataset", "valid_subset")):
        settings = written.get(group) if isinstance(written, dict) else None
        then = settings.get(name) if isinstance(settings, dict) else None
        now = getattr(getattr(cfg, group, None), name, then)
        # Of several subsets the first decides.
        if isinstance(then, str) and then.partition(",")[0] != str(now).partition(",")[0]:
            flag = "--" + name.replace("_", "-")
            raise InputError(
                filename, None, f"has its best validation from {flag} {then}, not {now}",
                f"go on with {flag} {then}, or forget that best one with --reset-meters",
            )  # fmt: skip

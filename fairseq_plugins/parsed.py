"""What fairseq's parsers let pass, refused in one line: options that are missing, exclude each other or do nothing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler import LR_SCHEDULER_DATACLASS_REGISTRY, build_lr_scheduler
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY

from fairseq_plugins.literals import parse_literal
from fairseq_plugins.model import is_ours
from fairseq_plugins.settings import TASK
from treesyntax.data.manifest import MANIFEST
from treesyntax.errors import OptionError, unknown_name

ADD_TASK = "add --task tree_translation"
NO_PATH = "--path is missing; give a checkpoint, such as --path checkpoints/checkpoint_best.pt"
ONE_LANGUAGE = (
    "fairseq-eval-lm evaluates models of one language; use fairseq-validate, or "
    "fairseq-generate --score-reference for the scores of single pairs"
)
LONGEST = 200
"""Characters of a wrong setting that a message shows."""
PACKAGES = {
    ("tensorboard_logdir", ""): ("tensorboard", "tensorboardX"),
    ("wandb_project", ""): ("wandb",),
    ("aim_repo", ""): ("aim",),
    ("azureml_logging", ""): ("azureml",),
    ("tpu", ""): ("torch_xla",),
    ("ddp_backend", "fully_sharded"): ("fairscale",),
    ("zero_sharding", "os"): ("fairscale",),
}
"""By option and value ("" for any) the packages of which one must be there. Without them fairseq tracks nothing and says
so in the log of a training alone, or ends in a traceback."""
PIP_NAMES = {"azureml": "azureml-core"}
SCHEDULES = {
    "inverse_sqrt": "a single --lr and --warmup-updates of 1 or more",
    "cosine": "a single --lr, and --max-update above --warmup-updates, or --lr-period-updates",
    "polynomial_decay": "--total-num-update of 1 or more",
    "tri_stage": "a single --lr, and --decay-steps of 1 or more, or --phase-ratio with --max-update",
    "triangular": "a single --lr below --max-lr, and --lr-period-updates of 2 or more",
    "step": "a single --lr above --min-lr",
    "reduce_lr_on_plateau": "a single --lr",
}
"""By --lr-scheduler what it cannot compute a rate without. fairseq ends in a traceback."""


def checked_parse(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Say in one line what is wrong with options that fairseq's parser does not look at."""

    @wraps(parse)
    def parse_args_and_arch(*words: Any, **named: Any) -> Any:
        try:
            parsed = parse(*words, **named)
        except ValueError as error:
            if "--fp16" not in str(error):
                raise
            raise OptionError("--fp16 and --bf16 exclude each other; leave one out") from None
        except KeyError as error:  # fairseq-validate and fairseq-eval-lm without --task
            if error.args != (None,):
                raise
            raise OptionError(f"no --task is given; {ADD_TASK}") from None
        args = parsed[0] if isinstance(parsed, tuple) else parsed
        if getattr(args, "num_shards", 1) > 1:
            raise OptionError(
                "--num-shards divides nothing in fairseq 0.12.3, each process would do everything; "
                "leave it out, or give each a split of its own (--gen-subset)"
            )
        task = getattr(args, "task", "")
        pairs = task == "language_modeling" and Path(args.data, MANIFEST).is_file()
        if hasattr(args, "output_word_probs") and (
            pairs or task == TASK
        ):  # of fairseq-eval-lm alone
            raise OptionError(ONE_LANGUAGE)
        if pairs:
            raise OptionError(f"{args.data} holds pairs, not text of one language; {ADD_TASK}")
        # A command that is checked without being run has no checkpoint yet.
        if hasattr(args, "beam") and args.path is None and not named.get("parse_known"):
            raise OptionError(NO_PATH)
        if task == TASK:
            if hasattr(args, "store_ema"):  # of fairseq-train alone
                _check_training(args)
            _check_generation(args)
            _check_overrides(args)
        return parsed

    return parse_args_and_arch


def _check_training(args: Namespace) -> None:
    """Refuse options with which fairseq-train tracks or trains nothing, or ends in a traceback."""
    for (option, value), packages in PACKAGES.items():
        given = getattr(args, option, None)
        if given and value in ("", str(given)) and not any(map(find_spec, packages)):
            flag = " ".join(filter(None, (f"--{option.replace('_', '-')}", value)))
            name = PIP_NAMES.get(packages[0], packages[0])
            raise OptionError(
                f"{flag} needs a package that is not installed; pip install {name}, or leave it out"
            )
    if (file := args.quantization_config_path) and not Path(file).is_file():
        raise OptionError(f"--quantization-config-path {file}: no such file; give a YAML file")
    if args.write_checkpoints_asynchronously:
        raise OptionError(
            "--write-checkpoints-asynchronously writes one of the checkpoints that are due together, and not "
            "checkpoint_last.pt; leave it out"
        )
    for option, default in (("model_parallel_size", 1), ("pipeline_model_parallel", False)):
        if getattr(args, option) != default:
            flag = option.replace("_", "-")
            raise OptionError(
                f"--{flag} needs models that are made for it, as none here is; leave it out"
            )
    if args.fp16 and args.amp:
        raise OptionError("--fp16 and --amp exclude each other; leave one out")
    if args.lr_scheduler in SCHEDULES:
        _check_schedule(args)


class _OneNumber(FairseqOptimizer):
    """An optimizer whose rate a scheduler may set."""

    def __init__(self) -> None:
        super().__init__(None)
        self._optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)


def _check_schedule(args: Namespace) -> None:
    """Refuse options from which a scheduler computes no rate, by computing its first ones."""
    settings = Namespace(**vars(args))
    kind = LR_SCHEDULER_DATACLASS_REGISTRY[args.lr_scheduler]
    try:
        for name, field in kind.__dataclass_fields__.items():  # some numbers are still text
            if field.type is float and isinstance(value := getattr(args, name, None), str):
                setattr(settings, name, float(value))
        schedule = build_lr_scheduler(settings, _OneNumber())
        for update in (0, 1, getattr(args, "warmup_updates", 0) + 1):
            schedule.step_update(update)
    except (AssertionError, ArithmeticError, TypeError, ValueError):
        raise OptionError(
            f"--lr-scheduler {args.lr_scheduler} gives no rate with these options; it needs "
            f"{SCHEDULES[args.lr_scheduler]}"
        ) from None


def _check_generation(args: Namespace) -> None:
    """Refuse options on which fairseq-generate ends in a traceback, or that change nothing."""
    if getattr(args, "sacrebleu", False) and args.scoring != "sacrebleu":
        raise OptionError(
            "--sacrebleu changes nothing in fairseq 0.12.3, whose own BLEU would be printed; give --scoring "
            "sacrebleu"
        )
    if getattr(args, "constraints", None) is not None:
        raise OptionError(
            "--constraints are read by fairseq-interactive alone, which carries no trees; leave it out"
        )
    if getattr(args, "replace_unk", None) is not None:
        raise OptionError(
            "--replace-unk needs attention weights, which these models do not return; leave it out, "
            "or train with --copy-source"
        )
    if getattr(args, "sampling", False) and args.nbest != args.beam:
        raise OptionError(
            f"--sampling writes as many outputs as --beam is wide; give --nbest {args.beam}"
        )


def _check_overrides(args: Namespace) -> None:
    """Refuse ``--model-overrides`` that change nothing: fairseq passes over names that it does not know."""
    text = getattr(args, "model_overrides", "{}")
    try:
        overrides = parse_literal(text)
    except OptionError:
        overrides = None
    if not isinstance(overrides, dict):
        raise OptionError(
            f"--model-overrides {text[:LONGEST]} is no dictionary; write {{'name': value}}"
        )
    known = _known_settings() if overrides else set()
    groups = [overrides, *(value for value in overrides.values() if isinstance(value, dict))]
    for name in (str(name) for group in groups for name in group):
        if name not in known:
            raise unknown_name("setting of a model", name, sorted(known), "--model-overrides:")


def _known_settings() -> set[str]:
    """The names of all settings that a checkpoint of ours may have, and of their groups."""
    groups = FairseqConfig.__dataclass_fields__
    classes = [group.type for group in groups.values()]
    classes += [kind for name, kind in MODEL_DATACLASS_REGISTRY.items() if is_ours(name)]
    classes += TASK_DATACLASS_REGISTRY.values()
    classes += [
        kind for every in REGISTRIES.values() for kind in every["dataclass_registry"].values()
    ]
    return {*groups}.union(*(kind.__dataclass_fields__ for kind in classes if is_dataclass(kind)))

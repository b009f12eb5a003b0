"""Average the weights of the last checkpoints of a training (Vaswani et al. 2017, section 6.1).

The mean of weights that a constant or slowly falling rate moves about is often better than any of
them, most of all where there is little data. Takes the checkpoints that fairseq-train names by
their update (--save-interval-updates, --keep-interval-updates), or, without any, by their epoch.

Example, the mean of the last 8:

  treesyntax average checkpoints --last 8 --out checkpoint_average.pt
  fairseq-generate DATA --path checkpoint_average.pt --user-dir "$(treesyntax plugins)" …
"""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.errors import InputError, OptionError
from treesyntax.files import check_path, output_file
from treesyntax.jobs.terminal import tracked

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BY_UPDATE = re.compile(r"checkpoint_[0-9]+_([0-9]{1,18})\.pt")
BY_EPOCH = re.compile(r"checkpoint([0-9]{1,18})\.pt")
OPTIMIZER = "last_optimizer_state"
OF_SIDE = ("injection", "positions", "normalize_before", "attention_heads", "layers", "learned_pos")
SETTINGS = (
    *(f"{side}_{name}" for side in ("encoder", "decoder") for name in OF_SIDE),
    "share_encoder_layers", "share_decoder_layers", "decoder_next_slot", "copy_source", "activation_fn",
    "no_scale_embedding", "embedding_scaling",
)  # fmt: skip
"""Of a model: what it computes with the same parameters. Dropout may change when a training goes on."""

Place = tuple[Any, ...]
"""What two names of one tensor have in common."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, help="folder of the checkpoints of one training")
    parser.add_argument(
        "--last", type=int, default=8, metavar="N",
        help="how many of them; fewer are refused (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the mean of them")


def run(args: argparse.Namespace) -> int:
    """Write the mean of the last checkpoints.

    Raises:
        OptionError: if no number of checkpoints is asked for.
        InputError: for a checkpoint that is missing, damaged or of another model, or named by --out.
    """
    import torch

    check_path(args.out, "--out")
    if args.last < 1:
        raise OptionError(f"--last {args.last}: give 1 or more")
    paths = find_checkpoints(args.folder)[-args.last :]
    if len(paths) < args.last:
        raise InputError(
            args.folder, None, f"has {len(paths)} checkpoints, not {args.last}",
            f"give --last {len(paths)}, train longer, or save and keep more (--save-interval-updates, "
            "--keep-interval-updates)",
        )  # fmt: skip
    if args.out.exists() and any(args.out.samefile(path) for path in paths):
        raise InputError(
            args.out, None, "is one of the checkpoints to average", "name another file"
        )
    state = average(paths)
    content = io.BytesIO()  # torch's own errors of a full disk are tracebacks
    torch.save(state, content)
    with output_file(args.out) as staged:
        staged.write_bytes(content.getbuffer())
    print(f"{args.out}: the mean of {', '.join(path.name for path in paths)}")
    return 0


def find_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder that have their update in their name, else their epoch; sorted."""
    if not folder.is_dir():
        raise InputError(folder, None, "is no folder", "give the one that has the checkpoints")
    for pattern in (BY_UPDATE, BY_EPOCH):
        named = [(path, pattern.fullmatch(path.name)) for path in folder.glob("checkpoint*.pt")]
        numbered = sorted((int(match[1]), path) for path, match in named if match)
        if numbered:
            return [path for _, path in numbered]
    raise InputError(
        folder,
        None,
        "has no checkpoint_EPOCH_UPDATE.pt and no checkpointEPOCH.pt",
        "train with --save-interval-updates and --keep-interval-updates",
    )


def average(paths: Sequence[Path]) -> dict[str, Any]:
    """The last checkpoint with the mean of the weights of all, and nothing to train on with.

    Sums have 64 bits; whole numbers and what else is no weight are those of the last. Tensors that
    share their memory (tied embeddings) go on sharing it.
    """
    from treesyntax.model.checkpoint import check_numbers, load_checkpoint

    state = load_checkpoint(paths[-1])
    model: dict[str, Tensor] = state["model"]
    check_numbers(paths[-1], model)
    weights = {
        _memory_of(tensor): name for name, tensor in model.items() if tensor.is_floating_point()
    }
    sums = {name: model[name].double() for name in weights.values()}
    for path in tracked(paths[:-1], "checkpoints"):
        content = load_checkpoint(path)
        other = content["model"]
        if what := _difference(content, state):
            raise InputError(
                path, None, f"is of another {what} than {paths[-1].name}",
                "average one training: move away what an earlier one has left in the folder",
            )  # fmt: skip
        check_numbers(path, other)
        for name, total in sums.items():
            total += other[name]
    means = {name: (sums[name] / len(paths)).to(model[name].dtype) for name in sums}
    state["model"] = {
        name: means.get(weights.get(_memory_of(tensor), ""), tensor)
        for name, tensor in model.items()
    }
    return {key: value for key, value in state.items() if key != OPTIMIZER}


def _memory_of(tensor: Tensor) -> Place:
    memory = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
    return *memory, tensor.dtype, tensor.shape, tensor.stride()


def _shapes(state: Mapping[str, Any]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in state["model"].items()}


def _difference(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """What shows that two checkpoints are not of one training; what either does not record is alike."""
    if _shapes(first) != _shapes(other):
        return "model"
    if None not in (seeds := {_seed(first), _seed(other)}) and len(seeds) > 1:
        return "seed"
    then, now = map(_settings, (first, other))
    if changed := [name for name in then if now.get(name, then[name]) != then[name]]:
        return f"--{changed[0].replace('_', '-')}"
    data = [(state.get("task_state") or {}).get("data") or {} for state in (first, other)]
    differ = any(
        data[0].get(role, {}).get(field, value) != value
        for role, record in data[1].items()
        for field, value in record.items()
    )
    return "data" if differ else ""


def _settings(state: Mapping[str, Any]) -> dict[str, str]:
    """The `SETTINGS` that a checkpoint records, in either form that fairseq writes."""
    cfg = state.get("cfg")
    model = cfg.get("model") if isinstance(cfg, dict) else None
    flags = vars(model) if isinstance(model, argparse.Namespace) else model
    recorded = flags if isinstance(flags, dict) else {}
    return {name: str(recorded[name]).replace(" ", "") for name in SETTINGS if name in recorded}


def _seed(state: Mapping[str, Any]) -> Any:
    cfg = state.get("cfg")
    common = cfg.get("common") if isinstance(cfg, dict) else None
    return common.get("seed") if isinstance(common, dict) else None

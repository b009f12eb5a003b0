"""The settings in a checkpoint: plain values of the types that their dataclasses say, of our task.

fairseq builds whatever model, task and criterion the settings of a checkpoint name, with any value.
Some of its classes run commands, load more files or ask the network. So nothing is built before
every setting has been looked at, and nothing is used but this project's task and model.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any

from fairseq.dataclass.configs import FairseqConfig
from fairseq.file_io import PathManager
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from omegaconf import OmegaConf

from fairseq_plugins.model import is_ours
from fairseq_plugins.task import TreeTranslationTask
from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.files import check_path
from treesyntax.model.checkpoint import load_checkpoint, peek

DEEPEST, MOST_VALUES = 10, 100_000
"""Limits of a group of settings; fairseq's have four levels and fewer than a hundred values."""

TASK = "tree_translation"
RATES = (
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "encoder_layerdrop",
    "decoder_layerdrop",
)
WIDTHS = ("embed_dim", "ffn_embed_dim", "attention_heads")
LONGEST = 2**31


def check_settings(path: str | Path, state: Mapping[str, Any], ours: bool = True) -> None:
    """Refuse settings that could do more than set something.

    Args:
        path: of the checkpoint, for messages.
        state: its content.
        ours: whether a task and a model will be built from it, which must be this project's.

    Raises:
        InputError: if the settings are missing, of an older form, or not what fairseq-train writes.
    """
    cfg = state.get("cfg")
    if state.get("args") is not None or not isinstance(cfg, dict):
        cause = "holds no settings of fairseq-train"
        raise InputError(path, None, cause, "give a checkpoint that fairseq 0.12 wrote")
    for name, section in cfg.items():
        fault = _fault(section) or _misfit(str(name), section)
        if fault:
            remedy = "give a checkpoint as fairseq-train wrote it"
            raise InputError(path, None, f"its setting {name}{fault}", remedy)
    if not ours:
        return
    for kind, allowed, remedy in (
        ("task", _is_our_task, f"train the model with --task {TASK}"),
        ("model", is_ours, "train the model with an --arch that treesyntax methods lists"),
    ):
        name = _name_of(cfg.get(kind))
        if not allowed(name):
            flag = "--task" if kind == "task" else "--arch"
            raise InputError(path, None, f"was trained with {flag} {name[:60]}", remedy)


def check_sizes(path: str | Path, state: Mapping[str, Any]) -> None:
    """Refuse sizes, rates and lengths that no model with the weights of a checkpoint has."""
    weights = state.get("model") or {}
    for setting in _too_large(state["cfg"], weights) if weights else ():
        cause = f"its setting {setting} does not fit the model"
        raise InputError(path, None, cause, "train it again")


def _too_large(cfg: Mapping[str, Any], weights: Mapping[str, Any]) -> Iterator[str]:
    """The settings that weights cannot have: a model of any size is not built to see that."""
    widest = max((size for tensor in weights.values() for size in tensor.shape), default=1)
    limits = dict.fromkeys(RATES, (0.0, 1.0))
    for side in ("encoder", "decoder"):
        limits |= {f"{side}_{size}": (1, widest) for size in WIDTHS}
        limits[f"{side}_layers"] = (0, len(weights))
    limits |= {f"max_{side}_positions": (1, LONGEST) for side in ("source", "target")}
    for section in ("model", "task"):
        values = cfg[section]
        values = vars(values) if isinstance(values, Namespace) else values
        for setting, (least, most) in limits.items() if isinstance(values, dict) else ():
            value = values.get(setting)
            if isinstance(value, int | float) and not least <= value <= most:
                yield f"{section}.{setting}"


def _fault(section: Any) -> str:
    """Where and why a value is not plain; "" if all are."""
    waiting = [("", section, 0)]
    for seen in count():
        if not waiting:
            return ""
        key_path, value, level = waiting.pop()
        if level > DEEPEST or seen > MOST_VALUES:
            return f"{key_path[:80]} holds too much"
        if isinstance(value, Namespace):
            value = vars(value)
        if isinstance(value, dict):
            waiting += [
                (f"{key_path}.{str(key)[:40]}", inner, level + 1) for key, inner in value.items()
            ]
        elif isinstance(value, list | tuple):
            waiting += [(key_path, inner, level + 1) for inner in value]
        elif isinstance(value, str) and "${" in value:
            return f"{key_path} refers to something else: {value[:40]!r}"
        elif isinstance(value, float) and not isfinite(value):
            return f"{key_path} is {value}"
        elif not isinstance(value, str | bool | int | float | None):
            return f"{key_path} is a {type(value).__name__}"
    return ""


def _misfit(name: str, section: Any) -> str:
    """Where and why a section does not fit its dataclass; "" if it does or has none."""
    values = vars(section) if isinstance(section, Namespace) else section
    dataclass = _dataclass(name, values)
    if dataclass is None:
        return ""
    if not isinstance(values, dict):
        return " is no group of settings"
    known = {key: value for key, value in values.items() if key in dataclass.__dataclass_fields__}
    try:
        merged: Any = OmegaConf.merge(_structured(dataclass), known)
    except Exception as error:  # of a dozen classes
        return ": " + "; ".join(line.strip() for line in str(error).splitlines() if line)[:200]
    for key, value in known.items():  # numbers, which merging turns into text
        if isinstance(merged[key], str) and isinstance(value, int | float):
            return f".{key} is {value!r}, which is no text"
    return ""


@cache
def _structured(dataclass: Any) -> Any:
    return OmegaConf.structured(dataclass())


def _dataclass(name: str, values: Any) -> Any:
    """What says the types of a section; None if nothing does, or the section is empty."""
    chosen = _name_of(values)
    if values is None:
        return None
    if name == "task":
        return TASK_DATACLASS_REGISTRY.get(chosen)
    if name == "model":
        architecture = ARCH_MODEL_REGISTRY.get(chosen)
        return getattr(architecture, "__dataclass", None) or MODEL_DATACLASS_REGISTRY.get(chosen)
    if name in REGISTRIES:
        return REGISTRIES[name]["dataclass_registry"].get(chosen)
    if name in FairseqConfig.__dataclass_fields__:
        return FairseqConfig.__dataclass_fields__[name].type
    return None


def _name_of(section: Any) -> str:
    values = vars(section) if isinstance(section, Namespace) else section
    return str(values.get("_name") if isinstance(values, dict) else values)


def _is_our_task(name: str) -> bool:
    return issubclass(TASK_REGISTRY.get(name, object), TreeTranslationTask)


OF_A_TRAINING = {"leave_out": ""}
"""Settings, and their defaults, that belong to one training and its data: whoever uses its model gives
them anew."""

_building: list[str] = []
"""The checkpoints that a model is built from; a resumed training builds nothing from its settings."""


def checked_load(load: Callable[..., Any]) -> Callable[..., Any]:
    """Load no checkpoint before `check_settings` has seen it."""

    @wraps(load)
    def checked(path: str, arg_overrides: Any = None, *rest: Any, **named: Any) -> Any:
        local = PathManager.get_local_path(path)
        state = peek(local) or load_checkpoint(local)
        check_settings(path, state, bool(_building))
        if _building:
            check_sizes(path, state)
            arg_overrides = {**OF_A_TRAINING, **(arg_overrides or {})}
        return load(path, arg_overrides, *rest, **named)

    return checked


def checked_ensemble(load_ensemble: Callable[..., Any]) -> Callable[..., Any]:
    """Build no model of a checkpoint with other settings than ours, and say in one line what is wrong with it."""

    @wraps(load_ensemble)
    def load_ours(filenames: list[str], *rest: Any, **named: Any) -> Any:
        for name in filenames:
            if not Path(PathManager.get_local_path(name)).is_file():
                whole = os.pathsep.join(filenames)
                if Path(whole).exists():
                    check_path(whole, "--path")
                raise InputError(name, None, "does not exist", "give a checkpoint with --path")
        _building.extend(filenames)
        try:
            return load_ensemble(filenames, *rest, **named)
        except (TreeSyntaxError, OSError):
            raise
        except Exception as error:  # what building and filling a model raise has no end
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            cause = f"its settings make no model ({reason})"
            raise InputError(", ".join(filenames)[:500], None, cause, "train it again") from error
        finally:
            _building.clear()

    return load_ours

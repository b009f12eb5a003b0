"""The encoder, or the methods of either side, rebuilt from a checkpoint without fairseq."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from treesyntax.data.dictionary import PAD
from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.model.composition import Composition
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.injection import Injection

NO_PARAMETERS = ("embed_positions._float_tensor",)
"""What older versions of fairseq store beside the parameters."""


def model_flags(state: Mapping[str, Any]) -> Namespace:
    """The flags of the training's model, as one of fairseq's two forms of a checkpoint holds them."""
    flags = state["cfg"]["model"]
    return Namespace(**flags) if isinstance(flags, dict) else flags


def model_config(state: Mapping[str, Any], path: Path, side: str) -> TransformerConfig:
    """Sizes and methods of one side, as the training's flags set them.

    Args:
        state: a checkpoint as :func:`treesyntax.model.checkpoint.load_checkpoint` reads it; one of
            fairseq's own ``transformer`` has no methods.
        path: its file, for messages.
        side: ``encoder`` or ``decoder``.

    Raises:
        InputError: if it lacks the sizes.
        OptionError: for methods that are not registered.
    """
    with _sizes_of(path, side):
        return TransformerConfig.from_flags(model_flags(state), side)


@contextmanager
def _sizes_of(path: Path, side: str) -> Iterator[None]:
    """Refuse a checkpoint of which nothing can be built; what torch and methods raise has no end."""
    try:
        yield
    except TreeSyntaxError:
        raise
    except Exception:
        raise InputError(
            path, None, f"does not hold the sizes of its {side}", "give one of fairseq-train"
        ) from None


def build_encoder(state: Mapping[str, Any], path: Path) -> Encoder:
    """The encoder with its trained parameters, in evaluation mode.

    Raises:
        InputError: if the checkpoint holds no encoder of this kind.
        OptionError: as :func:`model_config`.
    """
    config = model_config(state, path, "encoder")
    with _sizes_of(path, "encoder"):
        embedding = nn.Embedding(vocabulary_size(state, path), config.d_model, PAD)
        encoder = Encoder(config, embedding)
    _load(encoder, _part_of(state, "encoder."), path, "encoder")
    return encoder.eval()


def vocabulary_size(state: Mapping[str, Any], path: Path) -> int:
    """Number of symbols in the encoder's embedding."""
    weight = state["model"].get("encoder.embed_tokens.weight")
    if weight is None:
        raise InputError(path, None, "has no token embedding in its encoder")
    return len(weight)


def source_record(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a checkpoint records of the sources that its model was trained on; {} where it records nothing."""
    record: Any = state
    for name in ("task_state", "data", "source"):
        record = record.get(name) if isinstance(record, Mapping) else None
    return record if isinstance(record, Mapping) else {}


def build_method(state: Mapping[str, Any], path: Path, side: str, name: str) -> Injection:
    """One method of a side with its trained parameters.

    Raises:
        InputError: if the model does not have the method there.
        OptionError: as :func:`model_config`.
    """
    methods = build_methods(state, path, side)
    if name not in methods:
        raise InputError(
            path, None, f"has no {name} in its {side}", f"give one of --{side}-injection {name}"
        )
    # A ModuleDict is not generic: mypy knows its values as modules only.
    return methods[name]  # type: ignore[return-value]


def build_methods(state: Mapping[str, Any], path: Path, side: str) -> Composition:
    """All methods of a side with their trained parameters.

    Raises:
        InputError: if the parameters do not fit the methods.
        OptionError: as :func:`model_config`.
    """
    config = model_config(state, path, side)
    with _sizes_of(path, side):
        methods = Composition(config.injection, config.site)
    _load(methods, _part_of(state, f"{side}.injections."), path, f"{side}'s methods")
    return methods.eval()


def _part_of(state: Mapping[str, Any], prefix: str) -> dict[str, Tensor]:
    names = (name for name in state["model"] if name.startswith(prefix))
    tensors = {name.removeprefix(prefix): state["model"][name] for name in names}
    return {name: tensor for name, tensor in tensors.items() if name not in NO_PARAMETERS}


def _load(module: nn.Module, tensors: dict[str, Tensor], path: Path, what: str) -> None:
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        # torch lists every tensor, one a line; the first is enough.
        reason = str(error).splitlines()[1].strip().rstrip(".")
        raise InputError(path, None, f"its {what} cannot be rebuilt ({reason[:200]})") from None

"""The encoder, or the methods of either side, of a checkpoint, built again without fairseq."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from treesyntax.data.dictionary import PAD
from treesyntax.errors import InputError
from treesyntax.model.composition import Composition
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.injection import Injection, Site

SIDES = ("encoder", "decoder")
SIZES = {
    "d_model": "embed_dim",
    "d_ff": "ffn_embed_dim",
    "heads": "attention_heads",
    "layers": "layers",
    "normalize_before": "normalize_before",
    "learned_positions": "learned_pos",
}
"""Our settings and fairseq's names for them, without the side in front."""

NO_PARAMETERS = ("embed_positions._float_tensor",)
"""What older versions of fairseq store beside the parameters."""


def model_settings(state: Mapping[str, Any], path: Path, side: str) -> TransformerConfig:
    """Sizes and methods of one side, as the training's flags set them.

    Args:
        state: a checkpoint as :func:`treesyntax.model.checkpoint.load_checkpoint` reads it; one of
            fairseq's own ``transformer`` has no methods.
        path: its file, for messages.
        side: ``encoder`` or ``decoder``.

    Raises:
        InputError: if it does not hold them.
        OptionError: for methods that are not registered.
    """
    try:
        found = state["cfg"]["model"]
        flags = found if isinstance(found, dict) else vars(found)
        sizes = {ours: flags[f"{side}_{theirs}"] for ours, theirs in SIZES.items()}
    except (KeyError, TypeError):
        raise InputError(
            path, None, f"does not hold the sizes of its {side}", "give one of fairseq-train"
        ) from None
    longest = "max_source_positions" if side == "encoder" else "max_target_positions"
    return TransformerConfig(
        **sizes,
        activation=str(flags.get("activation_fn", "relu")),
        scale_embedding=not flags.get("no_scale_embedding", False),
        max_positions=flags.get(longest) or TransformerConfig.max_positions,
        injection=flags.get(f"{side}_injection", "none"),
        positions=str(flags.get(f"{side}_positions", "auto")),
    )


def build_encoder(state: Mapping[str, Any], path: Path) -> Encoder:
    """The encoder with its trained parameters, without dropout.

    Raises:
        InputError: if the checkpoint holds no encoder of this kind.
        OptionError: as :func:`model_settings`.
    """
    settings = model_settings(state, path, "encoder")
    embedding = nn.Embedding(vocabulary_size(state, path), settings.d_model, PAD)
    encoder = Encoder(settings, embedding)
    _load(encoder, _part_of(state, "encoder."), path, "encoder")
    return encoder.eval()


def vocabulary_size(state: Mapping[str, Any], path: Path) -> int:
    """Number of symbols that the encoder knows.

    Raises:
        InputError: if the checkpoint holds no encoder.
    """
    weight = state["model"].get("encoder.embed_tokens.weight")
    if weight is None:
        raise InputError(path, None, "has no token embedding in its encoder")
    return len(weight)


def build_method(state: Mapping[str, Any], path: Path, side: str, name: str) -> Injection:
    """One method of a side with its trained parameters.

    Raises:
        InputError: if the model does not have the method there.
        OptionError: as :func:`model_settings`.
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
        InputError: if the parameters are not those of the methods.
        OptionError: as :func:`model_settings`.
    """
    settings = model_settings(state, path, side)
    site = Site(settings.d_model, settings.heads, settings.layers)
    methods = Composition(settings.injection, site)
    _load(methods, _part_of(state, f"{side}.injections."), path, f"{side}'s methods")
    return methods.eval()


def _part_of(state: Mapping[str, Any], prefix: str) -> dict[str, Tensor]:
    names = (name for name in state["model"] if name.startswith(prefix))
    part = {name.removeprefix(prefix): state["model"][name] for name in names}
    return {name: tensor for name, tensor in part.items() if name not in NO_PARAMETERS}


def _load(module: nn.Module, tensors: dict[str, Tensor], path: Path, what: str) -> None:
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        # torch lists every tensor, one a line; the first says enough.
        reason = str(error).splitlines()[1].strip().rstrip(".")
        raise InputError(path, None, f"its {what} cannot be built again ({reason[:200]})") from None

"""Architectures: every method in every size, named ``tree_METHOD`` and ``tree_METHOD_SIZE``.

The base size goes by both ``tree_METHOD`` and ``tree_METHOD_base``. An architecture is the paper's model:
where its vectors stand in the decoder, too, the architecture has them there.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY, register_model_architecture
from omegaconf import open_dict

from fairseq_plugins.model import MODEL, is_ours
from treesyntax.methods import METHODS


@dataclass(frozen=True)
class Size:
    """Width, feed-forward width, layers and heads of both encoder and decoder."""

    d_model: int
    d_ff: int
    layers: int
    heads: int


SIZES = {
    "base": Size(512, 2048, 6, 8),  # Vaswani et al. 2017; McDonald & Chiang 2021; Omote et al. 2019
    "iwslt": Size(512, 1024, 6, 4),  # fairseq's transformer_iwslt_de_en
    "small": Size(256, 1024, 4, 8),  # Shiv & Quirk 2019, semantic parsing; their sequences
    "program": Size(256, 512, 4, 8),  # Shiv & Quirk 2019, trees of programs
    "compact": Size(128, 512, 2, 4),  # a quarter of an hour on one CPU core
    "mini": Size(64, 256, 2, 4),  # minutes on one CPU core
    "tiny": Size(32, 64, 2, 2),  # tests
}


def _preset(method: str, size: Size) -> Callable[[Namespace], None]:
    encoder, decoder = METHODS[method].of_the_paper or (method, "none")
    values = {"encoder_injection": encoder, "decoder_injection": decoder}
    sizes = {
        "embed_dim": size.d_model,
        "ffn_embed_dim": size.d_ff,
        "layers": size.layers,
        "attention_heads": size.heads,
    }

    def apply(args: Namespace) -> None:
        presets = {
            f"{side}_{key}": value
            for side in ("encoder", "decoder")
            for key, value in sizes.items()
        }
        for name, value in {**presets, **values}.items():
            setattr(args, name, getattr(args, name, value))

    return apply


def architecture_names(method: str) -> list[str]:
    """The names under which a method can be trained, the base size first."""
    return [f"tree_{method}"] + [f"tree_{method}_{size}" for size in SIZES if size != "base"]


for _method in METHODS:
    register_model_architecture(MODEL, f"tree_{_method}_base")(_preset(_method, SIZES["base"]))
    for _name, _size in zip(architecture_names(_method), SIZES.values(), strict=True):
        register_model_architecture(MODEL, _name)(_preset(_method, _size))


def with_presets(merge: Callable[..., Any]) -> Callable[..., Any]:
    """Give the model of a hydra configuration the presets of its architecture before fairseq fills in defaults."""

    @wraps(merge)
    def merge_with_parent(defaults: Any, cfg: Any, *rest: Any, **named: Any) -> Any:
        name = cfg.get("_name")
        if is_ours(name):
            with open_dict(cfg):
                ARCH_CONFIG_REGISTRY[name](cfg)
        return merge(defaults, cfg, *rest, **named)

    return merge_with_parent

"""Checkpoints and data as the analyses read them, and the command itself."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from support import write_store
from support.helpers import stored
from treesyntax.__main__ import main
from treesyntax.data.dictionary import EOS, Dictionary
from treesyntax.data.token_files import write_tokens
from treesyntax.data.tree_store import TreeArrays
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.trees.tree import Tree

LAYERS, HEADS, WIDTH = 2, 2, 8


def build_methods(spec: str, seed: int = 7) -> Composition:
    """Methods with random parameters."""
    torch.manual_seed(seed)
    methods = Composition(spec, Site(WIDTH, HEADS, LAYERS))
    for parameter in methods.parameters():
        nn.init.normal_(parameter, std=0.6)
    return methods


def flags_of(injection: str, side: str = "encoder", **changes: Any) -> Namespace:
    """The flags of fairseq-train with the sizes of both sides."""
    sizes = {
        "embed_dim": WIDTH, "ffn_embed_dim": 16, "attention_heads": HEADS, "layers": LAYERS,
        "normalize_before": False, "learned_pos": False,
    }  # fmt: skip
    sides = {f"{s}_{name}": size for s in ("encoder", "decoder") for name, size in sizes.items()}
    return Namespace(**{**sides, f"{side}_injection": injection, **changes})


def save(
    path: Path, model: Mapping[str, Tensor], flags: Namespace, update: int | None = None
) -> Path:
    """A checkpoint as fairseq-train writes it."""
    state: dict[str, Any] = {"model": dict(model), "cfg": {"model": flags}}
    if update is not None:
        state["optimizer_history"] = [{"num_updates": 0}, {"num_updates": update}]
    torch.save(state, path)
    return path


def save_methods(
    path: Path, methods: Composition, spec: str, side: str = "encoder", update: int | None = 5
) -> Path:
    """A checkpoint with the methods of one side and an embedding of 8 symbols."""
    model = {f"{side}.injections.{name}": part for name, part in methods.state_dict().items()}
    model["encoder.embed_tokens.weight"] = torch.zeros(8, WIDTH)
    return save(path, model, flags_of(spec, side), update)


def write_data(
    folder: Path,
    ids: Sequence[Sequence[int]],
    trees: Sequence[tuple[Tree, list[int]]],
    symbols: Sequence[str],
) -> None:
    """The subset valid of binarized data, whose sentences are without their EOS."""
    Dictionary([(symbol, 1) for symbol in symbols]).write(folder / "dict.en.txt")
    sizes, flat = np.array([len(part) for part in ids]), np.concatenate([*map(np.array, ids)])
    for language in ("en", "de"):
        prefix = folder / f"valid.en-de.{language}"
        tokens = write_tokens(prefix, [(flat, sizes)], len(symbols) + 4, EOS)
    if trees:
        arrays = [stored(tree, nodes) for tree, nodes in trees]
        parts = (np.concatenate(part) for part in zip(*arrays, strict=True))
        counts = np.array([len(item.parents) for item in arrays])
        store = folder / "valid.en-de.en.tree"
        write_store(store, "preorder", [TreeArrays(counts, sizes, *parts)], tokens)


def analyse(name: str, *words: object) -> int:
    """``treesyntax analyse NAME WORDS``."""
    return main(["analyse", name, *map(str, words)])


def refused(capsys: pytest.CaptureFixture[str], out: Path, name: str, *words: object) -> str:
    """The one line of an analysis that is refused and writes nothing."""
    capsys.readouterr()
    assert analyse(name, *words, "--out", out) == 2
    error = capsys.readouterr().err
    assert error.startswith("treesyntax analyse: ")
    assert error.count("\n") == 1
    assert not out.exists()
    return error

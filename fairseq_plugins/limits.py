"""Warnings in the log of a search: what it, or an encoding, cannot hold of the data."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_plugins.dataset import TreePairDataset
from treesyntax.data.limits import large_trees, long_references
from treesyntax.methods.stack_pe import StackEncoding

logger = logging.getLogger(__name__)


def tell_limits(datasets: Mapping[str, TreePairDataset], models: Sequence[Any], args: Any) -> None:
    """Warn of references that no output can reach and of source trees that encodings cut.

    Args:
        datasets: what is loaded, by split; none where sentences come one by one.
        models: those that search together.
        args: fairseq's options of the search.
    """
    for split, dataset in datasets.items():
        pairs, store, notes = dataset.dataset, dataset.store, set()
        if pairs.tgt_sizes is not None:
            positions = min(model.max_decoder_positions() for model in models)
            a, b = getattr(args, "max_len_a", 0), getattr(args, "max_len_b", 200)
            notes.add(long_references(pairs.src_sizes, pairs.tgt_sizes, a, b, positions))
        encodings = {
            (module.depth, module.degree, module.tree == "lcrs")
            for model in models
            for module in model.encoder.modules()
            if isinstance(module, StackEncoding) and module.tree in ("lcrs", "nary")
        }
        if store is not None:
            trees = [store[index] for index in range(len(store))] if encodings else []
            notes |= {large_trees(trees, *limits) for limits in encodings}
        for note in sorted(notes - {""}):
            logger.warning("%s: %s", split, note)

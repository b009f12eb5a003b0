"""Sentence pairs with the tree of the source, and no sentence lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, LanguagePairDataset

from fairseq_plugins.pairs import check_batch_limit
from treesyntax.data.tree_store import TreeStore
from treesyntax.nn.tree_batch import collate


class TreePairDataset(BaseWrapperDataset):
    """A language pair whose batches carry ``net_input["source_tree"]``.

    Args:
        pairs: the sentence pairs.
        store: the trees of the sources, aligned by sentence number; None where there are none.
        predict_end: False takes the end-of-sentence mark out of what is to be predicted, and so
            out of any loss and its token count; it stays in the input of the decoder.
    """

    def __init__(
        self, pairs: LanguagePairDataset, store: TreeStore | None, predict_end: bool = True
    ) -> None:
        super().__init__(pairs)
        self.store, self.predict_end = store, predict_end

    def __getitem__(self, index: int) -> dict[str, Any]:
        sample = self.dataset[index]
        return sample if self.store is None else {**sample, "source_tree": self.store[int(index)]}

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """fairseq's batch, plus the trees in the order that fairseq sorted the batch into."""
        batch = self.dataset.collater(samples, **kwargs)
        if batch and batch.get("target") is not None and not self.predict_end:
            ends = batch["target"] == self.dataset.tgt_dict.eos()
            batch["target"] = batch["target"].masked_fill(ends, self.dataset.tgt_dict.pad())
            batch["ntokens"] -= int(ends.sum())
        if not batch or self.store is None:
            return batch
        trees = {sample["id"]: sample["source_tree"] for sample in samples}
        inputs = batch["net_input"]
        tree_batch = collate(
            [trees[index] for index in batch["id"].tolist()],
            width=inputs["src_tokens"].shape[1],
            left_pad=self.dataset.left_pad_source,
            check=False,
        )
        inputs["source_tree"] = tree_batch.to_dict()
        return batch

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[Any]:
        """fairseq's batches, and the sentences that it leaves out as one more batch.

        fairseq 0.12.3 drops the last batch wherever its size is no multiple of
        ``--required-batch-size-multiple`` (8 unless set): up to 7 sentences of every test set
        are never translated, and small test sets not at all.

        Raises:
            OptionError: if a pair is longer than a batch may be.
        """
        check_batch_limit(indices, self.dataset.num_tokens_vec(indices), max_tokens)
        batches = self.dataset.batch_by_size(
            indices,
            max_tokens=max_tokens,
            max_sentences=max_sentences,
            required_batch_size_multiple=required_batch_size_multiple,
        )
        left_out = indices[sum(len(batch) for batch in batches) :]
        return [*batches, left_out] if len(left_out) else batches


def with_trees(duplicate: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """Double the trees of a batch that R-Drop runs twice: fairseq doubles tensors alone."""

    @wraps(duplicate)
    def duplicate_input(sample: dict[str, Any]) -> dict[str, Any]:
        doubled = duplicate(sample)
        inputs = doubled.get("net_input", doubled)
        if inputs.get("source_tree"):
            tree = inputs["source_tree"].items()
            inputs["source_tree"] = {name: torch.cat([value, value]) for name, value in tree}
        return doubled

    return duplicate_input

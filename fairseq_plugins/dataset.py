"""Sentence pairs with the tree of the source."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairseq.data import BaseWrapperDataset, LanguagePairDataset

from treesyntax.batch import collate
from treesyntax.store import TreeStore


class TreePairDataset(BaseWrapperDataset):
    """A language pair whose batches carry ``net_input["source_tree"]``.

    Args:
        pairs: the sentence pairs.
        store: the trees of the sources, aligned by sentence number.
    """

    def __init__(self, pairs: LanguagePairDataset, store: TreeStore) -> None:
        super().__init__(pairs)
        self.store = store

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**self.dataset[index], "source_tree": self.store[int(index)]}

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """fairseq's batch, plus the trees in the order that fairseq sorted the batch into."""
        batch = self.dataset.collater(samples, **kwargs)
        if not batch:
            return batch
        trees = {sample["id"]: sample["source_tree"] for sample in samples}
        inputs = batch["net_input"]
        tree_batch = collate(
            [trees[index] for index in batch["id"].tolist()],
            width=inputs["src_tokens"].shape[1],
            left_pad=self.dataset.left_pad_source,
        )
        inputs["source_tree"] = tree_batch.to_dict()
        return batch

    def filter_indices_by_size(self, indices: np.ndarray, max_sizes: Any) -> Any:
        """As the pairs do it: by source and target length."""
        return self.dataset.filter_indices_by_size(indices, max_sizes)

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """As the pairs count: model tokens, which in a preorder view are nodes."""
        return self.dataset.num_tokens_vec(indices)

    def get_batch_shapes(self) -> Any:
        """Bucketed shapes, if any."""
        return self.dataset.get_batch_shapes()

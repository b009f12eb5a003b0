"""Sentences with their trees, from a folder that ``treesyntax binarize`` wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from treesyntax.data.manifest import dictionary_file, labels_file, read_dictionary, side_of
from treesyntax.data.token_files import TokenData, find_prefix
from treesyntax.data.tree_store import TreeStore
from treesyntax.errors import InputError, OptionError
from treesyntax.nn.tree_batch import TreeBatch, collate

REMEDY = "give the data that the model was trained on"


@dataclass(frozen=True)
class AnalysedSentence:
    """A sentence as the encoder reads it.

    Attributes:
        index: in its split, from 0.
        tokens: LongTensor [1, T], EOS last.
        tree: a batch of one tree over these tokens.
        symbols: the T tokens as text.
    """

    index: int
    tokens: Tensor
    tree: TreeBatch
    symbols: tuple[str, ...]


class Sentences:
    """The source sentences of a split that have a tree store.

    Args:
        folder: of ``treesyntax binarize``.
        subset: ``train``, ``valid`` or ``test``.
        vocabulary: number of symbols of the model that reads them; None to skip the check.
        trained: what its checkpoint records of its sources, see
            :func:`treesyntax.analysis.loading.source_record`.

    Raises:
        InputError: if a file is missing or damaged, there are no trees, or the dictionary is not the model's.
    """

    def __init__(
        self,
        folder: Path,
        subset: str,
        vocabulary: int | None = None,
        trained: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.prefix = find_prefix(folder, subset, "source")
        self._data = TokenData(self.prefix)
        path = self.prefix.with_name(f"{self.prefix.name}.tree")
        if not path.exists():
            raise InputError(
                folder,
                None,
                f"has no trees beside {self.prefix.name}",
                "binarize the source from tree files (treesyntax binarize --source-format …)",
            )
        self._trees = TreeStore(path)
        self._trees.check_files(self._data)
        language = self.prefix.name.rpartition(".")[2]
        dictionary_path = self.prefix.with_name(dictionary_file(language))
        self._symbols = read_dictionary(dictionary_path).symbols
        if vocabulary not in (None, len(self._symbols)):
            raise InputError(
                dictionary_path,
                None,
                f"has {len(self._symbols)} symbols, the model has {vocabulary}",
                REMEDY,
            )
        _check_record(folder, language, self._symbols, trained)

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self._data)

    def __getitem__(self, index: int) -> AnalysedSentence:
        """The sentence at an index of the split."""
        if not 0 <= index < len(self):
            raise OptionError(
                f"sentence {index}: {self.prefix.name} has sentences 0 to {len(self) - 1}"
            )
        ids = self._data[index]
        tree = collate([self._trees[index]], len(ids))
        tokens = torch.from_numpy(ids).unsqueeze(0)
        return AnalysedSentence(
            index, tokens, tree, tuple(self._symbols[token] for token in ids.tolist())
        )


def _check_record(
    folder: Path, language: str, symbols: Sequence[str], trained: Mapping[str, Any]
) -> None:
    """Refuse data whose tokens or labels mean something else to a model, though there are as many of them."""
    here = {"dictionary": _digest_of(symbols), "view": side_of(folder, language).get("view")}
    labels = folder / labels_file(language)
    if "labels" in trained and labels.is_file():
        here["labels"] = _digest_of(read_dictionary(labels).symbols)
    for field, value in here.items():
        if value is not None and trained.get(field, value) != value:
            what = {"labels": "dictionary of labels", "view": "linearization"}.get(field, field)
            raise InputError(folder, None, f"has another source {what} than the model", REMEDY)


def _digest_of(symbols: Sequence[str]) -> str:
    """The digest of the symbols of a dictionary, as checkpoints record it."""
    return hashlib.sha256("\n".join(symbols).encode()).hexdigest()

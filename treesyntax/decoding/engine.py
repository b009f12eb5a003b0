"""The interface between ``treesyntax translate`` and the search: token ids in, hypotheses out.

The search is fairseq's, which this package does not import: it is found by its name.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from treesyntax.errors import OptionError, need_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from treesyntax.data.tree_store import StoredTree

MODULE = "fairseq_plugins.engine"
NEWEST_PYTHON = (3, 12)
"""For which there is a build of fairseq, as in the extra ``fairseq`` of pyproject.toml."""


class EncodedSource(NamedTuple):
    """A source sentence.

    Attributes:
        ids: its tokens and EOS [T + 1].
        tree: the tree over its tokens, None where the data has no trees.
        words: the unknown words that its placeholders stand for.
    """

    ids: NDArray[np.int64]
    tree: StoredTree | None
    words: Sequence[str] = ()


class Hypothesis(NamedTuple):
    """A translation: its score (higher is better) and its target tokens."""

    score: float
    tokens: list[str]


class Search(NamedTuple):
    """What to load, and how to search.

    Attributes:
        checkpoints: one model, or several whose probabilities are averaged.
        data: the folder of ``treesyntax binarize``.
        pair: the languages of its source and target.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        precision: ``fp32``, ``fp16`` or ``bf16``.
        beam: hypotheses that are kept at every step.
        nbest: hypotheses to return for each sentence.
        max_len_a, max_len_b: at most a x + b tokens, x those of the longest source of a batch.
        lenpen: below 1 short translations are favoured, above 1 long ones.
        constraints: which trees the search may generate, see the task ``tree_translation``.
        max_tokens, batch_size: limits of a batch; None for no limit.
    """

    checkpoints: tuple[Path, ...]
    data: Path
    pair: tuple[str, str]
    device: str
    precision: str
    beam: int
    nbest: int
    max_len_a: float
    max_len_b: int
    lenpen: float
    constraints: str
    max_tokens: int | None
    batch_size: int | None


class Engine(Protocol):
    """Loaded models.

    Attributes:
        longest_source: most tokens of a source, EOS included.
        needs_trees: whether a model needs the trees of new sources.
        cut: how many of the best hypotheses have as many tokens as they may have.
    """

    longest_source: int
    needs_trees: bool
    cut: int

    def translate(self, sentences: Sequence[EncodedSource]) -> list[list[Hypothesis]]:
        """The best hypotheses of each sentence, best first; sentences in any order of length."""
        ...


def load_engine(search: Search) -> Engine:
    """Load the models."""
    plugin_folder()
    # fairseq would log every dictionary and every optional package that is missing.
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    engine: Engine = importlib.import_module(MODULE).load(search)
    return engine


def plugin_folder() -> Path:
    """The folder of the fairseq plugins, wherever the package is installed.

    Raises:
        OptionError: if fairseq is not installed, or the plugins are not beside this package.
    """
    need_package("fairseq", "fairseq", "training and searching", NEWEST_PYTHON)
    spec = find_spec("fairseq_plugins")
    if spec is None or spec.origin is None:
        raise OptionError("fairseq_plugins is not installed; install treesyntax with pip")
    return Path(spec.origin).parent

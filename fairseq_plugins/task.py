"""The task ``tree_translation``: fairseq's translation, with the source's trees beside it."""

# No postponed annotations here: fairseq makes flags from the types of dataclass fields.
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq import utils
from fairseq.data import data_utils
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_plugins.dataset import TreePairDataset
from treesyntax.errors import OptionError
from treesyntax.indexed import TokenData
from treesyntax.store import TreeStore


@dataclass
class TreeTranslationConfig(TranslationConfig):
    """All options of fairseq's translation task; the trees are found beside the data."""


@register_task("tree_translation", dataclass=TreeTranslationConfig)
class TreeTranslationTask(TranslationTask):
    """Translate from token sequences with trees to token sequences."""

    cfg: TreeTranslationConfig

    @classmethod
    def setup_task(cls, cfg: TreeTranslationConfig, **kwargs: Any) -> "TreeTranslationTask":
        """Load the dictionaries.

        Raises:
            OptionError: for options under which trees and tokens would no longer belong together,
                or data that is not there.
        """
        if cfg.truncate_source:
            raise OptionError("--truncate-source cuts tokens off trees; shorten the data instead")
        if cfg.upsample_primary != -1:
            raise OptionError("--upsample-primary would repeat sentences without their trees")
        folder = Path(utils.split_paths(cfg.data or "")[0] if cfg.data else "")
        if not cfg.data or not folder.is_dir():
            raise OptionError(f"no such data folder: {cfg.data}; make one with treesyntax binarize")
        if data_utils.infer_language_pair(str(folder)) is None and not cfg.source_lang:
            raise OptionError(f"{folder} holds no binarized data; run treesyntax binarize")
        return super().setup_task(cfg, **kwargs)

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """Load a split and its trees, if it has any.

        Raises:
            OptionError: for several shards combined under one name.
            InputError: if the trees do not belong to the tokens.
        """
        if combine and self._shard_exists(split):
            raise OptionError(
                f"{split} has shards ({split}1, …), which trees cannot follow; binarize it as one"
            )
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        paths = utils.split_paths(self.cfg.data)
        folder = paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0]
        source, target = self.cfg.source_lang, self.cfg.target_lang
        trees = Path(folder) / f"{split}.{source}-{target}.{source}.tree"
        store = None
        if trees.exists():
            store = TreeStore(trees)
            store.check_files(TokenData(trees.with_suffix("")))
        self.datasets[split] = TreePairDataset(self.datasets[split], store)

    def _shard_exists(self, split: str) -> bool:
        source, target = self.cfg.source_lang, self.cfg.target_lang
        folder = Path(utils.split_paths(self.cfg.data)[0])
        return (folder / f"{split}1.{source}-{target}.{source}.bin").exists()

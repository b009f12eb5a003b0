"""The task ``tree_translation``: fairseq's translation, with trees on either side.

The source's trees are stored beside its tokens. Those of the target are grown from its tokens,
in an order that the data folder records; search can be limited to whole trees.
"""

# No postponed annotations here: fairseq makes flags from the types of dataclass fields.
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task

from fairseq_plugins.data_record import (
    EVALUATED,
    FIELDS,
    ROLES,
    DataRecord,
    Misfit,
    describe,
    find_misfit,
    read_dictionary,
    refuse_unlike,
)
from fairseq_plugins.dataset import TreePairDataset
from fairseq_plugins.generator import ConstrainedGenerator
from fairseq_plugins.limits import (
    check_folder,
    check_trees,
    decoder_input,
    in_one_line,
    known_criterion,
    refuse_options,
    refuse_search,
    tell_limits,
    with_random,
)
from fairseq_plugins.model import is_ours
from fairseq_plugins.pairs import UsedPairs
from fairseq_plugins.target import (
    FROM_DATA,
    TrainingTargets,
    copies_of,
    find_target_linearization,
    is_learned,
    make_constraints,
)
from fairseq_plugins.training.loss import quicker
from fairseq_plugins.training.tree_loss import TreeLossTask, TreeTrainingConfig
from treesyntax.data.manifest import check_tokens, shuffle_seed_of, side_of
from treesyntax.data.pairs import Lengths
from treesyntax.data.token_files import TokenData
from treesyntax.data.tree_store import TreeStore
from treesyntax.decoding.constraints import Constraints
from treesyntax.errors import OptionError
from treesyntax.methods import METHODS
from treesyntax.model.blindness import refuse_blind
from treesyntax.model.bracket_growth import GROWING
from treesyntax.model.decoder import Decoder
from treesyntax.model.foresight import refuse_foresight
from treesyntax.nn.growth import GROWING_LINEARIZATIONS
from treesyntax.nn.injection import Injection
from treesyntax.trees.names import GIVEN, SHUFFLED

logger = logging.getLogger(__name__)

LINEARIZATIONS = (FROM_DATA, *GROWING)
CONSTRAINTS = ("auto", "none", "tree", "grammar")
FEW_TARGETS = 8
"""In which is looked whether a method of the decoder sees what comes later."""
DEFAULT_POSITIONS = 1024
"""Of fairseq's ``--max-source-positions`` and ``--max-target-positions``."""


@dataclass
class TreeTranslationConfig(TreeTrainingConfig):
    """fairseq's options for translation, and ours; the trees are found beside the data."""

    # mypy cannot follow ChoiceEnum, which makes a type. Checkpoints hold options under these names.
    target_view: ChoiceEnum(LINEARIZATIONS) = field(  # type: ignore[valid-type]
        default=FROM_DATA,
        metadata={
            "argparse_alias": "--target-linearization",
            "help": "how target tokens grow trees, for data without a binarize.json; auto reads it there",
        },
    )
    tree_constraints: ChoiceEnum(CONSTRAINTS) = field(  # type: ignore[valid-type]
        default="auto",
        metadata={
            "help": "what search may generate: whole trees (tree), whole trees of parents and children that "
            "occur in the training data (grammar), or anything (none); auto is tree where target tokens grow "
            "trees (of JavaScript and CoffeeScript grammar, if the training data is there), else none"
        },
    )
    no_target_eos_loss: bool = field(
        default=False,
        metadata={
            "help": "leave EOS out of the loss: a tree shows by itself where it "
            "ends, and constrained search does not ask the model (Shiv & Quirk 2019, section 4)"
        },
    )
    leave_out: str = field(
        default="",
        metadata={
            "help": "file with pairs to leave out, by split their numbers from 0: "
            '{"train": [3, 17], "valid": [2]}; a study whose recipe allows skips writes it, so that all '
            "rows use the same pairs"
        },
    )


@register_task("tree_translation", dataclass=TreeTranslationConfig)
class TreeTranslationTask(TreeLossTask):
    """Translate from token sequences with trees to token sequences that may grow trees.

    Attributes:
        target_linearization: the linearization of the target's tokens, empty if it is not known.
        predicts_end: whether the model predicts EOS.
        methods: those in the encoders that it has built, by name.
        decoder: the one that it has built for a training.
        records: what a checkpoint records of each side of the data.
    """

    cfg: TreeTranslationConfig

    def __init__(self, cfg: TreeTranslationConfig, src_dict: Any, tgt_dict: Any) -> None:
        """Raises OptionError for data or options that contradict each other, InputError for damaged data."""
        super().__init__(cfg, src_dict, tgt_dict)
        self.methods: dict[str, Injection] = {}
        self.decoder: Decoder | None = None
        folders = utils.split_paths(cfg.data)
        self.target_linearization = find_target_linearization(
            folders, cfg.target_lang, str(cfg.target_view)
        )
        sides = ((cfg.source_lang, src_dict.symbols), (cfg.target_lang, tgt_dict.symbols))
        self.records = {
            role: describe(Path(folders[0]), role, *side)
            for role, side in zip(ROLES, sides, strict=True)
        }
        refuse_unlike(folders, self.records, (cfg.source_lang, cfg.target_lang))
        self.predicts_end = not cfg.no_target_eos_loss
        self._pairs = UsedPairs(cfg.leave_out, super().max_positions())
        if not self.predicts_end and self.target_linearization not in GROWING_LINEARIZATIONS:
            raise OptionError(
                "--no-target-eos-loss needs a target whose tokens say where it ends; binarize it "
                f"with --target-linearization {' or '.join(GROWING_LINEARIZATIONS)}"
            )

    @classmethod
    def setup_task(cls, cfg: TreeTranslationConfig, **kwargs: Any) -> "TreeTranslationTask":
        """Load the dictionaries.

        Raises:
            OptionError: for options under which trees and tokens do not match, or without data.
        """
        refuse_options(cfg)
        check_folder(cfg)
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dictionary(cls, filename: str) -> Any:
        """As fairseq's, but with one line about a damaged file."""
        return read_dictionary(Path(filename))

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint records of its data: of labels nothing where its model reads none."""
        reads_labels = any(METHODS[name].needs_labels for name in self.methods)
        skipped = () if reads_labels else ("labels",)
        return {
            "target_view": self.target_linearization,
            "predicts_end": self.predicts_end,
            "data": {
                role: {field: value for field, value in record.items() if field not in skipped}
                for role, record in self.records.items()
            },
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Check and take over what a checkpoint records of its data.

        Raises:
            OptionError: if the model was trained on data that do not fit these.
        """
        misfit = self.find_misfit(state_dict, EVALUATED)
        if misfit is not None:
            raise OptionError("; ".join(misfit))
        other_trees = self.find_misfit(state_dict, ("format",))
        if other_trees is not None:
            logger.warning("%s; its trees may be of another kind", other_trees.cause)
        self.target_linearization = self.target_linearization or state_dict.get("target_view", "")
        # An ensemble knows where to end only if each of its models does.
        self.predicts_end = self.predicts_end and state_dict.get("predicts_end", True)

    def find_misfit(
        self, state_dict: dict[str, Any], fields: Sequence[str] = FIELDS
    ) -> Misfit | None:
        """Why a model does not fit these data, or None.

        Args:
            state_dict: what its checkpoint records; older ones record less, or nothing.
            fields: the entries that must be equal.
        """
        trained: Mapping[str, DataRecord] = state_dict.get("data", {})
        here: Mapping[str, DataRecord] = self.records
        if state_dict.get("target_view") and self.target_linearization:
            trained = _with_linearization(trained, state_dict["target_view"])
            here = _with_linearization(here, self.target_linearization)
        return find_misfit(trained, here, self.cfg.data, fields)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model.

        Raises:
            OptionError: for any model but this project's, whose settings nobody has checked, and for a
                tokenizer that is not installed.
        """
        name = getattr(cfg, "_name", None)
        if not is_ours(name):
            raise OptionError(
                f"--task tree_translation builds no {name}; take an --arch that treesyntax methods "
                "lists, such as tree_sequence, which is the Transformer without trees"
            )
        for side in () if from_checkpoint else ("encoder", "decoder"):
            if getattr(cfg, f"{side}_layers") < 1:
                raise OptionError(
                    f"--{side}-layers {getattr(cfg, f'{side}_layers')}: at least 1 is needed, or trees "
                    "would act on nothing"
                )
        try:
            model = super().build_model(cfg, from_checkpoint)
        except ImportError as error:
            if not self.cfg.eval_bleu:
                raise
            raise OptionError(f"--eval-bleu-detok {self.cfg.eval_bleu_detok}: {error}") from None
        self.methods.update(model.encoder.injections)
        self.decoder = None if from_checkpoint else model.decoder
        return model

    def filter_indices_by_size(
        self,
        indices: Any,
        dataset: Any,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
    ) -> Any:
        """The pairs that a step uses: neither too long nor left out; their numbers are logged.

        Raises:
            OptionError: if none is left, or one is too long where none may be left out.
        """
        split = next(
            (name for name, loaded in self.datasets.items() if loaded is dataset), "the input"
        )
        pairs = getattr(dataset, "dataset", dataset)
        source = np.asarray(pairs.src_sizes)
        target = np.full_like(source, 2) if pairs.tgt_sizes is None else np.asarray(pairs.tgt_sizes)
        lengths = Lengths(source, target)
        return self._pairs.choose(split, indices, lengths, max_positions, ignore_invalid_inputs)

    def max_positions(self) -> tuple[int | None, int | None]:
        """The limits of the flags; None where one has its default, which any model has as well.

        fairseq-generate would else hold a model with more positions to 1,024.
        """
        defaults = (DEFAULT_POSITIONS, DEFAULT_POSITIONS)
        source, target = (
            None if most == default else most
            for most, default in zip(super().max_positions(), defaults, strict=True)
        )
        return source, target

    def build_dataset_for_inference(self, *words: Any, **named: Any) -> NoReturn:
        """fairseq-interactive's input, which has no trees.

        Raises:
            OptionError: always.
        """
        raise OptionError(
            "fairseq-interactive cannot carry trees; use treesyntax translate "
            f"{utils.split_paths(self.cfg.data)[0]} --path CHECKPOINT"
        )

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the criterion; raises OptionError for none and for one of another --user-dir."""
        return quicker(known_criterion(super().build_criterion, cfg, from_checkpoint))

    def build_generator(
        self,
        models: Any,
        args: Any,
        seq_gen_cls: Any = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Any = None,
    ) -> Any:
        """fairseq's generator, limited to whole trees as ``--tree-constraints`` says.

        Raises:
            OptionError: for constraints that do not fit the target or fairseq's other options.
        """
        refuse_search(args)
        tell_limits(self.datasets, models, args)
        extra = extra_gen_cls_kwargs or {}
        scoring = getattr(args, "score_reference", False)
        constraints = None if scoring else self._constraints()
        grows = self.target_linearization in GROWING_LINEARIZATIONS
        if grows and not scoring and constraints is None and getattr(args, "unkpen", 0) != 0:
            raise OptionError(
                "--unkpen with --tree-constraints none leaves unknown nodes (<unk>/2) as they are; "
                "leave out one of the two"
            )
        if getattr(args, "print_alignment", None):
            raise OptionError(
                "--print-alignment needs attention weights, which these models do not return; leave "
                "it out; treesyntax analyse draws attention"
            )
        if constraints is not None:
            seq_gen_cls = seq_gen_cls or ConstrainedGenerator
            extra = {**extra, "tree_constraints": constraints}
        with in_one_line():
            return super().build_generator(
                models, args, seq_gen_cls, extra, prefix_allowed_tokens_fn
            )

    def inference_step(self, *words: Any, **named: Any) -> Any:
        """Search; raises OptionError where memory does not suffice, or options leave no output."""
        with in_one_line():
            return super().inference_step(*words, **named)

    def _constraints(self) -> Constraints | None:
        kind = str(self.cfg.tree_constraints)
        grows = self.target_linearization in GROWING_LINEARIZATIONS
        if kind == "none" and not self.predicts_end:
            raise OptionError(
                "a model trained with --no-target-eos-loss does not know where to end; leave out "
                "--tree-constraints none"
            )
        if kind == "none" or (kind == "auto" and not grows):
            return None
        if not grows:
            raise OptionError(
                f"--tree-constraints {kind} needs a target whose tokens grow a tree; binarize it "
                f"with --target-linearization {' or '.join(GROWING_LINEARIZATIONS)}"
            )
        folder = Path(utils.split_paths(self.cfg.data)[0])
        side = side_of(folder, self.cfg.target_lang)
        # The rules of a format do not hold for other control trees.
        ruled = side.get("control") in (GIVEN, SHUFFLED)
        notation = str(side.get("format", "")) if ruled else ""
        train = f"{self.cfg.train_subset}.{self.cfg.source_lang}-{self.cfg.target_lang}"
        training = TrainingTargets(self.cfg.data, f"{train}.{self.cfg.target_lang}")
        by_itself = kind == "auto" and is_learned(notation) and training.exist()
        learns = kind == "grammar" or by_itself
        return make_constraints(
            self.target_linearization,
            self.target_dictionary,
            training.read(self.target_dictionary, self.cfg.dataset_impl) if learns else None,
            notation,
            copies_of(self),
            shuffle_seed_of(folder, self.cfg.target_lang),
        )

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """Load a split and its trees, if it has any.

        Raises:
            OptionError: for several shards combined under one name, and a split that is not there.
            InputError: if a file is damaged, or the trees do not belong to the tokens.
        """
        if combine and self._shard_exists(split):
            raise OptionError(
                f"{split} has shards ({split}1, …), which trees cannot follow; binarize it as one"
            )
        paths = utils.split_paths(self.cfg.data)
        folder = paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0]
        source, target = self.cfg.source_lang, self.cfg.target_lang
        prefixes = [Path(folder) / f"{split}.{source}-{target}.{side}" for side in (source, target)]
        # fairseq itself does not notice damaged files.
        tokens = [
            TokenData(prefix)
            for prefix in prefixes
            if prefix.with_name(f"{prefix.name}.idx").exists()
        ]
        with in_one_line():
            super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        trees = prefixes[0].with_name(f"{prefixes[0].name}.tree")
        store = None
        if trees.exists():
            store = TreeStore(trees)
            store.check_files(tokens[0])
        training = split == self.cfg.train_subset
        check_trees(self.methods, store, training)
        if training and store is not None:
            refuse_blind(self.methods, with_random(store))
        for side in tokens:
            check_tokens(side)
        pairs = self.datasets[split]
        if training and self.decoder is not None and len(pairs):
            few = range(min(FEW_TARGETS, len(pairs)))
            refuse_foresight(self.decoder, decoder_input(pairs, few))
        self.datasets[split] = TreePairDataset(pairs, store, self.predicts_end)

    def _shard_exists(self, split: str) -> bool:
        source, target = self.cfg.source_lang, self.cfg.target_lang
        folder = Path(utils.split_paths(self.cfg.data)[0])
        return (folder / f"{split}1.{source}-{target}.{source}.bin").exists()


def _with_linearization(
    records: Mapping[str, DataRecord], linearization: str
) -> dict[str, DataRecord]:
    """The records with the linearization of the target, which a flag may have set."""
    return {**records, "target": {**records.get("target", {}), "view": linearization}}

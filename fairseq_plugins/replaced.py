"""All that is replaced in fairseq: what, why, by which function of ours, and the test that holds it.

Each function of ours gets what it replaces and returns what takes its place. The order counts where a name stands
twice: the later row wraps the earlier one. What fairseq offers to be registered, such as a task, is in the files of
that name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from fairseq_plugins.archs import with_presets
from fairseq_plugins.checkpoints import keeping_ends_of_epochs
from fairseq_plugins.collation import all_at_once
from fairseq_plugins.dataset import with_trees
from fairseq_plugins.help import with_epilog
from fairseq_plugins.parsed import checked_parse
from fairseq_plugins.resume import resuming_in_every_process, resuming_on_data_that_fit
from fairseq_plugins.settings import checked_ensemble, checked_load
from fairseq_plugins.training.launch import checked_main
from fairseq_plugins.training.patience import with_count
from fairseq_plugins.training.plateau import waiting_on, with_waited
from fairseq_plugins.training.updates import in_one_pass, read_directly, seeding_a_cpu
from fairseq_plugins.training.warning import ending_at_the_warning, heeding_the_warning, with_epoch


class Replaced(NamedTuple):
    """Something of fairseq that is replaced.

    Attributes:
        module: where it is.
        name: in the module.
        ours: gets it and returns what takes its place.
        why: what it would do otherwise.
        test: holds ours, in the folder ``tests``.
    """

    module: str
    name: str
    ours: Callable[[Any], Any]
    why: str
    test: str


PLATEAU = "fairseq.optim.lr_scheduler.reduce_lr_on_plateau"
LOADING, OPTIONS, TRAINER = "fairseq.checkpoint_utils", "fairseq.options", "fairseq.trainer"
REPLACED = (
    Replaced(LOADING, "load_checkpoint_to_cpu", checked_load,
             "builds whatever the settings of a checkpoint name",
             "plugins/test_settings.py::test_no_setting_of_a_checkpoint_is_run"),
    Replaced(LOADING, "load_model_ensemble_and_task", checked_ensemble,
             "the same, and ends in a traceback where they make no model",
             "plugins/test_settings.py::test_our_task_builds_our_models_only"),
    Replaced(OPTIONS, "add_model_args", with_epilog,
             "--help hides our task and architectures",
             "plugins/test_plugin.py::test_train_help_lists_the_task_and_every_architecture"),
    Replaced(OPTIONS, "add_checkpoint_args", resuming_in_every_process,
             "sends a checkpoint in classes that torch.load refuses",
             "reliability/test_distributed.py::test_two_processes_stop_and_go_on"),
    Replaced(TRAINER, "Trainer.load_checkpoint", resuming_on_data_that_fit,
             "resumes on other data, with other methods, or in another order of parameters",
             "plugins/test_data_record.py::test_a_training_does_not_go_on_with_other_data"),
    Replaced(TRAINER, "Trainer.save_checkpoint", with_count,
             "forgets what --patience has counted",
             "reliability/test_determinism.py::test_a_resumed_training_is_as_patient_as_an_undisturbed_one"),
    Replaced(PLATEAU, "ReduceLROnPlateauLRSchedule.state_dict", with_waited,
             "forgets how many validations were no better",
             "reliability/test_determinism.py::test_a_resumed_training_lowers_its_rate_where_an_undisturbed_one_does"),
    Replaced(PLATEAU, "ReduceLROnPlateauLRSchedule.load_state_dict", waiting_on,
             "waits for better validations anew",
             "reliability/test_determinism.py::test_a_resumed_training_lowers_its_rate_where_an_undisturbed_one_does"),
    Replaced(LOADING, "save_checkpoint", keeping_ends_of_epochs,
             "keeps no checkpoint of the end of an epoch, so there is nothing to average",
             "plugins/test_plugin.py::test_saves_are_kept_at_ends_of_epochs_too"),
    Replaced("fairseq.distributed.utils", "call_main", checked_main,
             "trains alone what was started as several processes",
             "plugins/test_launch.py::test_launches_that_cannot_work_are_refused"),
    Replaced(OPTIONS, "parse_args_and_arch", checked_parse,
             "ends in a traceback for options that exclude each other",
             "plugins/test_parsed.py::test_two_kinds_of_half_precision_are_refused_in_one_line"),
    Replaced("fairseq.dataclass.utils", "merge_with_parent", with_presets,
             "trains the base size without a method for an architecture that a configuration of hydra names",
             "plugins/test_archs.py::test_an_architecture_in_a_configuration_of_hydra_has_its_method_and_sizes"),
    Replaced(TRAINER, "Trainer.get_train_iterator", with_epoch,
             "does not tell the trainer which epoch it is in",
             "plugins/test_launch.py::test_a_training_that_is_warned_saves_and_goes_on_as_if_nothing_was"),
    Replaced(TRAINER, "Trainer.train_step", heeding_the_warning,
             "is killed at the time limit of a cluster",
             "plugins/test_launch.py::test_a_training_that_is_warned_saves_and_goes_on_as_if_nothing_was"),
    Replaced(LOADING, "save_checkpoint", ending_at_the_warning,
             "goes on after it has saved at a warning",
             "plugins/test_launch.py::test_a_training_that_is_warned_saves_and_goes_on_as_if_nothing_was"),
    Replaced("fairseq.criterions.label_smoothed_cross_entropy_with_rdrop", "duplicate_input", with_trees,
             "doubles a batch without its trees",
             "plugins/test_stock_options.py::test_r_drop_doubles_the_trees"),
    Replaced("fairseq.data.language_pair_dataset", "collate", all_at_once,
             "goes through the sentences of a batch seven times",
             "plugins/test_collation.py::test_batches_are_those_of_fairseq"),
    Replaced("fairseq.optim.adam", "Adam.step", in_one_pass,
             "goes through each parameter several times",
             "plugins/training/test_updates.py::test_adam_is_that_of_fairseq"),
    Replaced("fairseq.utils", "set_torch_seed.__init__", seeding_a_cpu,
             "queues a seed for a GPU where there is none",
             "plugins/training/test_updates.py::test_a_seed_gives_the_numbers_that_it_always_gave_and_ends_with_its_block"),
    Replaced("omegaconf", "DictConfig.__getattr__", read_directly,
             "looks at the rules of an option each time that it is read",
             "plugins/training/test_updates.py::test_options_are_those_that_omegaconf_gives"),
)  # fmt: skip


def replace() -> None:
    """Replace all of it, in this order."""
    for replaced in REPLACED:
        *owners, name = replaced.name.split(".")
        owner: Any = importlib.import_module(replaced.module)
        for owner_name in owners:
            owner = getattr(owner, owner_name)
        setattr(owner, name, replaced.ours(getattr(owner, name)))

"""What one finetuning is: its model, task, data, methods and settings, as one record that a folder keeps.

Nothing here loads torch or transformers, so that mistakes are told at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError, unknown_name
from treesyntax.files import write_json
from treesyntax.jobs.flags import LARGEST_SEED
from treesyntax.made.records import read_record_of
from treesyntax.yaml_text import MisreadError, value_of

CLASSES, TAGS, SEQ2SEQ, CAUSAL = TASKS = (
    "sequence-classification",
    "token-classification",
    "seq2seq",
    "causal",
)
WRITES = (SEQ2SEQ, CAUSAL)
"""The tasks whose outputs are text that the model writes."""
JOB_FILE, FACTS_FILE, MODEL_FOLDER = "finetune.json", "facts.json", "model"
"""In the folder of a finetuning: this record, what came out of it, and the model that was best."""
OURS: dict[str, type] = {
    "patience": int,
    "freeze": int,
    "max_length": int,
    "max_target_length": int,
    "tree_learning_rate": float,
}
"""Settings of training beside those of transformers' TrainingArguments.

``patience``: validations without a better one after which training stops; 0 for none. ``freeze``: how many
layers, from the first, keep the pretrained numbers, with the embeddings; 0 for none. ``max_length`` and
``max_target_length``: tokens. ``tree_learning_rate``: of the methods' own parameters, which begin at zero or
at random, where a pretrained model takes small steps.
"""
SET_BY_US = {
    "output_dir": "give --out",
    "seed": "give --seed, or list the seeds of a recipe under seeds",
    "data_seed": "the seed sets the order too",
    "remove_unused_columns": "the collator needs the texts",
    "save_strategy": "each validation is saved",
    "save_steps": "each validation is saved; set eval_steps",
    "load_best_model_at_end": "the best model is always kept",
    "restore_callback_states_from_checkpoint": "a resumed training must go on as it was",
    "resume_from_checkpoint": "a training goes on from its last checkpoint by itself",
    "do_train": "a finetuning trains",
    "do_eval": "a finetuning validates",
    "do_predict": "give --test",
    "predict_with_generate": "tasks that write text do so",
    "prediction_loss_only": "the task decides",
    "disable_tqdm": "a terminal gets a progress bar",
    "eval_do_concat_batches": "metrics need the whole validation set",
    "batch_eval_metrics": "metrics need the whole validation set",
    "save_only_model": "a resumed training must go on as it was",
    "ignore_data_skip": "a resumed training must go on as it was",
    "push_to_hub": "nothing is uploaded; upload the folder model afterwards",
    "label_names": "the task decides",
}
"""TrainingArguments that a finetuning sets itself, and what to do instead."""
COLUMNS = (
    "text", "words", "tree", "heads", "relations", "text_pair", "words_pair", "tree_pair", "label", "target",
    "start", "end",
)  # fmt: skip
"""What columns of a data file may be. The words from ``start`` up to ``end`` become the second sentence."""


@dataclass(frozen=True)
class Job:
    """One finetuning.

    Attributes:
        model: a folder, or a name in the cache of Hugging Face.
        task: one of `TASKS`.
        columns: the column of a data file by what it is, one of `COLUMNS`; each defaults to its own name.
        each: a column with a list of objects, each of which makes an example with the line's other columns.
        header: the columns of a table without a line of names; empty where the file has that line.
        hold_out: examples of the training data to validate on, where there is no file of them.
        tree_format: of trees that are text.
        injection: the methods, as of :func:`treesyntax.model.composition.parse_spec`; "" for none.
        control: trees without syntax in place of those of the data, see :mod:`treesyntax.trees.controls`.
        control_seed: of the control.
        seed: of the new parameters, the order of examples and dropout.
        settings: TrainingArguments and `OURS`, by name.
        generate: what ``model.generate`` is given, by name.
        labels: the classes, in the order of their numbers; known once the training data is read.
        node_labels: labels of the nodes of training trees, the most frequent first, for a method that reads
            them; known once the training data is read.
        files: the SHA-256 of the data files, by what they are.
    """

    model: str
    task: str
    columns: dict[str, str] = field(default_factory=dict)
    each: str = ""
    header: tuple[str, ...] = ()
    hold_out: int = 0
    tree_format: str = ""
    injection: str = ""
    control: str = ""
    control_seed: int = 1
    seed: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    generate: dict[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    node_labels: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises OptionError for an unknown task, column, a seed that is none, or one of our settings of another type."""
        if self.task not in TASKS:
            raise unknown_name("task", self.task, TASKS, "--task:")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise OptionError(f"--seed {self.seed}: a seed is from 0 to {LARGEST_SEED}")
        for name in self.columns:
            if name not in COLUMNS:
                raise unknown_name("kind of column", name, COLUMNS, "--columns:")
        for name, value in self.settings.items():
            _check_setting(name, value)

    def ours(self, name: str) -> Any:
        """One of `OURS`, 0 where it is not set."""
        return self.settings.get(name) or 0


def _check_setting(name: str, value: Any) -> None:
    if name in SET_BY_US:
        raise OptionError(f"train.{name} is set by treesyntax; {SET_BY_US[name]}")
    if name not in OURS:
        return
    wanted = OURS[name]
    fits = type(value) is int or (wanted is float and type(value) is float)
    if not fits or value < 0:
        noun = "a whole number" if wanted is int else "a number"
        raise OptionError(f"train.{name} is {value!r}; it must be {noun}, 0 or more")


def read_settings(texts: Sequence[str], flag: str = "--set") -> dict[str, Any]:
    """``NAME=VALUE`` texts as settings, values as in YAML; ``1e-5`` is a number.

    Raises:
        OptionError: for a text of another form.
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise OptionError(f"{flag} {text}: write it as NAME=VALUE")
        try:
            settings[name.replace("-", "_")] = value_of(value)
        except MisreadError as error:
            raise OptionError(f"{flag} {text}: {error}") from None
    return settings


def write_job(folder: Path, job: Job) -> None:
    """Keep a job in its folder."""
    write_json(folder / JOB_FILE, asdict(job))


def read_job(folder: Path) -> Job:
    """The job of a folder.

    Raises:
        InputError: if the folder has none, or a damaged one.
    """
    cause, remedy = "is no record of a finetuning", "finetune again in another folder"
    return read_record_of(Job, folder / JOB_FILE, cause, remedy)

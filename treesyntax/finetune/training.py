"""Train a job with transformers' Trainer: resumed where it was killed, stopped where it rests.

The log has the lines of fairseq-train, so that a study follows both alike (`treesyntax.study.run.logs`).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from treesyntax.bridges.bridge import read_batch
from treesyntax.bridges.collator import TreeCollator
from treesyntax.endings import CAP, LAST, RESTED, Ending
from treesyntax.errors import OptionError, need_package, unknown_name
from treesyntax.files import read_json, read_object, sha256_of, write_json
from treesyntax.finetune.command import PROCESSES, is_first
from treesyntax.finetune.data import (
    Example,
    check_answers,
    check_trees,
    controlled,
    held_out,
    read_noted,
    with_classes,
    with_node_labels,
)
from treesyntax.finetune.inputs import check_inputs, encoded
from treesyntax.finetune.job import (
    CAUSAL,
    CLASSES,
    FACTS_FILE,
    JOB_FILE,
    MODEL_FOLDER,
    OURS,
    TAGS,
    WRITES,
    Job,
    read_job,
    write_job,
)
from treesyntax.finetune.limits import (
    SETTINGS_FILE,
    ends_of,
    refuse_unwritable,
    remark_language,
    remark_spelling,
    settings_of_model,
)
from treesyntax.finetune.models import Pretrained, collator_of, load_model, split_spec
from treesyntax.finetune.outputs import lines_of_logits, predict
from treesyntax.made.lock import training_in
from treesyntax.made.reuse import differences
from treesyntax.methods import METHODS as TREE_METHODS
from treesyntax.metrics import LOWER_IS_BETTER, METRICS, measured
from treesyntax.model.blindness import LOOKED_AT, refuse_blind
from treesyntax.model.composition import parse_spec
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.parsers.torchaudio_remedy import hide_broken_torchaudio
from treesyntax.remarks import remarks_of
from treesyntax.trees.controls import RANDOM

hide_broken_torchaudio()
need_package("transformers", "huggingface", "finetuning")
need_package("accelerate", "huggingface", "finetuning")

from transformers import (  # noqa: E402
    EarlyStoppingCallback,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

STATE_FILE, SECONDS_FILE = "trainer_state.json", "seconds.json"
CHECKPOINT = "checkpoint-"
LOSS = "loss"
STEPS, EPOCH = "steps", "epoch"
GROUPED = "group_by_length"
"""An order of examples that transformers draws from whatever random state there is."""
OURS_BY_DEFAULT: dict[str, Any] = {
    "report_to": [],
    "save_total_limit": 2,
    "logging_steps": 50,
    "eval_strategy": EPOCH,
    "dataloader_pin_memory": torch.cuda.is_available(),
    "use_cpu": not torch.accelerator.is_available(),
}
KNOWN = {field.name: field for field in fields(TrainingArguments) if field.init}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that are neither TrainingArguments nor ours, or of another type.

    Raises:
        OptionError: for the first, with the nearest name.
    """
    for name, value in settings.items():
        if name in OURS:
            continue
        if value == GROUPED:
            raise OptionError(
                f"train.{name}: {GROUPED} would have another order of examples after a kill; leave it out"
            )
        if name not in KNOWN:
            raise unknown_name("setting of training", name, (*KNOWN, *OURS), f"train.{name}:")
        default = KNOWN[name].default
        kind = float if KNOWN[name].type is float else type(default)  # a share of steps, default 0
        kinds = {bool: (bool,), int: (int,), float: (int, float)}.get(kind)
        if kinds and value is not None and (type(value) not in kinds):
            raise OptionError(f"train.{name} is {value!r}; it must be like its default {default!r}")


def arguments_of(job: Job, out: Path, examples: int) -> TrainingArguments:
    """The TrainingArguments of a job on so many examples: validated after each epoch unless told otherwise."""
    check_settings(job.settings)
    settings = {name: value for name, value in job.settings.items() if name not in OURS}
    chosen = {**OURS_BY_DEFAULT, **settings}
    if "eval_steps" in settings and "eval_strategy" not in settings:
        chosen["eval_strategy"] = STEPS
    batch = int(
        chosen.get("per_device_train_batch_size", KNOWN["per_device_train_batch_size"].default)
    )
    pairs = batch * int(chosen.get("gradient_accumulation_steps") or 1)
    most = int(chosen.get("max_steps") or 0)
    if chosen["eval_strategy"] == EPOCH and 0 < most < examples / pairs:  # less than an epoch
        chosen |= {"eval_strategy": STEPS, "eval_steps": most}
    chosen["save_strategy"] = chosen["eval_strategy"]
    if chosen["eval_strategy"] in ("no", False):  # what YAML makes of no
        raise OptionError(
            "train.eval_strategy is no; only what is validated is saved: steps or epoch"
        )
    if chosen["eval_strategy"] == STEPS:
        chosen["eval_steps"] = chosen["save_steps"] = (
            chosen.get("eval_steps") or chosen["logging_steps"]
        )
    best = chosen.setdefault("metric_for_best_model", _usual_metric(job))
    if best != LOSS and best not in METRICS:
        raise unknown_name("metric", best, (LOSS, *METRICS), "train.metric_for_best_model:")
    greater = best != LOSS and best not in LOWER_IS_BETTER
    if chosen.setdefault("greater_is_better", greater) is not greater:
        side = "higher" if greater else "lower"
        raise OptionError(
            f"train.greater_is_better is {chosen['greater_is_better']}, but a {side} {best} is better, and the worst "
            "model would be kept; leave it out"
        )
    with _at_fault("train"):
        return TrainingArguments(
            output_dir=str(out),
            seed=job.seed,
            data_seed=job.seed,
            remove_unused_columns=False,
            load_best_model_at_end=True,
            restore_callback_states_from_checkpoint=True,
            prediction_loss_only=job.task in WRITES,
            disable_tqdm=not sys.stderr.isatty(),
            **chosen,
        )


@contextmanager
def _at_fault(what: str, is_so: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Say an error of a library as a fault of settings.

    Args:
        what: the settings.
        is_so: whether they are at fault; asked when the error comes.
    """
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        ImportError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        if not is_so():
            raise
        raise OptionError(f"{what}: {' '.join(str(error).split())[:300]}") from error


def _usual_metric(job: Job) -> str:
    if job.task in WRITES:
        return LOSS
    if job.task == CLASSES:
        return "accuracy"
    return "span_f1" if any(label.startswith("B-") for label in job.labels) else "token_accuracy"


def metrics_of(job: Job, best: str) -> list[str]:
    """The metrics of validation."""
    usual = {CLASSES: ["accuracy", "macro_f1"], TAGS: ["token_accuracy"]}.get(job.task, [])
    return list(dict.fromkeys([*usual, *([] if best == LOSS else [best])]))


def finetune(
    job: Job,
    out: Path,
    files: Mapping[str, Path],
    test: tuple[Sequence[Example], Path] | None = None,
) -> dict[str, Any]:
    """Train a job to its end, from its last checkpoint if it has one; return what came out.

    Args:
        job: what is trained.
        out: the folder; the same job goes on in it, another one is refused.
        files: ``train`` and ``valid``, and ``train_trees`` and ``valid_trees`` for trees in files of their own.
        test: examples to predict afterwards, and their file, so that a fault in them is told before.

    Raises:
        OptionError: for settings that do not exist, a model that is not there, another job's folder.
        InputError: for data that cannot be read.
    """
    check_settings(job.settings)
    split_spec(job.injection)
    data: dict[str, list[Example]] = {}
    remarks: list[str] = []
    for split in ("train", "valid"):
        if split in files:
            trees, targets = files.get(f"{split}_trees"), files.get(f"{split}_target")
            data[split], odd = read_noted(job, files[split], trees, targets)
            remarks += odd
    if "valid" not in data:
        data["train"], data["valid"] = held_out(data["train"], job.hold_out)
    job = with_classes(job, data["train"], files["train"])
    if any(TREE_METHODS[name].needs_labels for name in parse_spec(job.injection)):
        job = with_node_labels(job, data["train"], files["train"])
    check_answers(data["valid"], files.get("valid", files["train"]), job)
    job = replace(job, files={name: sha256_of(file) for name, file in sorted(files.items())})
    # Of several processes one holds the folder for all.
    with training_in(out, "--out") if is_first() else nullcontext():
        return _finetune(job, out, data, files, remarks, test)


def _finetune(
    job: Job,
    out: Path,
    data: Mapping[str, Sequence[Example]],
    files: Mapping[str, Path],
    remarks: Sequence[str],
    test: tuple[Sequence[Example], Path] | None,
) -> dict[str, Any]:
    """Train in a folder that no other training writes in."""
    _take(job, out)
    if facts := read_object(out / FACTS_FILE):
        return facts
    arguments = arguments_of(job, out, len(data["train"]))
    _check_processes(arguments)
    set_seed(job.seed)
    pretrained = load_model(job)
    collator = collator_of(job, pretrained)
    lacking = {}
    for split in data if pretrained.reads_trees else ["train"] if pretrained.losses else []:
        lacking[split] = check_trees(data[split], files.get(split, files["train"]))
    if pretrained.reads_trees and not job.control:
        refuse_blind(pretrained.model.injections, _with_random(collator, data["train"]))
    rows, unread = {}, []
    for split, examples in data.items():
        file = files.get(split, files["train"])
        with remarks_of(file) as noted:
            rows[split] = encoded(job, pretrained, collator, examples, file)
        noted.records = len(examples)
        unread += noted.texts("examples")
    if test is not None:
        check_inputs(job, pretrained, *test)
    model_settings, of_targets = {}, []
    if job.task in WRITES:
        ends = ends_of(pretrained.tokenizer, pretrained.model)
        for split, examples in data.items():
            file = files.get(split, files["train"])
            refuse_unwritable(job, pretrained.model, ends, examples, rows[split], file)
            of_targets.append(remark_spelling(pretrained.tokenizer, examples, file))
        of_targets.append(remark_language(pretrained.tokenizer))
        model_settings = settings_of_model(job, pretrained.model)
    log = Log(out, arguments.process_index == 0)
    if model_settings:
        texts = ", ".join(f"{name}={value}" for name, value in model_settings.items())
        log.write(
            f"outputs follow {SETTINGS_FILE} of the model too, unless --generate says otherwise: {texts}"
        )
    for text in (*remarks, *unread, *filter(None, of_targets)):
        log.write(text)
    if collator.cut:
        log.write(f"{collator.cut} inputs or outputs are too long for the model and are cut")
    for split, count in lacking.items():
        if count:
            log.write(f"{count} of {len(data[split])} examples of {split} have no tree")
    last = last_checkpoint(out)
    log.begin(last, arguments.device)
    with _at_fault("train", lambda: not log.trains):
        trainer = TreeTrainer(job, pretrained, data["valid"], arguments, collator, rows, log)
        trainer.get_eval_dataloader()  # its settings are else told after the first updates
        if last is None and job.task in WRITES:  # what cannot be generated is not told at the end
            with torch.random.fork_rng(), _at_fault("--generate"):
                predict(job, pretrained, data["valid"][:2], 2)
        if last is None or not _is_over(last, job.ours("patience")):
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
        else:
            trainer.state = trainer.state.load_from_json(str(last / STATE_FILE))
    facts = _facts(job, pretrained.model, trainer, log)
    best = out / f"{CHECKPOINT}{facts['best_update']}"
    trainer.accelerator.wait_for_everyone()  # each has loaded the best checkpoint before the folder goes
    if trainer.is_world_process_zero():
        _keep(best, out / MODEL_FOLDER)
        write_json(out / FACTS_FILE, facts)
        for checkpoint in out.glob(f"{CHECKPOINT}*"):
            shutil.rmtree(checkpoint)
    if facts["ended"] == RESTED:
        log.write(
            f"early stop since valid performance hasn't improved for last {job.ours('patience')} runs"
        )
    log.end(facts["train_seconds"])
    return facts


def _take(job: Job, out: Path) -> None:
    """Make sure that a folder is of this job, or that nothing was trained in it."""
    out.mkdir(parents=True, exist_ok=True)
    if all(item.name.startswith(".") or item.name == JOB_FILE for item in out.iterdir()):
        write_job(out, job)
    elif not (out / JOB_FILE).exists():
        raise OptionError(f"{out} is not empty and has no finetuning; choose another --out")
    elif (before := read_job(out)) != job:
        changed = differences(asdict(before), asdict(job))
        raise OptionError(
            f"{out} has another finetuning, with another {' and '.join(changed)}; choose another --out"
        )


def _check_processes(arguments: TrainingArguments) -> None:
    """Refuse processes that do not know of each other: each would train alone and write to one folder."""
    count = os.environ.get(PROCESSES) or "1"
    if count != str(arguments.world_size):
        raise OptionError(
            f"{count} processes were started ({PROCESSES}={count}), and each would train alone; start them by torchrun "
            "or accelerate launch, and leave out train.use_cpu"
        )


def _with_random(
    collator: TreeCollator, examples: Sequence[Example]
) -> Iterator[tuple[TreeBatch, TreeBatch]]:
    """The trees of the first examples, and random ones in their place, where these differ."""
    for inputs in (example.inputs for example in examples[:LOOKED_AT]):
        other = controlled(inputs, RANDOM, 1)
        if other != inputs:
            given, drawn = (read_batch(collator([both])["tree"]) for both in (inputs, other))
            yield given, drawn


def last_checkpoint(out: Path) -> Path | None:
    """The last whole checkpoint in a folder; those that a kill left unfinished are removed."""
    checkpoints: dict[int, Path] = {}
    for checkpoint in out.glob(f"{CHECKPOINT}*"):
        state = read_object(checkpoint / STATE_FILE)  # which is written last
        if not state:
            shutil.rmtree(checkpoint, ignore_errors=True)  # another process may do the same
            continue
        checkpoints[int(state["global_step"])] = checkpoint
    if not checkpoints:
        return None
    last = checkpoints[max(checkpoints)]
    state = read_object(last / STATE_FILE)
    best = state.get("best_global_step")
    if best in checkpoints:  # the folder may have been moved
        state["best_model_checkpoint"] = str(checkpoints[best])
        write_json(last / STATE_FILE, state, 2)
    return last


def _is_over(checkpoint: Path, patience: int) -> bool:
    """Whether a training ended at a checkpoint, before it was killed: by early stopping, or at its cap.

    transformers looks at the cap only after an update, so that it would train one more.
    """
    state = read_object(checkpoint / STATE_FILE)
    stopping = state.get("stateful_callbacks", {}).get(EarlyStoppingCallback.__name__, {})
    count = stopping.get("attributes", {}).get("early_stopping_patience_counter", 0)
    return 0 < patience <= count or 0 < state.get("max_steps", 0) <= state["global_step"]


def _keep(checkpoint: Path, folder: Path) -> None:
    """The model of a checkpoint without what training needs."""
    staged = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(
        checkpoint,
        staged,
        ignore=shutil.ignore_patterns(
            "optimizer*", "scheduler*", "rng_state*", "scaler*", "trainer_state*", "training_args*"
        ),
    )
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(staged, folder)


def _facts(job: Job, model: Any, trainer: TreeTrainer, log: Log) -> dict[str, Any]:
    state = trainer.state
    losses = {
        entry["step"]: entry["eval_loss"] for entry in state.log_history if "eval_loss" in entry
    }
    best = state.best_global_step
    if best is None or best not in losses:
        raise OptionError(
            "training ended without a validation whose result is a number; lower learning_rate if the loss "
            "is nan, else raise max_steps, or lower eval_steps or eval_delay"
        )
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "trained_parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "valid_loss": losses[best],
        "best_update": best,
        "updates": state.global_step,
        "train_seconds": round(log.seconds(), 1),
        "injection": job.injection,
        "best_metric": state.best_metric,
        "ended": _ending(state),
    }


def _ending(state: Any) -> Ending:
    """How a training ended, as a study says it: it rested, or met its cap, at its best update or after it."""
    if state.global_step < state.max_steps:
        return RESTED
    return LAST if state.best_global_step == state.global_step else CAP


class TreeTrainer(Trainer):
    """transformers' Trainer over batches with trees.

    Args:
        job: what is trained.
        pretrained: the model.
        valid: the validation set, for tasks that write text.
        arguments: of the training.
        collator: of the rows.
        rows: encoded examples of ``train`` and ``valid``.
        log: told of all that happens.
    """

    def __init__(
        self,
        job: Job,
        pretrained: Pretrained,
        valid: Sequence[Example],
        arguments: TrainingArguments,
        collator: TreeCollator,
        rows: Mapping[str, list[dict[str, Any]]],
        log: Log,
    ) -> None:
        self.job, self.pretrained, self.valid = job, pretrained, valid
        self.metrics = metrics_of(job, str(arguments.metric_for_best_model))
        super().__init__(
            model=pretrained.model,
            args=arguments,
            data_collator=collator,
            train_dataset=rows["train"],
            eval_dataset=rows["valid"],
            processing_class=pretrained.tokenizer,
            compute_metrics=None if job.task in WRITES else self._scores,
            callbacks=[log],
        )
        # Most models take a number of items and do not use it: their losses are means, which only then are divided
        # among the batches of an update and not multiplied by the processes.
        self.model_accepts_loss_kwargs = job.task == CAUSAL
        self.remove_callback(PrinterCallback)
        if patience := job.ours("patience"):
            self.add_callback(EarlyStoppingCallback(patience))

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The model's loss, and in training those from trees."""
        inputs = dict(inputs)
        losses = self.pretrained.losses if model.training else None
        tree = inputs["tree"] if self.pretrained.reads_trees else inputs.pop("tree")
        if losses is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        loss, outputs = super().compute_loss(
            model, {**inputs, "output_hidden_states": True}, True, num_items_in_batch
        )
        states = outputs.get("encoder_hidden_states") or outputs["hidden_states"]
        # At the end of an epoch there may be fewer batches.
        shares = 1 if num_items_in_batch is None else self.current_gradient_accumulation_steps
        loss = loss + losses(states, read_batch(tree)) / shares
        return (loss, outputs) if return_outputs else loss

    def create_optimizer(self, model: Any = None) -> Any:
        """transformers' optimizer, with a rate of their own for the methods' parameters."""
        new = self.optimizer is None
        optimizer = super().create_optimizer(model)
        if not new or not (rate := self.job.ours("tree_learning_rate")):
            return optimizer
        named = self.pretrained.model.named_parameters()
        trees = {id(parameter) for name, parameter in named if ".trees." in f".{name}"}
        for group in list(optimizer.param_groups):
            tree_parameters = [parameter for parameter in group["params"] if id(parameter) in trees]
            if tree_parameters:
                group["params"] = [p for p in group["params"] if id(p) not in trees]
                optimizer.add_param_group({**group, "params": tree_parameters, "lr": float(rate)})
        return optimizer

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """transformers' loop; for tasks that write text with the scores of what the model writes."""
        result = super().evaluation_loop(*args, **kwargs)
        if self.job.task in WRITES and self.metrics:
            trained = self.pretrained._replace(model=self.model)
            lines = predict(self.job, trained, self.valid, self.args.per_device_eval_batch_size)
            references = [example.target for example in self.valid]
            scores = self._of_lines(lines, references)
            named = {f"eval_{name}": value for name, value in scores.items()}
            result = result._replace(metrics={**(result.metrics or {}), **named})
        return result

    def _scores(self, prediction: Any) -> dict[str, float]:
        return self._of_lines(
            *lines_of_logits(self.job, prediction.predictions, prediction.label_ids)
        )

    def _of_lines(self, lines: list[str], references: list[str]) -> dict[str, float]:
        return {name: measured(name, lines, references).score().value for name in self.metrics}


class Log(TrainerCallback):
    """Tells a training in the lines of fairseq-train, and keeps how long it took.

    Args:
        out: the folder of the training.
        tells: whether this process is the one that writes.
    """

    def __init__(self, out: Path, tells: bool) -> None:
        self.file, self.tells = out / SECONDS_FILE, tells
        self.before, self.started = 0.0, time.monotonic()
        self.last = (self.started, 0)
        self.trains = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """All is set up."""
        self.trains = True

    def write(self, text: str, tag: str = "finetune") -> None:
        """One line with the time of day."""
        if self.tells:
            now = f"{datetime.now():%Y-%m-%d %H:%M:%S}"
            print(f"{now} | INFO | {tag} | {text}", file=sys.stderr, flush=True)

    def seconds(self) -> float:
        """Of the whole training, those before a kill included as far as they were kept."""
        return self.before + time.monotonic() - self.started

    def begin(self, checkpoint: Path | None, device: torch.device) -> None:
        """Say where training begins: on which GPU, if on any, and from which checkpoint."""
        if device.type == "cuda":
            gpu = torch.cuda.get_device_properties(device)
            self.write(
                f"| rank   0: capabilities = {gpu.major:2d}.{gpu.minor}  ; total memory = "
                f"{gpu.total_memory / 2**30:.1f} GB ; name = {gpu.name}"
            )
        if checkpoint is None:
            self.write("| No existing checkpoint found")
            return
        step = int(read_json(checkpoint / STATE_FILE)["global_step"])
        self.before = float(read_object(self.file).get(str(step), 0.0))
        self.last = (time.monotonic(), step)
        self.write(f"| Loaded checkpoint {checkpoint} (@ {step} updates)")

    def end(self, seconds: float) -> None:
        """Say that training is over."""
        self.write(f"done training in {seconds:.1f} seconds")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """A line for each report of the training loss."""
        if not logs or LOSS not in logs:
            return
        now, (before, step) = time.monotonic(), self.last
        self.last = (now, state.global_step)
        pairs = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        stats = {
            "epoch": int(state.epoch or 0) + 1,
            "update": round(float(state.epoch or 0), 3),
            "loss": round(float(logs[LOSS]), 4),
            "ups": round((state.global_step - step) / max(now - before, 1e-9), 4),
            "bsz": pairs,
            "num_updates": state.global_step,
            "lr": logs.get("learning_rate"),
        }
        if args.device.type == "cuda":
            # As fairseq counts it: what other trainings on the same GPU take is not this one's.
            total = torch.cuda.get_device_properties(args.device).total_memory
            peak = torch.cuda.max_memory_allocated(args.device)
            stats["gb_free"] = round((total - peak) / 2**30, 1)
        self.write(json.dumps(stats), "train_inner")

    def on_evaluate(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """A line for each validation."""
        scores = {
            f"valid_{name.removeprefix('eval_')}": round(float(value), 6)
            for name, value in known["metrics"].items()
            if name.startswith("eval_") and not name.endswith(("_per_second", "_runtime"))
        }
        epochs = round(float(state.epoch or 0), 3)
        stats = {"update": epochs, **scores, "valid_num_updates": state.global_step}
        self.write(json.dumps(stats), "valid")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A line for each checkpoint."""
        known = read_object(self.file)
        if self.tells:
            write_json(self.file, {**known, str(state.global_step): round(self.seconds(), 1)})
        self.write(
            f"Saved checkpoint (epoch {int(state.epoch or 0)} @ {state.global_step} updates)"
        )


logging.getLogger("transformers.trainer").setLevel(logging.ERROR)

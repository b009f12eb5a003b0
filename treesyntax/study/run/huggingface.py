"""The steps of a study that finetunes: data as lines, then train, outputs, scores and facts of each run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from treesyntax.study.recipe.backbone import reads_trees
from treesyntax.study.recipe.recipe import SPLITS, Flags, Recipe
from treesyntax.study.recipe.trainer import (
    COLUMNS,
    EACH,
    FLAG,
    FORMAT,
    HEADER,
    HOLD_OUT,
    PARSER,
    TARGETS,
    TASK,
    TREES,
)
from treesyntax.study.run.process import FINETUNE as PROGRAM
from treesyntax.study.run.process import SAFE
from treesyntax.study.run.steps import (
    MODEL,
    OUT,
    PREPARE,
    Command,
    Run,
    Step,
    inside,
    make_step,
    scoring_steps,
)
from treesyntax.yaml_text import MisreadError, value_of

EPOCHS = 3
"""Of a training whose recipe has no cap: the default of TrainingArguments."""


class HuggingFace:
    """transformers' Trainer by ``treesyntax finetune``, see :class:`treesyntax.study.run.trainers.Trainer`."""

    loaded: tuple[str, ...] = ("treesyntax.finetune.training", "sacrebleu")
    checker: tuple[str, ...] = (sys.executable, SAFE, "-m", "treesyntax.finetune.checking")
    needs_plugins = False
    drops_pairs = False
    examples = "data/{split}.jsonl"

    def steps(
        self, recipe: Recipe, runs: Sequence[Run], number: int, needs: tuple[str, ...]
    ) -> list[Step]:
        """Data once for all rows, then the runs."""
        data = list(_data_steps(recipe, number, needs))
        return [*data, *(step for run in runs for step in _run_steps(recipe, run, data[-1]))]

    def commands(
        self, recipe: Recipe, run: Run, data: Step, steps: Sequence[Step]
    ) -> Iterator[Command]:
        """That of its training, without the folder of the run, and that of its data."""
        words, train = steps[0].command, recipe.flags(run.method, "train")
        trees = reads_trees(run.method.arch, recipe.flags(run.method, "binarize"), train)
        yield (*data.command[1:], *(("--injection", str(train[FLAG])) if trees else ()))
        yield words[: words.index("--out")]

    def longer(self, recipe: Recipe, factor: float) -> tuple[str, ...]:
        """A larger cap, with which a pretrained model trains anew."""
        cap = "max_steps" if float(recipe.train.get("max_steps") or 0) > 0 else "num_train_epochs"
        return "--set", f"train.{cap}={factor * float(recipe.train.get(cap) or EPOCHS):g}"


def _data_steps(recipe: Recipe, number: int, needs: tuple[str, ...]) -> Iterator[Step]:
    """The steps that read the data of a recipe and write it as the study keeps it, trees parsed if need be.

    Args:
        recipe: of this trainer.
        number: of the first step; the commands of the recipe come before.
        needs: the last of these.
    """
    data = recipe.content["data"]
    trees = dict(data.get(TREES, {}))
    notation = data.get(FORMAT, "")
    files = {split: inside(data[split]) for split in SPLITS if split in data}
    common = ["treesyntax", PROGRAM, "--write-data", f"{OUT}/data", "--task", recipe.content[TASK]]
    for split, file in files.items():
        common += [f"--{split}", file]
    for split, file in data.get(TARGETS, {}).items():
        common += [f"--{split}-target", inside(file)]
    if header := data.get(HEADER):
        common += ["--header", *header]
    if count := data.get(HOLD_OUT):
        common += ["--hold-out", str(count)]
    if each := data.get(EACH):
        common += ["--each", each]
    if columns := data.get(COLUMNS):
        common += ["--columns", *(f"{kind}={name}" for kind, name in columns.items())]
    if parser := data.get(PARSER):
        words = [inside(word) for word in shlex.split(parser)]
        step = Step(f"{PREPARE}-{number}", (*common, "--sources-only"), needs)
        yield step
        for split in SPLITS:
            trees[split] = f"{OUT}/data/{split}.parsed"
            number, needs = number + 1, (step.name,)
            text = f"{OUT}/data/{split}.text"
            parse = ("treesyntax", "parse", text, trees[split], *words)
            step = Step(f"{PREPARE}-{number}", parse, needs)
            yield step
        number, needs = number + 1, (step.name,)
    for split, file in trees.items():
        common += [f"--{split}-trees", inside(file)]
    if notation:
        common += ["--tree-format", notation]
    yield Step(f"{PREPARE}-{number}", tuple(common), needs)


def _run_steps(recipe: Recipe, run: Run, data: Step) -> list[Step]:
    """From training to the facts of what was trained."""
    flags = dict(recipe.flags(run.method, "train"))
    injection = flags.pop(FLAG, None) or ""
    out = f"{OUT}/{run.checkpoints}"
    train, generate, score, facts = map(run.step, ("train", "generate", "score", "facts"))
    training = make_step(
        train,
        [PROGRAM, f"{OUT}/data", MODEL, inside(run.method.arch), "--task", recipe.content[TASK],
         *(["--injection", injection] if injection else []), *_control(recipe.flags(run.method, "binarize")), *setting_words(flags, "--set"),
         *setting_words(recipe.flags(run.method, "generate"), "--generate"),
         "--seed", run.seed, "--out", out],
        data.name, f"{run.checkpoints}/facts.json",
    )  # fmt: skip
    return [
        replace(training, outputs=(f"{run.checkpoints}/facts.json", f"{run.checkpoints}/model")),
        make_step(
            generate, [PROGRAM, f"{OUT}/data", "--predict", out, "--generated", f"{OUT}/{run.generated}"],
            train, run.generated,
        ),
        *scoring_steps(recipe, run),
        make_step(
            facts, ["treesyntax", PROGRAM, "--facts", out], score, stdout=f"{run.folder}/facts.json",
        ),
    ]  # fmt: skip


def _control(binarize: Flags) -> list[str]:
    control = str(binarize.get("source-control", ""))
    seed = binarize.get("control-seed")
    return [
        *(["--control", control] if control else []),
        *(["--control-seed", str(seed)] if control and seed is not None else []),
    ]


def setting_words(flags: Mapping[str, Any], flag: str) -> Iterator[str]:
    """Settings as words of a command line; False is a value of its own, unlike in flags."""
    for name, value in flags.items():
        if value is not None:
            text = value if _stays_text(value) else json.dumps(value)
            yield from (flag, f"{name.replace('-', '_')}={text}")


def _stays_text(value: Any) -> bool:
    """Whether a text needs no quotes on a command line: "no" would be read as false; 1e-5 is meant as a number."""
    try:
        return isinstance(value, str) and type(value_of(value)) not in (bool, type(None))
    except MisreadError:
        return False

"""The steps of a study that finetunes: data as lines, then train, outputs, scores and facts of each run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from treesyntax.metrics.line_file import FILE as LINES
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
from treesyntax.study.run.steps import (
    OUT,
    PREPARE,
    SAFE,
    Run,
    Step,
    inside,
    make_step,
    training_files,
)


def data_steps(recipe: Recipe, number: int, needs: tuple[str, ...]) -> Iterator[Step]:
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


def run_steps(recipe: Recipe, run: Run, data: Step) -> list[Step]:
    """From training to the facts of what was trained."""
    flags = dict(recipe.flags(run.method, "train"))
    injection = flags.pop(FLAG, None) or ""
    out = f"{OUT}/{run.checkpoints}"
    generated = f"{run.folder}/generated/generate-test.txt"
    hypotheses, lines = f"{run.folder}/hypotheses.txt", f"{run.folder}/{LINES}"
    train, generate, collect, score, facts = map(
        run.step, ("train", "generate", "hypotheses", "score", "facts")
    )
    reference = inside(run.method.target.test)
    metrics = [word for metric in recipe.score for word in ("--metric", metric)]
    training = make_step(
        train,
        [PROGRAM, f"{OUT}/data", "--model", inside(run.method.arch), "--task", recipe.content[TASK],
         *(["--injection", injection] if injection else []), *_control(recipe.flags(run.method, "binarize")), *setting_words(flags, "--set"),
         *setting_words(recipe.flags(run.method, "generate"), "--generate"),
         "--seed", run.seed, "--out", out],
        data.name, f"{run.checkpoints}/facts.json",
    )  # fmt: skip
    scoring = make_step(
        score, ["treesyntax", "score", "--reference", reference, "--hypothesis",
        f"{OUT}/{hypotheses}", *metrics, *training_files(recipe, run.method), "--json",
        "--lines", f"{OUT}/{lines}"],
        collect, stdout=f"{run.folder}/scores.json",
    )  # fmt: skip
    return [
        replace(training, outputs=(f"{run.checkpoints}/facts.json", f"{run.checkpoints}/model")),
        make_step(
            generate, [PROGRAM, f"{OUT}/data", "--predict", out, "--generated", f"{OUT}/{generated}"],
            train, generated,
        ),
        make_step(
            collect, ["python", SAFE, "-m", "treesyntax.study.run.hypotheses", f"{OUT}/{generated}",
            f"{OUT}/{hypotheses}", "--reference", reference],
            generate, hypotheses,
        ),
        replace(scoring, outputs=(*scoring.outputs, lines)),
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
            text = value if isinstance(value, str) else json.dumps(value)
            yield from (flag, f"{name.replace('-', '_')}={text}")

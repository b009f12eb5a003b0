"""Finetune a pretrained model of Hugging Face with trees, and write its outputs for treesyntax score.

  treesyntax finetune --model FOLDER --task sequence-classification \\
      --train train.jsonl --valid valid.jsonl --test test.jsonl --tree-format ptb \\
      --injection tree_distance --set num_train_epochs=3 --out out/distance

A line of train.jsonl is {"text": "a dog barked", "tree": "(S (NP a dog) barked)", "label": "good"}. Other
columns are named: --columns text=sentence label=class.

Tables (.tsv, .csv) have the names of their columns in the first line, or by --header. CoNLL-U files are tagged
by their column upos. Trees in files of their own are given by --train-trees, --valid-trees, --test-trees.

The folder gets model/ (the best on validation), hypotheses.txt and references.txt:

  treesyntax score --hypothesis out/distance/hypotheses.txt --reference out/distance/references.txt \\
      --metric accuracy --metric macro_f1

--set gives transformers' TrainingArguments, and these: patience (validations without a better one until
training stops), freeze (layers that stay as they were), max_length, max_target_length and
tree_learning_rate. Run the same command again after a kill: it goes on from the last checkpoint.

With a recipe of trainer: huggingface one of its runs is done by hand:

  treesyntax finetune RECIPE --row distance --seed 1 --out out/distance-1
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from treesyntax.errors import OptionError, TreeSyntaxError, unknown_name
from treesyntax.files import write_text
from treesyntax.finetune import command

SUFFIXES = (".yaml", ".yml")
KINDS = ("prepare", "train", "generate", "hypotheses", "score")
"""The steps of a run that its outputs need."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of a finetuning, and the row of a recipe."""
    command.add_arguments(parser)
    parser.add_argument("--row", help="with a recipe: the row to train (default the first)")


def run(args: argparse.Namespace) -> int:
    """Do what is asked for; returns 0.

    Raises:
        OptionError: for flags that are missing or do not fit together.
        InputError: for data that cannot be read.
        TreeSyntaxError: if a step of a recipe fails.
    """
    if args.source is None or args.source.suffix not in SUFFIXES:
        if args.row is not None:
            raise OptionError("--row belongs to a recipe; name its .yaml file first")
        return command.run(args)
    remedy = "the recipe says all of a run but --row, --seed and --out; change a copy of it"
    command.only_flags(args, ("source", "seed", "out"), remedy)
    if args.out is None:
        raise OptionError("--out is needed: the folder for the run")
    _run_of_recipe(args.source, args.row, args.seed, args.out)
    return 0


def _run_of_recipe(file: Path, row: str | None, seed: int | None, out: Path) -> None:
    """Do the steps of one run of a recipe, one after the other, in a folder laid out like a study."""
    from treesyntax.finetune.job import JOB_FILE
    from treesyntax.study.recipe.recipe import read_recipe
    from treesyntax.study.recipe.trainer import HUGGINGFACE, TRAINER, is_huggingface
    from treesyntax.study.run.plan import make_plan
    from treesyntax.study.run.process import PROGRAMS, resolve
    from treesyntax.study.run.steps import OUT

    recipe = read_recipe(file)
    if not is_huggingface(recipe.content):
        raise OptionError(f"{file}: has no {TRAINER}: {HUGGINGFACE}; treesyntax study runs it")
    plan = make_plan(recipe)
    first = plan.runs[0]
    rows = [method.name for method in recipe.methods]
    if row is not None and row not in rows:
        raise unknown_name("row", row, rows, "--row:")
    seed = first.seed if seed is None else seed
    runs = [run for run in plan.of_rows([row or first.method.name]).runs if run.seed == seed]
    if not runs:
        raise OptionError(f"--seed {seed}: the recipe has {', '.join(map(str, recipe.seeds))}")
    if (
        out / JOB_FILE
    ).exists():  # its outputs would lie beside those of the run, and be scored for them
        raise OptionError(f"{out} has another finetuning; choose another --out")
    for step in plan.only(runs[:1]).steps:
        if step.kind not in KINDS:
            continue
        for output in step.outputs:
            (out / output).parent.mkdir(parents=True, exist_ok=True)
        words = resolve(step.command, PROGRAMS, {OUT: str(out)})
        done = subprocess.run(words, stdout=subprocess.PIPE if step.stdout else None, check=False)
        if done.returncode:
            raise TreeSyntaxError(f"{step.name} ended with status {done.returncode}")
        if step.stdout:
            write_text(out / step.stdout, done.stdout.decode())
            print(done.stdout.decode(), end="")

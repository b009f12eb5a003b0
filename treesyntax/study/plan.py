"""A recipe as steps: command lines, what each needs, and what each leaves behind.

Commands are symbolic, so that a step stays the same step when the study's folder or the Python
installation moves: the first word is a program of :data:`treesyntax.study.process.PROGRAMS`,
``{out}`` is the study's folder and ``{plugins}`` the folder of the fairseq plugins.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass
from typing import Any

from treesyntax.binarize_encode import TEXT
from treesyntax.errors import OptionError
from treesyntax.linearize import get_view
from treesyntax.metrics import UNSEEN
from treesyntax.study.recipe import DATA, Flags, Method, Recipe

OUT = "{out}"
PLUGINS = "{plugins}"
SPLITS = ("train", "valid", "test")
TRAIN_DEFAULTS: Flags = {
    "log-interval": 50,
    "save-interval-updates": 250,
    "update-epoch-batch-itr": "True",
}
"""Flags of fairseq-train unless the recipe says otherwise.

Batches are drawn anew in every epoch: fairseq does so after a resume in any case, and only then is
a training that was interrupted the same as one that was not.
A killed run goes on from the last save, at the end of an epoch or after that many updates. Each
save also validates, so the interval is part of how the best checkpoint is chosen.
"""
MASKS = "relation_mask"


@dataclass(frozen=True)
class Step:
    """One command line.

    Attributes:
        name: unique in the plan, usable as a path.
        command: symbolic words, see the module.
        needs: names of the steps that must be done before.
        outputs: files and folders inside the study that exist once the step is done.
        stdout: file inside the study for the standard output; "" sends it to the log.
    """

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    stdout: str = ""

    @property
    def log(self) -> str:
        """The log file inside the study."""
        return f"logs/{self.name}.log"


@dataclass(frozen=True)
class Run:
    """One method with one seed."""

    method: Method
    seed: int

    @property
    def name(self) -> str:
        """Unique in the plan; the run's folder inside the study is ``runs/NAME``."""
        return f"{self.method.name}-{self.seed}"

    @property
    def folder(self) -> str:
        """The run's folder inside the study."""
        return f"runs/{self.name}"

    def step(self, kind: str) -> str:
        """Name of one of the run's steps: train, generate, hypotheses, score, facts, masks."""
        return f"{self.name}/{kind}"


@dataclass(frozen=True)
class Plan:
    """All steps of a study in the order in which they are preferred, and its runs."""

    recipe: Recipe
    steps: tuple[Step, ...]
    runs: tuple[Run, ...]

    def steps_of(self, run: Run) -> list[Step]:
        """The run's own steps."""
        return [step for step in self.steps if step.name.startswith(f"{run.name}/")]

    def keys(self) -> dict[str, str]:
        """For each step a hash of its command and, through their hashes, of all it needs."""
        keys: dict[str, str] = {}
        for step in self.steps:
            parts = [list(step.command), *(keys[need] for need in step.needs)]
            keys[step.name] = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return keys


def make_plan(recipe: Recipe) -> Plan:
    """The steps of a recipe: prepare, binarize each distinct setting once, then the runs.

    Runs are ordered by seed first, so that an unfinished study has something of every method.

    Raises:
        OptionError: if a command under prepare has unbalanced quotes.
    """
    prepare = _prepare_steps(recipe)
    ready = tuple(step.name for step in prepare[-1:])
    groups = _binarize_groups(recipe)
    binarize = [_binarize_step(recipe, names, flags, ready) for names, flags in groups]
    folder_of = {
        name: step for (names, _), step in zip(groups, binarize, strict=True) for name in names
    }
    runs = tuple(Run(method, seed) for seed in recipe.seeds for method in recipe.methods)
    steps = [step for run in runs for step in _run_steps(recipe, run, folder_of[run.method.name])]
    return Plan(recipe, (*prepare, *binarize, *steps), runs)


def flag_words(flags: Flags) -> list[str]:
    """``{beam: 5, fp16: true, betas: [1, 2]}`` as ``--beam 5 --fp16 --betas 1 2``.

    False and null leave a flag out.
    """
    words: list[str] = []
    for name, value in flags.items():
        items = value if isinstance(value, list) else [value]
        if value is None or value is False:
            continue
        if value is True:
            words.append(f"--{name}")
        elif len(items) == 1 and str(items[0]).startswith("-"):
            words.append(f"--{name}={items[0]}")  # else argparse takes the value for a flag
        else:
            words += [f"--{name}", *map(str, items)]
    return words


def inside(text: str) -> str:
    """Text of a recipe with ``{data}`` as a folder of the study."""
    return text.replace(f"{{{DATA}}}", f"{OUT}/data")


def _prepare_steps(recipe: Recipe) -> list[Step]:
    steps: list[Step] = []
    for number, line in enumerate(recipe.prepare, start=1):
        try:
            words = tuple(inside(word) for word in shlex.split(line))
        except ValueError as error:
            raise OptionError(
                f"{recipe.path}: prepare, command {number}: {str(error).lower()}"
            ) from None
        needs = tuple(step.name for step in steps[-1:])
        steps.append(Step(f"prepare-{number}", words, needs))
    return steps


def _binarize_groups(recipe: Recipe) -> list[tuple[list[str], Flags]]:
    """Distinct settings of binarize, each with the names of its methods."""
    groups: dict[str, tuple[list[str], Flags]] = {}
    for method in recipe.methods:
        flags = {**recipe.binarize, **method.binarize}
        key = json.dumps(flags, sort_keys=True)
        groups.setdefault(key, ([], flags))[0].append(method.name)
    return list(groups.values())


def _binarize_step(
    recipe: Recipe, methods: list[str], flags: Flags, needs: tuple[str, ...]
) -> Step:
    folder = f"binarized/{'+'.join(methods)}"
    # A kill may come after the folder is there and before the study has noted it.
    words = ["treesyntax", "binarize", f"{OUT}/{folder}", "--overwrite", *_languages(recipe)]
    for split in SPLITS:
        files = (getattr(side, split) for side in (recipe.source, recipe.target))
        words += [f"--{split}", *map(inside, files)]
    words += [inside(word) for word in flag_words(flags)]
    return Step(f"binarize/{'+'.join(methods)}", tuple(words), needs, (folder,))


def _languages(recipe: Recipe) -> list[str]:
    return ["--source-lang", recipe.source.lang, "--target-lang", recipe.target.lang]


def _run_steps(recipe: Recipe, run: Run, binarized: Step) -> list[Step]:
    data = f"{OUT}/{binarized.outputs[0]}"
    common = ["--user-dir", PLUGINS, "--task", "tree_translation", *_languages(recipe)]
    best = f"{run.folder}/checkpoints/checkpoint_best.pt"
    last = f"{run.folder}/checkpoints/checkpoint_last.pt"
    generated = f"{run.folder}/generated/generate-test.txt"
    hypotheses = f"{run.folder}/hypotheses.txt"
    train, generate, collect, score, facts, masks = map(
        run.step, ("train", "generate", "hypotheses", "score", "facts", "masks")
    )
    metrics = [word for metric in recipe.score for word in ("--metric", metric)]
    reference = inside(recipe.target.test)
    read = _reading(recipe, run.method)
    unseen = _training_files(recipe)
    flags = {**TRAIN_DEFAULTS, **recipe.train, **run.method.train}
    steps = [
        _step(
            train, ["fairseq-train", data, *common, "--arch", run.method.arch, *flag_words(flags),
            "--seed", run.seed, "--save-dir", f"{OUT}/{run.folder}/checkpoints",
            "--no-epoch-checkpoints", "--keep-interval-updates", 1, "--log-format", "json"],
            binarized.name, best,
        ),
        _step(
            generate, ["fairseq-generate", data, *common, "--path", f"{OUT}/{best}",
            "--gen-subset", "test", "--results-path", f"{OUT}/{run.folder}/generated",
            *flag_words({**recipe.generate, **run.method.generate})],
            train, generated,
        ),
        _step(
            collect, ["python", "-m", "treesyntax.study.hypotheses", f"{OUT}/{generated}",
            f"{OUT}/{hypotheses}", "--reference", reference, *read],
            generate, hypotheses,
        ),
        _step(
            score, ["treesyntax", "score", "--reference", reference, "--hypothesis",
            f"{OUT}/{hypotheses}", *metrics, *unseen, "--json"],
            collect, stdout=f"{run.folder}/scores.json",
        ),
        _step(
            facts, ["python", "-m", "analysis.checkpoint_facts", f"{OUT}/{best}",
            "--last", f"{OUT}/{last}"],
            score, stdout=f"{run.folder}/facts.json",
        ),
    ]  # fmt: skip
    if MASKS in f"{run.method.arch} {flags.get('encoder-injection', '')}":
        folder = f"{run.folder}/mask_strengths"
        words = ["python", "-m", "analysis.mask_strengths", f"{OUT}/{best}", "--out"]
        steps.append(_step(masks, [*words, f"{OUT}/{folder}"], facts, folder))
    return steps


def _reading(recipe: Recipe, method: Method) -> list[str]:
    """How hypotheses become text again where the target is the tokens of a tree's view."""
    flags = {**recipe.binarize, **method.binarize}
    view, notation = flags.get("target-view"), flags.get("target-format", TEXT)
    if view is None or notation == TEXT or get_view(str(view)).tree is None:
        return []
    return ["--view", str(view), "--notation", str(notation)]


def _training_files(recipe: Recipe) -> list[str]:
    """What scores of unseen lines need; left out where there are none, as it is part of the step."""
    if not any(name.endswith(UNSEEN) for name in recipe.score):
        return []
    source, target = recipe.source, recipe.target
    files = {"source": source.test, "train-source": source.train, "train-target": target.train}
    return [word for name, file in files.items() for word in (f"--{name}", inside(file))]


def _step(name: str, words: list[Any], need: str, output: str = "", stdout: str = "") -> Step:
    outputs = (output or stdout,)
    return Step(name, tuple(str(word) for word in words), (need,), outputs, stdout)

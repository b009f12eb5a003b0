"""The steps of one run: their command lines, the steps they need, and the files they write.

Commands are symbolic, so that a step stays the same step when the study's folder or the Python
installation moves: the first word is a program of :data:`treesyntax.study.run.process.PROGRAMS`,
``{out}`` is the study's folder and ``{plugins}`` the folder of the fairseq plugins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError
from treesyntax.metrics import OF, UNSEEN
from treesyntax.metrics.line_file import FILE as LINES
from treesyntax.study.recipe.axes import shared_point
from treesyntax.study.recipe.recipe import DATA, Method, Recipe
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.run.process import SAFE

OUT = "{out}"
PLUGINS = "{plugins}"
RUN = "{run}"
"""The run's folder, in a recipe's flags of training."""
PREPARE, BINARIZE = PREPARED = "prepare", "binarize"
BINARIZED = "binarized"
"""The folder of the data that models read, a folder for each distinct setting, named after its first row."""
MASKS = "relation_mask"
LEFT_OUT = "left_out"
"""Folder of the lists of pairs that no row uses, where the recipe allows that."""
BEGUN_FILE = "begun.json"
"""In a run's folder: key, data, code and versions of the training in it, finished or not."""
MODEL = "--model"
"""In the command of a finetuning: a folder, or the name of a model in the cache of Hugging Face."""
COUNTED_BY = "--counted-by"
"""In the command of a score: the file with the category of each line."""
STUDY_ANALYSES = "analyses"
"""Name of the step, and folder, of the analyses of a study as a whole."""


Command = tuple[str, ...]


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
    command: Command
    needs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    stdout: str = ""

    @property
    def kind(self) -> str:
        """prepare, binarize, train, average, generate, hypotheses, score, facts or analyses."""
        head, _, tail = self.name.partition("/")
        return tail if tail and head != BINARIZE else head.partition("-")[0]

    @property
    def log(self) -> str:
        """The log file inside the study."""
        return f"logs/{self.name}.log"


@dataclass(frozen=True)
class Run:
    """One method with one seed."""

    method: Method
    seed: int

    @cached_property
    def name(self) -> str:
        """Unique in the plan; the run's folder inside the study is ``runs/NAME``."""
        return run_name(self.method.name, self.seed)

    @property
    def folder(self) -> str:
        """The run's folder inside the study."""
        return f"runs/{self.name}"

    @property
    def checkpoints(self) -> str:
        """The folder of its checkpoints inside the study."""
        return f"{self.folder}/checkpoints"

    @property
    def generated(self) -> str:
        """The file of what it wrote for the test set, inside the study."""
        return f"{self.folder}/generated/generate-test.txt"

    def step(self, kind: str) -> str:
        """Name of one of the run's steps: train, average, generate, hypotheses, score, facts, …"""
        return f"{self.name}/{kind}"


def inside(text: str) -> str:
    """Text of a recipe with ``{data}`` as a folder of the study."""
    return text.replace(f"{{{DATA}}}", f"{OUT}/data")


def located(text: str, folder: Path) -> Path:
    """A file of a recipe, in the folder of its study."""
    return Path(inside(text).replace(OUT, str(folder)))


def languages(recipe: Recipe) -> list[str]:
    """Both languages as flags."""
    return ["--source-lang", recipe.source.lang, "--target-lang", recipe.target.lang]


def group_of(recipe: Recipe, method: Method) -> str:
    """A name for the rows that a row is compared with: of the same targets at a point of shared axes."""
    point = shared_point(method.point, recipe.axes)
    same = [other for other in recipe.methods if shared_point(other.point, recipe.axes) == point]
    targets = list(dict.fromkeys(other.target for other in same))
    name = "+".join(f"{axis}-{label}" for axis, label in point) or "all"
    number = f"+{targets.index(method.target)}" if len(targets) > 1 else ""
    return re.sub(r"[^\w.+-]", "-", name) + number


def left_out_file(group: str) -> str:
    """The list of pairs that a group of rows leaves out, inside the study."""
    return f"{LEFT_OUT}/{group}.json"


def study_step(recipe: Recipe, runs: Sequence[Run]) -> list[Step]:
    """The analyses of a study as a whole, if any, where rows with relation masks have a baseline."""
    rows = {
        row.name: (row, baseline)
        for row in recipe.methods
        if (baseline := recipe.baseline_of(row)) is not None and _has_masks(recipe, row)
    }
    if not rows or not recipe.analyses:
        return []
    names = {method.name for pair in rows.values() for method in pair}
    needs = tuple(run.step("analyses") for run in runs if run.method.name in names)
    words = ("treesyntax", "analyse", "study", OUT, "--metric", recipe.score[0])
    out = ("--out", f"{OUT}/{STUDY_ANALYSES}")
    return [Step(STUDY_ANALYSES, (*words, *out), needs, (STUDY_ANALYSES,))]


def _has_masks(recipe: Recipe, method: Method) -> bool:
    flags = recipe.flags(method, "train")
    sides = (flags.get(f"{side}-injection", "") for side in ("encoder", "decoder"))
    return any(MASKS in str(text) for text in (method.arch, *sides))


def scoring_steps(recipe: Recipe, run: Run, read: Sequence[str] = ()) -> list[Step]:
    """From what a run wrote for the test set to the scores of its lines.

    Args:
        recipe: the recipe.
        run: the run.
        read: flags that say how its outputs become text.
    """
    collect, hypotheses = run.step("hypotheses"), f"{run.folder}/hypotheses.txt"
    reference, lines = inside(run.method.target.test), f"{run.folder}/{LINES}"
    metrics = [word for metric in recipe.score for word in ("--metric", metric)]
    scoring = make_step(
        run.step("score"), ["treesyntax", "score", "--reference", reference, "--hypothesis",
        f"{OUT}/{hypotheses}", *metrics, *_training_files(recipe, run.method), "--json",
        "--lines", f"{OUT}/{lines}"],
        collect, stdout=f"{run.folder}/scores.json",
    )  # fmt: skip
    return [
        make_step(
            collect, ["python", SAFE, "-m", "treesyntax.study.run.hypotheses", f"{OUT}/{run.generated}",
            f"{OUT}/{hypotheses}", "--reference", reference, *read],
            run.step("generate"), hypotheses,
        ),
        replace(scoring, outputs=(*scoring.outputs, lines)),
    ]  # fmt: skip


def _training_files(recipe: Recipe, method: Method) -> list[str]:
    """The flags for scores of some lines; none where no metric needs them, since flags are hashed."""
    source, target = method.source, method.target
    files: dict[str, str] = {}
    if any(UNSEEN in name for name in recipe.score):
        files = {
            "--source": source.test,
            "--train-source": source.train,
            "--train-target": target.train,
        }
    if of_category := next((name for name in recipe.score if OF in name), ""):
        if not method.categories:
            raise OptionError(
                f"{recipe.path}: score: {of_category} counts the lines of a category; name the file with the "
                "category of each line under categories"
            )
        files[COUNTED_BY] = method.categories
    return [word for flag, file in files.items() for word in (flag, inside(file))]


def make_step(name: str, words: list[Any], need: str, output: str = "", stdout: str = "") -> Step:
    """A step of a run that needs another one."""
    outputs = (output or stdout,)
    return Step(name, tuple(str(word) for word in words), (need,), outputs, stdout)

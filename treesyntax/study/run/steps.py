"""The steps of one run: their command lines, the steps they need, and the files they write.

Commands are symbolic, so that a step stays the same step when the study's folder or the Python
installation moves: the first word is a program of :data:`treesyntax.study.run.process.PROGRAMS`,
``{out}`` is the study's folder and ``{plugins}`` the folder of the fairseq plugins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from treesyntax.data.encoding import TEXT
from treesyntax.errors import OptionError
from treesyntax.metrics import UNSEEN
from treesyntax.metrics.line_file import FILE as LINES
from treesyntax.study.recipe.axes import shared_point
from treesyntax.study.recipe.recipe import DATA, Flags, Method, Recipe, flag_words
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.run.process import SAFE
from treesyntax.trees.linearizations import tree_text

OUT = "{out}"
PLUGINS = "{plugins}"
RUN = "{run}"
"""The run's folder, in a recipe's flags of training."""
TRAIN_DEFAULTS: Flags = {
    "log-interval": 50,
    "save-interval-updates": 250,
    "update-epoch-batch-itr": "True",
}
"""Flags of fairseq-train unless the recipe says otherwise.

Batches are drawn anew in every epoch: fairseq does so after a resume in any case, and only then is
a training that was interrupted the same as one that was not.
A killed run goes on from its last checkpoint, which is written at the end of an epoch and after that
many updates. Each checkpoint is also validated, so the interval is part of how the best checkpoint is chosen.
"""
PREPARE, BINARIZE = PREPARED = "prepare", "binarize"
MASKS = "relation_mask"
LEFT_OUT = "left_out"
"""Folder of the lists of pairs that no row uses, where the recipe allows that."""
BEGUN_FILE = "begun.json"
"""In a run's folder: key, data, code and versions of the training in it, finished or not."""
STUDY_ANALYSES = "analyses"
"""Name of the step, and folder, of the analyses of a study as a whole."""


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

    @property
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


def run_steps(
    recipe: Recipe, run: Run, binarized: Step, with_trees: Sequence[Step] = ()
) -> list[Step]:
    """From training to the facts of its checkpoint, and its analyses.

    Args:
        recipe: the recipe.
        run: the run.
        binarized: the step that makes its data.
        with_trees: steps that make other data of the same source, which may have the trees that
            its own lacks.
    """
    data = f"{OUT}/{binarized.outputs[0]}"
    common = ["--user-dir", PLUGINS, "--task", "tree_translation", *languages(recipe)]
    checkpoints = run.checkpoints
    best, last = (f"{checkpoints}/checkpoint_{which}.pt" for which in ("best", "last"))
    mean = f"{run.folder}/checkpoint_average.pt"
    tested = mean if recipe.average else best
    generated = f"{run.folder}/generated/generate-test.txt"
    hypotheses = f"{run.folder}/hypotheses.txt"
    train, average, generate, collect, score, facts = map(
        run.step, ("train", "average", "generate", "hypotheses", "score", "facts")
    )
    metrics = [word for metric in recipe.score for word in ("--metric", metric)]
    reference = inside(run.method.target.test)
    read = _reading(recipe, run.method)
    if recipe.flags(run.method, "binarize").get("copy-unknown"):
        pair = f"{recipe.source.lang}-{recipe.target.lang}"
        read += ["--unknown", f"{data}/test.{pair}.{recipe.source.lang}.unknown"]
    unseen = training_files(recipe, run.method)
    flags = {**TRAIN_DEFAULTS, **recipe.flags(run.method, "train")}
    _check_checkpoints(recipe, flags)
    kept = str(flags.pop("keep-interval-updates", 1))
    if kept.isdecimal():  # -1 keeps all
        kept = str(max(int(kept), recipe.average))
    train_words = [word.replace(RUN, f"{OUT}/{run.folder}") for word in flag_words(flags)]
    if recipe.skips:
        train_words += ["--leave-out", f"{OUT}/{left_out_file(group_of(recipe, run.method))}"]
    averaging = make_step(
        average, ["treesyntax", "average", f"{OUT}/{checkpoints}", "--last", recipe.average,
        "--out", f"{OUT}/{mean}"],
        train, mean,
    )  # fmt: skip
    analyses = _analyses(run, data, mean if recipe.average else "", facts, with_trees)
    lines = f"{run.folder}/{LINES}"
    scoring = make_step(
        score, ["treesyntax", "score", "--reference", reference, "--hypothesis",
        f"{OUT}/{hypotheses}", *metrics, *unseen, "--json", "--lines", f"{OUT}/{lines}"],
        collect, stdout=f"{run.folder}/scores.json",
    )  # fmt: skip
    return [
        make_step(
            train, ["fairseq-train", data, *common, "--arch", run.method.arch, *train_words,
            "--seed", run.seed, "--save-dir", f"{OUT}/{checkpoints}",
            "--no-epoch-checkpoints", "--keep-interval-updates", kept, "--log-format", "json"],
            binarized.name, best,
        ),
        *([averaging] if recipe.average else []),
        make_step(
            generate, ["fairseq-generate", data, *common, "--path", f"{OUT}/{tested}",
            "--gen-subset", "test", "--results-path", f"{OUT}/{run.folder}/generated",
            *flag_words(recipe.flags(run.method, "generate"))],
            average if recipe.average else train, generated,
        ),
        make_step(
            collect, ["python", SAFE, "-m", "treesyntax.study.run.hypotheses", f"{OUT}/{generated}",
            f"{OUT}/{hypotheses}", "--reference", reference, *read],
            generate, hypotheses,
        ),
        replace(scoring, outputs=(*scoring.outputs, lines)),
        make_step(
            facts, ["treesyntax", "analyse", "facts", f"{OUT}/{tested}", "--last", f"{OUT}/{last}"],
            score, stdout=f"{run.folder}/facts.json",
        ),
        *([analyses] if recipe.analyses else []),
    ]  # fmt: skip


def _check_checkpoints(recipe: Recipe, flags: Flags) -> None:
    """Refuse to average more checkpoints than training will write, as far as that is known."""
    known = {name.replace("_", "-"): str(value) for name, value in flags.items()}
    updates, interval = known.get("max-update", ""), known["save-interval-updates"]
    if not recipe.average or not interval.isdecimal():
        return
    limited = updates.isdecimal() and int(updates) > 0
    if int(interval) == 0 or (limited and recipe.average * int(interval) > int(updates)):
        raise OptionError(
            f"{recipe.path}: average is {recipe.average}, but {updates or 'these'} updates with a "
            f"checkpoint every {interval} have fewer; change train.save-interval-updates"
        )
    patience = known.get("patience", "")
    if not patience.isdecimal() or int(patience) == 0:
        return
    between = known.get("validate-interval-updates", "")
    steps = int(between) if between.isdecimal() and int(between) > 0 else int(interval)
    fewest = (int(patience) + 1) * min(steps, int(interval)) // int(interval)
    if recipe.average > fewest:
        raise OptionError(
            f"{recipe.path}: average is {recipe.average}, but a training with patience {patience} may end with "
            f"{fewest} checkpoints; raise train.patience or lower average"
        )


def _analyses(run: Run, data: str, mean: str, need: str, with_trees: Sequence[Step]) -> Step:
    folder = f"{run.folder}/analyses"
    words = ["treesyntax", "analyse", "run", f"{OUT}/{run.folder}/checkpoints", data]
    if mean:
        words += ["--tested", f"{OUT}/{mean}"]
    if with_trees:
        words += ["--trees", *(f"{OUT}/{step.outputs[0]}" for step in with_trees)]
    step = make_step(run.step("analyses"), [*words, "--out", f"{OUT}/{folder}"], need, folder)
    return replace(step, needs=(*step.needs, *(other.name for other in with_trees)))


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


def _reading(recipe: Recipe, method: Method) -> list[str]:
    """How hypotheses become text again: of a tree's linearization, or of subwords with bytes."""
    flags = recipe.flags(method, "binarize")
    form = tree_text(
        str(flags.get("target-format") or TEXT), flags.get("target-view"),
        str(flags.get("target-control")), int(flags.get("control-seed") or 0),
    )  # fmt: skip
    if form is None:
        return ["--bytes"] if flags.get("subword-byte-fallback") else []
    words = ["--linearization", form.linearization, "--notation", form.format_name]
    seed = form.shuffle_seed
    return words if seed is None else [*words, "--shuffle-seed", str(seed)]


def training_files(recipe: Recipe, method: Method) -> list[str]:
    """The flags for scores of unseen lines; none where no metric needs them, since flags are hashed."""
    if not any(name.endswith(UNSEEN) for name in recipe.score):
        return []
    source, target = method.source, method.target
    files = {"source": source.test, "train-source": source.train, "train-target": target.train}
    return [word for name, file in files.items() for word in (f"--{name}", inside(file))]


def make_step(name: str, words: list[Any], need: str, output: str = "", stdout: str = "") -> Step:
    """A step of a run that needs another one."""
    outputs = (output or stdout,)
    return Step(name, tuple(str(word) for word in words), (need,), outputs, stdout)

"""The trained models of a study, for commands that are given the folder of a study or of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from treesyntax.errors import OptionError
from treesyntax.metrics import LOWER_IS_BETTER, plain_name
from treesyntax.study.recipe.identity import IDENTITY_FILE
from treesyntax.study.recipe.recipe import RECIPE_FILE, SPLITS, Method, read_recipe
from treesyntax.study.results.current import current_results
from treesyntax.study.run.checkpoints import BEST
from treesyntax.study.run.keys import PARSE, flag_value
from treesyntax.study.run.plan import Plan, make_plan
from treesyntax.study.run.steps import BINARIZED, OUT, Run, inside, located

RUNS = "runs"
MOST_NAMED = 12
"""Folders that a message lists."""


@dataclass(frozen=True)
class Trained:
    """A run that has a model.

    Attributes:
        study: the study's folder.
        plan: of the study.
        run: the run.
        why: how it was chosen, "" for a run that was named.
    """

    study: Path
    plan: Plan
    run: Run
    why: str = ""

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.study / self.run.folder

    @property
    def checkpoints(self) -> Path:
        """The folder of its training's checkpoints."""
        return self.study / self.run.checkpoints

    @property
    def checkpoint(self) -> Path:
        """The model that the study tests: the mean of the last checkpoints, or the best one."""
        steps = {step.kind: step for step in self.plan.steps_of(self.run)}
        return located(str(flag_value(steps["generate"], "--path")), self.study)

    @property
    def data(self) -> Path:
        """The folder of prepared data that it reads."""
        return self.plan.data_folder(self.run.method, self.study)

    @property
    def parsing(self) -> list[tuple[str, ...]]:
        """The words after ``treesyntax parse`` of the recipe's commands that made its source trees."""
        source = self.run.method.source
        trees = {inside(getattr(source, split)) for split in SPLITS}
        words = (step.command[2:] for step in self.plan.prepare if step.command[:2] == PARSE)
        return [
            tuple(word.replace(OUT, str(self.study)) for word in command)
            for command in words
            if trees & {*command}
        ]


def study_of(path: Path) -> tuple[Path, str] | None:
    """Return the study's folder that a path is or lies in, with the name of the run if it lies in one.

    Prepared data lies in no run: for it, and for a path in no study, this is None.
    """
    whole = path.absolute()
    for folder in (whole, *whole.parents):
        if (folder / IDENTITY_FILE).is_file():
            below = whole.relative_to(folder).parts
            if below and (below[0] != RUNS or len(below) < 2):
                return None
            shown = [
                ancestor for ancestor in (path, *path.parents) if ancestor.absolute() == folder
            ]
            return (shown or [folder])[0], "".join(below[1:2])
    return None


def find_trained(path: Path, suits: Callable[[Plan, Method], bool] | None = None) -> Trained:
    """Return the run that a folder is or lies in; of a study's folder the best run of its primary metric.

    Args:
        path: a study's folder, or a run's, or a path inside one.
        suits: whether a row is preferred, in a study's folder.

    Raises:
        OptionError: if it is none of these, or nothing is trained there; with the folders that exist.
    """
    location = study_of(path)
    if location is None:
        if (checkpoint := path / BEST).is_file():
            raise OptionError(f"{path} is a folder of checkpoints and of no run; give {checkpoint}")
        what = "has no checkpoint_best.pt, and is the folder of no study and of no run"
        what = what if path.exists() else "does not exist"
        raise OptionError(f"{path} {what}{studies_here(path)}")
    study, name = location
    plan = make_plan(read_recipe(study / RECIPE_FILE))
    if not plan.trainer.needs_plugins:
        raise OptionError(
            f"{study} trained Hugging Face models: load {study / RUNS}/NAME/checkpoints/model with transformers"
        )
    trained = [run for run in plan.runs if Trained(study, plan, run).checkpoint.is_file()]
    if not trained:
        raise OptionError(f"{study} has no trained run yet; treesyntax study goes on with it")
    if name or len(trained) == 1:
        for run in trained:
            if not name or run.folder == f"{RUNS}/{name}":
                return Trained(study, plan, run)
        state = "is not trained yet" if (study / RUNS / name).is_dir() else "is no run"
        raise OptionError(
            f"{path}: {name} {state}; these are trained: {_listed([study / run.folder for run in trained])}"
        )
    preferred = [run for run in trained if suits and suits(plan, run.method)]
    return _best(study, plan, preferred or trained)


def prepared_folders(path: Path) -> list[Path]:
    """Return the folders of the data that a run, or all rows of a study, read, as far as they are made."""
    study, name = study_of(path) or (path, "")
    plan = make_plan(read_recipe(study / RECIPE_FILE))
    runs = [run for run in plan.runs if not name or run.name == name]
    folders = dict.fromkeys(plan.data_folder(run.method, study) for run in runs)
    made = [folder for folder in folders if folder.is_dir()]
    if not made:
        every = sorted((study / BINARIZED).glob("*"))
        there = f"; there are {_listed(every)}" if every else ""
        raise OptionError(f"{path}: no data that it reads is made yet{there}")
    return made


def _best(study: Path, plan: Plan, trained: Sequence[Run]) -> Trained:
    """The run with the best score, of the row with the best mean; the first one where nothing is scored."""
    scores: dict[str, dict[int, float]] = {}
    for result in current_results(study, plan.recipe)[0]:
        method = next(row for row in plan.recipe.methods if row.name == result.method)
        if result.metric == method.primary and Run(method, result.seed) in trained:
            sign = -1 if plain_name(result.metric) in LOWER_IS_BETTER else 1
            scores.setdefault(method.name, {})[result.seed] = sign * result.value
    among = f"{len(trained)} runs" if len(trained) > 1 else "1 run"
    if not scores:
        return Trained(study, plan, trained[0], f"the first of {among}; none is scored yet")
    row = max(scores, key=lambda name: fmean(scores[name].values()))
    seed = max(scores[row], key=lambda number: scores[row][number])
    run = next(run for run in trained if (run.method.name, run.seed) == (row, seed))
    why = f"the best of {among} in {run.method.primary} on the test set"
    return Trained(study, plan, run, why)


def studies_here(path: Path) -> str:
    """The end of a message: the studies that exist beside a path and where studies are made."""
    around = dict.fromkeys([Path(RUNS), path.parent, path, path / RUNS])
    studies = [file.parent for near in around for file in sorted(near.glob(f"*/{IDENTITY_FILE}"))]
    return f"; studies: {_listed(studies)}" if studies else "; there is no study here"


def _listed(folders: Sequence[Path]) -> str:
    names = [str(folder) for folder in dict.fromkeys(folders)]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more

"""A longer training of a run goes on from the last checkpoint of the shorter one.

Where nothing but the end of a training is later (`CAPS`: more updates or epochs, more patience), the run in the
folder is the beginning of the longer one. It takes the longer one's key, and what comes after is trained: the
same as without a stop in between. That holds only if nothing before the end depends on where the end is, so
it is refused where the learning rate falls towards the cap, and where the shorter training validated or
saved at its end and the longer one would not.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_object, write_json
from treesyntax.study.recipe.budget import TRAIN_ON
from treesyntax.study.recipe.identity import RECIPE_FILE, written_recipe
from treesyntax.study.recipe.recipe import Recipe, read_recipe
from treesyntax.study.run.checkpoints import LAST, updates_of
from treesyntax.study.run.keys import CAPS, Keys, flag_value
from treesyntax.study.run.logs import TRAINS_ON, TrainLog, read_log
from treesyntax.study.run.plan import Plan, make_plan
from treesyntax.study.run.steps import BEGUN_FILE, Run, Step

FREE_SCHEDULES = (
    "fixed", "inverse_sqrt", "manual", "pass_through", "reduce_lr_on_plateau", "step", "triangular",
)  # fmt: skip
"""Learning rates that do not depend on where a training ends; the first is fairseq's default."""
FREE_WITH = {"polynomial_decay": "--total-num-update", "cosine": "--lr-period-updates"}
"""Others are free with a length of their own."""


@dataclass(frozen=True)
class Former:
    """The training that is in a run's folder.

    Attributes:
        root: its key without where it ends, see :attr:`treesyntax.study.run.keys.Keys.roots`.
        caps: where it ends.
    """

    root: str
    caps: dict[str, float]


def caps_of(train: Step) -> dict[str, float]:
    """Return where a training ends by the flag that says so; those that it lacks are infinite."""
    values = {cap: float(flag_value(train, cap) or 0) for cap in CAPS}
    return {cap: value if value > 0 else math.inf for cap, value in values.items()}


def schedule_of(train: Step) -> str:
    """Return the learning rate of a training that depends on where it ends, "" for one that does not."""
    name = flag_value(train, "--lr-scheduler") or FREE_SCHEDULES[0]
    length = flag_value(train, FREE_WITH[name]) if name in FREE_WITH else None
    free = name in FREE_SCHEDULES or float(length or 0) > 0
    return "" if free else name


def note_of(keys: Keys, train: Step) -> dict[str, Any]:
    """Return what is noted of a training that begins, so that a longer one may go on from it."""
    caps = {cap: value for cap, value in caps_of(train).items() if value < math.inf}
    return {"root": keys.roots[train.name], "caps": caps}


def check_schedules(plan: Plan) -> None:
    """Refuse to train on where a longer training is another one from its first update on."""
    for run in plan.runs:
        if schedule := schedule_of(plan.steps_of(run)[0]):
            raise OptionError(
                f"--train-on: the learning rate of {run.method.name} ({schedule}) depends on where a training ends, "
                "so a longer one is another one; use a schedule such as inverse_sqrt, or set train.max-update "
                "to train anew"
            )


def check_not_shorter(folder: Path, recipe: Recipe) -> None:
    """Refuse the recipe of a study whose trainings went on, without saying so: it would train shorter ones anew.

    Raises:
        OptionError: with what to add.
    """
    written = written_recipe(folder)
    if written is None and recipe.train_on == 1 and _went_on(folder):
        raise OptionError(
            f"{folder}: its trainings went on to more updates, and {RECIPE_FILE} there, which says to how many, is lost "
            f"or damaged; add --{TRAIN_ON} FACTOR as before, or choose another --out"
        )
    before = (written or {}).get(TRAIN_ON, 1)
    if isinstance(before, int | float) and before > recipe.train_on:
        raise OptionError(
            f"{folder}: its trainings went on to {before:g} times the updates; add --{TRAIN_ON} {before:g}, or "
            "choose another --out for shorter ones"
        )


def _went_on(folder: Path) -> bool:
    """Whether a training in a study's folder is a longer one of another."""
    return any(read_object(file).get("extended") for file in folder.glob(f"runs/*/{BEGUN_FILE}"))


class Extensions:
    """The trainings in a study's folder that those of a plan go on from.

    Args:
        plan: the plan, with longer trainings.
        keys: of its steps.
        folder: the study's, which still has the recipe of the shorter ones.
    """

    def __init__(self, plan: Plan, keys: Keys, folder: Path) -> None:
        self.plan, self.keys, self.folder = plan, keys, folder
        self._before: dict[str, Former] | None = None

    def grown(self, run: Run, begun: Mapping[str, Any]) -> Former | None:
        """Return the training in a run's folder if the plan's differs from it in a later end alone.

        Args:
            run: of the plan.
            begun: what is noted of the training in its folder.
        """
        train = self.plan.steps_of(run)[0]
        if "root" in begun:
            caps = {**dict.fromkeys(CAPS, math.inf), **begun["caps"]}
            former: Former | None = Former(str(begun["root"]), caps)
        else:
            former = self._of_recipe().get(str(begun.get("key")))  # noted by an older version
        if former is None or former.root != self.keys.roots[train.name]:
            return None
        now = caps_of(train)
        return former if all(now[cap] >= former.caps[cap] for cap in CAPS) else None

    def _of_recipe(self) -> dict[str, Former]:
        """The trainings of the recipe in the folder by their keys."""
        if self._before is None:
            try:
                plan = make_plan(read_recipe(self.folder / RECIPE_FILE))
            except (InputError, OptionError):
                return {}
            keys = Keys(plan, self.keys.digests, self.keys.recorded)
            trains = [plan.steps_of(run)[0] for run in plan.runs]
            self._before = {
                keys.of[train.name]: Former(keys.roots[train.name], caps_of(train))
                for train in trains
            }
        return self._before

    def refusal(self, run: Run, former: Former) -> str:
        """Return why a longer training is another one and not an extension, "" if it is one."""
        train = self.plan.steps_of(run)[0]
        if schedule := schedule_of(train):
            return f"the learning rate ({schedule}) depends on where a training ends"
        log, folder = read_log(self.folder / train.log), self.folder / run.checkpoints
        if not (folder / LAST).is_file():
            return "its last checkpoint is gone"
        updates = self.updates(run, log)
        if log.finished and not _would_save(train, updates, former, log):
            return (
                f"it ended at update {updates} with a validation or a checkpoint that the longer one does not "
                "have there; let max-update be a multiple of save-interval-updates"
            )
        return ""

    def updates(self, run: Run, log: TrainLog) -> int:
        """Return the updates of the last checkpoint."""
        known = updates_of(self.folder / run.checkpoints / LAST)
        return known if known >= 0 else log.updates

    def extend(self, run: Run, former: Former, begun: Mapping[str, Any], aside: Path) -> str:
        """Make the training in a run's folder the beginning of the longer one; returns a line that says so.

        Args:
            run: of the plan.
            former: the training.
            begun: what is noted of it.
            aside: a folder for its outputs and scores.
        """
        train = self.plan.steps_of(run)[0]
        log = self.folder / train.log
        updates, now = self.updates(run, read_log(log)), caps_of(train)
        changes = ", ".join(
            f"{cap[2:]} {former.caps[cap]:g} -> {now[cap]:g}"
            for cap in CAPS
            if now[cap] != former.caps[cap]
        )
        if not aside.exists():
            _keep(self.folder, run, aside)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"{TRAINS_ON} {updates}: {changes}\n")
        earlier = [*begun.get("extended", []), {"key": begun.get("key"), "updates": updates}]
        noted = {
            **begun,
            "key": self.keys.of[train.name],
            **note_of(self.keys, train),
            "extended": earlier,
        }
        write_json(self.folder / run.folder / BEGUN_FILE, noted)
        return f"{run.name}: trains on from update {updates} ({changes}); its scores so far are in {aside}"


def _would_save(train: Step, updates: int, former: Former, log: TrainLog) -> bool:
    """Whether a longer training validates and saves where a shorter one ended."""

    def number(flag: str, default: int) -> int:
        return int(flag_value(train, flag) or default)

    if (every := number("--save-interval-updates", 0)) > 0 and updates % every == 0:
        return True
    epochs = former.caps["--max-epoch"]
    if epochs == math.inf or log.rested or updates >= former.caps["--max-update"]:
        return False
    intervals = (number(flag, 1) for flag in ("--save-interval", "--validate-interval"))
    return all(every > 0 and int(epochs) % every == 0 for every in intervals)


def _keep(folder: Path, run: Run, aside: Path) -> None:
    """Copy what a run gave so far, without its checkpoints."""
    names = {"runs": "checkpoints", "done": "", "logs": ""}
    for subfolder, large in names.items():
        source = folder / subfolder / run.name
        if source.is_dir():
            left_out = shutil.ignore_patterns(large, "*.pt", BEGUN_FILE)
            shutil.copytree(
                source, aside / subfolder / run.name, ignore=left_out, dirs_exist_ok=True
            )

"""What a study's folder holds, step by step: ``done/STEP.json`` for each step that ended well.

A marker has the step's key, the digests of the files that the step wrote, and the code that wrote
them. Prepared data with the same key is taken over from wherever it lies: from this study under
another name, or from another study beside it. Its files are links until a command may write into them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError
from treesyntax.files import atomic_file, atomic_folder, read_object, write_json, write_text
from treesyntax.made.digests import Digests, files_in, size_of
from treesyntax.made.reuse import changed_file
from treesyntax.study.provenance import commit, versions
from treesyntax.study.recipe.identity import Identity
from treesyntax.study.recipe.rows import data_files
from treesyntax.study.run.code import code_of, look_again, merged, trainer_versions
from treesyntax.study.run.extension import note_of
from treesyntax.study.run.folder import studies_near
from treesyntax.study.run.keys import Keys, checkpoints_kept
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import BEGUN_FILE, BINARIZE, PREPARE, PREPARED, Run, Step

DONE, REPLACED = "done", "replaced"
SCORE = "score"
"""Kind of the step that scores what a run wrote."""
REPEATED = ("hypotheses", SCORE, "facts")
"""Kinds of steps of seconds, done again where only their code is another."""
LARGE = ("train", "average", "analyses")
"""Kinds whose outputs are checkpoints or figures: that they exist is enough."""
README = "README.txt"
README_TEXT = """\
The tokens and trees that the models of these rows read: {rows}

Sentences with their trees:  treesyntax inspect FOLDER
From which files, and how:   binarize.json (treesyntax binarize --help)
"""
NO_CONTENT = ".json"
"""Records of how data was made hold paths and versions, which do not make other data."""


def marker_of(folder: Path, step: str) -> Path:
    """The file that says that a step is done."""
    return folder / DONE / f"{step}.json"


def trainings(folder: Path) -> list[Path]:
    """The notes of all trainings in a study's folder, those that were replaced too."""
    patterns = (f"{REPLACED}/*/runs/*", "runs/*")
    return [file for pattern in patterns for file in sorted(folder.glob(f"{pattern}/{BEGUN_FILE}"))]


class Ledger:
    """The steps of a plan in a folder: which are done, by what code, and what they may take over.

    Args:
        plan: the steps.
        folder: the study's folder.
        recorded: digests of the files and folders from outside, as they were when the study began.

    Attributes:
        unwritten: what a session would write in place of records of older versions, by their files, see
            :func:`treesyntax.study.run.former_keys.look_at`.
    """

    def __init__(self, plan: Plan, folder: Path, recorded: Mapping[str, str]) -> None:
        look_again()
        self.plan, self.folder, self.recorded = plan, folder, recorded
        self.digests = Digests(folder)
        self.unwritten: dict[Path, dict[str, Any]] = {}
        self._started_with: dict[str, dict[str, str]] = {}
        self._before_order: dict[str, dict[str, Any]] = {}

    @cached_property
    def keys(self) -> Keys:
        """The keys of the steps; a study of which nothing is done is planned without them."""
        return Keys(self.plan, self.digests, self.recorded)

    def read(self, file: Path) -> dict[str, Any]:
        """The record in a file; {} if there is none."""
        return self.unwritten.get(file) or read_object(file)

    def marker(self, step: Step) -> dict[str, Any]:
        """What is noted of a step that was done with its present key; {} otherwise."""
        marker = self.read(marker_of(self.folder, step.name))
        return marker if marker and marker.get("key") == self.keys.of[step.name] else {}

    def made_by(self, step: Step) -> dict[str, str]:
        """The code that made what a step left; {} where that is gone, or is made again with other code anyway."""
        marker = {} if step.kind in REPEATED else self.marker(step)
        there = all((self.folder / output).exists() for output in step.outputs)
        return dict(marker.get("code", {})) if there else {}

    def code(self, step: Step) -> dict[str, str]:
        """The present code of a step."""
        return code_of(step.kind, self.plan.words_of(step), self.plan.recipe.own_files)

    def is_done(self, step: Step) -> bool:
        """Whether the very same step ended well before and its outputs are still there.

        Raises:
            OptionError: if prepared data was changed since.
        """
        marker = self.marker(step)
        if not marker or not all((self.folder / output).exists() for output in step.outputs):
            return False
        if step.kind in REPEATED and marker.get("code") != self.code(step):
            return False
        self._check_prepared(step)
        return self._is_intact(self.folder, self._lasting_outputs(step))

    def _lasting_outputs(self, step: Step) -> dict[str, str]:
        """The outputs of a step without those that a later prepare command wrote once more."""
        outputs = dict(self.marker(step).get("outputs", {}))
        prepare = self.plan.prepare if step.kind == PREPARE else []
        for later in prepare[prepare.index(step) + 1 :] if prepare else ():
            for name in self.marker(later).get("outputs", {}):
                outputs.pop(name, None)
        return outputs

    def _is_intact(self, folder: Path, outputs: Mapping[str, str]) -> bool:
        return changed_file(folder, outputs, self.digests.of) is None

    def check_inputs(self, step: Step, begins: bool = False) -> None:
        """Stop if a file or folder that a step reads is not as it was when it was first used.

        Args:
            step: the step.
            begins: whether this is the beginning of a session. Files from outside may be gone, since the step need not
                be done again; those that only scoring reads may have changed, since scores are then made anew.
        """
        may_change = self._of_scores_alone if begins else set()
        for name in self.keys.inputs[step.name]:
            label, digest = self.keys.labels.get(name, step.name), self.recorded.get(name)
            if name in may_change or (begins and not os.path.exists(name)):
                continue
            if digest is not None:
                began, remedy = "this study began", "restore it, or choose another --out"
                self.digests.check(Path(name), digest, label, began, remedy)
        for read in self.keys.chain(step.name):
            if read.name in self.keys.reads[step.name] and step.kind != PREPARE:  # which may write
                self._check_prepared(read)

    @cached_property
    def _of_scores_alone(self) -> set[str]:
        """The files from outside that no step but a score reads."""
        names: dict[bool, set[str]] = {True: set(), False: set()}
        for step in self.plan.steps:
            names[step.kind == SCORE].update(self.keys.inputs[step.name])
        return names[True] - names[False]

    def _check_prepared(self, step: Step) -> None:
        for name, digest in self._lasting_outputs(step).items() if step.kind in PREPARED else ():
            if (self.folder / name).is_file():
                label = self.keys.labels.get(name.replace("data", "{data}", 1), "prepared data")
                made, remedy = f"{step.name} made it", "delete it to have it made again"
                self.digests.check(self.folder / name, digest, label, made, remedy)

    def inputs(self) -> dict[str, dict[str, Any]]:
        """Size and sha256 of all files and folders from outside that are there, by name."""
        names = dict.fromkeys(name for names in self.keys.inputs.values() for name in names)
        return {
            name: {"size": size_of(Path(name)), "sha256": self.digests.of(name)}
            for name in names
            if os.path.exists(name)
        }

    def note_start(self, step: Step, of_job: bool = False) -> None:
        """Note the code with which a step starts, since by its end somebody may have edited it.

        Of a training it is noted on the disk what is trained, so that no other one goes on from its checkpoints.

        Args:
            step: the step.
            of_job: whether it was ordered before and its job begins now, which imports the code as it is now.
        """
        look_again()
        self._started_with[step.name] = self.code(step)
        if (run := self.plan.run_of_training.get(step.name)) is None:
            return
        waited = of_job and run.name in self._before_order  # else a requeue, which goes on
        before = self._before_order.pop(run.name) if waited else self.begun(run)
        self._begin(run, before)
        if not of_job:
            self._before_order[run.name] = before

    def _begin(self, run: Run, before: Mapping[str, Any]) -> None:
        file = self.folder / run.folder / BEGUN_FILE
        step = self.plan.steps_of(run)[0]
        code, kept = self._started_with[step.name], checkpoints_kept(step)
        origin = {**versions(), **trainer_versions(code), "commit": commit()}
        noted = {
            "key": self.keys.of[step.name],
            **note_of(self.keys, step),
            "extended": before.get("extended", []),
            "kept": min(before.get("kept", kept), kept),
            "data": self.keys.data(run.method),
            "code": merged([before.get("code", {}), code]),
            "versions": merged([before.get("versions", {}), origin]),
        }
        write_json(file, noted)

    def begun(self, run: Run) -> dict[str, Any]:
        """What is noted of the run's training, wherever in the folder it lies; {} if there is none."""
        key = self.keys.of[run.step("train")]
        note = self.read(self.folder / run.folder / BEGUN_FILE)
        return note if note.get("key") == key else self._elsewhere.get(key, {})

    @cached_property
    def _elsewhere(self) -> dict[str, dict[str, Any]]:
        notes = map(self.read, trainings(self.folder))
        return {str(note.get("key")): note for note in notes}

    def forget(self, step: Step) -> None:
        """Remove the markers of a step that starts and of all that uses what it makes.

        Those of prepared data stay: data that is made anew must have their digests, see `mark`.
        """
        for name in () if step.kind in PREPARED else self.keys.followers[step.name]:
            marker_of(self.folder, name).unlink(missing_ok=True)

    def mark(self, step: Step, seconds: float) -> None:
        """Note that a step ended well.

        Raises:
            OptionError: if it made prepared data anew, but other data than those that were used.
        """
        old, run = self.marker(step), self.plan.run_of_training.get(step.name)
        outputs = self._outputs(step)
        noted = {
            "key": self.keys.of[step.name],
            "seconds": round(seconds, 2),
            "code": self._code_of_done(step) if run is None else self.begun(run).get("code", {}),
            "outputs": outputs,
        }
        for name, digest in old.get("outputs", {}).items() if step.kind in PREPARED else ():
            if not name.endswith(NO_CONTENT) and outputs.get(name, digest) != digest:
                raise OptionError(
                    f"{step.name} made another {self.folder / name} than the one that this study "
                    "was made from; restore that, or choose another --out"
                )
        write_json(marker_of(self.folder, step.name), noted, None)
        self._explain(step)

    def _code_of_done(self, step: Step) -> dict[str, str]:
        """The code that a step started with; the present code of one that an earlier session started."""
        return self._started_with.get(step.name) or self.code(step)

    def _explain(self, step: Step) -> None:
        """Write into a folder of prepared data which rows read it."""
        if step.kind == BINARIZE and (self.folder / step.outputs[0]).is_dir():
            rows = ", ".join(self.plan.rows_of_data.get(step.name, []))
            write_text(self.folder / step.outputs[0] / README, README_TEXT.format(rows=rows))

    def _outputs(self, step: Step) -> dict[str, str]:
        """The digests of the files that a step wrote, by their names inside the study."""
        if step.kind in LARGE:
            return {}
        names = ["data"] if step.kind == PREPARE else step.outputs
        other_digests: dict[str, str] = {}
        for other in self.plan.prepare if step.kind == PREPARE else ():
            if other is not step:
                other_digests |= self.marker(other).get("outputs", {})
        files = [
            file
            for name in names
            for file in ([f"{name}/{path}" for path in files_in(self.folder / name)]
                         if (self.folder / name).is_dir() else [name])
            if (self.folder / file).is_file() and Path(file).name != README
        ]  # fmt: skip
        digests = {file: self.digests.of(self.folder / file) for file in files}
        return {
            file: digest for file, digest in digests.items() if other_digests.get(file) != digest
        }

    def take_over(self, step: Step) -> Path | None:
        """Link prepared data with the key of a step from elsewhere; returns where it was found.

        See `separate` for the commands that would write through these links.
        """
        for folder, marker in self._prepared.get(self.keys.of[step.name], []):
            outputs = marker["outputs"]
            same = marker.get("code") == self.code(step)
            if not (same or self.folder in (folder, *folder.parents)):
                continue  # other code may have made other data
            if not outputs or not self._is_intact(folder, outputs):
                continue
            if any(_links_into(folder, folder / name) for name in outputs):
                continue
            if step.kind == BINARIZE:
                with atomic_folder(self.folder / step.outputs[0]) as staged:
                    for name in outputs:
                        _link(folder / name, staged.joinpath(*Path(name).parts[2:]))
            for name in outputs if step.kind == PREPARE else ():
                if not (self.folder / name).exists() or folder != self.folder:
                    with atomic_file(self.folder / name) as file:
                        _link(folder / name, file)
            names = outputs if step.kind == PREPARE else self._outputs(step)
            noted = {
                **marker,
                "outputs": {name: self.digests.of(self.folder / name) for name in names},
            }
            write_json(marker_of(self.folder, step.name), {**noted, "taken": str(folder)}, None)
            self._explain(step)
            return folder
        return None

    def separate(self, step: Step) -> None:
        """Copy the data that other studies share, before a recipe's command that may write into a file of it.

        Commands of ours write new files in place of old ones.
        """
        is_ours = step.command[0] == "treesyntax"
        for parent, _, names in os.walk(self.folder / "data") if step.kind == PREPARE else ():
            for file in () if is_ours else (Path(parent, name) for name in names):
                if file.lstat().st_nlink > 1 and not file.is_symlink():
                    with atomic_file(file) as staged:
                        shutil.copy2(file, staged)

    @cached_property
    def _prepared(self) -> dict[str, list[tuple[Path, dict[str, Any]]]]:
        """The markers of prepared data by key, in this study and in others near it."""
        markers: dict[str, list[tuple[Path, dict[str, Any]]]] = {}
        for study in (self.folder, *studies_near(self.folder)):
            for folder in (study, *sorted(study.glob(f"{REPLACED}/*"))):
                for file in prepared_markers(folder):
                    marker = read_object(file)
                    if isinstance(marker.get("outputs"), dict):
                        markers.setdefault(str(marker.get("key")), []).append((folder, marker))
        return markers

    def run_code(self, run: Run) -> dict[str, str]:
        """The code of all steps of a run that can change its numbers: as it was, or as it will be."""
        codes = [self.begun(run).get("code", {})]
        train = run.step("train")
        for step in self.keys.chain(self.plan.outcome(run, "score")):
            made_by = self.made_by(step)
            if step.name == train and codes[0] and (made_by or not self._half_trained(run)):
                continue
            codes.append(made_by or self._code_of_done(step))
        return merged(codes)

    def _half_trained(self, run: Run) -> bool:
        """Whether a run that has not ended will go on in this folder, with the present code."""
        note = self.read(self.folder / run.folder / BEGUN_FILE)
        return note.get("key") == self.keys.of[run.step("train")]


def check_read(plan: Plan, folder: Path, identity: Identity) -> None:
    """Make sure that what a report reads is what the runs were trained and scored with.

    Files that are gone are passed over: a report may be made on another machine.

    Raises:
        OptionError: with the name of a data file or of an output that has changed.
    """
    digests = Digests(folder)

    def check(path: Path, digest: str, label: str, since: str, remedy: str) -> None:
        if path.exists():
            digests.check(path, digest, label, since, remedy)

    names = {name: key for method in plan.recipe.methods for key, name in data_files(method)}
    for name, key in names.items():
        if name in identity.inputs:
            check(Path(name), identity.digests[name], key, "this study began", "restore it")
    for name in {method.categories for method in plan.recipe.methods} & identity.inputs.keys():
        since = "lines were scored by it"
        check(Path(name), identity.digests[name], "categories", since, "run the study again")
    outputs: dict[str, str] = {}
    for step in plan.steps:  # of a file that several commands wrote the last digest counts
        if step.kind in (PREPARE, "hypotheses"):
            outputs |= read_object(marker_of(folder, step.name)).get("outputs", {})
    for name, digest in outputs.items():
        label = names.get(name.replace("data", "{data}", 1), "an output")
        check(folder / name, digest, label, "it was made", "run the study again")


def prepared_markers(folder: Path) -> Iterator[Path]:
    """The markers of prepared data in a folder laid out like a study."""
    yield from sorted((folder / DONE).glob(f"{PREPARE}-*.json"))
    yield from sorted((folder / DONE / BINARIZE).glob("*.json"))


def _links_into(folder: Path, file: Path) -> bool:
    """Whether a file is a link that leads into a folder from wherever it lies: what is written to it would be there."""
    return (
        file.is_symlink()
        and os.path.isabs(os.readlink(file))
        and Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))
    )


def _link(source: Path, target: Path) -> None:
    """The same file under another name, or a copy on another disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)

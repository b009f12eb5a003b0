"""The runs and data of a study whose recipe was edited: moved aside, never lost, and found again.

What is in the way of the recipe lies in ``replaced/NAME-KEY``, laid out like a study. A recipe that
asks for it once more, be it under another name, gets it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from treesyntax.errors import OptionError
from treesyntax.files import read_object
from treesyntax.study.recipe.reading import IMPORT
from treesyntax.study.recipe.rows import data_files
from treesyntax.study.run.code import PACKAGE, mixed_parts, unknown_parts
from treesyntax.study.run.extension import Extensions
from treesyntax.study.run.keys import checkpoints_kept
from treesyntax.study.run.ledger import (
    DONE,
    REPLACED,
    Ledger,
    marker_of,
    prepared_markers,
    trainings,
)
from treesyntax.study.run.steps import BEGUN_FILE, BINARIZE, PREPARED, Step

SHORT = 8
SHOWN = 3
"""How many steps or runs are named."""
USERS = ": own/"
"""Stands in a part of code that is a file of the user's own."""
UNKNOWN = "unknown"
"""Stands for the key of a run that is not known."""


def check_goes_on(ledger: Ledger, mix_versions: bool = False) -> None:
    """Refuse a study whose inputs or code are no longer those that it began with.

    Args:
        ledger: of the whole study.
        mix_versions: allow other code.

    Raises:
        OptionError: with the file that changed, and what to do.
    """
    for step in ledger.plan.steps:
        ledger.check_inputs(step, begins=True)
    check_data(ledger)
    if not mix_versions:
        check_code(ledger)


def check_data(ledger: Ledger) -> None:
    """Refuse a folder with runs of the same rows that were trained on other data."""
    for run in ledger.plan.runs:
        begun = ledger.read(ledger.folder / run.folder / BEGUN_FILE).get("data", {})
        for key, name in data_files(run.method):
            if begun.get(key, now := ledger.keys.data(run.method)[key]) != now:
                raise OptionError(
                    f"{ledger.folder}: {run.name} was trained with another {key} than {name} is "
                    "now; choose another --out"
                )


def check_code(ledger: Ledger) -> None:
    """Refuse to make runs that cannot be compared with those that are done."""
    codes = {run.name: ledger.run_code(run) for run in ledger.plan.runs}
    labels, unknown = mixed_parts(codes.values()), unknown_parts(codes.values())
    if not labels and not unknown:
        return
    kept = [run for run in ledger.plan.runs if ledger.begun(run)]
    commits = {ledger.begun(run)["versions"]["commit"] or "unknown" for run in kept}
    origin = f"commit {', '.join(sorted(commits)) or 'of its data'}"
    if labels:
        cause = f"its runs would be of different code ({', '.join(labels)})"
    else:
        cause = (
            f"an older version recorded the code of {len(kept)} of its runs (made with {origin}) without all "
            f"that counts, so nobody knows if it is the present code ({', '.join(unknown)})"
        )
    raise OptionError(
        f"{ledger.folder}: {cause}, so a difference between rows may come from the code: "
        f"{_way_back(ledger, labels, origin)}, choose another --out, or add --mix-versions"
    )


def _way_back(ledger: Ledger, labels: list[str], origin: str) -> str:
    """What to do to have the former code: a commit of ours does not bring back files of the user's own."""
    packages = sorted({label.partition(PACKAGE)[2] for label in labels if PACKAGE in label})
    names = {
        label.partition(USERS)[2] for label in labels if USERS in label and PACKAGE not in label
    }
    files = {file.name: str(file) for file in ledger.plan.recipe.own_files}
    changed = sorted(name for name in names if "." in name)
    steps = [f"restore {files.get(name, name)}" for name in changed]
    if names and not changed:  # other files are there in their place
        steps = [f"name the former files under {IMPORT} again ({', '.join(sorted(names))})"]
    if packages:
        steps.append(f"go back to the former {', '.join(packages)}")
    if not labels or any(USERS not in label for label in labels):
        steps.append(f"go back to {origin}")
    return " and ".join(steps)


def names_by_other_code(
    ledger: Ledger, kept: Iterable[tuple[str, Step, Mapping[str, str]]]
) -> dict[str, list[str]]:
    """What other code than the present made, by how that code differs.

    Args:
        ledger: of the study.
        kept: the name of what is kept, the step that made it, and the code that the step had; {} where none is known.
    """
    labels_by_name: dict[str, list[str]] = {}
    for name, step, made_by in kept:
        labels = mixed_parts([made_by, ledger.code(step)]) if made_by else []
        labels_by_name.setdefault(name, []).extend(labels)
    names_by_code: dict[str, list[str]] = {}
    for name, labels in labels_by_name.items():
        if labels:
            names_by_code.setdefault(", ".join(labels), []).append(name)
    return names_by_code


def lines_of_other_code(ledger: Ledger) -> list[str]:
    """Say what is kept of other code than the present: who edited a method would take its scores for those of the edit.

    Args:
        ledger: of a study whose runs lie where the plan has them, see `settle`.
    """
    names = {
        step.name: step.name if step.kind in PREPARED else step.name.partition("/")[0]
        for step in ledger.plan.steps
    }
    kept = ((names[step.name], step, ledger.made_by(step)) for step in ledger.plan.steps)
    groups = names_by_other_code(ledger, kept)
    runs, lines = {run.name for run in ledger.plan.runs}, []
    for code, kept_names in groups.items():
        remedy = "choose another --out"
        if runs.issuperset(kept_names):
            others = " and so on" if len(kept_names) > 1 else ""
            remedy = f"delete {ledger.folder / 'runs' / kept_names[0]}{others}, or {remedy}"
        more = f" and {len(kept_names) - SHOWN} more" if len(kept_names) > SHOWN else ""
        lines.append(
            f"{', '.join(kept_names[:SHOWN])}{more}: made by other code than the present ({code}) and kept, so tables show "
            f"what that code gave; to have it made anew, {remedy}"
        )
    return lines


def settle(ledger: Ledger) -> Iterator[str]:
    """Move aside what is in the way of the plan, then bring back the runs that it wants.

    Yields a line for each.
    """
    folder, plan = ledger.folder, ledger.plan
    trains = {run.name: plan.steps_of(run)[0] for run in plan.runs}
    wanted = {name: ledger.keys.of[step.name] for name, step in trains.items()}
    kept = {name: checkpoints_kept(step) for name, step in trains.items()}
    elsewhere = {
        read_object(file).get("key") for file in trainings(folder) if file.parents[2] != folder
    }
    extensions, runs = Extensions(plan, ledger.keys, folder), {run.name: run for run in plan.runs}
    for name, key in wanted.items():
        begun = read_object(folder / "runs" / name / BEGUN_FILE)
        if not begun and any((folder / runs[name].checkpoints).glob("*")):
            aside = _aside(folder, name, UNKNOWN)
            _move(folder, name, aside, name)
            yield (
                f"{name}: nothing says with what settings it was trained ({BEGUN_FILE} is missing or damaged), so it "
                f"is trained anew; the former run is in {aside}"
            )
        elif begun and (begun.get("key") != key or begun.get("kept", 0) < kept[name]):
            aside = _aside(folder, name, str(begun.get("key")))
            few = f"it kept {begun.get('kept', 0)} checkpoints of the {kept[name]} asked for"
            cause = few if begun.get("kept", 0) < kept[name] else ""
            former = extensions.grown(runs[name], begun) if begun.get("key") != key else None
            former = None if key in elsewhere else former  # the longer one was trained before
            if former is not None and not cause:
                if not (why := extensions.refusal(runs[name], former)):
                    yield extensions.extend(runs[name], former, begun, aside)
                    continue
                cause = f"it cannot be trained on, since {why}; it is trained anew"
            elif begun.get("key") != key:
                cause = "its training command or data have changed"
            _move(folder, name, aside, name)
            yield f"{name}: {cause}; the former run is in {aside}"
    yield from _stale_data(ledger)
    free = {}
    for file in trainings(folder):
        former_folder, name, begun = file.parents[2], file.parent.name, read_object(file)
        if former_folder != folder or name not in wanted:
            free[str(begun.get("key"))] = former_folder, name, begun.get("kept", 0)
    for name, key in wanted.items():
        if (
            free.get(key, (folder, name, 0))[2] >= kept[name]
            and not (folder / "runs" / name).exists()
        ):
            former_folder, old, _ = free.pop(key)
            _move(former_folder, old, folder, name)
            yield f"{name}: was trained before and is taken from {former_folder / 'runs' / old}"


def _stale_data(ledger: Ledger) -> Iterator[str]:
    """Move aside prepared data that the plan does not want where it makes others."""
    folder = ledger.folder
    keys = set(ledger.keys.of.values())
    wanted = {
        name: ledger.keys.of[step.name]
        for step in ledger.plan.steps
        if step.kind == BINARIZE
        for name in (step.name, *step.outputs)
    }
    for file in prepared_markers(folder):
        marker, step = read_object(file), str(file.relative_to(folder / DONE))[: -len(".json")]
        whole = step.startswith(BINARIZE)
        outputs, key = marker.get("outputs"), marker.get("key")
        if not isinstance(outputs, dict):
            continue
        folders = {str(Path(*Path(name).parts[:2])) for name in outputs}  # binarized/NAME
        others = any(wanted.get(name, key) != key for name in (step, *folders))
        if not others if whole else key in keys:
            continue
        aside = _aside(folder, step.replace("/", "-"), str(key))
        for name in folders if whole else outputs:
            if (folder / name).exists():
                _rename(folder / name, aside / name)
        _rename(file, marker_of(aside, step))
        yield f"{step}: its command or data have changed; what it made is in {aside}"


def _aside(folder: Path, name: str, key: str) -> Path:
    return folder / REPLACED / f"{name}-{key[:SHORT]}"


def _move(source: Path, name: str, target: Path, new: str) -> None:
    """Move a run with its markers and logs; the run comes last, for a kill in between."""
    for subfolder in (DONE, "logs", "runs"):
        if (source / subfolder / name).exists():
            _rename(source / subfolder / name, target / subfolder / new)


def _rename(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():  # of a move that was interrupted
        target.rename(target.with_name(f"{target.name}.{target.stat().st_mtime_ns}"))
    source.rename(target)

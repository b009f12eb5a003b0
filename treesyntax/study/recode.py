"""Make records of code by the first rule comparable with those of today.

Until November 2026 a study recorded digests of listed folders, which left out kernels, training and data sets.
Give a checkout of the commit that made the study: where its files have the recorded digests, the records get
those of today's rule over that checkout. Everything else stays as it is, and is counted.

Example: python -m treesyntax.study.recode runs/slog --source ../treesyntax-at-that-commit
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError, TreeSyntaxError
from treesyntax.files import read_object, write_json
from treesyntax.study.recipe.identity import RECIPE_FILE, read_identity
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.results.results import RESULTS_FILE, read_results, results_file, write_results
from treesyntax.study.run.code import PACKAGES, RULE, code_of, of_first_rule
from treesyntax.study.run.folder import held_alone
from treesyntax.study.run.ledger import BEGUN_FILE, DONE, Ledger, prepared_markers, trainings
from treesyntax.study.run.plan import make_plan
from treesyntax.study.run.steps import PREPARED, Step

MOST_STUDIES = 100
"""Studies through which data may have been handed on."""


class Recoder:
    """Computes today's records from those of the first rule and the source that they are of.

    Args:
        ledger: of the study.
        source: a checkout of this repository.
    """

    def __init__(self, ledger: Ledger, source: Path) -> None:
        self.ledger, self.source = ledger, source
        self.plan = ledger.plan
        self.commit = _commit(source)
        self.steps = {step.name: step for step in self.plan.steps}
        self.files = {file.name: file for file in self.plan.recipe.own_files}
        self.first_digest = cache(self._first_digest)
        self.trained_all = _commits(ledger.folder) == {self.commit}

    def recoded(self, code: Mapping[str, str], steps: Sequence[Step]) -> dict[str, str]:
        """Return the code of some steps with today's records of the kinds that the source made."""
        new = dict(code)
        for kind in {part.partition(": ")[0] for part in code}:
            if f"{kind}: {RULE}" in code or not self.made(kind, code):
                continue
            own = [step for step in steps if step.kind == kind]
            if kind in PREPARED and not all(self.prepared_here(step) for step in own):
                continue
            versions = {f"{kind}: {name}" for name in PACKAGES.get(kind, ())}
            new = {
                part: value
                for part, value in new.items()
                if part in versions or not part.startswith(f"{kind}: ")
            }
            for step in own:
                found = code_of(
                    kind, self.plan.words_of(step), self.plan.recipe.own_files, self.source
                )
                new |= {part: value for part, value in found.items() if part not in versions}
        return new

    def prepared_here(self, step: Step) -> bool:
        """Return whether data are surely of the source's commit, which is noted of trainings alone.

        The first rule did not watch data sets, so data that were taken from a study beside this one may be of
        other code: they are followed to the study that made them.
        """
        folder, key = self.ledger.folder, self.ledger.keys.of[step.name]
        for _ in range(MOST_STUDIES):
            markers = [read_object(file) for file in prepared_markers(folder)]
            marker = next((one for one in markers if one.get("key") == key), None)
            if marker is None:
                return False
            if not isinstance(marker.get("taken"), str):
                return _commits(folder) == {self.commit}
            folder = Path(marker["taken"])
        return False

    def made(self, kind: str, code: Mapping[str, str]) -> bool:
        """Return whether the digests of a kind of step are those of the source."""
        parts = [part.partition(": ")[2] for part in code if part.startswith(f"{kind}: ")]
        files = [part for part in parts if part not in PACKAGES.get(kind, ())]
        return bool(files) and all(
            code[f"{kind}: {part}"] == self.first_digest(part) for part in files
        )

    def _first_digest(self, part: str) -> str:
        """The digest of a part by the first rule."""
        if part.startswith("own/"):
            file = self.files.get(part.removeprefix("own/"))
            return sha256(file.read_bytes()).hexdigest()[:12] if file and file.is_file() else ""
        digest = sha256()
        for file in sorted((self.source / "treesyntax").glob(part)):
            if file.suffix in (".py", ".js"):
                digest.update(f"{file.name} {sha256(file.read_bytes()).hexdigest()}\n".encode())
        return digest.hexdigest()[:12]


def recode(folder: Path, source: Path) -> Counter[str]:
    """Rewrite the records of a study that a checkout made.

    Returns:
        How many records are now of today's rule, and how many still are of the first.

    Raises:
        OptionError: if the source is no checkout without changes.
    """
    identity = read_identity(folder)
    ledger = Ledger(make_plan(read_recipe(folder / RECIPE_FILE)), folder, identity.digests)
    recoder = Recoder(ledger, source)
    count: Counter[str] = Counter()

    def improved(record: Mapping[str, Any], commit: str, steps: Sequence[Step]) -> dict[str, str]:
        code = dict(record.get("code", {}))
        new = recoder.recoded(code, steps) if commit == recoder.commit else code
        if of_first_rule(code):
            count["left" if of_first_rule(new) else "recoded"] += 1
        return new

    results = []
    runs = {run.name: run for run in recoder.plan.runs}
    for result in read_results(results_file(folder)):
        run = runs.get(run_name(result.method, result.seed))
        steps = [] if run is None else ledger.keys.chain(recoder.plan.outcome(run, "score"))
        code = improved({"code": result.code}, result.commit, steps)
        results.append(replace(result, code=code))
    write_results(folder / RESULTS_FILE, results)
    for run in recoder.plan.runs:
        file = folder / run.folder / BEGUN_FILE
        if begun := read_object(file):
            commit = str(begun.get("versions", {}).get("commit", ""))
            steps = recoder.plan.steps_of(run)[:1]
            write_json(file, {**begun, "code": improved(begun, commit, steps)})
    for name, step in recoder.steps.items():
        file = folder / DONE / f"{name}.json"
        if (marker := read_object(file)).get("code"):
            commit = recoder.commit if recoder.trained_all else ""  # a marker has none of its own
            write_json(file, {**marker, "code": improved(marker, commit, [step])}, None)
    return count


def _commits(folder: Path) -> set[object]:
    """The commits of all trainings in a study's folder, those that were replaced too."""
    notes = map(read_object, trainings(folder))
    return {note.get("versions", {}).get("commit") for note in notes if note}


def _commit(source: Path) -> str:
    """The commit of a checkout without changes."""
    words = ["git", "-C", str(source)]
    try:
        status, head = (
            subprocess.run(
                [*words, *rest], capture_output=True, text=True, check=True
            ).stdout.strip()
            for rest in (["status", "--porcelain", "--untracked-files=no"], ["rev-parse", "HEAD"])
        )
    except (OSError, subprocess.CalledProcessError):
        raise OptionError(
            f"--source {source} is no git checkout; clone the repository there"
        ) from None
    if status or not (source / "treesyntax" / "__init__.py").is_file():
        raise OptionError(
            f"--source {source} has changes, or is not treesyntax; give a clean checkout"
        )
    return head


def main(argv: Sequence[str] | None = None) -> int:
    """Recode studies; a fault is one line and status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("studies", nargs="+", type=Path, metavar="FOLDER", help="folder of a study")
    parser.add_argument(
        "--source", type=Path, required=True, help="checkout of the commit that made them"
    )
    args = parser.parse_args(argv)
    try:
        for folder in args.studies:
            read_identity(folder)  # before a lock is made in a folder that is no study
            with held_alone(folder):
                count = recode(folder, args.source)
            print(
                f"{folder}: {count['recoded']} records are of today's rule, {count['left']} still of the first"
            )
    except TreeSyntaxError as error:
        print(f"recode: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

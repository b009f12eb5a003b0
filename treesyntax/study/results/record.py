"""Where a result comes from: versions, commit, device."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from treesyntax import __version__
from treesyntax.errors import InputError
from treesyntax.files import parse_json
from treesyntax.study.recipe.recipe import Method, Side
from treesyntax.study.results import record as provenance
from treesyntax.study.results.results import Result
from treesyntax.study.run.identity import Identity, file_facts
from treesyntax.study.run.logs import read_log
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import OUT, Run, inside

PACKAGES = {"torch": "torch", "fairseq": "ve-fairseq", "sacrebleu": "sacrebleu"}


@cache
def versions() -> dict[str, str]:
    """Versions of treesyntax, Python and the packages that numbers depend on."""
    found = {"treesyntax": __version__, "python": platform.python_version()}
    for name, package in PACKAGES.items():
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@cache
def commit() -> str:
    """The git commit of this package, with "+" if files differ from it; "" outside a repository."""
    package = Path(__file__).parents[2]
    if not _git(package, "ls-files", "--error-unmatch", "__init__.py"):
        return ""  # installed into a folder that happens to lie in some other repository
    changed = _git(package, "status", "--porcelain", "--untracked-files=no")
    return _git(package, "rev-parse", "HEAD") + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


@cache
def processor() -> str:
    """Name of the CPU."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


class Recorder:
    """Makes the results of runs in one study."""

    def __init__(self, plan: Plan, identity: Identity, folder: Path) -> None:
        self.plan, self.identity, self.folder = plan, identity, folder
        self._data_sha256: dict[tuple[Side, Side], str] = {}

    def results(self, run: Run) -> list[Result]:
        """One result a metric of a run whose steps are done.

        Raises:
            InputError: if one of the run's files is not what it should be.
        """
        try:
            return [self._result(run, score) for score in self._read(run, "scores.json")]
        except OSError as error:
            raise InputError(error.filename, None, f"cannot be read ({error.strerror})") from None
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                self.folder / run.folder, None, f"scores.json or facts.json is odd ({error!r})"
            ) from None

    def _read(self, run: Run, name: str) -> Any:
        return parse_json((self.folder / run.folder / name).read_text(encoding="utf-8"))

    def _result(self, run: Run, score: dict[str, Any]) -> Result:
        facts = self._read(run, "facts.json")
        log = read_log(self.folder / f"logs/{run.step('train')}.log")
        return Result(
            recipe=self.plan.recipe.name,
            hash=self.identity.hash,
            method=run.method.name,
            arch=run.method.arch,
            injection=str(facts["injection"]),
            seed=run.seed,
            metric=str(score["metric"]),
            value=float(score["value"]),
            signature=str(score["signature"]),
            n=int(score["n"]),
            parameters=int(facts["parameters"]),
            tokens_per_second=log.tokens_per_second,
            train_seconds=round(float(facts["train_seconds"]), 1),
            valid_loss=float(facts["valid_loss"]),
            updates=int(facts["updates"]),
            best_update=int(facts["best_update"]),
            versions=provenance.versions(),
            commit=provenance.commit(),
            device=log.device or provenance.processor(),
            date=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            data_sha256=self.data_sha256(run.method),
            commands=[shlex.join(step.command) for step in self.plan.steps_of(run)],
            peak_memory=None if log.peak_memory is None else round(log.peak_memory, 1),
        )

    def data_sha256(self, method: Method) -> str:
        """One hash over the sizes and hashes of the six data files."""
        sides = (method.source, method.target)
        if sides not in self._data_sha256:
            names = [
                inside(getattr(side, split)).replace(OUT, str(self.folder))
                for side in sides
                for split in ("train", "valid", "test")
            ]
            text = json.dumps([file_facts(Path(name)) for name in names])
            self._data_sha256[sides] = hashlib.sha256(text.encode()).hexdigest()
        return self._data_sha256[sides]

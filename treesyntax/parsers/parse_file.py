"""A text file to a tree file, shard after shard: what an interrupted run has saved is used again."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from treesyntax.errors import InputError
from treesyntax.files import is_special, output_file, read_object, sha256_of, write_json
from treesyntax.jobs import cores
from treesyntax.jobs.cluster import Cluster
from treesyntax.jobs.terminal import console_of
from treesyntax.made.reuse import differences
from treesyntax.parsers import load_parser
from treesyntax.parsers.cases import Cases, check_strict, read_cases, total
from treesyntax.parsers.cluster_shards import parse_in_jobs
from treesyntax.parsers.parse_task import ParseTask, remarks_of_text, task_identity
from treesyntax.parsers.progress_bar import Advance, shown
from treesyntax.parsers.record_text import OFFSETS
from treesyntax.parsers.shards import TREES, Parts, shards_of
from treesyntax.parsers.workers import parse_all
from treesyntax.remarks import Remarks
from treesyntax.trees.formats.offsets import offsets_path

JOBS = 8
"""On a cluster, by default."""


DIGEST = "sha256"
"""In the report, of the tree file; those of older versions lack it."""
OFFSETS_DIGEST = "offsets_sha256"
"""The same of the file of offsets."""
WORDS = {"input": "text"}
"""How a part of the identity is called in messages, where that is another name."""


class Execution(NamedTuple):
    """Where shards are parsed.

    Attributes:
        workers: processes, or jobs on a cluster; 0 for one a core, or `JOBS`.
        gpus: GPUs to use, one process each, instead of CPUs if not 0.
        cluster: one of ``treesyntax.jobs.cluster.KINDS``; None for this machine.
        parameters: of the cluster.
    """

    workers: int = 0
    gpus: int = 0
    cluster: str | None = None
    parameters: Mapping[str, Any] = {}


def report_of(output: Path) -> Path:
    """The report beside a tree file."""
    return output.with_name(f"{output.name}.report.json")


def parse_file(
    task: ParseTask, execution: Execution, strict: Sequence[str], overwrite: bool
) -> tuple[Cases, bool]:
    """Parse, or finish what an earlier run began; ``strict`` cases are errors.

    Returns:
        The cases of all lines, and whether the tree file was complete already.
    """
    if is_special(task.output):
        return _parse_through(task, execution, strict), False
    if task.output.suffix == ".gz":
        raise InputError(task.output, None, "would be plain text, not packed", "leave out .gz")
    if task.output.exists() and task.source.exists() and task.output.samefile(task.source):
        raise InputError(
            task.output, None, "is the text to parse", "name another file for the trees"
        )
    shards, identity = Parts(task), task_identity(task)
    report = read_object(report_of(task.output))
    known = read_cases(report)
    if task.output.is_dir():
        raise InputError(task.output, None, "is a folder", "name a file for the trees")
    there = task.output.exists()
    same = there and known is not None and report.get("identity") == identity
    changed = _changed(task.output, shards, report) if same else None
    if same and changed is None and known is not None:
        check_strict(task.source, known, strict)
        if shards.identity() == identity:  # others are of a parse that is to replace this one
            shards.remove()
        return known, True
    if there and not shards.begun() and not overwrite:
        raise InputError(
            changed or task.output,
            None,
            "was changed or deleted since it was written"
            if changed
            else f"already exists, made from other {_others(report, identity)}",
            "name another file or add --overwrite",
        )
    if task.config.download:
        # Once, before several processes would do it at the same time.
        load_parser(task.config)
        task = task._replace(config=task.config._replace(download=False))
        identity = task_identity(task)  # with the version of a model that was not there
    with shards.opened(identity, overwrite):
        remarks = remarks_of_text(task)
        cases = _parse_rest(task, shards, identity["lines"], execution, strict)
        if sha256_of(task.source) != identity["input"]:
            shards.remove()  # nobody knows of which text each of them is
            cause = "has changed while it was parsed"
            raise InputError(task.source, None, cause, "run the command again")
        _join(task, shards, identity, cases, remarks)
    return cases, False


def _changed(output: Path, shards: Parts, report: Mapping[str, Any]) -> Path | None:
    """The tree file or its offsets, if it is not what was written; older reports lack digests."""
    files = {output: report.get(DIGEST)}
    if OFFSETS in shards.suffixes:
        files[offsets_path(output)] = report.get(OFFSETS_DIGEST)
    for file, digest in files.items():
        if not file.is_file() or digest not in (None, sha256_of(file)):
            return file
    return None


def _others(report: Mapping[str, Any], identity: Mapping[str, Any]) -> str:
    """What differs from the parse of a report, in words."""
    before = report.get("identity")
    if not isinstance(before, dict):
        return "text, model or options"
    names = [WORDS.get(name, name) for name in differences(before, identity)]
    return ", ".join(names).replace("_", " ")


def _parse_through(task: ParseTask, execution: Execution, strict: Sequence[str]) -> Cases:
    """Parse into a pipe or a device, which get the trees alone, and nothing beside them."""
    with tempfile.TemporaryDirectory() as folder, output_file(task.output) as staged:
        tree_file = Path(folder) / "trees"
        cases, _ = parse_file(task._replace(output=tree_file), execution, strict, overwrite=True)
        shutil.move(tree_file, staged)
    return cases


def _parse_rest(
    task: ParseTask, shards: Parts, lines: int, execution: Execution, strict: Sequence[str]
) -> Cases:
    """Parse the shards that are not done; the cases of all shards."""
    count = -(-lines // task.shard_lines)
    left = []
    for number in range(count):
        if shards.is_done(number):
            check_strict(task.source, shards.cases(number), strict)
        else:
            left.append(number)
    done = min(lines, (count - len(left)) * task.shard_lines)
    with shown(lines, done, console_of(stderr=True)) as advance:
        for number in _saved(task, shards, left, execution, advance):
            check_strict(task.source, shards.cases(number), strict)
    return total(shards.cases(number) for number in range(count))


def _saved(
    task: ParseTask, shards: Parts, left: list[int], execution: Execution, advance: Advance
) -> Iterator[int]:
    """Parse and save shards; yields the number of each once it is saved."""
    if execution.cluster and left:
        cluster = Cluster(execution.cluster, shards.folder, execution.parameters)
        for number in parse_in_jobs(task, shards, left, cluster, execution.workers or JOBS):
            advance(shards.cases(number).lines)
            yield number
        return
    workers = min(execution.workers or cores(), max(len(left), 1))
    yield from parse_all(task, shards_of(task, shards), workers, execution.gpus, advance)


def _join(
    task: ParseTask, shards: Parts, identity: dict[str, Any], cases: Cases, remarks: Remarks
) -> None:
    """Write the files from the shards, the tree file last: where it exists, all others do."""
    Path(os.path.realpath(task.output)).unlink(missing_ok=True)  # a link stays
    count = -(-cases.lines // task.shard_lines)
    noted = {"remarks": remarks.to_json(), "identity": identity}
    noted[DIGEST] = shards.digest(count, TREES)
    if OFFSETS in shards.suffixes:
        noted[OFFSETS_DIGEST] = shards.digest(count, OFFSETS)
    write_json(report_of(task.output), {**cases.to_dict(), **noted})
    if OFFSETS in shards.suffixes:
        shards.join(count, OFFSETS, offsets_path(task.output))
    shards.join(count, TREES, task.output)
    shards.remove()

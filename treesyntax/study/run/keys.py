"""The keys of steps: a hash of all that determines what a step does.

That is its words; for each file or folder from outside the study that they name, its content instead
of its name; and for each path inside the study the keys of the steps that made it. Names of
rows, other rows, seeds and metrics are no part of it, so a study can grow. Code is no part either:
it is kept beside the key, see :mod:`treesyntax.study.run.code`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from glob import glob
from itertools import pairwise, zip_longest
from pathlib import Path

from treesyntax.data.binarize.options import file_flags
from treesyntax.files import sha256_of_value
from treesyntax.made.digests import Digests
from treesyntax.study.recipe.fairness import NOT_IN_KEYS
from treesyntax.study.recipe.rows import Method, data_files
from treesyntax.study.run.path_patterns import (
    DATA,
    INSIDE,
    PathPattern,
    meets,
    patterns_in,
    patterns_written,
)
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import COUNTED_BY, MODEL, OUT, PREPARE, Step, inside
from treesyntax.trees.formats.offsets import OFFSETS

PARSE = ("treesyntax", "parse")
GENERATE = (("treesyntax", "generate"), ("treesyntax", "data", "make"))
KEPT = "--keep-interval-updates"
"""How many of the last checkpoints a training leaves; see :func:`checkpoints_kept`."""
CAPS = ("--max-update", "--max-epoch", "--patience", "--stop-time-hours")
"""Flags that end a training and change nothing before its end, see :mod:`treesyntax.study.run.extension`."""
SETTINGS = ("--set", "--generate")
"""Flags of a finetuning whose values are ``NAME=VALUE``, which may be a file that transformers reads."""
START = "--finetune-from-model"
"""The only flag of fairseq for a file whose name does not end in path."""
_WRITTEN_TO = re.compile(r">+\s*[^\s;|&()]+")
_BETWEEN_NAMES = re.compile(r"[\s;|&<>()'\"`=,]+")
"""What may stand around the name of a file in the text of a command for a shell."""
_VARIABLE = re.compile(r"\$\w+")
"""In a loop over names, of which any may be meant."""
_LEFT_OUT = frozenset(f"--{flag}" for flag in NOT_IN_KEYS)
_NAMED = re.compile(r"\{out\}/(runs|binarized)/[^/]+")
"""Folders whose names come from those of rows."""


@cache
def writes(step: Step, inside: re.Pattern[str] = INSIDE) -> list[str]:
    """The paths inside the study that a step names and may write, as they stand.

    A prepare command declares none: it may write all that it names under ``{data}``, but the input
    of treesyntax parse; one that names nothing may write everything.
    """
    if step.kind != PREPARE:
        return [f"{OUT}/{output}" for output in step.outputs]
    return inside.findall(_text_of(step)) or [DATA]


def _text_of(step: Step) -> str:
    """The words of a prepare command without what it surely reads alone."""
    words = step.command
    if words[:2] == PARSE and len(words) > 3 and not words[2].startswith("-"):
        words = words[3:]
    return " ".join(words)


def _fresh(step: Step, inside: re.Pattern[str]) -> list[str]:
    """The paths that a step surely writes without reading them."""
    known = any(step.command[: len(words)] == words for words in (PARSE, *GENERATE))
    return writes(step, inside) if known else []


class Keys:
    """The keys of a plan's steps, and what each reads from outside.

    Args:
        plan: the steps.
        digests: of files.
        recorded: the digests of inputs when the study began, for those that are gone since.

    Attributes:
        of: the key by the name of the step.
        inputs: by the name of the step the files and folders outside the study that it reads.
        reads: by the name of the step the earlier steps that made what it reads inside the study.
        labels: the key in the recipe of each data file, by its name.
        roots: by the name of a training its key without `CAPS`: what a longer training has in common.
    """

    paths = INSIDE
    """Finds the paths inside the study in a word."""

    def __init__(self, plan: Plan, digests: Digests, recorded: Mapping[str, str]) -> None:
        self.plan, self.digests, self.recorded = plan, digests, recorded
        self.labels = {
            name: key for method in plan.recipe.methods for key, name in data_files(method)
        }
        self.of: dict[str, str] = {}
        self.inputs: dict[str, list[str]] = {}
        self.reads: dict[str, set[str]] = {}
        self.roots: dict[str, str] = {}
        self._steps = {step.name: step for step in plan.steps}
        self._writers = _Writers(plan.steps, self.paths)
        self._sources: dict[str, set[str]] = {}
        self._exists = cache(os.path.exists)  # files from outside stay what they are meanwhile
        self._before: dict[str, dict[str, None]] = {}
        for step in plan.steps:
            before = dict.fromkeys(step.needs)
            for need in step.needs:
                before |= self._before[need]
            self._before[step.name] = before
            named = dict.fromkeys(self._outside(step))
            unnamed = [
                name for name in dict.fromkeys(self.unnamed(step, named)) if name not in named
            ]
            self.inputs[step.name] = [*named, *unnamed]
            self.reads[step.name] = set()
            words = [
                [self._word(word, step, before, named) for word in group] for group in _groups(step)
            ]
            words += [[[self.digest(name) for name in unnamed]]] if unnamed else []
            self.of[step.name] = sha256_of_value(words)
            if step.name in plan.run_of_training:
                root = [group for group in words if group[:1] not in [[[cap]] for cap in CAPS]]
                self.roots[step.name] = sha256_of_value(root)
            if step.kind == PREPARE:
                self._sources[step.name] = {step.name}.union(
                    *(self._sources[name] for name in self.reads[step.name])
                )

    def chain(self, name: str) -> list[Step]:
        """A step and all that must be done before it."""
        return [self._steps[step_name] for step_name in (*self._before[name], name)]

    @cached_property
    def followers(self) -> dict[str, list[str]]:
        """By the name of a step the steps that use what it makes, last first, and the step itself."""
        followers: dict[str, list[str]] = {step.name: [step.name] for step in self.plan.steps}
        sources: dict[str, set[str]] = {}
        for step in self.plan.steps:
            read = self.reads[step.name]
            sources[step.name] = read.union(*(sources[source] for source in read))
            for source in sources[step.name]:
                followers[source].insert(0, step.name)
        return followers

    def data(self, method: Method) -> dict[str, str]:
        """What determines each of the six data files of a row, by the file's key in the recipe."""
        prepare = dict.fromkeys(step.name for step in self.plan.prepare)
        return {
            key: self.digest(name)
            if OUT not in (path := inside(name))
            else sha256_of_value(
                [name, *sorted(self.of[maker] for maker in self._makers(path, prepare))]
            )
            for key, name in data_files(method)
        }

    def _makers(self, path: str, before: Mapping[str, None]) -> list[str]:
        made = self._made(path, before)
        patterns = self.patterns(path)
        return [
            *made,
            *(name for pattern in patterns for name in self._also(pattern, made, before)),
        ]

    def digest(self, name: str) -> str:
        """Of an input; as recorded if it is gone."""
        return self.digests.of(name) if os.path.exists(name) else self.recorded[name]

    def _word(
        self, word: str, step: Step, before: Mapping[str, None], outside: Mapping[str, None]
    ) -> list[str]:
        if not outside and OUT not in word:
            return [word]
        names = [*_candidates(word), *(_setting_files(word) if step.kind != PREPARE else ())]
        inputs = [name for name in names if name in outside] if outside else []
        words = [text for name in inputs for text in (Path(name).suffix, self.digest(name))]
        if word in inputs:
            return words
        for path, pattern in zip_longest(self.paths.findall(word), self.patterns(word)):
            made = self._made(path, before)
            if meets(path, DATA) and path not in _fresh(step, self.paths):
                # Where no prepare command names it, any may have made it.
                made = made or [name for name in before if self._steps[name].kind == PREPARE]
                made += self._also(pattern, made, before, step.kind == PREPARE) if pattern else []
            self.reads[step.name].update(made)
            words += sorted(self.of[maker] for maker in made)
        return [_without_names(word), *words]

    def _made(self, path: str, before: Mapping[str, None]) -> list[str]:
        """The steps that made a path inside the study."""
        return [name for name in self._writers.of(path) if name in before]

    def _also(
        self,
        pattern: PathPattern,
        made: Sequence[str],
        before: Mapping[str, None],
        by_prepare: bool = False,
    ) -> list[str]:
        """The prepare commands beside those that made it which may have written there, but for those that these read.

        Args:
            pattern: what is read.
            made: the steps that name its path.
            before: the steps before the one that reads it.
            by_prepare: whether a prepare command reads it, to which a name may be the beginning of several.
        """
        known = set[str]().union(*(self._sources.get(name, ()) for name in made))
        names = self._writers.at(pattern, by_prepare)
        return [name for name in names if name in before and name not in known]

    def _outside(self, step: Step) -> Iterator[str]:
        """The files and folders outside the study that a command names.

        In the commands that the study makes a bare word such as test is no file, but after a flag that takes files.
        """
        words = list(_values(step.command))
        # treesyntax generate GENERATOR, treesyntax data get NAME: a folder of that name is none of theirs.
        of_ours = {"generate": 3, "data": 4}.get("".join(words[1:2]), 2)
        named = {"treesyntax": of_ours, "python": 1}
        flag = ""
        for word in words[named.get(words[0], 0) :]:
            flag = word if word.startswith("--") else flag
            is_named = word in self.labels or _takes_files(flag) or "/" in word or "." in word
            if step.kind == PREPARE or is_named:
                yield from filter(self._is_input, _candidates(word))
            for name in _setting_files(word) if flag in SETTINGS and step.kind != PREPARE else ():
                if self._is_input(name) and not os.path.isdir(name):  # in which logs are written
                    yield name

    def patterns(self, word: str) -> Sequence[PathPattern]:
        """What a word names inside the study, beside the paths as they stand."""
        return patterns_in(word)

    def unnamed(self, step: Step, named: Mapping[str, None]) -> Iterator[str]:
        """The files outside the study that a command reads though no word of it is their name.

        They lie beside those that it names, or stand in the text of a command for a shell.
        """
        names = [f"{name.removesuffix('.gz')}{OFFSETS}" for name in named]
        if step.kind == PREPARE:
            texts = [word for word in step.command if _BETWEEN_NAMES.search(word)]
            read = os.path.expandvars(_WRITTEN_TO.sub(" ", " ".join(texts)))  # as the shell will
            words = _BETWEEN_NAMES.split(read)
            names += [word for word in words if not word.startswith("$")]
        else:
            flags = pairwise(_values(step.command))
            names += [value for flag, value in flags if flag.replace("_", "-") == START]
        for name in names:
            pattern = _VARIABLE.sub("*", name)
            of_loop = pattern != name
            for file in self._matching(pattern, of_loop) if _is_pattern(pattern) else (name,):
                if self._is_input(file) and not os.path.isdir(file):
                    yield file

    def _matching(self, pattern: str, of_loop: bool) -> list[str]:
        """The files of a pattern of the shell, also those that were there when the study began.

        Of a loop, whose names are not known, these alone: a file that came later is none that the loop has read.
        """
        depth = len(Path(pattern).parts)
        recorded = [
            name
            for name in self.recorded
            if len(Path(name).parts) == depth and Path(name).match(pattern)
        ]
        return sorted(recorded if of_loop and recorded else {*glob(pattern), *recorded})

    def _is_input(self, name: str) -> bool:
        return OUT not in name and (self._exists(name) or name in self.recorded)


class _Writers:
    """Which steps write a path, something inside it, or a folder that it lies in."""

    def __init__(self, steps: Sequence[Step], inside: re.Pattern[str]) -> None:
        self._at: dict[str, list[str]] = {}
        self._inside: dict[str, list[str]] = {}
        self._prepare = [
            (step.name, patterns_written(_text_of(step))) for step in steps if step.kind == PREPARE
        ]
        self._commands_at: dict[tuple[PathPattern, bool], list[str]] = {}
        for step in steps:
            for path in writes(step, inside):
                self._at.setdefault(path, []).append(step.name)
                for folder in _folders_above(path):
                    self._inside.setdefault(folder, []).append(step.name)

    def of(self, path: str) -> list[str]:
        """The names of the steps, each once: those for whose paths :func:`meets` holds."""
        names = [*self._at.get(path, ()), *self._inside.get(path, ())]
        for folder in _folders_above(path):
            names += self._at.get(folder, ())
        return list(dict.fromkeys(names))

    def at(self, pattern: PathPattern, by_prepare: bool) -> list[str]:
        """The prepare commands that may write there by their words; what a prepare command reads may be more files."""
        if (pattern, by_prepare) not in self._commands_at:
            self._commands_at[pattern, by_prepare] = [
                name
                for name, written in self._prepare
                if any(
                    each.may_share(pattern) if by_prepare else each.may_be(pattern.folder)
                    for each in written
                )
            ]
        return self._commands_at[pattern, by_prepare]


@cache
def _takes_files(flag: str) -> bool:
    """Whether the values of a flag are files or folders, whatever they are called; fairseq ends such names in path."""
    name = flag.removeprefix("--").replace("_", "-")
    return flag in (MODEL, COUNTED_BY) or name in file_flags() or name.endswith("-path")


@cache
def _folders_above(path: str) -> list[str]:
    return [path[: slash.start()] for slash in re.finditer("/", path)]


@cache
def _without_names(word: str) -> str:
    return _NAMED.sub(r"{out}/\1", word)


def checkpoints_kept(train: Step) -> int:
    """How many of its last checkpoints a training leaves; -1 on its command line means all."""
    kept = int(flag_value(train, KEPT) or 1)  # of a finetuning the best model
    return kept if kept >= 0 else sys.maxsize


def flag_value(step: Step, flag: str) -> str | None:
    """The value of a flag on a command line, the last one as its program takes it; None without it."""
    words = list(_values(step.command))
    indices = [index for index, word in enumerate(words) if word.replace("_", "-") == flag]
    return words[indices[-1] + 1] if indices else None


def _groups(step: Step) -> list[list[str]]:
    """The words of a command, each flag with its values; sorted where their order is the study's."""
    groups: list[list[str]] = [[]]
    for word in _values(step.command):
        groups += [[]] if word.startswith("--") else []
        groups[-1].append(word)
    if step.kind == PREPARE:
        return groups
    return sorted(group for group in groups if not _LEFT_OUT.issuperset(group[:1]))


def _values(words: Sequence[str]) -> Iterator[str]:
    """The words of a command, ``--flag=value`` as two."""
    for word in words:
        flag, equals, value = word.partition("=")
        yield from (flag, value) if equals and word.startswith("--") else (word,)


def _setting_files(word: str) -> list[str]:
    """What may name a file in the value of a setting, which is no bare word."""
    value = word.partition("=")[2]
    return [value] if "/" in value or "." in value else []


def _is_pattern(name: str) -> bool:
    """Whether a shell puts names of files in the place of a word; a bare star is more often something else."""
    return OUT not in name and bool(re.search(r"[*?[]", name) and re.search(r"\w", name))


@cache
def _candidates(word: str) -> list[str]:
    """What may name a file in a word, which may be the text of a command for a shell."""
    names = dict.fromkeys((word, *word.split()))
    # generate pairs reads NAME.gz where there is no NAME.
    return [file for name in names if name for file in (name, f"{name}.gz")]

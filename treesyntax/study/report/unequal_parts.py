"""What rows that were trained in different studies differ in, apart from their methods: settings, size, pairs.

Within a study the recipe answers for that (:mod:`treesyntax.study.recipe.fairness`). Of studies that are joined
there is only what runs.jsonl recorded of their runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from treesyntax.study.recipe.backbone import SIDES, positions_of, size_of_arch
from treesyntax.study.recipe.fairness import FREE
from treesyntax.study.report.table_notes import pairs_note, parameter_note
from treesyntax.study.results.results import Result

SECTIONS = {
    "fairseq-train": "train", "fairseq-generate": "generate", "finetune": "train", "treesyntax average": "average",
}  # fmt: skip
"""The commands of a run that decide on its scores, as they begin, and the sections of a recipe that they come from."""
OF_A_RUN = (
    "seed",
    "path",
    "results-path",
    "save-dir",
    "user-dir",
    "log-format",
    "predict",
    "generated",
    "out",
)
"""Flags that name a run or its files."""
MOST_SHOWN = 6


def unequal_notes(results: Sequence[Result], others: Mapping[str, Sequence[str]]) -> list[str]:
    """What rows differ in from rows of other studies that they are compared with, a note each.

    Args:
        results: of all rows.
        others: by row those it is compared with that another study trained.
    """
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(result.method, result)
    pairs = [(row, of) for row, names in others.items() for of in names if {row, of} <= {*first}]
    notes = [
        f"UNEQUAL SETTINGS of {row} and {of}, which other studies trained: {text}"
        for row, of in pairs
        if (text := _differences(settings_of(first[row]), settings_of(first[of])))
    ]
    parameters = {row: float(result.parameters) for row, result in first.items()}
    for at in range(max(map(len, others.values()), default=0) or 1):
        by_row = {row: names[at] for row, names in others.items() if at < len(names)}
        notes += parameter_note(by_row, parameters) + pairs_note(by_row, results)
    return list(dict.fromkeys(notes))


def settings_of(result: Result) -> dict[str, str]:
    """The flags of a run's commands by SECTION.FLAG, but those in which methods may differ."""
    settings: dict[str, str] = {}
    for command in result.commands:
        section = next((of for name, of in SECTIONS.items() if command.startswith(name)), None)
        if section is not None:
            flags = _flags(shlex.split(command))
            if section == "train":
                _take_methods_out(flags)
            skipped = (*OF_A_RUN, *FREE.get(section, ()))
            settings |= {
                f"{section}.{name}": text for name, text in flags.items() if name not in skipped
            }
    return settings


def _flags(words: Sequence[str]) -> dict[str, str]:
    """The flags of a command with their values; ``--set NAME=VALUE`` is NAME with its value."""
    flags: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word[2:]
            if name != "set":
                flags[name] = ""
        elif name == "set":
            key, _, value = word.partition("=")
            flags[key.replace("_", "-")] = value
        elif name:
            flags[name] = f"{flags[name]} {word}".strip()
    return flags


def _take_methods_out(flags: dict[str, str]) -> None:
    """Leave of an architecture its size, and of injections what needs no tree."""
    if arch := flags.pop("arch", ""):
        for side in SIDES:
            positions = positions_of(arch, flags, side)
            flags.pop(f"{side}-injection", None)
            flags[f"{side}-injection"] = positions or "none"
        flags["size"] = size_of_arch(arch)
    for name in ("injection", "encoder-injection", "decoder-injection"):
        if not arch:
            flags.pop(name, None)


def _differences(settings: Mapping[str, str], others: Mapping[str, str]) -> str:
    """The settings in which two runs differ, with both values; the first few of many."""
    texts = [
        f"{key} {settings.get(key, 'none') or 'set'} and {others.get(key, 'none') or 'set'}"
        for key in dict.fromkeys([*settings, *others])
        if settings.get(key) != others.get(key)
    ]
    more = f" and {len(texts) - MOST_SHOWN} more" if len(texts) > MOST_SHOWN else ""
    return "; ".join(texts[:MOST_SHOWN]) + more

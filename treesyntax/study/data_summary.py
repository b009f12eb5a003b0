"""What readers make of the files that a study trains on, told before anything is trained."""

from __future__ import annotations

import shlex
from pathlib import Path

from treesyntax.data.encoding import SIDES, TEXT
from treesyntax.data.file_summary import MOST, FileSummary, summarise
from treesyntax.files import plain_name, there_or_packed
from treesyntax.study.recipe.recipe import DATA, Recipe

TRAIN = "train"


def data_summaries(recipe: Recipe) -> list[FileSummary]:
    """A summary of each training file from outside the study, from its first records.

    What a command of the recipe reads, to parse it or to make pairs of it, is read as that command does.

    Raises:
        InputError: with file and line, if a file cannot be read or a record is malformed.
    """
    files: dict[tuple[Path, str], bool] = {}
    commands = [shlex.split(command) for command in recipe.prepare]
    parsed = {Path(words[2]).suffix for words in commands if words[1:2] == ["parse"]}
    for words in commands:
        for path, notation in _read_by(words):
            is_parsed = notation == TEXT and Path(plain_name(path)).suffix in parsed
            files.setdefault((path, notation), is_parsed)
    for method in recipe.methods:
        flags = recipe.flags(method, "binarize")
        for side in SIDES:
            name = getattr(getattr(method, side), TRAIN)
            if f"{{{DATA}}}" not in name:
                notation = str(flags.get(f"{side}-format", TEXT))
                files.setdefault((Path(name), notation), False)
    return [
        summarise(path, notation, MOST, to_parse)
        for (path, notation), to_parse in files.items()
        if path.is_file()
    ]


def _read_by(words: list[str]) -> list[tuple[Path, str]]:
    """The training files from outside that a command reads, and their format."""
    if words[1:2] == ["parse"]:
        return [(Path(words[2]), TEXT)] if TRAIN in Path(words[2]).name else []
    if words[1:3] == ["generate", "pairs"] and f"--{TRAIN}" in words:
        start = words.index(f"--{TRAIN}") + 1
        return [(Path(name), TEXT) for name in words[start : start + 2]]
    if words[1:3] != ["generate", "questions"] or not {"--data", "--notation"} <= {*words}:
        return []
    data, notation = (words[words.index(flag) + 1] for flag in ("--data", "--notation"))
    if Path(data).is_dir():
        names = (there_or_packed(Path(data, f"{TRAIN}{suffix}")) for suffix in (".tsv", ".tgt"))
        data = str(next((file for file in names if file), data))
    return [(Path(data), notation)]


def summary_lines(summaries: list[FileSummary]) -> list[str]:
    """The summaries for people; each format with its first tree once."""
    lines, shown = [], set[str]()
    for summary in summaries:
        lines += summary.lines(drawn=summary.format_name not in shown)
        shown.add(summary.format_name)
    return lines

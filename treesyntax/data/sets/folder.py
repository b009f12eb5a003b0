"""Folders of data sets: aligned text files and a manifest of how they were made; nothing is ever overwritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from treesyntax import __version__
from treesyntax.data.sets.split import Pair, Split
from treesyntax.errors import InputError, OptionError
from treesyntax.files import atomic_folder, read_lines, read_object, write_json
from treesyntax.made.digests import sha256_of_lines, text_of
from treesyntax.made.reuse import changed_file, differences, is_taken
from treesyntax.source import code_of_module
from treesyntax.trees.formats import conllu

Files = dict[str, list[str]]
"""The lines of each file by its name. Files without lines are not written."""
MANIFEST = "manifest.json"


def write_data_set(
    folder: Path, options: dict[str, Any], make: Callable[[], tuple[Files, dict[str, Any]]]
) -> None:
    """Write a folder, whole or not at all, unless it is up to date, and print what it holds.

    What other code made is made once more, and refused if it is not the same.

    Args:
        folder: absent, empty, or made with the same options.
        options: everything that the contents depend on, of JSON types.
        make: returns the files, and notes for the manifest; a function of the module that makes them.

    Raises:
        InputError: if the folder holds anything else.
    """
    code = code_of_module(make.__module__)
    before = read_manifest(folder, options)
    if before and before.get("code", "") == code:
        print(f"{folder}: up to date")
        return
    files, notes = make()
    files = {name: lines for name, lines in files.items() if lines}
    if before:
        now = {name: sha256_of_lines(lines) for name, lines in files.items()}
        if others := differences(_digests(folder, before), now):
            raise InputError(
                folder,
                None,
                f"was made by other code: today the same options make another {', '.join(others)}",
                "delete the folder to make it again, or name another folder",
            )
        write_json(folder / MANIFEST, {**before, "code": code}, indent=2)
        print(f"{folder}: up to date")
        return
    described = {name: _describe(lines) for name, lines in files.items()}
    with atomic_folder(folder, new=True) as staged:
        for name, lines in files.items():
            (staged / name).write_bytes(text_of(lines))
        manifest = {
            "version": __version__,
            "code": code,
            "options": options,
            "notes": notes,
            "files": described,
        }
        write_json(staged / MANIFEST, manifest, indent=2)
    for name, facts in described.items():
        mean = f"mean length {facts['mean_length']:.1f} tokens"
        print(f"{folder / name}: {facts['lines']} lines, {mean}")
    for name, value in notes.items():
        print(f"{name}: {value}")


def read_manifest(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a folder that was made with these options and is unchanged; {} of a new one.

    Raises:
        InputError: if the folder holds anything else.
    """
    if not is_taken(folder):
        return {}
    manifest = read_object(folder / MANIFEST)
    if manifest.get("options") != options:
        raise InputError(
            folder,
            None,
            "is not empty and was not made with these options",
            "name another folder or delete this one",
        )
    if (path := changed_file(folder, _digests(folder, manifest))) is not None:
        cause = "was changed or deleted since it was made"
        raise InputError(path, None, cause, "delete the folder to make it again")
    return manifest


def _describe(lines: Sequence[str]) -> dict[str, Any]:
    mean = round(fmean(len(line.split()) for line in lines), 2)
    return {"lines": len(lines), "mean_length": mean, "sha256": sha256_of_lines(lines)}


def _digests(folder: Path, manifest: dict[str, Any]) -> dict[str, str]:
    """The SHA-256 of each file in the folder."""
    try:
        digests = {name: facts["sha256"] for name, facts in manifest["files"].items()}
        outside = any(Path(name).name != name for name in digests)
        right = not outside and all(type(digest) is str for digest in digests.values())
    except (KeyError, TypeError, AttributeError):
        right = False
    if not right:
        raise InputError(
            folder / MANIFEST, None, "is damaged", "delete the folder to make it again"
        )
    return digests


def pair_files(
    split: Split,
    suffixes: Sequence[str],
    small_train: Sequence[int] = (),
    small_pairs: list[Pair] | None = None,
) -> Files:
    """The two files of each part, ``train.SUFFIX`` and so on; suffixes begin with a dot.

    ``train.N.SUFFIX`` has the first N training pairs, or ``small_pairs``, for each N of
    ``small_train``.
    """
    train = split.train if small_pairs is None else small_pairs
    pairs_by_name = {
        **split._asdict(),
        **{f"train.{size}": train[:size] for size in checked_sizes(small_train, len(train))},
    }
    return {
        f"{name}{suffix}": [pair[side] for pair in pairs]
        for name, pairs in pairs_by_name.items()
        for side, suffix in enumerate(suffixes)
    }


def checked_sizes(small_train: Sequence[int], most: int) -> list[int]:
    """The sizes of smaller training sets in order, each once.

    Raises:
        OptionError: for one that cannot be.
    """
    for size in small_train:
        if not 1 <= size <= most:
            raise OptionError(f"small-train is {size}; it must be 1 to {most}, as train has")
    return sorted(set(small_train))


def read_aligned(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """The lines of two text files, which must have equally many, with an example on each."""
    pair = list(read_lines(source)), list(read_lines(target))
    for path, lines in zip((source, target), pair, strict=True):
        _check_not_conllu(path, lines)
    if len(pair[0]) != len(pair[1]):
        raise InputError(
            target,
            None,
            f"has {len(pair[1])} lines, but {source} has {len(pair[0])}",
            "the files must be aligned line by line",
        )
    return pair


def _check_not_conllu(path: Path, lines: Sequence[str]) -> None:
    """Refuse a treebank: its lines are words, and would be drawn as if they were sentences."""
    first = next((number for number, line in enumerate(lines) if line and line[0] != "#"), None)
    if first is not None and conllu.is_first_word(lines[first]):
        cause = "is CoNLL-U, where each word of a sentence has a line"
        remedy = "write a sentence a line, as text or as trees in jsonl"
        raise InputError(path, first + 1, cause, remedy)

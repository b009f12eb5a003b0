"""Bring questions with logical forms into aligned files, and draw the sets that are missing.

DATA is a folder with the set train, and valid and test if there are any, each as PART.src with
PART.tgt or as PART.tsv; or it is one TSV file. A line of a TSV is a question, a tab and its logical
form; no line is a header. Files may be .gz.

Existing sets stay whole. The others are drawn at random from the different pairs of train, and no
copy of a drawn pair stays in train. If valid is drawn, all.src and all.tgt hold train and valid
together, for a final training once everything is chosen.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from treesyntax.data.sets.folder import Files, pair_files, read_aligned, write_data_set
from treesyntax.data.sets.split import SPLITS, Pair, Split, check_numbers
from treesyntax.data.tables import BRACKETS, read_pairs
from treesyntax.errors import InputError, OptionError
from treesyntax.files import there_or_packed
from treesyntax.made.digests import sha256_of_lines
from treesyntax.remarks import remarks_of
from treesyntax.trees.formats import get_format
from treesyntax.trees.formats.base import Record, parse_record

SUFFIXES = (".src", ".tgt")
TABLE = ".tsv"


def generate(args: argparse.Namespace) -> None:
    """Write the sets, unless the folder is up to date."""
    with remarks_of(args.data) as remarks:
        sets = read_parts(args.data, args.notation)
    remarks.records = sum(map(len, sets.values()))
    print(*remarks.texts("pairs"), sep="\n", end="\n" * bool(remarks.findings))
    described = {
        "generator": args.generator,
        "data": {
            name: sha256_of_lines(["\t".join(pair) for pair in pairs])
            for name, pairs in sets.items()
        },
        **{name: getattr(args, name) for name in ("valid", "test", "seed", "notation")},
    }
    split = complete(sets, args.valid, args.test, args.seed)
    files = pair_files(split, SUFFIXES)
    if "valid" not in sets:
        files |= _all_files(sets["train"], split)
    write_data_set(args.out, described, lambda: (files, split.seen()))


def read_parts(data: Path, notation: str | None) -> dict[str, list[Pair]]:
    """The pairs of each set that is there; of a single file, all as ``train``."""
    if not data.is_dir():
        return {"train": _read_table(data, notation)}
    sets: dict[str, list[Pair]] = {}
    for name in SPLITS:
        table = there_or_packed(data / f"{name}{TABLE}")
        source, target = (there_or_packed(data / f"{name}{suffix}") for suffix in SUFFIXES)
        if table:
            sets[name] = _read_table(table, notation)
        elif source and target:
            sets[name] = _read_aligned(source, target, notation)
    if "train" not in sets:
        raise InputError(
            data, None, "has no train set", "it needs train.src and train.tgt, or train.tsv"
        )
    return sets


def complete(sets: dict[str, list[Pair]], valid: int, test: int, seed: int) -> Split:
    """All three sets: those that are there as they are, others drawn from train."""
    check_numbers({"seed": seed})
    rng = random.Random(seed)
    train, completed = sets["train"], dict(sets)
    for name, number in (("test", test), ("valid", valid)):
        if name not in completed:
            different = list(dict.fromkeys(train))
            if not 0 < number < len(different):
                raise OptionError(
                    f"there is no {name} set, and --{name} is {number}: 1 to "
                    f"{len(different) - 1} of the {len(different)} different pairs of train can be "
                    "drawn"
                )
            drawn = set(rng.sample(different, number))
            completed[name] = [pair for pair in different if pair in drawn]
            train = [pair for pair in train if pair not in drawn]
    return Split(train, completed["valid"], completed["test"])


def _all_files(train: list[Pair], split: Split) -> Files:
    kept = {*split.train, *split.valid}
    pairs = [pair for pair in train if pair in kept]
    return {f"all{suffix}": [pair[side] for pair in pairs] for side, suffix in enumerate(SUFFIXES)}


def _read_table(path: Path, notation: str | None) -> list[Pair]:
    rows = list(read_pairs(path))
    bare = [[BRACKETS.isdisjoint(text) for text in row[1:]] for row in rows]
    if rows and not any(question for question, _ in bare) and all(form for _, form in bare):
        cause = "has brackets in each first column and in no second one"
        raise InputError(
            path, 1, cause, "write the question first, then a tab and its logical form"
        )
    return [
        (_question(question, path, line), _form(form, path, line, notation))
        for line, question, form in rows
    ]


def _read_aligned(source: Path, target: Path, notation: str | None) -> list[Pair]:
    questions, forms = read_aligned(source, target)
    return [
        (_question(question, source, line), _form(form, target, line, notation))
        for line, (question, form) in enumerate(zip(questions, forms, strict=True), start=1)
    ]


def _question(text: str, path: Path, line: int) -> str:
    words = " ".join(text.split())
    if not words:
        raise InputError(path, line, "has no question", "remove the line from the data")
    return words


def _form(text: str, path: Path, line: int, notation: str | None) -> str:
    tokens = " ".join(text.split())
    if not tokens:
        raise InputError(path, line, "has no logical form", "remove the line from the data")
    if notation is None:
        return tokens
    tree_format = get_format(notation)
    return tree_format.write(parse_record(tree_format, path, Record(line, text)))

"""Bring questions with logical forms into aligned files, and hold out what sets are missing.

DATA is a folder with train, and valid and test where there are such sets, each as PART.src with
PART.tgt or as PART.tsv; or it is one TSV file. A line of a TSV is a question, a tab and its logical
form. Files may be .gz.

Sets that are there stay whole. Others are drawn at random from the different pairs of train, and
no copy of a drawn pair is left in train. Where valid is drawn, all.src and all.tgt are train before
that, for a last training once everything is chosen.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from treesyntax.data.generate.folder import checksum, is_current
from treesyntax.data.generate.output import Files, pair_files, report_current, write_and_report
from treesyntax.data.generate.split import Pair, Split
from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines
from treesyntax.trees.formats import get_format
from treesyntax.trees.formats.base import Record, parse_record

PARTS = ("train", "valid", "test")
SUFFIXES = (".src", ".tgt")
TABLE = ".tsv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder or TSV file with the data")
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{src,tgt}")
    add("--valid", type=int, default=0, help="pairs to draw where there is no valid set")
    add("--test", type=int, default=0, help="pairs to draw where there is no test set")
    add("--seed", type=int, default=1, help="0, 1, 2, … (default %(default)s)")
    add(
        "--notation",
        help="of the logical forms, such as sexpr: checks each, and puts single spaces between "
        "its tokens (default: any text)",
    )


def generate(args: argparse.Namespace) -> int:
    """Write the sets, unless they are there already; returns 0.

    Raises:
        OptionError: for options that do not fit or cannot be met.
        InputError: if the data cannot be read, or the folder holds something else.
    """
    parts = read_parts(args.data, args.notation)
    described = {
        "generator": args.generator,
        "data": {
            part: checksum(["\t".join(pair) for pair in pairs]) for part, pairs in parts.items()
        },
        **{name: getattr(args, name) for name in ("valid", "test", "seed", "notation")},
    }
    split = complete(parts, args.valid, args.test, args.seed)
    if is_current(args.out, described):
        return report_current(args.out)
    files = pair_files(split, SUFFIXES)
    if "valid" not in parts:
        files |= _all_files(parts["train"], split)
    return write_and_report(args.out, described, files, split.seen())


def read_parts(data: Path, notation: str | None) -> dict[str, list[Pair]]:
    """The pairs of each set that is there; of a single file, all as ``train``.

    Args:
        data: a folder or a TSV file.
        notation: of the logical forms, None for any text.

    Raises:
        InputError: with file and line, if a file is missing, cannot be read or is malformed.
        OptionError: if there is no such notation.
    """
    if not data.is_dir():
        return {"train": _read_table(data, notation)}
    parts: dict[str, list[Pair]] = {}
    for part in PARTS:
        table = _found(data / f"{part}{TABLE}")
        source, target = (_found(data / f"{part}{suffix}") for suffix in SUFFIXES)
        if table:
            parts[part] = _read_table(table, notation)
        elif source and target:
            parts[part] = _read_aligned(source, target, notation)
    if "train" not in parts:
        raise InputError(
            data, None, "has no train set", "it needs train.src and train.tgt, or train.tsv"
        )
    return parts


def complete(parts: dict[str, list[Pair]], valid: int, test: int, seed: int) -> Split:
    """All three sets: those that are there as they are, others drawn from train.

    Args:
        parts: see `read_parts`.
        valid: pairs to draw where there is no valid set.
        test: pairs to draw where there is no test set; they are drawn first.
        seed: 0, 1, 2, …

    Raises:
        OptionError: if a set is missing and 0 pairs are to be drawn, or too many are.
    """
    if seed < 0:
        raise OptionError(f"seed is {seed}; it must be 0 or more")
    rng = random.Random(seed)
    train, found = parts["train"], dict(parts)
    for name, number in (("test", test), ("valid", valid)):
        if name not in found:
            different = list(dict.fromkeys(train))
            if not 0 < number < len(different):
                raise OptionError(
                    f"there is no {name} set, and --{name} is {number}: 1 to "
                    f"{len(different) - 1} of the {len(different)} different pairs of train can be "
                    "drawn"
                )
            drawn = set(rng.sample(different, number))
            found[name] = [pair for pair in different if pair in drawn]
            train = [pair for pair in train if pair not in drawn]
    return Split(train, found["valid"], found["test"])


def _all_files(train: list[Pair], split: Split) -> Files:
    kept = {*split.train, *split.valid}
    pairs = [pair for pair in train if pair in kept]
    return {f"all{suffix}": [pair[side] for pair in pairs] for side, suffix in enumerate(SUFFIXES)}


def _found(path: Path) -> Path | None:
    packed = path.with_name(f"{path.name}.gz")
    return next((file for file in (path, packed) if file.is_file()), None)


def _read_table(path: Path, notation: str | None) -> list[Pair]:
    pairs = []
    for line, text in enumerate(read_lines(path), start=1):
        columns = text.split("\t")
        if len(columns) != len(SUFFIXES):
            raise InputError(
                path,
                line,
                f"has {len(columns)} columns",
                "write the question, one tab and its logical form",
            )
        question, form = columns
        pairs.append((_question(question, path, line), _form(form, path, line, notation)))
    return pairs


def _read_aligned(source: Path, target: Path, notation: str | None) -> list[Pair]:
    questions, forms = list(read_lines(source)), list(read_lines(target))
    if len(questions) != len(forms):
        raise InputError(
            target,
            None,
            f"has {len(forms)} lines, but {source} has {len(questions)}",
            "the files must be aligned line by line",
        )
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

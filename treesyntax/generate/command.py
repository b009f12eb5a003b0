"""Make synthetic data sets, or cut aligned text files into train, valid and test.

  treesyntax generate for2lam --out data/for2lam --train 100000 --valid 10000 --test 10000
  treesyntax generate split --source geo.src --target geo.tgt --out data/geo --valid 60

The folder gets a manifest.json with options, counts, mean lengths and checksums. The same command
again finds it and does nothing. A split of 0 lines gets no files.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines
from treesyntax.formats.for2lam import FOR, LAMBDA
from treesyntax.generate.folder import checksum, is_current, write_folder
from treesyntax.generate.for2lam import SPLITS, Options, fitted_size, generate_splits, translate
from treesyntax.generate.programs import Style
from treesyntax.generate.split import split_pairs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``for2lam`` and ``split`` with their options."""
    generators = parser.add_subparsers(dest="generator", metavar="WHAT", required=True)
    programs = generators.add_parser("for2lam", help="random FOR programs with their LAMBDA twins")
    programs.set_defaults(generate=_generate_for2lam)
    _add_program_arguments(programs)
    pairs = generators.add_parser("split", help="cut aligned text files into train, valid, test")
    pairs.set_defaults(generate=_generate_split)
    _add_split_arguments(pairs)


def _add_program_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{for,lambda}")
    for split in SPLITS:
        add(f"--{split}", type=int, default=0, help=f"number of {split} programs (default 0)")
    styles = [style.value for style in Style]
    add("--style", choices=styles, default=styles[0], help="distribution (default %(default)s)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--size", type=int, default=15, help="the size to draw programs with (default %(default)s)"
    )
    size.add_argument(
        "--length", type=int, help="or, with --style chen, their mean length in tokens"
    )
    add(
        "--min-nodes",
        type=int,
        default=0,
        help="leave out smaller programs (0); 9: single assignments",
    )
    add("--repeats", action="store_true", help="let a program come up again within its split")
    add("--seed", type=int, default=1, help="0, 1, 2, … (default %(default)s)")


def _add_split_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", type=Path, required=True, help="text file, one example a line; may be .gz")
    add("--target", type=Path, required=True, help="aligned with it, with another suffix")
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.SUFFIX")
    add("--valid", type=int, default=0, help="number of valid lines (default 0)")
    add("--test", type=int, default=0, help="number of test lines (default 0)")
    add("--seed", type=int, default=1, help="0, 1, 2, … (default %(default)s)")
    add("--dedup", action="store_true", help="keep only the first of equal pairs")


def run(args: argparse.Namespace) -> int:
    """Write the data set, unless it is there already; returns 0.

    Raises:
        OptionError: for options that do not fit or cannot be met.
        InputError: if the folder holds something else, or a file cannot be read or written.
    """
    status: int = args.generate(args)
    return status


def _generate_for2lam(args: argparse.Namespace) -> int:
    options = Options(
        style=Style(args.style),
        size=args.size,
        length=args.length,
        min_nodes=args.min_nodes,
        repeats=args.repeats,
        seed=args.seed,
    )
    numbers = {split: getattr(args, split) for split in SPLITS}
    if not any(numbers.values()):
        raise OptionError("no programs are asked for; set --train, --valid or --test")
    described = {"generator": args.generator, **asdict(options), **numbers}
    if options.length is not None:
        del described["size"]
    if is_current(args.out, described):
        return _report_current(args.out)
    # The bar counts every program twice: when it is drawn and when it is translated.
    with _progress() as progress:
        bar = progress.add_task("programs", total=2 * sum(numbers.values()))
        splits = generate_splits(**numbers, options=options, advance=lambda: progress.advance(bar))
        files: dict[str, list[str]] = {}
        for split, programs in splits.items():
            source, target = f"{split}{FOR.suffix}", f"{split}{LAMBDA.suffix}"
            files |= {source: [], target: []}
            for program in programs:
                files[source].append(FOR.write(program))
                files[target].append(LAMBDA.write(translate(program)))
                progress.advance(bar)
    return _write(args.out, described, files, {"size": fitted_size(options)})


def _generate_split(args: argparse.Namespace) -> int:
    suffixes = [_suffix(path) for path in (args.source, args.target)]
    if suffixes[0] == suffixes[1]:
        raise OptionError(f"both files end in {suffixes[0]}; give them different suffixes")
    source, target = list(read_lines(args.source)), list(read_lines(args.target))
    if len(source) != len(target):
        raise InputError(
            args.target,
            None,
            f"has {len(target)} lines, but {args.source} has {len(source)}",
            "the files must be aligned line by line",
        )
    described = {
        "generator": args.generator,
        "source": {"name": args.source.name, "sha256": checksum(source)},
        "target": {"name": args.target.name, "sha256": checksum(target)},
        **{name: getattr(args, name) for name in ("valid", "test", "seed", "dedup")},
    }
    pairs = list(zip(source, target, strict=True))
    split = split_pairs(pairs, args.valid, args.test, args.seed, args.dedup)
    if is_current(args.out, described):
        return _report_current(args.out)
    files = {
        f"{name}{suffix}": [pair[side] for pair in part]
        for name, part in split._asdict().items()
        for side, suffix in enumerate(suffixes)
    }
    return _write(args.out, described, files, split.seen())


def _suffix(path: Path) -> str:
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if not suffix:
        raise OptionError(f"{path} has no suffix, which the new files would be named by")
    return suffix


def _progress() -> Progress:
    return Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def _write(
    folder: Path, options: dict[str, Any], files: dict[str, list[str]], notes: dict[str, Any]
) -> int:
    manifest = write_folder(folder, options, files, notes)
    for name, facts in manifest["files"].items():
        mean = f"mean length {facts['mean_length']:.1f} tokens"
        print(f"{folder / name}: {facts['lines']} lines, {mean}")
    for name, value in notes.items():
        print(f"{name}: {value}")
    return 0


def _report_current(folder: Path) -> int:
    print(f"{folder}: up to date")
    return 0

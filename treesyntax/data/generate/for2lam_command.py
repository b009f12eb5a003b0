"""Random FOR programs with their translations to LAMBDA.

Test programs are like the training programs, or harder where structure should matter:

  --test-length N   all of them are longer than any program in train and valid, in both languages
  --held-out K      each has names and constants that train and valid show only in single
                    assignments, such as a22 = 11; K names and K constants are held out

No program is in two splits, so neither is any pair; the counts printed at the end say so.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from treesyntax.data.generate.folder import is_current
from treesyntax.data.generate.for2lam import SPLITS, For2LamOptions, fitted_size, generate_splits
from treesyntax.data.generate.for_to_lambda import translate
from treesyntax.data.generate.lexical import check_exposed, held_out_words
from treesyntax.data.generate.output import (
    add_small_train,
    pair_files,
    progress_bar,
    report_current,
    small_train_files,
    write_and_report,
)
from treesyntax.data.generate.programs import Style
from treesyntax.data.generate.split import Split
from treesyntax.errors import OptionError
from treesyntax.trees.formats.for2lam import FOR, LAMBDA


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
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
    hard = parser.add_mutually_exclusive_group()
    hard.add_argument(
        "--test-length",
        type=int,
        metavar="N",
        help="with --length: test programs of mean length N, longer than any in train and valid",
    )
    hard.add_argument(
        "--held-out",
        type=int,
        default=0,
        metavar="K",
        help="test programs with K names and K constants that train has in single assignments only",
    )
    add(
        "--min-nodes",
        type=int,
        default=0,
        help="leave out smaller programs (0); 9: single assignments",
    )
    add("--repeats", action="store_true", help="let a program come up again within its split")
    add_small_train(parser)
    add("--seed", type=int, default=1, help="0, 1, 2, … (default %(default)s)")


def generate(args: argparse.Namespace) -> int:
    """Write the data set, unless it is there already; returns 0.

    Raises:
        OptionError: for options that do not fit or cannot be met.
        InputError: if the folder holds something else or cannot be written.
    """
    options = For2LamOptions(
        style=Style(args.style),
        size=args.size,
        length=args.length,
        test_length=args.test_length,
        held_out=args.held_out,
        min_nodes=args.min_nodes,
        repeats=args.repeats,
        seed=args.seed,
    )
    numbers = {split: getattr(args, split) for split in SPLITS}
    if not any(numbers.values()):
        raise OptionError("no programs are asked for; set --train, --valid or --test")
    described = _described(args, options, numbers)
    if is_current(args.out, described):
        return report_current(args.out)
    split = _draw(numbers, options)
    suffixes = (FOR.suffix, LAMBDA.suffix)
    files = pair_files(split, suffixes)
    files |= small_train_files(split.train, suffixes, args.small_train)
    for name in files:
        if name.startswith("train.") and name.endswith(FOR.suffix) and split.test:
            check_exposed(name, files[name], options.held_out)
    return write_and_report(args.out, described, files, _notes(split, options))


def _described(
    args: argparse.Namespace, options: For2LamOptions, numbers: dict[str, int]
) -> dict[str, Any]:
    """What the contents depend on; options that are not used are left out."""
    described = {"generator": args.generator, **asdict(options), **numbers}
    described["small_train"] = args.small_train
    if options.length is not None:
        del described["size"]
    optional = ("test_length", "held_out", "small_train")
    return {name: value for name, value in described.items() if value or name not in optional}


def _draw(numbers: dict[str, int], options: For2LamOptions) -> Split:
    # The bar counts every program twice: when it is drawn and when it is translated.
    with progress_bar() as progress:
        bar = progress.add_task("programs", total=2 * sum(numbers.values()))
        splits = generate_splits(**numbers, options=options, advance=lambda: progress.advance(bar))
        parts: dict[str, list[tuple[str, str]]] = {}
        for split, programs in splits.items():
            parts[split] = []
            for program in programs:
                parts[split].append((FOR.write(program), LAMBDA.write(translate(program))))
                progress.advance(bar)
    return Split(**parts)


def _notes(split: Split, options: For2LamOptions) -> dict[str, object]:
    notes: dict[str, object] = {"size": fitted_size(options), **split.seen()}
    if options.test_length is not None:
        notes |= {"test_size": fitted_size(options.of_test()), **split.length_range()}
    if options.held_out:
        names, constants = held_out_words(options.held_out)
        notes["held_out"] = " ".join((*names, *constants))
    return notes

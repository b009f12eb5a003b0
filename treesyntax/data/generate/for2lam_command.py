"""Random FOR programs with their translations to LAMBDA.

Test programs are like the training programs, or harder where structure should matter:

  --test-length N   all of them are longer than any program in train and valid, in both languages
  --held-out K      each has a name and a constant in loops, comparisons or sums that train and valid
                    show only in assignments such as a22 = 11, a tenth of the programs; K names and
                    K constants are held out

No program is in two splits, so neither is any pair; the counts printed at the end say so.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from treesyntax.data.generate.data_set import (
    Files,
    pair_files,
    tell_of_test,
    wanted_numbers,
    write_data_set,
)
from treesyntax.data.generate.for2lam_sets import (
    For2LamOptions,
    fitted_size,
    generate_splits,
    texts,
)
from treesyntax.data.generate.for_programs import Style
from treesyntax.data.generate.lexical import check_exposed, held_out_words
from treesyntax.data.generate.split import Split
from treesyntax.jobs.terminal import progress_bar
from treesyntax.trees.formats.for2lam import FOR, LAMBDA


def generate(args: argparse.Namespace) -> None:
    """Write the data set, unless the folder is up to date."""
    options = For2LamOptions(
        style=Style(args.style),
        size=args.size,
        length=args.length,
        test_length=args.test_length,
        held_out=args.held_out,
        min_nodes=args.min_nodes,
        repeats=args.repeats,
        fixed_test=args.fixed_test,
        seed=args.seed,
    )
    numbers = wanted_numbers(args)
    described = _described(args, options, numbers)
    write_data_set(args.out, described, lambda: _make(numbers, options, args.small_train))
    tell_of_test(args)


def _described(
    args: argparse.Namespace, options: For2LamOptions, numbers: dict[str, int]
) -> dict[str, Any]:
    """What the contents depend on; options that are not used are left out."""
    described = {"generator": args.generator, **asdict(options), **numbers}
    described["small_train"] = args.small_train
    if options.length is not None:
        del described["size"]
    optional = ("test_length", "held_out", "small_train", "fixed_test")
    return {name: value for name, value in described.items() if value or name not in optional}


def _make(
    numbers: dict[str, int], options: For2LamOptions, small_train: Sequence[int]
) -> tuple[Files, dict[str, Any]]:
    split = _draw(numbers, options)
    suffixes = (FOR.suffix, LAMBDA.suffix)
    files = pair_files(split, suffixes, small_train)
    for name in files:
        if name.startswith("train.") and name.endswith(FOR.suffix) and split.test:
            check_exposed(name, files[name], options.held_out)
    return files, _notes(split, options)


def _draw(numbers: dict[str, int], options: For2LamOptions) -> Split:
    # The bar counts every program twice: when it is drawn and when it is translated.
    with progress_bar() as progress:
        bar = progress.add_task("programs", total=2 * sum(numbers.values()))
        splits = generate_splits(**numbers, options=options, advance=lambda: progress.advance(bar))
        parts: dict[str, list[tuple[str, str]]] = {}
        for split, programs in splits.items():
            parts[split] = []
            for program in programs:
                parts[split].append(texts(program))
                progress.advance(bar)
    return Split(**parts)


def _notes(split: Split, options: For2LamOptions) -> dict[str, Any]:
    notes: dict[str, Any] = {"size": fitted_size(options), **split.seen()}
    if options.test_length is not None:
        notes |= {"test_size": fitted_size(options.of_test()), **split.length_range()}
    if options.held_out:
        names, constants = held_out_words(options.held_out)
        notes["held_out"] = " ".join((*names, *constants))
    return notes

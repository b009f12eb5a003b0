"""Random CoffeeScript programs with the JavaScript that the real compiler makes of them.

Needs Node.js with npm, which installs the compiler (package coffeescript) in a folder of your
choice the first time; later runs need no network. Files are lines of tokens, as the formats
coffeescript and javascript of treesyntax binarize read them.

  short, small vocabulary   --size 10 --variables 2 --constants 2
  short, large vocabulary   --size 10 --variables 26
  long                      --size 34
  published (Drissi et al. 2018)   the defaults

No program and no translation is in two splits; the counts printed at the end say so.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treesyntax.data.sets.coffeescript_programs import Vocabulary, draw_tokens
from treesyntax.data.sets.compiler import PACKAGE, compile_programs, install_compiler
from treesyntax.data.sets.folder import Files, pair_files, write_data_set
from treesyntax.data.sets.split import (
    SPLITS,
    Pair,
    Split,
    check_numbers,
    fixed_shares,
    tell_of_test,
    wanted_numbers,
)
from treesyntax.errors import OptionError
from treesyntax.jobs.terminal import progress_bar
from treesyntax.trees.formats.coffeescript import COFFEESCRIPT
from treesyntax.trees.formats.javascript import JAVASCRIPT
from treesyntax.trees.formats.tokens import coffeescript_source, javascript_tokens

MAX_BARREN_DRAWS = 10_000
AT_ONCE = 1000
"""Programs that are compiled together, where their number does not depend on how many are wanted."""
Compiler = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class CoffeeScriptOptions:
    """What to generate.

    Attributes:
        size: the size to draw programs with, see `draw_tokens`. 32 is the published set; the mean
            length is then 48 tokens (published: 49), with 10 it is 19, with 34 49.
        vocabulary: names and constants.
        seed: 0, 1, 2, …; the same seed gives the same programs on every machine.
        fixed_test: whether valid and test are the same for every number of training programs, and a
            smaller train is the beginning of a larger one, see `fixed_shares`.
    """

    size: int = 32
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    seed: int = 1
    fixed_test: bool = False

    def __post_init__(self) -> None:
        check_numbers({name: getattr(self, name) for name in ("size", "seed")})


def generate(args: argparse.Namespace) -> None:
    """Write the data set, unless the folder is up to date."""
    vocabulary = Vocabulary(args.variables, args.constants)
    options = CoffeeScriptOptions(args.size, vocabulary, args.seed, args.fixed_test)
    wanted = wanted_numbers(args)
    described: dict[str, Any] = {
        "generator": args.generator,
        "compiler": PACKAGE,
        **{name: getattr(args, name) for name in ("size", "variables", "constants", "seed")},
        **wanted,
    }
    if args.small_train:
        described["small_train"] = args.small_train
    if args.fixed_test:
        described["fixed_test"] = True
    write_data_set(
        args.out, described, lambda: _make(args.compiler, wanted, options, args.small_train)
    )
    tell_of_test(args)


def _make(
    folder: Path, wanted: dict[str, int], options: CoffeeScriptOptions, small_train: Sequence[int]
) -> tuple[Files, dict[str, Any]]:
    install_compiler(folder)
    with progress_bar() as progress:
        bar = progress.add_task("programs", total=sum(wanted.values()))
        split = generate_pairs(
            wanted,
            options,
            lambda programs: compile_programs(folder, programs),
            lambda number: progress.advance(bar, number),
        )
    suffixes = (COFFEESCRIPT.suffix, JAVASCRIPT.suffix)
    return pair_files(split, suffixes, small_train), split.seen()


def generate_pairs(
    wanted: dict[str, int],
    options: CoffeeScriptOptions,
    compiler: Compiler,
    advance: Callable[[int], None] = lambda _: None,
) -> Split:
    """Token lines of CoffeeScript and JavaScript; no line of either occurs twice.

    Programs that differ only in form (``a if b``, a block below ``if b``) have the same JavaScript;
    only the first of them is kept. Each pair goes to one split, drawn in proportion to what the splits
    still need, so that all have the same distribution.
    ``wanted`` is their number of pairs; ``advance`` is called with the number of new pairs.
    """
    check_numbers(wanted)
    rng, missing = random.Random(options.seed), dict(wanted)
    # Where the splits do not depend on how many are wanted, neither may the numbers that are drawn.
    homes = random.Random(f"{options.seed} homes") if options.fixed_test else rng
    shares = fixed_shares(wanted) if options.fixed_test else missing
    by_split: dict[str, list[Pair]] = {split: [] for split in SPLITS}
    programs: set[str] = set()
    translations: set[str] = set()
    while number := sum(missing.values()):
        drawn = _draw(rng, AT_ONCE if options.fixed_test else number, options, programs)
        sources = [coffeescript_source(program) for program in drawn]
        compiled = [javascript_tokens(text) for text in compiler(sources)] if drawn else []
        # The first program of each new translation.
        firsts = dict(zip(reversed(compiled), reversed(drawn), strict=True))
        new = [(firsts[text], text) for text in dict.fromkeys(compiled) if text not in translations]
        translations.update(compiled)
        if not new:
            raise OptionError(
                f"{sum(wanted.values())} pairs are asked for, but only {len(translations)} "
                "distinct ones turned up; ask for fewer pairs, or raise the size"
            )
        for pair in new:
            home = homes.choices(list(shares), list(shares.values()))[0]
            if missing[home]:
                by_split[home].append(pair)
                missing[home] -= 1
                advance(1)
    return Split(**by_split)


def _draw(
    rng: random.Random, number: int, options: CoffeeScriptOptions, known: set[str]
) -> list[str]:
    """Up to ``number`` new token lines, which are added to ``known``."""
    drawn: list[str] = []
    barren = 0
    while len(drawn) < number and barren < MAX_BARREN_DRAWS:
        program = " ".join(draw_tokens(rng, options.size, options.vocabulary))
        if program in known:
            barren += 1
            continue
        barren = 0
        known.add(program)
        drawn.append(program)
    return drawn

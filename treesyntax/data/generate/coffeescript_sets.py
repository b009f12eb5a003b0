"""Data sets of random CoffeeScript programs with their JavaScript."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from treesyntax.data.generate.coffeescript_programs import Vocabulary, draw_tokens
from treesyntax.data.generate.split import SPLITS, Pair, Split, fixed_shares
from treesyntax.errors import OptionError
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
        for name in ("size", "seed"):
            if getattr(self, name) < 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be 0 or more")


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
    for split, number in wanted.items():
        if number < 0:
            raise OptionError(f"{split} is {number}; it must be 0 or more")
    rng, missing = random.Random(options.seed), dict(wanted)
    # Where the splits do not depend on how many are wanted, neither may the numbers that are drawn.
    homes = random.Random(f"{options.seed} homes") if options.fixed_test else rng
    shares = fixed_shares(wanted) if options.fixed_test else missing
    parts: dict[str, list[Pair]] = {split: [] for split in SPLITS}
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
                parts[home].append(pair)
                missing[home] -= 1
                advance(1)
    return Split(**parts)


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

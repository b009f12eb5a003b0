"""What the table says of pairs that rows did not use: as their trainings told it, else as the data shows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.results.results import Result
from treesyntax.study.run.pairs import TRAIN, VALID, WORDS, Uses, groups, uses_of
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import group_of

Told = dict[str, Any]
"""What the training of a run told of a split."""


def pair_notes(
    plan: Plan, folder: Path, rows: Collection[str], results: Sequence[Result]
) -> list[str]:
    """A note for each group of rows that did not use all pairs, a loud one if they used different ones."""
    recorded = _facts_by_row(results)
    lost = {
        row: splits["lost"].get("batches") for row, splits in recorded.items() if "lost" in splits
    }
    uses = {row: splits for row, splits in uses_of(plan, folder).items() if row in rows}
    notes = []
    for split in (TRAIN, VALID):
        notes += list(_by_trainings(plan.recipe, split, recorded))
        notes += list(_other_than_told(split, recorded, uses))
        untold = {row: splits for row, splits in uses.items() if split not in recorded.get(row, {})}
        notes += list(_by_data(plan.recipe, split, untold))
    if lost:
        counts = ", ".join(f"{row} {count}" for row, count in lost.items())
        notes.append(
            f"BATCHES LOST: out of memory, these rows saw fewer pairs: {counts} in one run; give all rows a smaller "
            "train.batch-size or train.max-tokens"
        )
    return notes


def _facts_by_row(results: Sequence[Result]) -> dict[str, dict[str, Told]]:
    """By row and split what the trainings told; that of the last run of a row counts."""
    recorded: dict[str, dict[str, Told]] = {}
    for result in results:
        if result.used:
            try:
                recorded[result.method] = {
                    str(split): dict(facts) for split, facts in json.loads(result.used).items()
                }
            except (ValueError, TypeError, AttributeError):
                continue
    return recorded


def _by_trainings(
    recipe: Recipe, split: str, recorded: Mapping[str, Mapping[str, Told]]
) -> Iterator[str]:
    compared: dict[str, dict[str, Told]] = {}
    for method in recipe.methods:
        if split in recorded.get(method.name, {}):
            group = compared.setdefault(group_of(recipe, method), {})
            group[method.name] = recorded[method.name][split]
    for rows in compared.values():
        yield from _note(split, {row: _counts(facts) for row, facts in rows.items()},
                         {row: str(facts.get("crc32")) for row, facts in rows.items()})  # fmt: skip
        empty = {row: facts.get("empty", 0) for row, facts in rows.items() if facts.get("empty")}
        if empty:
            total = next(iter(rows.values())).get("pairs")
            counts = ", ".join(f"{row} {count}" for row, count in empty.items())
            yield f"Of {total} {WORDS[split]} pairs some have no token on a side, and are used all the same: {counts}"


def _other_than_told(
    split: str, recorded: Mapping[str, Mapping[str, Told]], uses: Uses
) -> Iterator[str]:
    """Rows whose training left other pairs out than the lengths in the data say: neither is silent."""
    for row, splits in uses.items():
        facts = recorded.get(row, {}).get(split)
        if facts is None or split not in splits:
            continue
        total, long, left = _counts(facts)
        use = splits[split]
        # Those that all rows leave out may be too long or not.
        if total != use.pairs or not long <= len(use.long) <= long + left:
            yield (
                f"{row} left {long + left} of {total} {WORDS[split]} pairs out, but of the {use.pairs} in its "
                f"data {len(use.long)} are too long: the data or limits are not those of its training"
            )


def _counts(facts: Told) -> tuple[int, int, int]:
    """Pairs, those too long, those left out of all rows."""
    return facts.get("pairs", 0), facts.get("too_long", 0), facts.get("left_out", 0)


def _note(
    split: str, counts: Mapping[str, tuple[int, int, int]], of: Mapping[str, str]
) -> Iterator[str]:
    """The note on a group of rows; ``of`` tells apart which pairs they used."""
    unused = {row: long + left for row, (_, long, left) in counts.items()}
    total = next(iter(counts.values()))[0]
    if len(set(of.values())) > 1:
        texts = ", ".join(f"{row} without {count}" for row, count in unused.items())
        yield (
            f"UNEQUAL PAIRS: rows used different {WORDS[split]} pairs of {total}: {texts}, since longer ones are left out; "
            "raise train.max-source-positions, max-target-positions or max-tokens, or write skip: allowed"
        )
    elif any(unused.values()):
        count = max(unused.values())
        why = (
            "which are too long for some (skip: allowed)"
            if any(left for *_, left in counts.values())
            else "which are too long for each of them"
        )
        yield f"PAIRS LEFT OUT: no row used {count} of {total} {WORDS[split]} pairs, {why}: {', '.join(unused)}"


def _by_data(recipe: Recipe, split: str, uses: Uses) -> Iterator[str]:
    for rows in groups(recipe, uses).values():
        row_uses = {row: uses[row][split] for row in rows if split in uses[row]}
        counts = {row: (use.pairs, len(use.long), 0) for row, use in row_uses.items()}
        if row_uses:
            yield from _note(
                split, counts, {row: use.long.tobytes().hex() for row, use in row_uses.items()}
            )

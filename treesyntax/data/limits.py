"""What does not fit into the limits of a search or an encoding: counts, to be said once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

PathTree = tuple[Sequence[int], Sequence[int]]
"""The parent of each node, -1 for the root, and its branch."""
MOST_A = 1_000_000
"""The greatest ``--max-len-a``; far greater ones make limits that are no number."""
RANGE_OF_A = f"must be a number from 0 to {MOST_A:,}"
TOO_MANY = "--nbest {nbest} asks for more hypotheses than --beam {beam} keeps"
"""Said where fairseq would write fewer hypotheses than were asked for."""


def long_references(
    sources: ArrayLike, targets: ArrayLike, a: float, b: float, positions: int | None = None
) -> str:
    """How many references no output can reach, as a sentence; "" for none.

    Args:
        sources: tokens of each source, with its end-of-sentence mark.
        targets: the same of each reference.
        a, b: an output has at most ``a x + b`` tokens (``--max-len-a``, ``--max-len-b``), x being
            the tokens of the source. In a batch with longer sources it may have more.
        positions: the most that the decoder has, its end-of-sentence mark included.
    """
    most = (a * np.asarray(sources) + b).astype(np.int64)
    if positions is not None:
        most = np.minimum(most, positions - 1)
    lengths = np.asarray(targets) - 1
    over = int((lengths > most).sum())
    if not over:
        return ""
    return (
        f"{over} of {len(lengths)} references are longer (up to {lengths.max()} tokens) than an "
        f"output may be (--max-len-a {a:g} --max-len-b {b:g}), so they cannot be found"
    )


def large_trees(
    trees: Iterable[PathTree], depth: int, degree: int, siblings: bool, side: str
) -> str:
    """How many trees an encoding of paths cannot hold whole, as a sentence; "" for none.

    Args:
        trees: the parents and branches of each, parents before their children.
        depth: most steps of a path.
        degree: most branches of a node.
        siblings: whether a path goes by first children and next siblings, so that any degree fits.
        side: ``source`` or ``target``.
    """
    deep = wide = number = deepest = widest = 0
    for parents, branches in trees:
        steps = [0] * len(parents)
        for node, parent in enumerate(parents):
            if parent >= 0:
                steps[node] = steps[parent] + 1 + (branches[node] if siblings else 0)
        deepest, widest = max(deepest, *steps, 0), max(widest, *branches, 0)
        deep += max(steps, default=0) > depth
        wide += not siblings and max(branches, default=0) >= degree
        number += 1
    if not deep and not wide:
        return ""
    return (
        f"of {number} {side} trees {deep} are deeper than depth={depth} steps (up to {deepest}) "
        f"and {wide} have more than degree={degree} children (up to {widest + 1}): the encoding "
        "does not tell all of their nodes apart"
    )

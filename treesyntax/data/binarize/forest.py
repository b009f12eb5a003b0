"""Many trees at once as integer arrays: for corpora, where an object for each node is too slow.

Nodes of a forest are numbered through all trees, those of one tree after those of the one before.
What is above a root is one more node, ``N`` for N nodes, so that it can be an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Forest(NamedTuple):
    """Trees whose siblings stand in the order of their numbers, in any other order.

    Attributes:
        sizes: nodes of each tree [S].
        parents: the parent of each node [N], N for roots.
    """

    sizes: Ints
    parents: Ints


class Preorder(NamedTuple):
    """Trees with their nodes in preorder, numbered within each tree.

    Attributes:
        numbers: the place of each node of the forest in the preorder of its tree [N].
        parents: the parent of each place [N], -1 for roots.
        branches: how many siblings stand before each place [N].
        depths: how many edges it is from the root [N].
    """

    numbers: Ints
    parents: Ints
    branches: Ints
    depths: Ints


def runs(starts: Ints, counts: Ints) -> Ints:
    """The ranges of ``counts`` numbers from ``starts`` on, one after another."""
    return np.repeat(starts - before(counts), counts) + np.arange(counts.sum())


def before(counts: Ints) -> Ints:
    """The sum of all counts before each one."""
    return np.cumsum(counts) - counts


def sum_of_each(values: Ints | Bools, counts: Ints) -> Ints:
    """The sum of each run of ``counts`` values; runs may be empty."""
    total = np.append(0, np.cumsum(values))
    ends = np.cumsum(counts)
    return total[ends] - total[ends - counts]


def any_of_each(marks: Bools, counts: Ints) -> Bools:
    """Whether any of each run of ``counts`` marks is set; runs may be empty."""
    return sum_of_each(marks, counts) > 0


def ancestors(parents: Ints, longest: int) -> list[Ints]:
    """The ancestors of all nodes 1, 2, 4, … edges up, N above the root [N + 1 each].

    The last is enough to tell a cycle: in trees of at most ``longest`` nodes all of it is N.
    """
    above = [np.append(parents, len(parents))]
    while 1 << len(above) - 1 < longest and (above[-1] != len(parents)).any():
        above.append(above[-1][above[-1]])
    return above


def path_sums(values: Ints, above: Sequence[Ints]) -> Ints:
    """The sum of the values of each node and all its ancestors [N]; ``above`` is `ancestors`."""
    sums = np.append(values, 0)
    for up in above:
        sums += sums[up]
    return sums[:-1]


def preorder(forest: Forest, ranks: Ints | None = None) -> Preorder:
    """The preorder of every tree, with as many passes over all nodes as the depth has bits.

    Args:
        forest: trees without a cycle.
        ranks: what orders siblings instead of their numbers, from -N to 2N and all different.
    """
    size = len(forest.parents)
    above = ancestors(forest.parents, int(forest.sizes.max(initial=0)))
    descendants = np.ones(size + 1)  # of each node and itself; exact, as bincount sums floats
    for up in above:
        descendants[size] = 0
        descendants += np.bincount(up, descendants, size + 1)
    ranks = np.arange(size) if ranks is None else ranks
    # Families, each from left to right; nearly in order, for which a stable sort is the fastest.
    order = np.argsort(forest.parents * (3 * size) + ranks, kind="stable")
    begins = np.diff(forest.parents[order], prepend=-1) != 0
    eldest = np.maximum.accumulate(np.where(begins, np.arange(size), 0))
    inside = descendants[order].astype(np.int64)
    earlier = before(inside)
    step, branch = np.zeros((2, size), np.int64)
    step[order] = 1 + earlier - earlier[eldest]
    branch[order] = np.arange(size) - eldest
    roots = forest.parents == size
    step[roots] = branch[roots] = 0
    numbers = path_sums(step, above)
    places = np.repeat(before(forest.sizes), forest.sizes) + numbers
    parents, branches, depths = np.empty((3, size), np.int64)
    parents[places] = np.append(numbers, -1)[forest.parents]
    branches[places] = branch
    depths[places] = path_sums(np.ones(size, np.int64), above) - 1
    return Preorder(numbers, parents, branches, depths)


def depths_of(forest: Forest) -> Ints:
    """The number of edges from the root to each node [N]."""
    above = ancestors(forest.parents, int(forest.sizes.max(initial=0)))
    return path_sums(np.ones(len(forest.parents), np.int64), above) - 1


def by_depth(depths: Ints) -> Ints:
    """The nodes of each depth, from left to right, the least depth first [N]."""
    # Small numbers are sorted faster.
    return np.argsort(depths.astype(np.min_scalar_type(depths.max(initial=0))), kind="stable")


def from_depths(sizes: Ints, depths: Ints) -> Preorder:
    """The trees whose nodes, in preorder, have these depths; the root of each has depth 0."""
    size = len(depths)
    numbers = np.arange(size) - np.repeat(before(sizes), sizes)
    # The first child of a node comes right behind it, its siblings next at the same depth.
    eldest = (np.diff(depths, prepend=0) > 0) | (depths == 0)
    order = by_depth(depths)
    places = np.arange(size)
    first = np.maximum.accumulate(np.where(eldest[order], places, 0))
    parents, branches = np.empty((2, size), np.int64)
    parents[order] = numbers[order[first]] - 1
    branches[order] = places - first
    return Preorder(numbers, parents, branches, depths)


def merged(forest: Forest, begins: Bools) -> Forest:
    """Dependency trees over groups of words, as `treesyntax.trees.merging` has it.

    Args:
        forest: a node for every word, in surface order.
        begins: whether a group begins with each word [N]; the first of a tree does.
    """
    if begins.all():
        return forest
    group = np.cumsum(begins) - 1
    highest = np.lexsort((depths_of(forest), group))[begins]  # the leftmost, as the sort is stable
    parents = np.append(group, group[-1] + 1)[forest.parents[highest]]
    return Forest(sum_of_each(begins, forest.sizes), parents)


def with_pieces(forest: Forest, widths: Ints, chained: bool) -> tuple[Forest, Ints]:
    """The forest with ``widths`` nodes for every node, and the ranks of their siblings.

    The first of them takes the place of the node; the others follow as
    `treesyntax.trees.subword_nodes` has it. New nodes are numbered in the order of old ones.
    """
    size, firsts = int(widths.sum()), before(widths)
    hosts = np.append(firsts, size)[forest.parents]
    parents = np.repeat(hosts, widths)
    ranks = np.arange(size)
    further = np.ones(size, bool)
    further[firsts] = False
    if chained:
        parents[further] = np.flatnonzero(further) - 1
        seconds = firsts[widths > 1] + 1
        ranks[seconds] += size  # after all dependents
    else:
        of_root = further & (parents == size)
        parents[of_root] = np.repeat(firsts, widths)[of_root]
        ranks[of_root] -= size  # before all dependents
    return Forest(sum_of_each(widths, forest.sizes), parents), ranks

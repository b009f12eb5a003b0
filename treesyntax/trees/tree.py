"""The one tree type: constituency, dependency, syntax trees of programs, logical forms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import TreeError

IntArray = NDArray[np.int32]

NO_WORD = -1
ROOT_PARENT = -1


def _frozen(values: Sequence[int] | IntArray) -> IntArray:
    array = np.array(values, dtype=np.int32)
    array.setflags(write=False)
    return array


class Tree:
    """An immutable ordered tree; its nodes are numbered in preorder, the root is node 0.

    No method recurses over depth, so a chain of 10,000 nodes is as good as any other tree.
    A tree without nodes stands for an empty line.

    Attributes:
        parents: int32 [N], the parent of each node; ``parents[0] == -1``.
        labels: N strings. The category or symbol of an interior node, the word of a leaf; in a
            dependency tree the word form.
        words: int32 [N], the surface index of the word that a node stands for, -1 for none.
            Leaves of a constituency tree and all nodes of a dependency tree have one.
        relations: N strings, the label of the edge to the parent (dependency relation), or ().
        branches: int32 [N], the slot of each node among its parent's slots, 0 for the root.
            Siblings without gaps have 0, 1, 2, …; binary trees may have a second child only.

    Raises:
        TreeError: if the arrays differ in length or do not describe a tree in preorder.
    """

    __slots__ = ("_word_nodes", "branches", "labels", "parents", "relations", "words")

    parents: IntArray
    labels: tuple[str, ...]
    words: IntArray
    relations: tuple[str, ...]
    branches: IntArray
    _word_nodes: list[int] | None

    def __init__(
        self,
        parents: Sequence[int] | IntArray,
        labels: Sequence[str],
        words: Sequence[int] | IntArray | None = None,
        relations: Sequence[str] = (),
        branches: Sequence[int] | IntArray | None = None,
    ) -> None:
        size = len(parents)
        filled = [NO_WORD] * size if words is None else words
        if len(labels) != size or len(filled) != size or len(relations) not in (0, size):
            raise TreeError(
                f"{size} parents, {len(labels)} labels, {len(filled)} words and "
                f"{len(relations)} relations do not belong together",
                "give every node one of each",
            )
        plain = parents.tolist() if isinstance(parents, np.ndarray) else list(parents)
        _check_preorder(plain)
        slots = _count_branches(plain) if branches is None else branches
        set_field = object.__setattr__
        set_field(self, "parents", _frozen(plain))
        set_field(self, "labels", tuple(labels))
        set_field(self, "words", _frozen(filled))
        set_field(self, "relations", tuple(relations))
        set_field(self, "branches", _frozen(slots))
        set_field(self, "_word_nodes", None)
        if branches is not None:
            _check_branches(plain, self.branches.tolist())

    @classmethod
    def _of(
        cls,
        parents: Sequence[int] | IntArray,
        labels: Sequence[str],
        words: Sequence[int] | IntArray,
        relations: Sequence[str],
        branches: Sequence[int] | IntArray,
    ) -> Tree:
        """A tree from fields that are valid by construction; nothing is checked.

        For code that derives them from a valid tree, on the path of every training sentence.
        Arrays become read-only and are kept, not copied.
        """
        tree = object.__new__(cls)
        set_field = object.__setattr__
        set_field(tree, "labels", tuple(labels))
        set_field(tree, "relations", tuple(relations))
        for name, values in (("parents", parents), ("words", words), ("branches", branches)):
            array = np.asarray(values, dtype=np.int32)
            array.setflags(write=False)
            set_field(tree, name, array)
        set_field(tree, "_word_nodes", None)
        return tree

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Tree is immutable, {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Tree is immutable, {name} cannot be deleted")

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    def _key(self) -> tuple[object, ...]:
        arrays = (self.parents, self.words, self.branches)
        return (self.labels, self.relations, *(array.tobytes() for array in arrays))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = ", ".join(self.labels[:6]) + (", …" if len(self) > 6 else "")
        return f"Tree({len(self)} nodes: {shown})"

    def __reduce__(self) -> tuple[type[Tree], tuple[object, ...]]:
        return (Tree, (self.parents, self.labels, self.words, self.relations, self.branches))

    @property
    def depths(self) -> IntArray:
        """int32 [N]: number of edges from the root."""
        depths = [0] * len(self)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                depths[node] = depths[parent] + 1
        return np.array(depths, dtype=np.int32)

    @property
    def arities(self) -> IntArray:
        """int32 [N]: number of children."""
        return np.bincount(self.parents[1:], minlength=len(self)).astype(np.int32)

    @property
    def last_descendants(self) -> IntArray:
        """int32 [N]: the last node of each subtree, so node i dominates i+1 … last[i]."""
        last = list(range(len(self)))
        parents = self.parents.tolist()
        for node in range(len(self) - 1, 0, -1):
            parent = parents[node]
            last[parent] = max(last[parent], last[node])
        return np.array(last, dtype=np.int32)

    @property
    def leaves(self) -> list[int]:
        """Nodes without children, from left to right."""
        return np.flatnonzero(self.arities == 0).tolist()

    def children(self) -> list[list[int]]:
        """The children of every node, from left to right."""
        children: list[list[int]] = [[] for _ in range(len(self))]
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                children[parent].append(node)
        return children

    def word_nodes(self) -> list[int]:
        """The node of each word in surface order; a TreeError if that is not 0, 1, 2, …"""
        if self._word_nodes is None:
            object.__setattr__(self, "_word_nodes", _nodes_in_order(self.words.tolist()))
        return list(self._word_nodes or ())

    @classmethod
    def from_heads(
        cls, heads: Sequence[int], forms: Sequence[str], relations: Sequence[str] = ()
    ) -> Tree:
        """A dependency tree from CoNLL heads; node labels are word forms.

        Args:
            heads: one per word, 1-based; 0 marks the root.
            forms: one word form each.
            relations: one dependency relation each, or none at all.

        Raises:
            TreeError: for a head out of range, no root, two roots, a cycle, or lists of different lengths.
        """
        size = len(heads)
        for name, column in (("words", forms), *((("relations", relations),) if relations else ())):
            if len(column) != size:
                raise TreeError(
                    f"{len(column)} {name}, but {size} heads", "give one of each a word"
                )
        dependents: list[list[int]] = [[] for _ in range(size + 1)]
        branches = []
        for word, head in enumerate(heads, start=1):
            if not 0 <= head <= size:
                raise TreeError(
                    f"the head {head} of word {word} is out of range (the sentence has {size} words)",
                    "heads run from 0 (root) to the number of words",
                )
            siblings = dependents[head]
            branches.append(len(siblings))
            siblings.append(word)
        if len(dependents[0]) != 1 and size:
            root_words = ", ".join(map(str, dependents[0])) or "none"
            raise TreeError(
                f"{len(dependents[0])} roots (words: {root_words})" if dependents[0] else "no root",
                "exactly one word must have head 0",
            )
        order: list[int] = []
        nodes = [ROOT_PARENT] * (size + 1)  # of each word, and of the root's head
        stack = dependents[0]
        while stack:
            word = stack.pop()
            nodes[word] = len(order)
            order.append(word)
            if below := dependents[word]:
                stack += below[::-1]
        if len(order) != size:
            lost = sorted(set(range(1, size + 1)) - set(order))
            raise TreeError(
                f"the heads form a cycle (words never reached from the root: "
                f"{', '.join(map(str, lost[:8]))}{' …' if len(lost) > 8 else ''})",
                "follow the heads of these words and break the loop",
            )
        words = [word - 1 for word in order]
        tree = cls._of(
            parents=[nodes[heads[word]] for word in words],
            labels=[forms[word] for word in words],
            words=words,
            relations=[relations[word] for word in words] if relations else (),
            branches=[branches[word] for word in words],
        )
        object.__setattr__(tree, "_word_nodes", nodes[1:])
        return tree

    def heads(self) -> list[int]:
        """CoNLL heads (1-based, 0 = root) of the words in surface order; undoes `from_heads`."""
        nodes = self.word_nodes()
        if len(nodes) != len(self):
            raise TreeError(
                f"{len(self) - len(nodes)} nodes are not words", "only dependency trees have heads"
            )
        words, parents = self.words.tolist(), self.parents.tolist()
        return [words[parents[node]] + 1 if parents[node] >= 0 else 0 for node in nodes]


def _nodes_in_order(words: list[int]) -> list[int]:
    placed = [node for node, word in enumerate(words) if word >= 0]
    if [words[node] for node in placed] == list(range(len(placed))):
        return placed
    node_of = {words[node]: node for node in placed}
    if len(node_of) != len(placed) or max(node_of, default=-1) != len(placed) - 1:
        raise TreeError("the surface indices of the words are not 0, 1, 2, …")
    return [node_of[word] for word in range(len(placed))]


def _check_preorder(parents: list[int]) -> None:
    if not parents:
        return
    if parents[0] != ROOT_PARENT:
        raise TreeError(f"the first node has parent {parents[0]}", "the root's parent is -1")
    for node in range(1, len(parents)):
        parent = parents[node]
        # In preorder a parent lies on the path from the previous node to the root; every step
        # of this walk leaves a finished subtree, so all walks together take O(N).
        open_node = node - 1
        while open_node > parent >= 0:
            open_node = parents[open_node]
        if open_node != parent:
            raise TreeError(
                f"node {node} has parent {parent}, which is not open at that point",
                "number the nodes in preorder and give every node but the first a parent",
            )


def _count_branches(parents: list[int]) -> list[int]:
    used = [0] * len(parents)
    branches = [0] * len(parents)
    for node in range(1, len(parents)):
        parent = parents[node]
        branches[node] = used[parent]
        used[parent] += 1
    return branches


def _check_branches(parents: list[int], branches: list[int]) -> None:
    if len(branches) != len(parents):
        raise TreeError(f"{len(parents)} parents but {len(branches)} branches")
    free = [0] * len(parents)
    for node, (parent, branch) in enumerate(zip(parents, branches, strict=True)):
        if branch < (free[parent] if parent >= 0 else 0) or (parent < 0 and branch):
            raise TreeError(
                f"node {node} takes branch {branch} of node {parent}, which is not free",
                "the branches of siblings must increase; the root's is 0",
            )
        if parent >= 0:
            free[parent] = branch + 1

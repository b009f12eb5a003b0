"""A padded batch of trees, and the map from model tokens to nodes; torch starts here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from treesyntax.errors import OptionError
from treesyntax.nn.devices import can_be_read
from treesyntax.trees.alignment import Trees, trees_of
from treesyntax.trees.labels import node_labels
from treesyntax.trees.tree import Tree

NO_NODE = -1


Integers = NDArray[np.int64]
StoredArrays = (
    tuple[Integers, Integers, Integers] | tuple[Integers, Integers, Integers, Integers | None]
)
"""One stored tree or forest: parents [N], branches [N], the node of each token [T], EOS not counted,
and the labels [N] if they are known."""


@dataclass(frozen=True)
class TreeBatch:
    """B trees of at most N nodes, under sequences of at most T tokens.

    Nodes are in preorder, so that subtrees are intervals. Every coordinate of a node is that in its
    own tree, whatever stands beside it.

    A row may be a forest, of several trees one after another: each node with parent -1 begins one.
    Nodes of different trees have no relation, no distance and no path: methods treat such a pair as
    one in which a token has no node. Masks hide it, as they hide all that they do not name. Padding
    nodes are trees of one node without a token.

    Attributes:
        parent: LongTensor [B, N], -1 for a root.
        branch: LongTensor [B, N], slot among the parent's slots, 0 for a root.
        token_node: LongTensor [B, T], the node of each token, -1 for padding and special tokens.
        label: LongTensor [B, N], the label of each node: of the arc to its head, or its category. It is
            0 for an unknown one, -1 for padding; None where labels are not known.
    """

    parent: Tensor
    branch: Tensor
    token_node: Tensor
    label: Tensor | None = None
    check: InitVar[bool] = True
    """Whether the numbers are checked: those on the CPU, outside of compiled code. What the library
    derives from trees is not, as it would cost every step, and is in preorder only where it says so."""

    def __post_init__(self, check: bool) -> None:
        """Raise ValueError for what is no batch of trees."""
        tensors = [self.parent, self.branch, self.token_node]
        tensors += [] if self.label is None else [self.label]
        for name, tensor in zip(("parent", "branch", "token_node", "label"), tensors, strict=False):
            if not isinstance(tensor, Tensor) or tensor.dtype != torch.long:
                kind = str(tensor.dtype) if isinstance(tensor, Tensor) else type(tensor).__name__
                raise ValueError(
                    f"a TreeBatch is made of LongTensors, but its {name} is a {kind}; "
                    "batch_trees makes one of trees"
                )
        nodes, branches, tokens = (
            tensor.shape for tensor in (self.parent, self.branch, self.token_node)
        )
        if nodes != branches or (len(nodes), len(tokens)) != (2, 2) or nodes[0] != tokens[0]:
            raise ValueError(
                "a TreeBatch needs parents [B, N], branches [B, N] and token nodes [B, T] of the same "
                f"B, not {[*nodes]}, {[*branches]} and {[*tokens]}"
            )
        if self.label is not None and self.label.shape != nodes:
            raise ValueError(
                f"a TreeBatch of parents {[*nodes]} has a label for each, not {[*self.label.shape]}"
            )
        # A look at numbers on a GPU would wait for it; fake tensors, a subclass, have none.
        if check and all(type(tensor) is Tensor and can_be_read(tensor) for tensor in tensors):
            _check_numbers(*(tensor.numpy() for tensor in tensors[:3]))

    def to_dict(self) -> dict[str, Tensor]:
        """A plain dict of tensors, the only form that fairseq's batch mover carries whole."""
        tensors = {"parent": self.parent, "branch": self.branch, "token_node": self.token_node}
        return tensors if self.label is None else {**tensors, "label": self.label}

    @classmethod
    def from_dict(cls, tensors: dict[str, Tensor]) -> TreeBatch:
        """Undo :meth:`to_dict`; raises ValueError as the class does."""
        required = (tensors["parent"], tensors["branch"], tensors["token_node"])
        return cls(*required, tensors.get("label"))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> TreeBatch:
        """The same on a device, with the arguments of a tensor's ``to``; itself where it is there already."""
        tensors = self.to_dict()
        moved = {
            name: tensor.to(device, non_blocking=non_blocking) for name, tensor in tensors.items()
        }
        same = all(moved[name] is tensor for name, tensor in tensors.items())
        return self if same else TreeBatch(**moved, check=False)

    @classmethod
    def without_trees(cls, tokens: Tensor) -> TreeBatch:
        """A batch in which no token of [B, T] has a node, for methods that need no trees."""
        none = torch.full_like(tokens, NO_NODE, dtype=torch.long)
        return cls(none[:, :1], torch.zeros_like(none[:, :1]), none, check=False)

    def at_tokens(self, node_values: Tensor, fill: int = NO_NODE) -> Tensor:
        """Values [B, N] of nodes as values [B, T] of tokens, ``fill`` where there is no node."""
        values = node_values.gather(1, self.token_node.clamp(min=0))
        return values.masked_fill(self.token_node < 0, fill)


def check_over(tree: object, tokens: Tensor) -> None:
    """Refuse trees that are not those of tokens [B, T]: one tree would be broadcast over all rows.

    Shapes alone are read, so that no GPU is waited for and a graph can be captured.

    Raises:
        OptionError: if they are over another number of rows or columns, or no batch at all.
    """
    if not isinstance(tree, TreeBatch):
        raise OptionError(
            f"trees come as a TreeBatch, not as a {type(tree).__name__}; make one with "
            "batch_trees([tree, …]), or of what its to_dict gave with TreeBatch.from_dict"
        )
    if tree.token_node.shape != tokens.shape:
        raise OptionError(
            f"the trees are over tokens {[*tree.token_node.shape]}, but the tokens are "
            f"{[*tokens.shape]}; give batch_trees a tree for each row, and width= the columns of the "
            "tokens (virtual ones, as prompt tuning has, can have none: take LoRA)"
        )


def refuse_padding(batch: TreeBatch, real: Tensor) -> None:
    """Refuse trees over padding: they are padded on the right, the tokens on the left, or the reverse.

    It reads numbers, so it is for tensors on the CPU, or where nothing is trained.

    Args:
        batch: the trees of the tokens, or of the first ones.
        real: bool [B, T], False where padding is; other shapes are no mask of padding.

    Raises:
        OptionError: if padding has a node.
    """
    nodes = batch.token_node
    rows, width = nodes.shape
    if type(real) is not Tensor or real.dim() != 2 or len(real) != rows or real.shape[1] < width:
        return
    if ((nodes >= 0) & ~real[:, :width].to(nodes.device)).any():
        raise OptionError(
            "padding has a node in the trees: they are padded on another side than the tokens; give "
            "batch_trees left_pad=True, or the nodes of the padded tokens, as TreeCollator does"
        )


def collate(
    trees: Sequence[StoredArrays],
    width: int,
    left_pad: bool = False,
    specials: int = 1,
    check: bool = True,
) -> TreeBatch:
    """Pad trees to one batch whose token columns match the token batch.

    Args:
        trees: parents, branches, token nodes and perhaps labels, one tree a row.
        width: number of columns T of the token batch, special tokens and padding included.
        left_pad: whether the token batch is padded on the left.
        specials: special tokens after the sentence (EOS), which have no node.
        check: whether the numbers are checked; a tree store holds trees that were.

    Raises:
        ValueError: if a tree's nodes are not in preorder, or a token's node is none of them.
    """
    sizes = [len(tree[0]) for tree in trees]
    most_nodes = max(sizes, default=0)
    shape = (len(trees), max(most_nodes, 1))
    parent, branch = np.full(shape, -1, np.int64), np.zeros(shape, np.int64)
    token_node = np.full((len(trees), width), NO_NODE, np.int64)
    for row, (parents, branches, nodes, *_) in enumerate(trees):
        parent[row, : len(parents)] = parents
        branch[row, : len(parents)] = branches
        start = width - specials - len(nodes) if left_pad else 0
        token_node[row, start : start + len(nodes)] = nodes
    if check:
        _check_numbers(parent, branch, token_node, np.array(sizes, np.int64).reshape(-1, 1))
    tensors = [torch.from_numpy(array) for array in (parent, branch, token_node)]
    return TreeBatch(tensors[0], tensors[1], tensors[2], _padded_labels(trees, shape), check=False)


def _padded_labels(trees: Sequence[StoredArrays], shape: tuple[int, int]) -> Tensor | None:
    """LongTensor [B, N], None where a tree has no labels."""
    padded = np.full(shape, -1, np.int64)
    for row, (_, _, _, *labels) in enumerate(trees):
        if not labels or labels[0] is None:
            return None
        padded[row, : len(labels[0])] = labels[0]
    return torch.from_numpy(padded)


def batch_trees(
    trees: Sequence[Trees | Sequence[Trees]],
    token_nodes: Sequence[Sequence[int]] | None = None,
    width: int | None = None,
    left_pad: bool = False,
    labels: Mapping[str, int] | None = None,
) -> TreeBatch:
    """Make a batch of trees under the tokens of a model.

    Args:
        trees: a tree for each of B rows; or a list of trees for a forest, such as a pair of sentences,
            which may be empty.
        token_nodes: the node of each token of each row, -1 for special tokens and padding, as
            :func:`treesyntax.trees.alignment.align` finds them; None where the tokens are the nodes.
            Nodes of a forest are numbered through: those of its second tree follow those of its first.
        width: columns T of the token batch, by default of the longest row.
        left_pad: whether shorter rows are padded on the left.
        labels: ids from 1 on of labels (see :func:`treesyntax.trees.labels.node_labels`), for methods
            that read them; others are 0.

    Raises:
        ValueError: if there are not as many rows as trees, a row is longer than ``width``, a node is none of its
            trees, or a label has the id of unknown ones or less.
        TreeError: for what is no tree.
    """
    if isinstance(trees, Tree):
        raise ValueError(
            "batch_trees takes a list with a tree for each row, not one tree; give [tree]"
        )
    forests = [trees_of(row) for row in trees]
    sizes = [sum(map(len, forest)) for forest in forests]
    rows = [range(size) for size in sizes] if token_nodes is None else token_nodes
    if len(rows) != len(forests):
        raise ValueError(f"{len(forests)} trees, but token nodes of {len(rows)} rows")
    if labels and min(labels.values()) < 1:
        label = min(labels, key=labels.__getitem__)
        raise ValueError(
            f"the label {label!r} has the id {labels[label]}, and 0 is that of unknown labels; count from 1, and "
            "leave out labels that shall be unknown"
        )
    longest = max(map(len, rows), default=0)
    if width is not None and longest > width:
        raise ValueError(f"a row has {longest} tokens, but the batch has {width} columns")
    stored = [
        _stored(forest, np.array(row, np.int64), labels)
        for forest, row in zip(forests, rows, strict=True)
    ]
    return collate(stored, longest if width is None else width, left_pad, specials=0)


def _stored(
    forest: Sequence[Tree], token_nodes: Integers, labels: Mapping[str, int] | None
) -> StoredArrays:
    """The arrays of a row's trees, their nodes numbered through."""
    sizes = np.array([len(tree) for tree in forest], np.int64)
    first = np.repeat(sizes.cumsum() - sizes, sizes)
    parents = _joined(tree.parents for tree in forest)
    parents = np.where(parents < 0, parents, parents + first)
    ids = None
    if labels is not None:
        ids = _joined([labels.get(label, 0) for label in node_labels(tree)] for tree in forest)
    return parents, _joined(tree.branches for tree in forest), token_nodes, ids


def _joined(arrays: Iterable[ArrayLike]) -> Integers:
    """One array of whole numbers, of any number of them."""
    return np.concatenate([np.zeros(0, np.int64), *arrays]).astype(np.int64)


def _check_numbers(
    parent: Integers, branch: Integers, token_node: Integers, sizes: Integers | None = None
) -> None:
    """Raise ValueError unless nodes are in preorder and tokens have nodes, in O(B (N + T)).

    A depth-first walk fills slots for children from a stack, so numbers of children give back the
    parents; in front of each row stands one more node, the parent of roots and padding. In preorder
    slot ``slots[k - 1] - k + p`` is the one that node k takes from its parent p: then each slot is
    taken once, and slots are in the order of their parents.

    Args:
        parent: [B, N].
        branch: [B, N].
        token_node: [B, T].
        sizes: [B, 1], the nodes of each row; None where they are not told from padding.
    """
    rows, size = parent.shape
    first = np.arange(rows)[:, None] * (size + 1)
    above, numbers = parent + first + 1, first + np.arange(1, size + 1)
    in_order = bool(((parent >= -1) & (parent < np.arange(size))).all())
    if in_order:
        counts = np.bincount(above.ravel(), minlength=rows * (size + 1))
        counts = counts.reshape(rows, size + 1)
        slots = counts.cumsum().reshape(rows, size + 1)
        taken_by = np.full(rows * size, -1)
        taken_by[slots[:, :-1] + above - numbers] = above
        in_order = not ((taken_by[:1] < 0).any() or (taken_by[1:] < taken_by[:-1]).any())
    if not in_order:
        row, node = next(_out_of_order(parent))
        raise ValueError(
            f"tree {row}: node {node}, of parent {parent[row, node]}, is not in preorder; number "
            "nodes depth first, as Tree does, and give a root the parent -1"
        )
    if (branch < 0).any():
        row, node = _first(branch < 0)
        raise ValueError(
            f"tree {row}: the branch of node {node} is {branch[row, node]}; branches count from 0"
        )
    outside = (token_node >= (size if sizes is None else sizes)) | (token_node < NO_NODE)
    if outside.any():
        row, token = _first(outside)
        most = size if sizes is None else int(sizes[row, 0])
        raise ValueError(
            f"tree {row}: the node of token {token} is none of its {most} nodes but "
            f"{token_node[row, token]}; a token without a node has -1"
        )


def _first(wrong: NDArray[np.bool_]) -> tuple[int, int]:
    """Row and column of the first True."""
    row, column = np.argwhere(wrong)[0].tolist()
    return row, column


def _out_of_order(parent: Integers) -> Iterator[tuple[int, int]]:
    """Row and number of each node that a walk with a stack does not come to."""
    for row, parents in enumerate(parent.tolist()):
        path = [-1]
        for node, above in enumerate(parents):
            while path and path[-1] != above:
                path.pop()
            if not path:
                yield row, node
            path.append(node)

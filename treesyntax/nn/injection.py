"""What a method is: an `Injection` that declares what it adds, and the registry of methods.

A method never sees tokens, layers or attention. It turns a :class:`TreeBatch` into a node
encoding, or into relation ids of pairs plus a table per layer; the backbone adds them. That is why methods
compose, and why adding nothing is the plain Transformer bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from keyword import iskeyword
from typing import TypeVar

from torch import Tensor, nn

from treesyntax.jobs import imports
from treesyntax.jobs.imports import Registry
from treesyntax.nn.node_maps import NodeMap
from treesyntax.nn.pairs import RelationOf
from treesyntax.nn.tree_batch import TreeBatch


@dataclass(frozen=True)
class Site:
    """The stack of layers into which a method is built."""

    d_model: int
    heads: int
    layers: int


ValueMap = Callable[[int, Tensor], Tensor]
"""Layer and values [B, H, T, d] to values of that shape."""


@dataclass(frozen=True)
class LayerStates:
    """What a loss can be about in a layer.

    Attributes:
        inputs: [B, T, d_model], what the layer gets.
        log_attention: gives the logarithms [B, h, T, T] of the weights of the layer's first h heads,
            in single precision at least; they are computed for this alone.
        outputs: [B, T, d_model], what the layer gives.
    """

    inputs: Tensor
    log_attention: Callable[[int], Tensor]
    outputs: Tensor


class Injection(nn.Module):
    """Base of all methods; a method overrides the hooks it needs, the others add nothing.

    Attributes:
        paper: where the method comes from.
        equation: what it computes, in one line.
        cost: what it takes beside the plain Transformer, in one line.
        linearization: of the tree that its paper feeds, see :mod:`treesyntax.trees.linearizations`.
        needs_tree: whether it needs trees beside the tokens.
        needs_labels: whether it reads the labels of their nodes.
        needs_slots: whether in a decoder each node must be one token, which says its slots. So it is
            where a method reads where the next node will hang, or what later tokens change in a node.
        training_only: whether it needs them, and does anything, in training alone.
        replaces_positions: whether the tokens' absolute positions are left out with it.
        sides: where it makes sense, ``encoder`` and ``decoder``.
        of_the_paper: what the paper's model has in its encoder and in its decoder, where that is
            not the method with its defaults in the encoder alone; the architectures have it.
    """

    paper = ""
    equation = ""
    cost = ""
    linearization = "preorder"
    needs_tree = True
    needs_labels = False
    needs_slots = False
    training_only = False
    replaces_positions = False
    sides: tuple[str, ...] = ("encoder", "decoder")
    of_the_paper: tuple[str, str] | None = None

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site = site

    def node_encoding(self, tree: TreeBatch) -> Tensor | None:
        """[B, T, d_model] to add to the scaled token embeddings, or None."""
        return None

    def node_map(self, tree: TreeBatch) -> NodeMap | None:
        """A linear map of the query and the key of each token, for all layers, or None.

        Made once a forward pass, for all T tokens; step by step a decoder takes the last one's.
        Keys are mapped before they enter the kv cache, and before vectors of pairs are added.
        """
        return None

    def relation_ids(self, tree: TreeBatch) -> Tensor | None:
        """Integers [B or 1, T, T] of (query, key) pairs, computed once a forward pass, or None.

        Step by step a decoder needs the last query alone. Ids put together by
        :func:`treesyntax.nn.relations.by_rows` are computed for that one; others for all, and cut.
        """
        return None

    def pair_features(self, tree: TreeBatch) -> Tensor | None:
        """Float [B or 1, C, T, T]: C numbers of (query, key) pairs in place of a relation id, or None.

        The tables are then read by them: a pair gets the sum of the C rows, each times its number.
        Of :class:`treesyntax.nn.relations.QueriedTrees` it may return the queries' rows alone.
        """
        return None

    def value_map(self, tree: TreeBatch) -> ValueMap | None:
        """A function of layer and values that gives other values, or None.

        Values are [B, H, T, d] before and after; the attention weights stay what they are.
        """
        return None

    def relation_of_pair(self, tree: TreeBatch) -> RelationOf | None:
        """:meth:`relation_ids` as a function of single pairs, from coordinates of O(N), or None.

        With it, and without vectors and scales, long inputs take :mod:`treesyntax.nn.kernels.flex`.
        """
        return None

    def bias_table(self, layer: int) -> Tensor | None:
        """[H, R]: what each relation id adds to the logits of each head in a layer, or None."""
        return None

    def pair_scale(self, tree: TreeBatch) -> Tensor | None:
        """[B, T, T]: what the logits of (query, key) pairs are multiplied by before biases, or None.

        :meth:`scales_layer` says in which layers.
        """
        return None

    def scales_layer(self, layer: int) -> bool:
        """Whether :meth:`pair_scale` applies in a layer."""
        return True

    def loss(self, layer: int, states: LayerStates, tree: TreeBatch) -> Tensor | None:
        """What an encoder's layer adds to the loss in training: a sum over tokens, or None."""
        return None

    def leaks_future(self) -> str | None:
        """Why the method must not be built into a decoder, whose tree is not yet complete, or None.

        What a method computes for a node must not depend on nodes that come later.
        """
        return None

    def vector_tables(self, layer: int) -> tuple[Tensor | None, Tensor | None]:
        """Vectors of the relation ids on the key and on the value side of a layer.

        Either is [R, d], [H, R, d] for a table per head, or None; d is a head's width.
        """
        return None, None


FACTS = (
    "paper", "equation", "cost", "linearization", "needs_tree", "needs_labels",
    "needs_slots", "replaces_positions", "of_the_paper", "training_only", "sides",
)  # fmt: skip
"""Attributes of :class:`Injection` that describe a method; all others are its hooks."""

WORDS = "words"
"""The linearization that leaves a text as it is."""


def hooks_of(method: type[Injection]) -> list[str]:
    """The hooks that a method overrides, in the order of :class:`Injection`."""
    return [
        name
        for name in vars(Injection)
        if not name.startswith("_")
        and name not in FACTS
        and getattr(method, name) is not getattr(Injection, name)
    ]


def acts_through_text(method: type[Injection]) -> bool:
    """Whether a method adds nothing to a model, but writes the tree into the text, as ``linearized`` does."""
    return not hooks_of(method) and method.linearization != WORDS


METHODS: Registry[type[Injection]] = Registry("method", imports.METHODS)
"""All methods by name. Architectures, tests, listings and studies are made from it."""


def methods_of(side: str) -> list[str]:
    """The names of the methods that make sense in an ``encoder`` or a ``decoder``."""
    return [name for name, method in METHODS.items() if side in method.sides]


Method = TypeVar("Method", bound=type[Injection])


def register(name: str) -> Callable[[Method], Method]:
    """Make a method known under a name; a class decorator.

    Raises:
        ValueError: for a name that a list of methods cannot hold, or that another method has; for other sides than
            a model has.
    """

    def add(method: Method) -> Method:
        if name == "none" or iskeyword(name):
            raise ValueError(f"{name!r} is no method in a list of methods; choose another name")
        sides = method.sides
        if not isinstance(sides, tuple) or not sides or not {*sides} <= {*Injection.sides}:
            raise ValueError(f"sides of {name} is {sides!r}; write ('encoder',) or ('decoder',)")
        METHODS.add(name, method, method)
        return method

    return add

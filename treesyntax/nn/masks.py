"""Masks as unions of relations: which relations each mask covers, read from a short text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from treesyntax.errors import OptionError
from treesyntax.jobs.imports import origin_of
from treesyntax.nn.relations import NO_RELATION, RELATIONS, tree_relations
from treesyntax.nn.tree_batch import TreeBatch

PairTest = Callable[[TreeBatch], Tensor]

USER_RELATIONS: dict[str, PairTest] = {}
"""Relations beyond the nine: functions from a batch to a bool tensor [B, T, T]."""

CAUSAL_RELATIONS: set[str] = set()
"""Those of them that never depend on nodes that come later."""

MOST_USER_RELATIONS = 4
ALL = "all"
"""The nine relations, as a mask names them."""


def register_relation(name: str, causal: bool = False) -> Callable[[PairTest], PairTest]:
    """Decorator: make a function from a batch to bool [B, T, T] a relation of that name.

    Args:
        name: by which masks name it.
        causal: whether the relation of two nodes never depends on nodes that come later, so that a
            decoder may use it on the tree that it has grown so far.

    Raises:
        OptionError: if the name is taken or cannot be written in a mask.
    """
    refused = OptionError(f"a relation cannot be named {name!r}: it is taken or not a plain word")
    if name in (*RELATIONS, ALL) or not name.isidentifier():
        raise refused

    def add(test: PairTest) -> PairTest:
        if name in USER_RELATIONS and origin_of(USER_RELATIONS[name]) != origin_of(test):
            raise refused
        USER_RELATIONS[name] = test
        (CAUSAL_RELATIONS.add if causal else CAUSAL_RELATIONS.discard)(name)
        return test

    return add


@dataclass(frozen=True)
class Masks:
    """Masks over pairs, each a union of relations; they may overlap.

    Attributes:
        names: one per mask.
        covers: the relations of each mask.
        user: names of the relations beyond the nine that occur, in order.
    """

    names: tuple[str, ...]
    covers: tuple[tuple[str, ...], ...]
    user: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Masks:
        """Read ``parent, child, near=left_sibling|right_sibling``; ``all`` is the nine relations.

        Raises:
            OptionError: for unknown relations (the valid ones are named), a mask defined twice,
                or more user relations than can be told apart.
        """
        text = ", ".join(RELATIONS) if text.strip() == ALL else text
        names, covers = [], []
        for definition in text.split(","):
            name, _, union = definition.partition("=")
            names.append(name.strip())
            covers.append(tuple(term.strip() for term in (union or name).split("|")))
        known = (*RELATIONS, *USER_RELATIONS)
        for relation in (relation for cover in covers for relation in cover):
            if relation not in known:
                raise OptionError(
                    f"unknown relation {relation!r} in {text!r}; the relations are "
                    f"{', '.join(known)}"
                )
        if len(set(names)) < len(names):
            raise OptionError(f"a mask is defined twice in {text!r}; name each one once")
        user = tuple(name for name in USER_RELATIONS if any(name in cover for cover in covers))
        if len(user) > MOST_USER_RELATIONS:
            raise OptionError(f"{len(user)} user relations; at most {MOST_USER_RELATIONS} fit")
        return cls(tuple(names), tuple(covers), user)

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """uint8 [B, T, T]: the tree relation, plus 10 for each combination of user relations."""
        ids = tree_relations(tree)
        for bit, name in enumerate(self.user):
            ids = ids + (len(RELATIONS) + 1) * 2**bit * USER_RELATIONS[name](tree).byte()
        return ids

    def membership(self) -> Tensor:
        """Float [masks, R]: 1 where a mask covers the pairs of a relation id."""
        width = len(RELATIONS) + 1
        matrix = torch.zeros(len(self.names), width << len(self.user))
        for mask, cover in enumerate(self.covers):
            for number in range(matrix.shape[1]):
                relation, combination = number % width, number // width
                held = {name for bit, name in enumerate(self.user) if combination >> bit & 1}
                if relation != NO_RELATION:
                    held.add(RELATIONS[relation])
                matrix[mask, number] = float(bool(held & set(cover)))
        return matrix

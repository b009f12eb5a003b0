"""What the tests of tree files share: the notations and small builders."""

from __future__ import annotations

from treesyntax.trees.formats import FORMATS
from treesyntax.trees.tree import Tree

CONLLU, PTB, MRG, SEXPR, BARE, PROLOG, JSONL = (
    FORMATS[name] for name in ("conllu", "ptb", "mrg", "sexpr", "sexpr_bare", "prolog", "jsonl")
)
EMPTY = Tree([], [])
LINE_FORMATS = [PTB, SEXPR, BARE, PROLOG, JSONL]


def row(number: object, form: str = "w", head: object = 0, relation: str = "root") -> str:
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_"


def nested(tree: Tree, node: int = 0) -> object:
    """A tree as nested lists, by recursion over the definition."""
    children = [nested(tree, child) for child in tree.children()[node]]
    return [tree.labels[node], *children] if children else tree.labels[node]


def structure(tree: Tree) -> tuple[list[int], tuple[str, ...]]:
    return tree.parents.tolist(), tree.labels

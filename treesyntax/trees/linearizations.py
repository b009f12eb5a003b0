"""Linearizations: a tree as a token sequence, for the source or target side of a model.

``preorder`` and ``bracketed`` follow McDonald & Chiang (2021): node labels alone, with the tree
given to the model otherwise, or with brackets, so that the sequence determines the tree.
``bracketed_twice`` writes each closing bracket twice, as Transformer Grammars do (Sartran et al. 2022):
one token to compose the constituent, one to go on. ``nary_dfs``,
``nary_bfs``, ``lcrs_dfs`` and ``lcrs_bfs`` say with each label which slots its node has, for a
decoder that grows the tree, see :mod:`treesyntax.trees.symbols`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from treesyntax.errors import OptionError, TreeError, unknown_name
from treesyntax.trees.binary import to_binary
from treesyntax.trees.controls import unshuffled
from treesyntax.trees.formats import get_format
from treesyntax.trees.names import GIVEN, SHUFFLED, TEXT
from treesyntax.trees.symbols import (
    CLOSE,
    ESCAPE,
    OPEN,
    from_nary,
    from_siblings,
    label_error,
    leaf_token,
    nary_tokens,
    sibling_tokens,
    token_error,
)
from treesyntax.trees.symbols import breadth_first as breadth_first_nodes
from treesyntax.trees.tree import NO_WORD, Tree

MALFORMED = "("
"""Stands for output that is no tree: no format reads it as one."""
LEAVES_ARE_WORDS = ("ptb", "mrg")
"""Formats in which every leaf is a word."""
MORE_THAN_LABELS = ("conllu",)
"""Formats whose trees are words with heads and relations, which no linearization keeps: it is of labels."""


class Linearization(NamedTuple):
    """One way to read a tree as tokens.

    Attributes:
        name: its name on the command line.
        tokens: T strings without white space; raises TreeError for labels that hold some.
        token_nodes: T indices of nodes: the node that each token stands for.
        tree: the tree of a sequence of tokens, or None where the tokens do not determine it.
        slots: whether every node is one token, which says how many children the node has.
    """

    name: str
    tokens: Callable[[Tree], list[str]]
    token_nodes: Callable[[Tree], list[int]]
    tree: Callable[[Sequence[str]], Tree] | None = None
    slots: bool = False


def word_nodes(tree: Tree) -> list[int]:
    """The nodes of the words in surface order; without any words, the leaves left to right."""
    return tree.word_nodes() or tree.leaves


def words(tree: Tree) -> list[str]:
    """The words of a sentence; of a program or logical form, its leaves."""
    return _checked(tree, [tree.labels[node] for node in word_nodes(tree)], word_nodes)


def preorder_nodes(tree: Tree) -> list[int]:
    """All nodes, which are numbered in preorder."""
    return list(range(len(tree)))


def preorder(tree: Tree) -> list[str]:
    """All labels in preorder."""
    return _checked(tree, list(tree.labels), preorder_nodes)


def breadth_first(tree: Tree) -> list[str]:
    """All labels level by level, each level from left to right."""
    labels = [tree.labels[node] for node in breadth_first_nodes(tree)]
    return _checked(tree, labels, breadth_first_nodes)


def bracketed_nodes(tree: Tree) -> list[int]:
    """The node of each token of `bracketed`; a closing bracket stands for the node it closes."""
    nodes: list[int] = []
    open_nodes: list[int] = []
    interior = set(tree.parents.tolist())
    for node, parent in enumerate(tree.parents.tolist()):
        while open_nodes and open_nodes[-1] != parent:
            nodes.append(open_nodes.pop())
        nodes.append(node)
        if node in interior:
            open_nodes.append(node)
    return nodes + open_nodes[::-1]


def bracketed(tree: Tree) -> list[str]:
    """``(label`` for an interior node, ``)`` at its end, and the label of a leaf.

    A leaf that would pass for a bracket, or begins with a backslash, has a backslash before it.
    """
    arities = tree.arities.tolist()
    tokens: list[str] = []
    last = -1
    for node in bracketed_nodes(tree):
        if node <= last:
            tokens.append(CLOSE)
            continue
        last = node
        label = tree.labels[node]
        tokens.append(OPEN + label if arities[node] else leaf_token(label))
    return _checked(tree, tokens, bracketed_nodes)


def bracketed_twice_nodes(tree: Tree) -> list[int]:
    """The node of each token of `bracketed_twice`."""
    nodes: list[int] = []
    last = -1
    for node in bracketed_nodes(tree):
        nodes += [node] if node > last else [node, node]
        last = max(last, node)
    return nodes


def bracketed_twice(tree: Tree) -> list[str]:
    """The tokens of `bracketed`, with each closing bracket twice: ``(NP the dog ) )``."""
    return [repeated for token in bracketed(tree) for repeated in [token] * (1 + (token == CLOSE))]


def from_bracketed(tokens: Sequence[str], twice: bool = False) -> Tree:
    """The one tree with these tokens: structure and labels; no node is marked as a word.

    Args:
        tokens: of `bracketed`, or of `bracketed_twice`.
        twice: whether they are of `bracketed_twice`.

    Raises:
        TreeError: if they are no tree.
    """
    parents: list[int] = []
    labels: list[str] = []
    current = -1
    owes_second = False
    for position, token in enumerate(tokens):
        if owes_second:
            if token != CLOSE:
                raise token_error(position, token, "stands where the second closing bracket must")
            owes_second = False
            continue
        if token == CLOSE:
            if current < 0:
                raise token_error(position, token, "closes nothing")
            if current == len(labels) - 1:
                raise token_error(position, token, "closes a node without children")
            current = parents[current]
            owes_second = twice
            continue
        if current < 0 and parents:
            raise token_error(position, token, "follows the end of the tree")
        if token.split() != [token]:
            raise token_error(position, token, "is empty or holds white space")
        parents.append(current)
        if token.startswith(OPEN):
            current = len(labels)
            labels.append(token[1:])
        else:
            labels.append(_unescaped(position, token))
    if owes_second:
        raise TreeError("the last closing bracket stands once, not twice")
    if current >= 0:
        closed = list(tokens).count(CLOSE) // (1 + twice)
        depth = sum(token.startswith(OPEN) for token in tokens) - closed
        raise TreeError(f"{depth} bracket{'s are' if depth > 1 else ' is'} still open at the end")
    return Tree(parents, labels)


def _unescaped(position: int, token: str) -> str:
    if not token.startswith(ESCAPE):
        return token
    if leaf_token(token[1:]) != token:
        raise token_error(position, token, "has a backslash that it does not need")
    return token[1:]


def _checked(tree: Tree, tokens: list[str], nodes_of: Callable[[Tree], list[int]]) -> list[str]:
    """The tokens, if splitting the line that they make gives them back."""
    if " ".join(tokens).split() == tokens:
        return tokens
    position = next(index for index, token in enumerate(tokens) if token.split() != [token])
    node = nodes_of(tree)[position]
    raise label_error(node, tree.labels[node])


def _slot_linearizations(
    name: str, tokens: Callable[[Tree], list[str]], inverse: Callable[..., Tree], grown: Callable[[Tree], Tree],
) -> tuple[Linearization, Linearization]:  # fmt: skip
    """The depth-first and the breadth-first linearization with the same symbols.

    ``grown`` gives the tree whose levels are read: the tree itself or its binary form.
    """

    def level_nodes(tree: Tree) -> list[int]:
        return breadth_first_nodes(grown(tree))

    def level_tokens(tree: Tree) -> list[str]:
        symbols = tokens(tree)
        return [symbols[node] for node in level_nodes(tree)]

    return (
        Linearization(f"{name}_dfs", tokens, preorder_nodes, inverse, slots=True),
        Linearization(
            f"{name}_bfs", level_tokens, level_nodes, partial(inverse, breadth=True), slots=True
        ),
    )


LINEARIZATIONS: dict[str, Linearization] = {
    linearization.name: linearization
    for linearization in (
        Linearization("words", words, word_nodes),
        Linearization("preorder", preorder, preorder_nodes),
        Linearization("breadth_first", breadth_first, breadth_first_nodes),
        Linearization("bracketed", bracketed, bracketed_nodes, from_bracketed),
        Linearization(
            "bracketed_twice",
            bracketed_twice,
            bracketed_twice_nodes,
            partial(from_bracketed, twice=True),
        ),
        *_slot_linearizations("nary", nary_tokens, from_nary, lambda tree: tree),
        *_slot_linearizations("lcrs", sibling_tokens, from_siblings, to_binary),
    )
}


def get_linearization(name: str) -> Linearization:
    """Return the linearization of that name.

    Raises:
        OptionError: if there is none.
    """
    if name not in LINEARIZATIONS:
        raise unknown_name("linearization", name, LINEARIZATIONS)
    return LINEARIZATIONS[name]


def from_linearization(
    line: str, linearization: str, format_name: str, shuffle_seed: int | None = None
) -> str:
    """The text in a format of the tree that a line of tokens stands for.

    Args:
        line: tokens with spaces between them.
        linearization: the name of the linearization that the tokens are of.
        format_name: the name of the format to write.
        shuffle_seed: where the tokens are those of ``shuffled`` control trees, their seed.

    Raises:
        TreeError: if the tokens are no tree, or the format cannot hold it.
        OptionError: if there is no such linearization or format, or it does not determine the text.
    """
    inverse = get_linearization(linearization).tree
    if inverse is None or not determines_text(format_name, linearization):
        raise OptionError(
            f"the tokens of the linearization {linearization} do not determine a tree of {format_name}"
        )
    tree = inverse(line.split())
    if shuffle_seed is not None:
        tree = unshuffled(tree, shuffle_seed)
    if format_name in LEAVES_ARE_WORDS:
        tree = _with_words(tree)
    return get_format(format_name).write(tree)


def determines_text(format_name: str, linearization: str) -> bool:
    """Whether trees of a format can be written again from the tokens of a linearization.

    Raises:
        OptionError: if there is no such linearization.
    """
    inverse = get_linearization(linearization).tree
    return inverse is not None and format_name not in MORE_THAN_LABELS


class TreeText(NamedTuple):
    """How the tokens of a target become the text of a tree again.

    Attributes:
        linearization: of the tokens.
        format_name: of the text.
        shuffle_seed: of shuffled control trees; None for trees as they were given.
    """

    linearization: str
    format_name: str
    shuffle_seed: int | None = None

    def text(self, line: str) -> str:
        """As `from_linearization`, but `MALFORMED` where the tokens are no tree."""
        try:
            return from_linearization(line, *self)
        except TreeError:
            return MALFORMED


def tree_text(
    format_name: str, linearization: str | None, control: str = GIVEN, control_seed: int = 0
) -> TreeText | None:
    """How a target's tokens become the text of a tree again; None where they do not determine it.

    Args:
        format_name: of the target's files; a name that is no tree format, such as ``text``, has no trees.
        linearization: of its tokens; None where none is named, so that none determines the tree.
        control: the kind of trees that took the place of the given ones.
        control_seed: of these.
    """
    if linearization is None or format_name == TEXT:
        return None
    if not determines_text(format_name, linearization):
        return None
    return TreeText(linearization, format_name, control_seed if control == SHUFFLED else None)


def _with_words(tree: Tree) -> Tree:
    """The tree with its leaves as words."""
    words = np.full(len(tree), NO_WORD)
    words[tree.leaves] = np.arange(len(tree.leaves))
    return Tree(tree.parents, tree.labels, words, tree.relations, tree.branches)

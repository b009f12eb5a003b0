"""S-expressions as in the λ-calculus forms of Dong & Lapata (2016): ``( lambda $0 e ( f $0 ) )``.

A list of an atom and other items is a node with that label: ``( f a b )`` is f with the children a
and b. Any other list, ``( )``, ``( x )`` or ``( ( f a ) b )``, is a node labelled ``()`` with all
its items as children. No atom can be ``()``, so a text and its tree determine each other up to
spacing.

``sexpr`` writes the outer parentheses, ``sexpr_bare`` leaves them out as the GeoQuery files do.
Atoms are separated by ASCII white space and parentheses.
"""

from __future__ import annotations

import re

from treesyntax.trees.formats.base import (
    Format,
    RecordError,
    check_one_line,
    exact,
    line_records,
    subtrees_ending,
)
from treesyntax.trees.tree import Tree

LIST = "()"
_TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)


def parse(text: str) -> Tree:
    """The tree of one line."""
    check_one_line(text)
    tokens = _TOKEN.findall(text)
    tree, used = _first_item(tokens)
    if used < len(tokens):
        raise _rest(tokens[used], "use the format sexpr_bare if the outer parentheses are left out")
    return tree


def parse_bare(text: str) -> Tree:
    """The tree of one line without its outer parentheses; a single atom is itself."""
    check_one_line(text)
    tokens = _TOKEN.findall(text)
    if len(tokens) > 1 or {"(", ")"}.intersection(tokens):
        tokens = ["(", *tokens, ")"]
    tree, used = _first_item(tokens)
    if used < len(tokens):
        raise _rest(")", "")
    return tree


def _first_item(tokens: list[str]) -> tuple[Tree, int]:
    """The tree of the first atom or list, and the number of its tokens."""
    parents: list[int] = []
    labels: list[str] = []
    current, index = -1, 0
    # The next two tokens decide the label of a list, so two are added at the end.
    padded = [*tokens, ")", ")"]
    while index < len(tokens) and (current >= 0 or not parents):
        token = tokens[index]
        index += 1
        if token == ")":
            if current < 0:
                break
            current = parents[current]
            continue
        parents.append(current)
        if token == "(":
            current = len(labels)
            headed = padded[index] not in ("(", ")") and padded[index + 1] != ")"
            labels.append(padded[index] if headed else LIST)
            index += headed
        else:
            labels.append(token)
    if tokens and not parents:
        raise _rest(")", "")
    if current >= 0:
        count = tokens.count("(") - tokens.count(")")
        cause = f"{count} parenthes{'e' if count > 1 else 'i'}s still open at the end of the line"
        raise RecordError(cause, "write every tree on one line and balance its parentheses")
    return Tree(parents, labels), index


def _rest(token: str, remedy: str) -> RecordError:
    if token == ")":
        return RecordError("a ')' closes nothing", "balance the parentheses")
    return RecordError(f"{token[:40]!r} follows the end of the expression", remedy)


def _tokens(tree: Tree) -> list[str]:
    tokens: list[str] = []
    arities = tree.arities.tolist()
    for label, arity, endings in zip(tree.labels, arities, subtrees_ending(tree), strict=True):
        if arity:
            tokens.extend(("(",) if label == LIST else ("(", label))
        else:
            tokens.extend(("(", ")") if label == LIST else (label,))
        tokens.extend([")"] * endings)
    return tokens


def write(tree: Tree) -> str:
    """The tree on one line, tokens separated by single spaces."""
    return exact("sexpr", parse, tree, " ".join(_tokens(tree)))


def write_bare(tree: Tree) -> str:
    """As `write`, without the outer parentheses."""
    tokens = _tokens(tree)
    return exact("sexpr_bare", parse_bare, tree, " ".join(tokens[1:-1] or tokens))


SEXPR = Format("sexpr", ".sexpr", line_records, parse, write)
SEXPR_BARE = Format("sexpr_bare", ".sexpr", line_records, parse_bare, write_bare)

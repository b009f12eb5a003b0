"""FunQL forms as in ATIS: ``answer _flight ( intersection _to_2 city_name boston _airline_2 airline_code dl )``.

A name is a node, and what it is applied to its children. ``intersection`` and ``or`` have any number, in
parentheses. The others stand without them, so the number follows from the name: two for a few relations, one
for other names that begin with an underscore and for ``answer``, ``count`` and the like. Any other name is
a constant, or has one as its child where a name of this kind follows.

Names hold no brackets, commas and quotes: ``answer(state(all))``, the FunQL of GeoQuery, is read as prolog.
"""

from __future__ import annotations

import re

from treesyntax.trees.formats.base import (
    Format,
    RecordError,
    check_one_line,
    exact,
    line_records,
)
from treesyntax.trees.tree import Tree

_SEVERAL = ("intersection", "or")
_TWO = ("_equals", "_services", "_miles_distant")
_ONE = ("_", "argmin_", "argmax_", "sum_", "answer", "count", "not")
_UNLIMITED = -1
_AS_PROLOG = "read forms such as answer(state(all)), the FunQL of GeoQuery, as prolog"
_TERM = re.compile("""[(),'"‘’“”（），]""")


def parse(text: str) -> Tree:
    """The tree of one line; the stack holds what is open, so depth costs memory only."""
    check_one_line(text)
    tokens = text.split()
    if not tokens:
        return Tree([], [])
    if tokens[-1] == ".":
        raise RecordError(
            "the form ends with a full stop", "take it off: it would be read as a name"
        )
    parents: list[int] = []
    labels: list[str] = []
    path: list[list[int]] = []  # nodes with the number of arguments that they lack
    group = False
    for position, (token, following) in enumerate(
        zip(tokens, [*tokens[1:], ")"], strict=True), start=1
    ):
        if token == "(":
            if following not in _SEVERAL:
                raise RecordError(
                    f"token {position} is '(', but no {' or '.join(_SEVERAL)} follows", _AS_PROLOG
                )
            group = True
            continue
        if token == ")":
            if not path or path[-1][1] != _UNLIMITED or path[-1][0] == len(labels) - 1:
                raise RecordError(f"token {position} is ')', expected a name")
            path.pop()
        else:
            if sign := _TERM.search(token):
                raise RecordError(
                    f"token {position}, {token[:40]!r}, holds {sign[0]!r}; here arguments follow a name without "
                    "brackets and commas",
                    _AS_PROLOG,
                )
            if parents and not path:
                raise RecordError(f"{token[:40]!r} follows the end of the form")
            if (token in _SEVERAL) is not group:
                raise RecordError(f"token {position} is {token!r} without '(' before it")
            above = path[-1][0] if path else -1
            parents.append(above)
            labels.append(token)
            number = (
                _UNLIMITED if group else _arguments(token, labels[above] if path else "", following)
            )
            group = False
            if number:
                path.append([len(labels) - 1, number])
                continue
        while path and path[-1][1] != _UNLIMITED:
            path[-1][1] -= 1
            if path[-1][1]:
                break
            path.pop()
    if path:
        raise RecordError(
            f"an argument of {labels[path[-1][0]][:40]!r} or a ')' is missing", "complete the form"
        )
    return Tree(parents, labels)


def _arguments(name: str, above: str, following: str) -> int:
    """How many arguments a name has, by what stands above and behind it."""
    if name in _TWO:
        return 2
    if name.startswith(_ONE):
        return 1
    return int(not (above and _plain(above)) and _plain(following))


def _plain(name: str) -> bool:
    """Whether a name may be a constant or have one."""
    return not name.startswith(_ONE) and name not in (*_SEVERAL, "(", ")")


def write(tree: Tree) -> str:
    """The form on one line: names in preorder."""
    tokens: list[str] = []
    path: list[int] = []  # the groups that are open
    last = tree.last_descendants.tolist()
    for node, label in enumerate(tree.labels):
        if label in _SEVERAL:
            tokens.append("(")
            path.append(node)
        tokens.append(label)
        while path and last[path[-1]] == node:
            path.pop()
            tokens.append(")")
    return exact("funql", parse, tree, " ".join(tokens))


FUNQL = Format("funql", ".funql", line_records, parse, write)

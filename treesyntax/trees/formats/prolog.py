"""Prolog goals as in Jobs640 (Dong & Lapata 2016): ``job ( ANS ) , \\+ req_exp ( ANS )``.

A compound term is a node with its arguments as children; atoms, quoted atoms (with their quotes),
numbers and variables are leaves. Operators, loosest first: disjunction ``;`` and conjunction ``,``
are nodes with two or more children, negation ``\\+`` has one. Parentheses that the operators need
leave no trace; redundant ones are a node ``()`` with one child, so that the text is determined by
the tree up to spacing. Lists and other operators are not read.
"""

from __future__ import annotations

import re

from treesyntax.trees.formats.base import (
    Children,
    Format,
    RecordError,
    any_label,
    check_one_line,
    exact,
    line_records,
)
from treesyntax.trees.tree import Tree

GROUP = "()"
NOT, AND, OR = "\\+", ",", ";"
_ARGUMENT, _OR_IN_ARGUMENT = "argument", "; in an argument"
# What must stand in parentheses below each operator and as an argument, where a comma separates.
_PARENTHESISED = {
    NOT: {AND, OR},
    AND: {AND, OR},
    OR: {OR},
    _ARGUMENT: {AND},
    _OR_IN_ARGUMENT: {AND, OR},
}
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*+'")
# A functor and its parenthesis are one token. A quoted atom without an end takes the rest of the
# line, which keeps the scan linear.
_TOKEN = re.compile(
    rf"(?:{_QUOTED.pattern}|(?:[^\s(),;\[\]|'\\]|\\(?!\+))++)(?:\s*\()?|'.*|\\\+|[(),;\[\]|]",
    re.ASCII,
)
_SEPARATORS = (AND, OR, ")")
DEEPEST = 1_000_000
"""Most parentheses open at once: a line of nothing else would take more memory than there is."""


class _Frame:
    """An open parenthesis and what has been read since it began."""

    def __init__(self, functor: str) -> None:
        self.functor = functor  # empty for a group
        self.arguments: list[int] = []
        self.alternatives: list[int] = []
        self.conjuncts: list[int] = []
        self.negations = 0


class _Reader:
    """Builds nodes bottom up; `tree` then numbers them in preorder."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.labels: list[str] = []
        self.children: list[list[int]] = []

    def node(self, label: str, children: list[int]) -> int:
        self.labels.append(label)
        self.children.append(children)
        return len(self.labels) - 1

    def operator(self, label: str, operands: list[int], context: str) -> int:
        return self.node(label, [self.stripped(operand, context) for operand in operands])

    def stripped(self, node: int, context: str) -> int:
        """The content of a group whose parentheses are needed in the context."""
        if self.labels[node] == GROUP:
            content = self.children[node][0]
            if self.labels[content] in _PARENTHESISED[context]:
                return content
        return node

    def read(self) -> int:
        """The root; one pass over the tokens with a stack of open parentheses."""
        frames = [_Frame("")]
        after_term = False
        for token in self.tokens:
            frame = frames[-1]
            _check_place(token, after_term, len(frames) - 1)
            after_term = token not in (AND, OR, NOT) and token[-1] != "("
            if token == ")":
                frames.pop()
                self.add(frames[-1], self.closed(frame))
            elif token in (AND, OR):
                self.close_operand(frame, token)
            elif token == NOT:
                frame.negations += 1
            elif token[-1] == "(":
                if len(frames) > DEEPEST:
                    raise RecordError(
                        f"more than {DEEPEST:,} parentheses are open", "balance the parentheses"
                    )
                frames.append(_Frame(token[:-1].rstrip()))
            else:
                self.add(frame, self.node(token, []))
        _check_end(after_term, len(frames) - 1)
        return self.finished(frames[0])

    def add(self, frame: _Frame, node: int) -> None:
        """Takes a complete term, with the negations before it, as the next conjunct."""
        for _ in range(frame.negations):
            node = self.operator(NOT, [node], NOT)
        frame.negations = 0
        frame.conjuncts.append(node)

    def close_operand(self, frame: _Frame, token: str) -> None:
        """Ends a conjunction or an argument; inside a conjunction the conjuncts pile up."""
        if token == OR:
            self.close_conjunction(frame)
        elif frame.functor:
            frame.arguments.append(self.finished(frame))

    def close_conjunction(self, frame: _Frame) -> None:
        several = len(frame.conjuncts) > 1
        joined = self.operator(AND, frame.conjuncts, AND) if several else frame.conjuncts[0]
        frame.alternatives.append(joined)
        frame.conjuncts = []

    def finished(self, frame: _Frame) -> int:
        """The whole expression since the frame began or since its last argument."""
        self.close_conjunction(frame)
        inside = bool(frame.functor)
        node = frame.alternatives[0]
        if len(frame.alternatives) > 1:
            node = self.operator(OR, frame.alternatives, _OR_IN_ARGUMENT if inside else OR)
        frame.alternatives = []
        return self.stripped(node, _ARGUMENT) if inside else node

    def closed(self, frame: _Frame) -> int:
        """The group or compound term whose parenthesis closes."""
        content = self.finished(frame)
        return self.node(frame.functor or GROUP, [*frame.arguments, content])

    def tree(self, root: int) -> Tree:
        """The nodes below the root, numbered in preorder."""
        parents: list[int] = []
        labels: list[str] = []
        stack = [(root, -1)]
        while stack:
            node, parent = stack.pop()
            stack.extend((child, len(labels)) for child in reversed(self.children[node]))
            parents.append(parent)
            labels.append(self.labels[node])
        return Tree(parents, labels)


def _check_place(token: str, after_term: bool, depth: int) -> None:
    """Refuse a token that cannot be read at all, or not here."""
    if token in ("[", "]", "|"):
        raise RecordError(f"{token!r} belongs to a list", "lists cannot be read")
    if token[0] == "'" and not _QUOTED.match(token):
        raise RecordError(f"the quoted atom {token[:40]} has no end", "close it with '")
    if token == ")" and not depth:
        raise RecordError("a ')' closes nothing", "balance the parentheses")
    if after_term and token not in _SEPARATORS:
        raise RecordError(
            f"{token[:40]!r} follows a complete term", "join terms with a comma or a semicolon"
        )
    if token in _SEPARATORS and not after_term:
        raise RecordError(
            f"{token!r} stands where a term should begin", "complete the term before it"
        )


def _check_end(after_term: bool, depth: int) -> None:
    if depth:
        cause = f"{depth} parenthes{'e' if depth > 1 else 'i'}s still open at the end of the line"
        raise RecordError(cause, "write every term on one line and balance its parentheses")
    if not after_term:
        raise RecordError("the line ends where a term should begin", "complete the last term")


def parse(text: str) -> Tree:
    """The tree of one line; spacing between tokens does not matter."""
    check_one_line(text)
    tokens = _TOKEN.findall(text)
    if not tokens:
        return Tree([], [])
    reader = _Reader(tokens)
    return reader.tree(reader.read())


def _tokens(tree: Tree) -> list[str]:
    """Tokens from a stack of what is still to be written: tokens, and nodes with their context."""
    tokens: list[str] = []
    children = tree.children()
    pending: list[str | tuple[int, str]] = [(0, "")] if len(tree) else []
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            tokens.append(item)
            continue
        node, context = item
        label, below = tree.labels[node], children[node]
        wrapped = label in _PARENTHESISED.get(context, ()) and bool(below)
        parts: list[str | tuple[int, str]]
        if label == NOT and below:
            parts = [NOT, *_joined(below, NOT, AND)]
        elif label in (AND, OR) and below:
            inside = label == OR and context == _ARGUMENT and not wrapped
            parts = _joined(below, _OR_IN_ARGUMENT if inside else label, label)
        elif label == GROUP and below:
            parts = ["(", *_joined(below, "", AND), ")"]
        else:
            parts = [label, "(", *_joined(below, _ARGUMENT, AND), ")"] if below else [label]
        pending.extend(reversed(["(", *parts, ")"] if wrapped else parts))
    return tokens


def _joined(nodes: list[int], context: str, separator: str) -> list[str | tuple[int, str]]:
    parts: list[str | tuple[int, str]] = []
    for node in nodes:
        parts.extend((separator, (node, context)) if parts else ((node, context),))
    return parts


def write(tree: Tree) -> str:
    """The tree on one line, tokens separated by single spaces."""
    return exact("prolog", parse, tree, " ".join(_tokens(tree)))


_ONE = Children((any_label,), optional=True)
_SEVERAL = Children((any_label, any_label), more=True, optional=True)
_CHILDREN = {AND: _SEVERAL, OR: _SEVERAL, NOT: _ONE, GROUP: _ONE}
PROLOG = Format(
    "prolog",
    ".pl",
    line_records,
    parse,
    write,
    children=_CHILDREN.get,
)

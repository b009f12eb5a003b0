"""Prolog goals as in Jobs640 (Dong & Lapata 2016): ``job ( ANS ) , \\+ req_exp ( ANS )``.

A compound term is a node with its arguments as children. Atoms, quoted atoms (with their quotes),
numbers and variables are leaves. Disjunction ``;`` and conjunction ``,`` are nodes with two or more
children, negation ``\\+`` has one; ``;`` binds loosest, ``\\+`` tightest. Parentheses that the
operators need make no node; redundant ones are a node ``()`` with one child. So a text and its tree
determine each other up to spacing. A space in a quoted atom or string is ``␣`` in the label, since tokens
hold none. The full stop of a clause is read and left out. Lists, other operators (``X^p(X)``, ``a:-b``) and
names that would have to be quoted (``a-b``) are refused.
"""

from __future__ import annotations

import re

from treesyntax.remarks import Remark, remark
from treesyntax.trees.formats.base import (
    SPACE,
    Children,
    Format,
    RecordError,
    any_label,
    check_one_line,
    exact,
    line_records,
    with_visible_spaces,
)
from treesyntax.trees.formats.notation import Node, to_tree
from treesyntax.trees.tree import Tree

GROUP = "()"
NOT, AND, OR = "\\+", ",", ";"
_ARGUMENT, _OR_IN_ARGUMENT = "argument", "; in an argument"
# The operators that need parentheses below each operator, and in an argument (for the comma).
_PARENTHESISED = {
    NOT: {AND, OR},
    AND: {AND, OR},
    OR: {OR},
    _ARGUMENT: {AND},
    _OR_IN_ARGUMENT: {AND, OR},
}
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+\"""")
# A functor and its parenthesis are one token. A quoted atom that is not closed matches up to the end
# of the line, which keeps the scan linear.
_TOKEN = re.compile(
    rf"""(?:{_QUOTED.pattern}|(?:[^\s(),;\[\]|'"\\]|\\(?!\+))++)(?:\s*\()?|['"].*|\\\+|[(),;\[\]|]""",
    re.ASCII,
)
_QUOTES = ("'", '"')
# Signs that a name has not, beside letters; alone they may be a name, as in <(A, B).
_OPERATOR, _LETTER = re.compile(r"[-+*/\\^<>=~:.?@&#$!`]"), re.compile(r"\w")
_NEVER = re.compile("[{}%‘’“”（），；]")
"""The curly quotes and wide brackets are those of word processors and of Chinese and Japanese keyboards."""
_OTHER_NAME = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|<\w+>")
"""Numbers, and ``<unk_1>``, which stands for a word."""
_STOP = re.compile(r"\w\.")
FULL_STOP = Remark("the full stop of a clause", "it is left out of the tree, and of outputs")
_SEPARATORS = (AND, OR, ")")
DEEPEST = 1_000_000
"""How many parentheses may be open at once: more could exhaust the memory."""


class _Frame:
    """An open parenthesis and what has been read since it began."""

    def __init__(self, functor: str) -> None:
        self.functor = functor  # empty for a group
        self.arguments: list[Node] = []
        self.alternatives: list[Node] = []
        self.conjuncts: list[Node] = []
        self.negations = 0

    def add(self, node: Node) -> None:
        """Take a complete term, with the negations before it, as the next conjunct."""
        for _ in range(self.negations):
            node = _operator(NOT, [node], NOT)
        self.negations = 0
        self.conjuncts.append(node)

    def separate(self, token: str) -> None:
        """End a conjunction or an argument; outside of arguments a comma only joins conjuncts."""
        if token == OR:
            self.close_conjunction()
        elif self.functor:
            self.arguments.append(self.finished())

    def close_conjunction(self) -> None:
        several = len(self.conjuncts) > 1
        joined = _operator(AND, self.conjuncts, AND) if several else self.conjuncts[0]
        self.alternatives.append(joined)
        self.conjuncts = []

    def finished(self) -> Node:
        """The whole expression since the frame began or since its last argument."""
        self.close_conjunction()
        node = self.alternatives[0]
        if len(self.alternatives) > 1:
            node = _operator(OR, self.alternatives, _OR_IN_ARGUMENT if self.functor else OR)
        self.alternatives = []
        return _stripped(node, _ARGUMENT) if self.functor else node


def _operator(label: str, operands: list[Node], context: str) -> Node:
    return Node(label, tuple(_stripped(operand, context) for operand in operands))


def _stripped(node: Node, context: str) -> Node:
    """The content of a group whose parentheses are needed in the context; else the node."""
    needed = node.label == GROUP and node.children[0].label in _PARENTHESISED[context]
    return node.children[0] if needed else node


def _read(tokens: list[str]) -> Node:
    """The root; one pass over the tokens with a stack of open parentheses."""
    frames = [_Frame("")]
    after_term = False
    for token in tokens:
        frame = frames[-1]
        _check_place(token, after_term, len(frames) - 1)
        after_term = token not in (AND, OR, NOT) and token[-1] != "("
        if token == ")":
            frames.pop()
            content = frame.finished()
            frames[-1].add(Node(frame.functor or GROUP, (*frame.arguments, content)))
        elif token in (AND, OR):
            frame.separate(token)
        elif token == NOT:
            frame.negations += 1
        elif token[-1] == "(":
            if len(frames) > DEEPEST:
                raise RecordError(
                    f"more than {DEEPEST:,} parentheses are open", "balance the parentheses"
                )
            frames.append(_Frame(_label(token[:-1].rstrip())))
        else:
            frame.add(Node(_label(token)))
    _check_end(after_term, len(frames) - 1)
    return frames[0].finished()


def _label(name: str) -> str:
    """The label of a name, an operator or a quoted atom."""
    if name[:1] in _QUOTES:
        return with_visible_spaces(name)
    mixed = _OPERATOR.search(name) and _LETTER.search(name) and not _OTHER_NAME.fullmatch(name)
    if mixed or _NEVER.search(name):
        raise RecordError(
            f"{name[:40]!r} is no name, variable or number",
            "of operators only , ; and \\+ are read: write terms, ^(X, p(X)) for X^p(X), one clause a "
            "line; or quote the name, 'a-b'",
        )
    return name


def _check_place(token: str, after_term: bool, depth: int) -> None:
    """Refuse a token that is never allowed, or not at this point."""
    if token in ("[", "]", "|"):
        raise RecordError(f"{token!r} belongs to a list", "lists cannot be read")
    if token[0] in _QUOTES and not _QUOTED.match(token):
        raise RecordError(f"the quoted atom {token[:40]} has no end", f"close it with {token[0]}")
    if token == ")" and not depth:
        raise RecordError("a ')' closes nothing", "balance the parentheses")
    for mark in ("%", "/*"):
        if token.startswith(mark):
            raise RecordError(f"{mark!r} begins a comment", "take comments out: a line is one term")
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
    if len(tokens) > 1 and tokens[-1] == ".":
        remark(FULL_STOP)
        tokens.pop()
    elif tokens and _STOP.fullmatch(tokens[-1][-2:]):
        remark(FULL_STOP)
        tokens[-1] = tokens[-1][:-1]
    return to_tree(_read(tokens)) if tokens else Tree([], [])


def _tokens(tree: Tree) -> list[str]:
    """The tokens of a tree; the stack holds what is left to write: tokens, nodes with their context."""
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
        label = label.replace(SPACE, " ") if label[:1] in _QUOTES else label
        wrapped = label in _PARENTHESISED.get(context, ()) and bool(below)
        expansion: list[str | tuple[int, str]]
        if label == NOT and below:
            expansion = [NOT, *_joined(below, NOT, AND)]
        elif label in (AND, OR) and below:
            inside = label == OR and context == _ARGUMENT and not wrapped
            expansion = _joined(below, _OR_IN_ARGUMENT if inside else label, label)
        elif label == GROUP and below:
            expansion = ["(", *_joined(below, "", AND), ")"]
        else:
            expansion = [label, "(", *_joined(below, _ARGUMENT, AND), ")"] if below else [label]
        pending.extend(reversed(["(", *expansion, ")"] if wrapped else expansion))
    return tokens


def _joined(nodes: list[int], context: str, separator: str) -> list[str | tuple[int, str]]:
    joined: list[str | tuple[int, str]] = []
    for node in nodes:
        joined.extend((separator, (node, context)) if joined else ((node, context),))
    return joined


def write(tree: Tree) -> str:
    """The tree on one line, tokens separated by single spaces."""
    return exact("prolog", parse, tree, " ".join(_tokens(tree)))


_ONE = Children((any_label,), optional=True)
_SEVERAL = Children((any_label, any_label), more=True, optional=True)
_CHILDREN = {AND: _SEVERAL, OR: _SEVERAL, NOT: _ONE, GROUP: _ONE}
PROLOG = Format("prolog", ".pl", line_records, parse, write, children=_CHILDREN.get)

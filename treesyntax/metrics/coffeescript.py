"""CoffeeScript programs that compile to the same JavaScript.

``a if b`` and ``if b <IND> a <DED>`` give the same JavaScript, so nobody can tell from the JavaScript
which of the two was meant, and exact match counts one of them as wrong. The compiler here knows the
language of `treesyntax.trees.formats.coffeescript` and writes what CoffeeScript 2.7.0 writes for it,
as tokens. It runs no program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count, islice, takewhile
from typing import NamedTuple

from treesyntax.metrics.trees import check_aligned, parse_hypothesis, parse_references
from treesyntax.trees.tree import Tree

NOTATION = "coffeescript"
KEYWORDS = frozenset(
    [
        "and",
        "arguments",
        "await",
        "break",
        "by",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "debugger",
        "default",
        "delete",
        "do",
        "enum",
        "eval",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "function",
        "implements",
        "import",
        "in",
        "instanceof",
        "interface",
        "is",
        "isnt",
        "let",
        "loop",
        "native",
        "new",
        "no",
        "not",
        "null",
        "of",
        "off",
        "on",
        "or",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "static",
        "super",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "typeof",
        "undefined",
        "unless",
        "until",
        "var",
        "void",
        "when",
        "with",
        "yes",
        "yield",
        "Infinity",
        "NaN",
        "__extends",
        "__hasProp",
    ]
)
"""Words that the format takes for names, and the language does not."""
_OCTAL = re.compile(r"0[0-9]+")
OPERATORS = {"<PLUS>": "+", "<TIMES>": "*", "<EQUAL>": "==="}
_BRANCHES = {"<IF>": (1, 2), "<POSTFIX_IF>": (2, 0), "<THEN>": (1, 3, 5), "<ELSE>": (1, 2, 5)}
"""By label which children are the test and the branches."""


class Work(NamedTuple):
    """A node to compile: as a ``statement``, a ``value`` or an ``operand``, in so many loops that are
    values."""

    node: int
    position: str
    loops: int


def compiled_items(hypotheses: Sequence[str], references: Sequence[str]) -> list[bool | None]:
    """Which hypotheses compile to the JavaScript of their reference; None where that is not known, as
    a word of either is not what the format takes it for."""
    check_aligned(hypotheses, references)
    wanted = parse_references(references, NOTATION)
    return [_same(text, tree) for text, tree in zip(hypotheses, wanted, strict=True)]


def _same(hypothesis: str, reference: Tree) -> bool | None:
    tree = parse_hypothesis(hypothesis, NOTATION)
    if tree is None or not len(tree):
        return tree == reference
    if tree == reference:
        return True
    compiled, expected = compile_tree(tree), compile_tree(reference)
    return None if compiled is None or expected is None else compiled == expected


def compile_tree(tree: Tree) -> list[str] | None:
    """The tokens of the JavaScript of a program; None if a word is not what the format takes it for."""
    leaves = {tree.labels[node] for node in tree.leaves}
    if leaves & KEYWORDS or any(_OCTAL.fullmatch(leaf) for leaf in leaves):
        return None
    if not len(tree):
        return []
    labels, children = tree.labels, tree.children()
    program = list(_tokens(labels, children, leaves))
    assigned = {labels[node + 1] for node, label in enumerate(labels) if label == "<ASSIGN>"}
    if not assigned:
        return program
    declared = [token for name in sorted(assigned) for token in (",", name)]
    # CoffeeScript leaves words and numbers that begin the program before its declarations.
    lines = children[0][::2] if labels[0] == "<BLOCK>" else []
    first = 2 * len(list(takewhile(lambda line: not children[line], lines)))
    return [*program[:first], "var", *declared[1:], ";", *program[first:]]


def _tokens(labels: Sequence[str], children: list[list[int]], used: set[str]) -> Iterator[str]:
    """The tokens of a program without its declarations."""
    free = (name for number in count() if (name := f"results{number or ''}") not in used)
    names = list(islice(free, labels.count("<POSTFIX_WHILE>")))
    agenda: list[str | Work] = [Work(0, "statement", 0)]
    while agenda:
        item = agenda.pop()
        if isinstance(item, str):
            yield item
        else:
            agenda += reversed(_tokens_of(item, labels, children[item.node], names))


def _tokens_of(
    work: Work, labels: Sequence[str], below: list[int], names: Sequence[str]
) -> list[str | Work]:
    """The tokens of a node, with work for its children between them.

    Args:
        work: the node.
        labels: of all nodes.
        below: its children.
        names: for the lists of loops that are values, by their depth.
    """
    node, position, loops = work
    label = labels[node]

    def at(child: int, position: str = "value", loops: int = loops) -> Work:
        return Work(below[child], position, loops)

    if label == "<BLOCK>":
        return [at(child, "statement") for child in range(0, len(below), 2)]
    if label == "<INDENTED>":
        return [at(1, "statement")]
    if label in _BRANCHES:
        test, yes, *no = _BRANCHES[label]
        otherwise: list[str | Work] = ["else", "{", at(no[0], "statement"), "}"] if no else []
        return ["if", "(", at(test), ")", "{", at(yes, "statement"), "}", *otherwise]
    if label == "<WHILE>" or (label == "<POSTFIX_WHILE>" and position == "statement"):
        test, body = (1, 2) if label == "<WHILE>" else (2, 0)
        return ["while", "(", at(test), ")", "{", at(body, "statement"), "}"]
    if position == "statement":
        return [work._replace(position="value"), ";"]
    if label == "<POSTFIX_WHILE>":
        # A loop as a value is a function that returns the list of its values.
        name = names[loops]
        begin = f"( function ( ) {{ var {name} ; {name} = [ ] ; while (".split()
        middle, end = f") {{ {name} . push (".split(), f") ; }} return {name} ; }} ) ( )".split()
        return [*begin, at(2, loops=loops + 1), *middle, at(0), *end]
    if label == "<ASSIGN>":
        return [labels[below[0]], "=", at(2)]
    if label == "<PARENTHESES>":
        inner = labels[below[1]]
        # Of several pairs only the innermost can be needed.
        keep = position == "operand" and inner in OPERATORS
        return ["(", at(1), ")"] if keep else [at(1, position)]
    if label in OPERATORS:
        return [at(0, "operand"), OPERATORS[label], at(2, "operand")]
    return [label]

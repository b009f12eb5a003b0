"""Grammars as tables of rules that parser and printer share, so that they cannot disagree.

A rule is a node label and a pattern, for instance ``<PLUS> {expression} + {operand}``: ``{x}``
stands for a child of category x, ``[x]`` for a leaf that is printed as it is, every other piece is
a token that makes no node. Rules without a label make no node: ``( {expression} )`` lets a category
stand in parentheses, ``{operand}`` makes one category part of another.

The grammar must tell the rules of a category apart by one token, or by a second one where the first
is the same; a left-recursive rule like the one above goes on for as long as its operator follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from treesyntax.errors import TreeError
from treesyntax.formats.base import RecordError
from treesyntax.tree import Tree


class Node(NamedTuple):
    """A node under construction with its children: what parser, generator and translator build."""

    label: str
    children: tuple[Node, ...] = ()


def to_tree(root: Node) -> Tree:
    """The tree below a node."""
    parents, labels = [], []
    agenda = [(-1, root)]
    while agenda:
        parent, node = agenda.pop()
        agenda.extend((len(labels), child) for child in reversed(node.children))
        parents.append(parent)
        labels.append(node.label)
    return Tree(parents, labels)


class _Item(NamedTuple):
    role: Literal["token", "leaf", "child"]
    text: str  # the token, the kind of the leaf's token, or the category of the child


class _Rule(NamedTuple):
    label: str  # "" for rules that make no node
    items: tuple[_Item, ...]
    pattern: str

    @property
    def slots(self) -> list[_Item]:
        return [item for item in self.items if item.role != "token"]


class _Category:
    """The rules of a category, sorted by how the parser finds out that they apply."""

    def __init__(self, name: str, rules: Sequence[_Rule]) -> None:
        self.name, self.rules = name, rules
        # Rules that begin with a token of their own; the others begin with a node of `base`, and
        # then an operator decides. If they are left-recursive, any number of them may follow.
        self.heads: dict[str, list[_Rule]] = {}
        self.tails: dict[str, _Rule] = {}
        self.base, self.loops = "", False
        for rule in rules:
            first = rule.items[0]
            if first.role != "child":
                self.heads.setdefault(first.text, []).append(rule)
                continue
            self.loops |= first.text == name
            self.base = first.text if first.text != name else self.base
            if rule.label:
                self.tails[rule.items[1].text] = rule

    @property
    def inner(self) -> str:
        """The category that may stand here in parentheses, or ""."""
        return self.heads["("][0].items[1].text if "(" in self.heads else ""


class Leaf(NamedTuple):
    """A kind of token that becomes a leaf: its name in messages (with a space) and its form."""

    words: str
    regex: str


class Grammar:
    """The compiled rules of a language.

    Args:
        name: the language, for messages.
        start: the category of whole programs.
        table: the rules of each category.
        leaves: for each ``{x}`` that is no category, what tokens may stand there.
    """

    def __init__(
        self, name: str, start: str, table: dict[str, list[str]], leaves: dict[str, Leaf]
    ) -> None:
        self.name, self.start, self.leaves = name, start, leaves
        self.categories = {
            category: _Category(category, [_rule(text, leaves) for text in patterns])
            for category, patterns in table.items()
        }
        self.first_kinds = {category: self._first_kinds(category) for category in table}

    def kind(self, token: str) -> str:
        """What the parser sees: the words of a leaf, which are never a token, or the token."""
        fitting = (words for words, regex in self.leaves.values() if re.fullmatch(regex, token))
        return next(fitting, token)

    def _first_kinds(self, category: str) -> list[str]:
        """The kinds of token with which a category may begin."""
        kinds: list[str] = []
        while category:
            kinds += [kind for kind in self.categories[category].heads if kind not in kinds]
            category = self.categories[category].base
        return kinds

    def parse(self, text: str) -> Tree:
        """The tree of a program; blank text is the empty tree.

        Raises:
            RecordError: with the number of the token at fault and what was expected.
        """
        return to_tree(_Parser(self, text).parse()) if text.strip() else Tree([], [])

    def write(self, tree: Tree) -> str:
        """The text of a program, with as few parentheses as `parse` needs.

        Raises:
            TreeError: if the tree is no program of this language.
        """
        if tree != Tree(tree.parents, tree.labels):
            raise TreeError(
                f"{self.name} has no place for relations, word positions or gaps among siblings",
                "write the tree as jsonl, which holds any tree",
            )
        return _Printer(self, tree).print() if len(tree) else ""

    def rules(self, category: str, label: str) -> list[_Rule]:
        """The rules that make a node of this label in this category without parentheses."""
        while category:
            here = self.categories[category]
            found = [rule for rule in here.rules if rule.label == label]
            if found or not here.loops:
                return found
            category = here.base
        return []


def _rule(text: str, leaves: dict[str, Leaf]) -> _Rule:
    label, pattern = text.split(maxsplit=1) if text.startswith("<") else ("", text)
    return _Rule(label, tuple(_item(piece, leaves) for piece in pattern.split()), pattern)


def _item(piece: str, leaves: dict[str, Leaf]) -> _Item:
    inside = piece[1:-1]
    if piece[0] + piece[-1] == "{}":
        return _Item("leaf", leaves[inside].words) if inside in leaves else _Item("child", inside)
    return _Item("leaf", inside) if piece[0] + piece[-1] == "[]" else _Item("token", piece)


class _Parser:
    """A predictive parser with its own stack, so that depth costs memory only."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.tokens = text.split()
        self.kinds = [*map(grammar.kind, self.tokens), "", ""]
        self.position = 0
        self.nodes: list[Node] = []
        self.agenda: list[_Item | _Rule | _Category] = [_Item("child", grammar.start)]

    def parse(self) -> Node:
        while self.agenda:
            work = self.agenda.pop()
            if isinstance(work, _Rule):
                first = len(self.nodes) - len(work.slots)
                self.nodes[first:] = [Node(work.label, tuple(self.nodes[first:]))]
            elif isinstance(work, _Category):
                self.go_on(work)
            elif work.role == "child":
                self.begin(self.grammar.categories[work.text])
            else:
                self.take(work)
        if self.position < len(self.tokens):
            raise self.error(["the end of the program"])
        return self.nodes.pop()

    def begin(self, category: _Category) -> None:
        """Choose a rule by the next token."""
        kind, following = self.kinds[self.position : self.position + 2]
        expected = self.grammar.first_kinds[category.name]
        if kind not in expected:
            raise self.error(expected)
        if kind in category.heads:
            rules = category.heads[kind]
            second = (rule for rule in rules if rule.items[1:2] and rule.items[1].text == following)
            self.expand(next(second, rules[-1]))
        else:
            self.agenda += [category, _Item("child", category.base)]

    def go_on(self, category: _Category) -> None:
        """Choose by the operator, now that a node of the base category is complete."""
        rule = category.tails.get(self.kinds[self.position])
        if rule is not None:
            self.agenda += [category] if category.loops else []
            self.expand(rule, begun=1)
        elif not category.loops:
            raise self.error(category.tails)

    def expand(self, rule: _Rule, begun: int = 0) -> None:
        self.agenda += [rule] if rule.label else []
        self.agenda += reversed(rule.items[begun:])

    def take(self, item: _Item) -> None:
        if self.kinds[self.position] != item.text:
            raise self.error([item.text])
        if item.role == "leaf":
            self.nodes.append(Node(self.tokens[self.position]))
        self.position += 1

    def error(self, expected: Iterable[str]) -> RecordError:
        *others, last = expected
        wanted = f"{', '.join(others)} or {last}" if others else last
        if self.position == len(self.tokens):
            return RecordError(f"the program ends after token {self.position}, expected {wanted}")
        found = self.tokens[self.position]
        return RecordError(f"token {self.position + 1} is {found!r}, expected {wanted}")


class _Printer:
    """Prints a tree by the rules, with parentheses where a category needs them."""

    def __init__(self, grammar: Grammar, tree: Tree) -> None:
        self.grammar, self.labels, self.children = grammar, tree.labels, tree.children()
        # Tokens and nodes still to print; a node comes with the category of its place.
        self.agenda: list[str | tuple[str, int]] = [(grammar.start, 0)]

    def print(self) -> str:
        tokens = []
        while self.agenda:
            work = self.agenda.pop()
            if isinstance(work, str):
                tokens.append(work)
            else:
                self.expand(*work)
        return " ".join(tokens)

    def expand(self, category: str, node: int) -> None:
        label = self.labels[node]
        inner = self.grammar.categories[category].inner
        if rules := self.grammar.rules(category, label):
            pieces = self.fill(self.choose(rules, node), node)
        elif inner and self.grammar.rules(inner, label):
            pieces = ["(", (inner, node), ")"]
        else:
            raise TreeError(
                f"node {node} is {label!r}, where {self.grammar.name} expects {_article(category)}"
            )
        self.agenda += reversed(pieces)

    def choose(self, rules: list[_Rule], node: int) -> _Rule:
        for rule in rules:
            slots, children = rule.slots, self.children[node]
            if len(slots) == len(children) and all(map(self.fits, slots, children)):
                return rule
        raise TreeError(
            f"the children of node {node}, {self.labels[node]!r}, do not fit "
            + " or ".join(repr(rule.pattern) for rule in rules)
        )

    def fits(self, slot: _Item, node: int) -> bool:
        leaf = not self.children[node] and self.grammar.kind(self.labels[node]) == slot.text
        return slot.role == "child" or leaf

    def fill(self, rule: _Rule, node: int) -> list[str | tuple[str, int]]:
        children = iter(self.children[node])
        pieces: list[str | tuple[str, int]] = []
        for role, text in rule.items:
            if role == "child":
                pieces.append((text, next(children)))
            else:
                pieces.append(text if role == "token" else self.labels[next(children)])
        return pieces


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"

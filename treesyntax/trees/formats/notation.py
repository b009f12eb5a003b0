"""Notations of programs: tables of rules, and the parser that reads programs by them.

Parser and printer (`notation_printer`) share the table, so they cannot disagree. A rule is a node
label and a pattern, for instance ``<PLUS> {expression} + {operand}``: ``{x}`` stands for a child of
category x, ``[x]`` for a leaf that is printed as it is, every other piece is a token that makes no
node. Rules without a label make no node: ``( {expression} )`` lets a category stand in parentheses,
``{operand}`` makes one category part of another.

One token must tell the rules of a category apart, or a second one where the first is the same. A
left-recursive rule like the one above applies again while its operator follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from treesyntax.trees.copies import is_placeholder
from treesyntax.trees.formats.base import Children, Labels, RecordError
from treesyntax.trees.tree import Tree


class Node(NamedTuple):
    """A node under construction with its children: what parser, generator and translator build."""

    label: str
    children: tuple[Node, ...] = ()


def to_tree(root: Node) -> Tree:
    """The tree below a node."""
    parents: list[int] = []
    labels: list[str] = []
    agenda = [(-1, root)]
    while agenda:
        parent, node = agenda.pop()
        agenda.extend((len(labels), child) for child in reversed(node.children))
        parents.append(parent)
        labels.append(node.label)
    return Tree(parents, labels)


class Item(NamedTuple):
    """A piece of a pattern."""

    role: Literal["token", "leaf", "child"]
    text: str  # the token, the kind of the leaf's token, or the category of the child


class Rule(NamedTuple):
    """A label and a pattern."""

    label: str  # "" for rules that make no node
    pattern: str
    items: tuple[Item, ...]
    slots: tuple[Item, ...]  # the items that become children


class Category:
    """The rules of a category, sorted by how the parser recognises them."""

    def __init__(self, name: str, rules: Sequence[Rule]) -> None:
        self.name, self.rules = name, rules
        # Rules that begin with a token of their own; the others begin with a node of `base`, and
        # then an operator decides. If they are left-recursive, any number of them may follow.
        self.heads: dict[str, list[Rule]] = {}
        self.tails: dict[str, Rule] = {}
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


class Notation:
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
            category: Category(category, [_rule(text, leaves) for text in patterns])
            for category, patterns in table.items()
        }
        self.first_kinds = {category: self._first_kinds(category) for category in table}

    def kind(self, token: str) -> str:
        """The words for the kind of leaf that a token is, which are never a token; else the token."""
        fitting = (words for words, regex in self.leaves.values() if re.fullmatch(regex, token))
        return next(fitting, token)

    def _first_kinds(self, category: str) -> list[str]:
        """The kinds of token with which a category may begin."""
        kinds: list[str] = []
        while category:
            kinds += [kind for kind in self.categories[category].heads if kind not in kinds]
            category = self.categories[category].base
        return kinds

    def root(self, label: str) -> bool:
        """Whether a whole program may have this label on top."""
        return self.kind(label) in self._tops(self.start)

    def children(self, label: str) -> Children:
        """The children of nodes of this label: none for the tokens that are leaves, and for
        placeholders of unknown words, which may stand wherever a name or a number may.

        A child may have the labels that any rule of its parent's label gives it. So a tree that
        mixes two rules passes, such as ``let a8 = 1 in unit``.
        """
        rules = [rule for category in self.categories.values() for rule in category.rules]
        child_slots = zip(*(rule.slots for rule in rules if rule.label == label), strict=True)
        return Children(tuple(self._labels_of(items) for items in child_slots))

    def _labels_of(self, items: Sequence[Item]) -> Labels:
        kinds = {
            kind
            for item in items
            for kind in (self._tops(item.text) if item.role == "child" else {item.text})
        }
        # An unknown word may be of any kind that is not a token itself.
        open_to_words = not kinds.isdisjoint(leaf.words for leaf in self.leaves.values())
        return lambda label: self.kind(label) in kinds or (open_to_words and is_placeholder(label))

    def _tops(self, category: str) -> set[str]:
        """The labels, and kinds of leaves, on top of the trees of a category."""
        tops: set[str] = set()
        agenda, seen = [category], {category}
        while agenda:
            for rule in self.categories[agenda.pop()].rules:
                if rule.label:
                    tops.add(rule.label)
                    continue
                for item in rule.slots:  # the one that stands for the whole
                    if item.role == "leaf":
                        tops.add(item.text)
                    elif item.text not in seen:
                        seen.add(item.text)
                        agenda.append(item.text)
        return tops

    def rules(self, category: str, label: str) -> list[Rule]:
        """The rules that make a node of this label in this category without parentheses."""
        while category:
            here = self.categories[category]
            matching = [rule for rule in here.rules if rule.label == label]
            if matching or not here.loops:
                return matching
            category = here.base
        return []


def _rule(text: str, leaves: dict[str, Leaf]) -> Rule:
    label, pattern = text.split(maxsplit=1) if text.startswith("<") else ("", text)
    items = tuple(_item(piece, leaves) for piece in pattern.split())
    return Rule(label, pattern, items, tuple(item for item in items if item.role != "token"))


def _item(piece: str, leaves: dict[str, Leaf]) -> Item:
    inside = piece[1:-1]
    if piece[0] + piece[-1] == "{}":
        return Item("leaf", leaves[inside].words) if inside in leaves else Item("child", inside)
    return Item("leaf", inside) if piece[0] + piece[-1] == "[]" else Item("token", piece)


def parse_program(notation: Notation, text: str) -> Tree:
    """The tree of a program; blank text is the empty tree."""
    return to_tree(_Parser(notation, text).parse()) if text.strip() else Tree([], [])


class _Parser:
    """A predictive parser with its own stack, so that depth costs memory only."""

    def __init__(self, notation: Notation, text: str) -> None:
        self.notation = notation
        self.tokens = text.split()
        kinds = {token: notation.kind(token) for token in set(self.tokens)}
        self.kinds = [*(kinds[token] for token in self.tokens), "", ""]
        self.position = 0
        self.nodes: list[Node] = []
        self.agenda: list[Item | Rule | Category] = [Item("child", notation.start)]

    def parse(self) -> Node:
        while self.agenda:
            work = self.agenda.pop()
            if isinstance(work, Rule):
                first = len(self.nodes) - len(work.slots)
                self.nodes[first:] = [Node(work.label, tuple(self.nodes[first:]))]
            elif isinstance(work, Category):
                self.continue_with(work)
            elif work.role == "child":
                self.begin(self.notation.categories[work.text])
            else:
                self.take(work)
        if self.position < len(self.tokens):
            raise self.error(["the end of the program"])
        return self.nodes.pop()

    def begin(self, category: Category) -> None:
        """Choose a rule by the next token."""
        kind, following = self.kinds[self.position : self.position + 2]
        expected = self.notation.first_kinds[category.name]
        if kind not in expected:
            raise self.error(expected)
        if kind in category.heads:
            rules = category.heads[kind]
            second = (rule for rule in rules if rule.items[1:2] and rule.items[1].text == following)
            self.expand(next(second, rules[-1]))
        else:
            self.agenda += [category, Item("child", category.base)]

    def continue_with(self, category: Category) -> None:
        """Choose by the operator, now that a node of the base category is complete."""
        rule = category.tails.get(self.kinds[self.position])
        if rule is not None:
            self.agenda += [category] if category.loops else []
            self.expand(rule, begun=1)
        elif not category.loops:
            raise self.error(category.tails)

    def expand(self, rule: Rule, begun: int = 0) -> None:
        self.agenda += [rule] if rule.label else []
        self.agenda += reversed(rule.items[begun:])

    def take(self, item: Item) -> None:
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
        token = self.tokens[self.position]
        return RecordError(f"token {self.position + 1} is {token[:40]!r}, expected {wanted}")

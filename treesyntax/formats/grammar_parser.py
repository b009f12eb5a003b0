"""From the text of a program to its tree, by the rules of a grammar."""

from __future__ import annotations

from collections.abc import Iterable

from treesyntax.formats.base import RecordError
from treesyntax.formats.grammar import Category, Grammar, Item, Node, Rule, to_tree
from treesyntax.tree import Tree


def parse_program(grammar: Grammar, text: str) -> Tree:
    """The tree of a program; blank text is the empty tree.

    Raises:
        RecordError: with the number of the token at fault and what was expected.
    """
    return to_tree(_Parser(grammar, text).parse()) if text.strip() else Tree([], [])


class _Parser:
    """A predictive parser with its own stack, so that depth costs memory only."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.tokens = text.split()
        kinds = {token: grammar.kind(token) for token in set(self.tokens)}
        self.kinds = [*(kinds[token] for token in self.tokens), "", ""]
        self.position = 0
        self.nodes: list[Node] = []
        self.agenda: list[Item | Rule | Category] = [Item("child", grammar.start)]

    def parse(self) -> Node:
        while self.agenda:
            work = self.agenda.pop()
            if isinstance(work, Rule):
                first = len(self.nodes) - len(work.slots)
                self.nodes[first:] = [Node(work.label, tuple(self.nodes[first:]))]
            elif isinstance(work, Category):
                self.go_on(work)
            elif work.role == "child":
                self.begin(self.grammar.categories[work.text])
            else:
                self.take(work)
        if self.position < len(self.tokens):
            raise self.error(["the end of the program"])
        return self.nodes.pop()

    def begin(self, category: Category) -> None:
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
            self.agenda += [category, Item("child", category.base)]

    def go_on(self, category: Category) -> None:
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
        found = self.tokens[self.position]
        return RecordError(f"token {self.position + 1} is {found[:40]!r}, expected {wanted}")

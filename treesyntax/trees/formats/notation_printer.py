"""From the tree of a program to its text, by the rules of its notation."""

from __future__ import annotations

from treesyntax.errors import TreeError
from treesyntax.trees.formats.notation import Item, Notation, Rule
from treesyntax.trees.tree import Tree


def print_program(notation: Notation, tree: Tree) -> str:
    """The text of a program, with as few parentheses as the parser needs."""
    if tree != Tree(tree.parents, tree.labels):
        raise TreeError(
            f"{notation.name} has no place for relations, word positions or gaps among siblings",
            "write the tree as jsonl, which holds any tree",
        )
    return _Printer(notation, tree).print() if len(tree) else ""


class _Printer:
    """Prints a tree by the rules, with parentheses where a category needs them."""

    def __init__(self, notation: Notation, tree: Tree) -> None:
        self.notation, self.labels, self.children = notation, tree.labels, tree.children()
        # Tokens and nodes still to print; a node comes with the category of its place.
        self.agenda: list[str | tuple[str, int]] = [(notation.start, 0)]

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
        inner = self.notation.categories[category].inner
        if rules := self.notation.rules(category, label):
            pieces = self.fill(self.choose(rules, node), node)
        elif inner and self.notation.rules(inner, label):
            pieces = ["(", (inner, node), ")"]
        else:
            raise TreeError(
                f"node {node} is {label[:40]!r}, where {self.notation.name} expects {_article(category)}"
            )
        self.agenda += reversed(pieces)

    def choose(self, rules: list[Rule], node: int) -> Rule:
        for rule in rules:
            slots, children = rule.slots, self.children[node]
            if len(slots) == len(children) and all(map(self.fits, slots, children)):
                return rule
        raise TreeError(
            f"the children of node {node}, {self.labels[node]!r}, do not fit "
            + " or ".join(repr(rule.pattern) for rule in rules)
        )

    def fits(self, slot: Item, node: int) -> bool:
        if slot.role == "child":
            return True
        return not self.children[node] and self.notation.kind(self.labels[node]) == slot.text

    def fill(self, rule: Rule, node: int) -> list[str | tuple[str, int]]:
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

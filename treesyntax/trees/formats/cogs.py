"""The logical forms of COGS (Kim & Linzen 2020), with variables.

``* cake ( x _ 4 ) ; eat . agent ( x _ 2 , Emma ) AND eat . theme ( x _ 2 , x _ 4 )``. Each variable that has a
predicate is a node with the predicate, the variable's number and its roles as children: ``@`` of an event,
``#`` of a noun, ``*`` of a definite noun. It stands where the variable is first an argument; a variable that is
an argument again is its number alone. ``LAMBDA a .`` is a node over ``a`` and the rest. The order of the terms
is that of the numbers, so the tree has no need of it.
"""

from __future__ import annotations

from collections.abc import Callable

from treesyntax.trees.formats.base import (
    Children,
    Format,
    RecordError,
    any_label,
    check_one_line,
    exact,
    line_records,
)
from treesyntax.trees.formats.cogs_varfree import (
    AND,
    DEFINITE,
    FRAME,
    LAMBDA,
    NOUN,
    mark_at,
    word_at,
)
from treesyntax.trees.formats.notation import Node, to_tree
from treesyntax.trees.tree import Tree

DIGITS = 9
"""Most digits of a variable's number; longer ones are no numbers, and sort first."""


def parse(text: str) -> Tree:
    """The tree of one form with variables."""
    check_one_line(text)
    tokens = text.split()
    return to_tree(_Form(tokens).tree()) if tokens else Tree([], [])


class _Form:
    """What the terms of a form say of each variable."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.position = tokens, 0
        self.binders: list[str] = []
        self.kinds: dict[str, str] = {}
        self.predicates: dict[str, str] = {}
        self.roles: dict[str, list[tuple[str, str]]] = {}
        if len(tokens) > 1:
            self.read()

    def tree(self) -> Node:
        if len(self.tokens) == 1:
            return Node(word_at(self.tokens, 0))
        filled = {value for roles in self.roles.values() for _, value in roles}
        tops = [variable for variable in self.predicates if variable not in filled]
        if len(tops) != 1:
            raise RecordError(
                f"{len(tops)} variables are no argument of another",
                "a form with one main event, or one noun, has a tree",
            )
        top = self.node(tops[0])
        if self.predicates:
            raise RecordError(
                f"the variables {', '.join(self.predicates)[:200]} go round in a circle"
            )
        for binder in reversed(self.binders):
            top = Node(LAMBDA, (Node(binder), top))
        return top

    def node(self, top: str) -> Node:
        """A variable with its arguments, each expanded where it is first needed, in preorder."""
        order: list[tuple[str, str, list[tuple[str, str]]]] = []
        agenda = [top]
        expanded: dict[int, str] = {}
        while agenda:
            value = agenda.pop()
            predicate = self.predicates.pop(value, None)
            if predicate is None:
                order.append((value, "", []))
                continue
            roles = self.roles.get(value, [])
            expanded[len(order)] = value
            order.append((value, predicate, roles))
            agenda.extend(argument for _, argument in reversed(roles))
        built: list[Node] = []
        for index in range(len(order) - 1, -1, -1):
            value, predicate, roles = order[index]
            if index not in expanded:
                built.append(Node(value))
                continue
            below = [Node(role, (built.pop(),)) for role, _ in roles]
            kind = self.kinds.get(value, FRAME)
            built.append(Node(kind, (Node(predicate), Node(value), *below)))
        return built.pop()

    def read(self) -> None:
        tokens = self.tokens
        while tokens[self.position] == LAMBDA:
            self.binders.append(word_at(tokens, self.position + 1))
            mark_at(tokens, self.position + 2, ".")
            self.position += 3
            word_at(tokens, self.position) if self.position >= len(tokens) else None
        while tokens[self.position : self.position + 1] == [DEFINITE]:
            self.position += 1
            self.term(DEFINITE)
            if self.position < len(tokens):
                mark_at(tokens, self.position, ";")
                self.position += 1
        while self.position < len(tokens):
            self.term(NOUN)
            if self.position < len(tokens):
                mark_at(tokens, self.position, AND)
                self.position += 1
                word_at(tokens, self.position)

    def term(self, kind: str) -> None:
        """``noun ( x _ 1 )`` or ``verb . role ( x _ 1 , x _ 2 )``."""
        tokens = self.tokens
        words = [word_at(tokens, self.position)]
        self.position += 1
        while mark_at(tokens, self.position, "(", ".") == ".":
            words.append(word_at(tokens, self.position + 1))
            self.position += 2
        self.position += 1
        variable = self.argument()
        predicate, *role = words
        if self.predicates.setdefault(variable, predicate) != predicate:
            before = self.predicates[variable]
            raise RecordError(
                f"{variable[:40]} has the predicates {before[:40]!r} and {predicate[:40]!r}"
            )
        if role:
            mark_at(tokens, self.position, ",")
            self.position += 1
            self.roles.setdefault(variable, []).append((".".join(role), self.argument()))
        elif variable in self.kinds:
            raise RecordError(
                f"a second term says that {_variable(variable)[:40]} is {predicate[:40]!r}",
                "one term is enough; leave out the other",
            )
        else:
            self.kinds[variable] = kind
        mark_at(tokens, self.position, ")")
        self.position += 1

    def argument(self) -> str:
        """The number of a variable, or a name; in the tree a number is always that of a variable."""
        is_variable = self.tokens[self.position : self.position + 2] == ["x", "_"]
        self.position += 3 if is_variable else 1
        word = word_at(self.tokens, self.position - 1)
        if word.isdigit() != is_variable:
            said = (
                "is no number, as that of a variable must be"
                if is_variable
                else "is a plain number"
            )
            remedy = (
                "names have no x _ before them" if is_variable else f"a variable is x _ {word[:40]}"
            )
            raise RecordError(f"token {self.position}, {word[:40]!r}, {said}", remedy)
        return word


def _variable(label: str) -> str:
    return f"x _ {label}" if label.isdigit() else label


def write(tree: Tree) -> str:
    """The form on one line: definite nouns, then the terms of each variable by its number."""
    children, labels = tree.children(), tree.labels
    binders, root = [], 0
    while len(tree) and labels[root] == LAMBDA and len(children[root]) == 2:
        binders.append(f"{LAMBDA} {labels[children[root][0]]} . ")
        root = children[root][1]
    definite: list[tuple[int, str]] = []
    terms: list[tuple[int, str]] = []
    for node in range(root, len(tree)):
        below = children[node]
        if labels[node] not in (FRAME, NOUN, DEFINITE) or len(below) < 2:
            continue
        predicate, name = labels[below[0]], labels[below[1]]
        number = int(name) if name.isdecimal() and len(name) <= DIGITS else 0
        term_text = f"{predicate} ( {_variable(name)} )"
        if labels[node] == DEFINITE:
            definite.append((number, f"{DEFINITE} {term_text} ;"))
        elif labels[node] == NOUN:
            terms.append((number, term_text))
        for role in below[2:]:
            argument = children[role][0] if children[role] else role
            frame = labels[argument] in (FRAME, NOUN, DEFINITE) and len(children[argument]) > 1
            value = labels[children[argument][1] if frame else argument]
            words = " . ".join((predicate, *labels[role].split(".")))
            terms.append((number, f"{words} ( {_variable(name)} , {_variable(value)} )"))
    by_number: Callable[[tuple[int, str]], int] = lambda term: term[0]  # noqa: E731
    texts = [text for _, text in sorted(definite, key=by_number)]
    conjuncts = f" {AND} ".join(text for _, text in sorted(terms, key=by_number))
    text = " ".join(texts + ([conjuncts] if conjuncts else []))
    if len(tree) == 1:
        text = labels[0]
    return exact("cogs", parse, tree, "".join(binders) + text)


def without_variables(tree: Tree) -> Tree:
    """The tree in `cogs_varfree` of a sentence's tree in `cogs`.

    A variable that is an argument again becomes a copy of its noun with all that belongs to it, or the bare noun
    inside of what belongs to it.
    """
    children, labels, last = tree.children(), tree.labels, tree.last_descendants
    nouns: dict[str, int] = {}
    for node in range(len(tree)):
        if labels[node] in (NOUN, DEFINITE):
            nouns[labels[children[node][1]]] = node

    def path(node: int) -> tuple[tuple[str, ...], list[int]]:
        """The labels down to where the children are, and these."""
        inside = False
        if not children[node] and labels[node] in nouns:
            noun = nouns[labels[node]]
            inside = noun <= node <= last[noun]
            node = noun
        label, below = labels[node], children[node]
        if label not in (FRAME, NOUN, DEFINITE):
            return (label,), below
        definite = (DEFINITE,) if label == DEFINITE else ()
        if len(below) == 2 or inside:
            return (*definite, labels[below[0]]), []
        return (*definite, FRAME), [below[0], *below[2:]]

    parents: list[int] = []
    new: list[str] = []
    agenda = [(-1, 0)] if len(tree) else []
    while agenda:
        parent, node = agenda.pop()
        path_labels, below = path(node)
        for label in path_labels:
            parents.append(parent)
            new.append(label)
            parent = len(new) - 1
        agenda.extend((parent, child) for child in reversed(below))
    return Tree(parents, new)


_SEVERAL = Children((any_label, any_label, any_label), more=True, optional=True)
_TWO_OR_MORE = Children((any_label, any_label), more=True, optional=True)
_WITH_VARIABLES = {
    FRAME: _SEVERAL,
    NOUN: _TWO_OR_MORE,
    DEFINITE: _TWO_OR_MORE,
    LAMBDA: Children((any_label, any_label), optional=True),
}
COGS = Format("cogs", ".lf", line_records, parse, write, children=_WITH_VARIABLES.get)

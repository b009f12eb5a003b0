"""The logical forms of COGS (Kim & Linzen 2020) and the variable-free ones of SLOG (Li et al. 2023).

``cogs_varfree``: ``cook ( theme = cake , agent = * scientist )``. A predicate with arguments is a node ``@``:
its first child is the predicate, every other child a role with one child. ``*`` is a node above what is
definite, ``nmod . on`` a role ``nmod.on``. A word is always a leaf: with arguments and without, it is the
same symbol, so a decoder that grows trees can use a verb that it has read alone.

``cogs``: ``* cake ( x _ 4 ) ; eat . agent ( x _ 2 , Emma ) AND eat . theme ( x _ 2 , x _ 4 )``. Each variable
that has a predicate is a node with the predicate, the variable's number and its roles as children: ``@`` of an
event, ``#`` of a noun, ``*`` of a definite noun. It stands where the variable is first an argument; a
variable that is an argument again is its number alone. ``LAMBDA a .`` is a node over ``a`` and the rest. The
order of the terms is that of the numbers, so the tree has no need of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from treesyntax.trees.formats.base import (
    Children,
    Format,
    RecordError,
    any_label,
    check_one_line,
    exact,
    line_records,
)
from treesyntax.trees.formats.notation import Node, to_tree
from treesyntax.trees.tree import Tree

FRAME, NOUN, DEFINITE, LAMBDA, AND = "@", "#", "*", "LAMBDA", "AND"
_MARKS = {"(", ")", "=", ",", ".", ";", "_", "x", FRAME, NOUN, DEFINITE, LAMBDA, AND}


def _word(tokens: list[str], place: int) -> str:
    """The word at a place."""
    token = tokens[place] if place < len(tokens) else "the end of the line"
    if token in _MARKS or place >= len(tokens):
        raise RecordError(f"token {place + 1} is {token[:40]!r}, expected a word")
    return token


def _mark(tokens: list[str], place: int, *expected: str) -> str:
    """The mark at a place, which must be one of these."""
    token = tokens[place] if place < len(tokens) else "the end of the line"
    if token not in expected:
        wanted = " or ".join(map(repr, expected))
        raise RecordError(f"token {place + 1} is {token[:40]!r}, expected {wanted}")
    return token


def parse_free(text: str) -> Tree:
    """The tree of one variable-free form; the stack holds what is open, so depth costs memory only."""
    check_one_line(text)
    tokens = text.split()
    if not tokens:
        return Tree([], [])
    parents: list[int] = []
    labels: list[str] = []

    def add(parent: int, label: str) -> int:
        parents.append(parent)
        labels.append(label)
        return len(labels) - 1

    frames: list[int] = []
    above, place = -1, 0
    while True:
        if tokens[place : place + 1] == [DEFINITE]:
            above, place = add(above, DEFINITE), place + 1
        word, place = _word(tokens, place), place + 1
        if tokens[place : place + 1] == ["("]:
            frames.append(add(above, FRAME))
            add(frames[-1], word)
        else:
            add(above, word)
            while frames and tokens[place : place + 1] == [")"]:
                frames.pop()
                place += 1
            if not frames:
                break
            _mark(tokens, place, ",", ")")
        place += 1
        role, place = [_word(tokens, place)], place + 1
        while _mark(tokens, place, "=", ".") == ".":
            role.append(_word(tokens, place + 1))
            place += 2
        above, place = add(frames[-1], ".".join(role)), place + 1
    if place < len(tokens):
        raise RecordError(f"{tokens[place][:40]!r} follows the end of the form")
    return Tree(parents, labels)


def write_free(tree: Tree) -> str:
    """The form on one line."""
    children, labels = tree.children(), tree.labels
    tokens: list[str] = []
    pending: list[str | int] = [0] if len(tree) else []
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            tokens.append(item)
            continue
        label, below = labels[item], children[item]
        parts: list[str | int] = [label, *below]
        if label == FRAME and below:
            parts = [below[0], "("]
            for role in below[1:]:
                parts += [labels[role].replace(".", " . "), "=", *children[role], ","]
            parts[-1:] = [")"]
        pending.extend(reversed(parts))
    return exact("cogs_varfree", parse_free, tree, " ".join(tokens))


def parse(text: str) -> Tree:
    """The tree of one form with variables."""
    check_one_line(text)
    tokens = text.split()
    return to_tree(_Form(tokens).tree()) if tokens else Tree([], [])


class _Form:
    """What the terms of a form say of each variable."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.place = tokens, 0
        self.binders: list[str] = []
        self.kinds: dict[str, str] = {}
        self.predicates: dict[str, str] = {}
        self.roles: dict[str, list[tuple[str, str]]] = {}
        if len(tokens) > 1:
            self.read()

    def tree(self) -> Node:
        if len(self.tokens) == 1:
            return Node(_word(self.tokens, 0))
        filled = {value for roles in self.roles.values() for _, value in roles}
        tops = [variable for variable in self.predicates if variable not in filled]
        if len(tops) != 1:
            raise RecordError(
                f"{len(tops)} variables are no argument of another",
                "a form with one main event, or one noun, has a tree",
            )
        top = self.node(tops[0])
        if self.predicates:
            raise RecordError(f"the variables {', '.join(self.predicates)} go round in a circle")
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
        for place in range(len(order) - 1, -1, -1):
            value, predicate, roles = order[place]
            if place not in expanded:
                built.append(Node(value))
                continue
            below = [Node(role, (built.pop(),)) for role, _ in roles]
            kind = self.kinds.get(value, FRAME)
            built.append(Node(kind, (Node(predicate), Node(value), *below)))
        return built.pop()

    def read(self) -> None:
        tokens = self.tokens
        while tokens[self.place] == LAMBDA:
            self.binders.append(_word(tokens, self.place + 1))
            _mark(tokens, self.place + 2, ".")
            self.place += 3
            _word(tokens, self.place) if self.place >= len(tokens) else None
        while tokens[self.place : self.place + 1] == [DEFINITE]:
            self.place += 1
            self.term(DEFINITE)
            if self.place < len(tokens):
                _mark(tokens, self.place, ";")
                self.place += 1
        while self.place < len(tokens):
            self.term(NOUN)
            if self.place < len(tokens):
                _mark(tokens, self.place, AND)
                self.place += 1
                _word(tokens, self.place)

    def term(self, kind: str) -> None:
        """``noun ( x _ 1 )`` or ``verb . role ( x _ 1 , x _ 2 )``."""
        tokens = self.tokens
        words = [_word(tokens, self.place)]
        self.place += 1
        while _mark(tokens, self.place, "(", ".") == ".":
            words.append(_word(tokens, self.place + 1))
            self.place += 2
        self.place += 1
        variable = self.argument()
        predicate, *role = words
        if self.predicates.setdefault(variable, predicate) != predicate:
            raise RecordError(
                f"{variable} has the predicates {self.predicates[variable]} and {predicate}"
            )
        if role:
            _mark(tokens, self.place, ",")
            self.place += 1
            self.roles.setdefault(variable, []).append((".".join(role), self.argument()))
        else:
            self.kinds[variable] = kind
        _mark(tokens, self.place, ")")
        self.place += 1

    def argument(self) -> str:
        if self.tokens[self.place : self.place + 2] != ["x", "_"]:
            self.place += 1
            return _word(self.tokens, self.place - 1)
        self.place += 3
        return _word(self.tokens, self.place - 1)


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
        number = int(name) if name.isdecimal() else 0
        own = f"{predicate} ( {_variable(name)} )"
        if labels[node] == DEFINITE:
            definite.append((number, f"{DEFINITE} {own} ;"))
        elif labels[node] == NOUN:
            terms.append((number, own))
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

    A variable that is an argument again becomes its noun, as in SLOG's forms.
    """
    children, labels = tree.children(), tree.labels
    nouns: dict[str, tuple[str, ...]] = {}
    for node in range(len(tree)):
        if labels[node] in (NOUN, DEFINITE):
            noun, name = (labels[child] for child in children[node][:2])
            nouns[name] = (DEFINITE, noun) if labels[node] == DEFINITE else (noun,)

    def parts(node: int) -> Iterator[tuple[str, list[int]]]:
        """The labels down to where the children are, and these."""
        label, below = labels[node], children[node]
        if label == DEFINITE:
            yield DEFINITE, []
        if label in (FRAME, NOUN, DEFINITE):
            yield (FRAME, below[:1] + below[2:]) if len(below) > 2 else (labels[below[0]], [])
        elif not below and label in nouns:
            yield from ((name, []) for name in nouns[label])
        else:
            yield label, below

    parents: list[int] = []
    new: list[str] = []
    agenda = [(-1, 0)] if len(tree) else []
    while agenda:
        parent, node = agenda.pop()
        for label, below in parts(node):
            parents.append(parent)
            new.append(label)
            parent = len(new) - 1
        agenda.extend((parent, child) for child in reversed(below))
    return Tree(parents, new)


_ONE = Children((any_label,), optional=True)
_FREE = {FRAME: Children((any_label, any_label), more=True, optional=True), DEFINITE: _ONE}
_SEVERAL = Children((any_label, any_label, any_label), more=True, optional=True)
_TWO_OR_MORE = Children((any_label, any_label), more=True, optional=True)
_WITH_VARIABLES = {
    FRAME: _SEVERAL,
    NOUN: _TWO_OR_MORE,
    DEFINITE: _TWO_OR_MORE,
    LAMBDA: Children((any_label, any_label), optional=True),
}
COGS = Format("cogs", ".lf", line_records, parse, write, children=_WITH_VARIABLES.get)
COGS_VARFREE = Format(
    "cogs_varfree", ".lf", line_records, parse_free, write_free, children=_FREE.get
)

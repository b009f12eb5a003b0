"""The translation of FOR programs to LAMBDA."""

from __future__ import annotations

from treesyntax.errors import TreeError
from treesyntax.trees.formats.notation import Node, to_tree
from treesyntax.trees.tree import Tree

_ARITIES = {"<SEQ>": 2, "<ASSIGN>": 2, "<IF>": 3, "<FOR>": 5}
_UNIT, _TERM, _FUNCTION = Node("<UNIT>"), Node("a8"), Node("a9")


def translate(program: Tree) -> Tree:
    """The LAMBDA program that does what a FOR program does (Drissi et al. 2018).

    - ``v = e`` becomes ``let v = e in unit``
    - ``s ; t`` becomes ``let v = e in T(t)`` if s is ``v = e``, else ``let a8 = T(s) in T(t)``
    - ``if c then s else t endif`` becomes ``if c then T(s) else T(t)``
    - ``for v = e ; c ; f do s endfor`` becomes
      ``letrec a9 v = if c then let a8 = T(s) in a9 f else unit in a9 e``
    - expressions and comparisons stay, and so does the empty tree
    """
    if not len(program):
        return program
    done: list[Node] = [_UNIT] * len(program)
    children = program.children()
    # Children have higher numbers than their parents, so they are done first.
    for node in reversed(range(len(program))):
        label, translated = program.labels[node], tuple(done[child] for child in children[node])
        if len(translated) != _ARITIES.get(label, len(translated)):
            raise TreeError(
                f"node {node}, {label!r}, has {len(translated)} children instead of {_ARITIES[label]}",
                "only FOR programs can be translated",
            )
        after_assignment = bool(translated) and program.labels[children[node][0]] == "<ASSIGN>"
        done[node] = _translate_node(label, translated, after_assignment)
    return to_tree(done[0])


def _translate_node(label: str, children: tuple[Node, ...], after_assignment: bool) -> Node:
    if label == "<ASSIGN>":
        return Node("<LET>", (*children, _UNIT))
    if label == "<SEQ>":
        first, rest = children
        if after_assignment:
            variable, value, _ = first.children
            return Node("<LET>", (variable, value, rest))
        return Node("<LET>", (_TERM, first, rest))
    if label == "<FOR>":
        name, start, test, step, body = children
        again = Node("<LET>", (_TERM, body, Node("<APP>", (_FUNCTION, step))))
        loop = Node("<IF>", (test, again, _UNIT))
        return Node("<LETREC>", (_FUNCTION, name, loop, Node("<APP>", (_FUNCTION, start))))
    return Node(label, children)

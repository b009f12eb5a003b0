"""What the program of Dong & Lapata (2016) counts as right; made by reading it.

The program is github.com/donglixp/lang2logic, ``seq2seq/*/sample.lua`` and ``utils/accuracy.lua``. It
sees tokens and brackets, not forms, so its verdict differs from that of every other metric here:

- Of closing brackets that are missing, as many are added at the end. For each that there is too
  many, one token is removed from the end, whichever it is.
- After ``and`` and ``or`` the elements of a bracket are sorted by their tokens, those of outer brackets
  first, and elements with the same tokens count once. Names of variables count.
- It looks ``and`` and ``or`` up in its vocabulary. Jobs640 has neither, so they become ``<U>`` there:
  what follows a comma stays in order, what follows ``<U>`` is sorted.
- ``<U>`` equals ``<U>``. It writes that for tokens of references that training does not have.

It sorts by the numbers of its vocabulary, which is not known here; this sorts by the tokens. Only a
conjunction of conjunctions can tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

UNKNOWN = "<U>"
SORTED = ("and", "or")
"""First tokens of the brackets whose other elements are sorted."""


def is_right(hypothesis: str, reference: str, operators: Sequence[str] = SORTED) -> bool:
    """Whether the program counts a hypothesis as right.

    Args:
        hypothesis: tokens between spaces.
        reference: the same; its brackets are taken as they are.
        operators: as `SORTED`, or `UNKNOWN` alone where the vocabulary has neither.
    """
    tokens = _with_brackets(hypothesis.split())
    return _normalized(tokens, operators) == _normalized(reference.split(), operators)


def _with_brackets(tokens: list[str]) -> list[str]:
    """As many closing brackets as opening ones, at the end."""
    missing = tokens.count("(") - tokens.count(")")
    return tokens + [")"] * missing if missing >= 0 else tokens[:missing]


def _normalized(tokens: Sequence[str], operators: Sequence[str]) -> list[str]:
    """The tokens of a form with its elements sorted."""
    agenda = [_elements(tokens)]
    root = agenda[0]
    for bracket in agenda:  # which grows
        if bracket and bracket[0] in operators:
            # A bracket around one token has the same text as the token; the later one stays.
            kept = {" ".join(_tokens(element)): element for element in bracket[1:]}
            bracket[1:] = [kept[text] for text in sorted(kept)]
        agenda += [element for element in bracket if isinstance(element, list)]
    return list(_tokens(root))


def _elements(tokens: Sequence[str]) -> list[Any]:
    """Tokens and, for brackets, lists of such.

    A bracket that is never closed is lost with all that is in it, and so is everything between a
    bracket that closes nothing and the next one that opens.
    """
    opened: list[list[Any]] = [[]]
    below = 0
    for token in tokens:
        if token == "(" and not below:
            opened.append([])
        elif token == "(":
            below -= 1
        elif token == ")" and len(opened) > 1:
            inner = opened.pop()
            opened[-1].append(inner)
        elif token == ")":
            below += 1
        elif not below:
            opened[-1].append(token)
    return opened[0]


def _tokens(element: Any) -> Iterator[str]:
    """The tokens of an element, without the brackets around it."""
    agenda = list(reversed(element)) if isinstance(element, list) else [element]
    while agenda:
        child = agenda.pop()
        if isinstance(child, list):
            agenda += [")", *reversed(child), "("]
        else:
            yield child

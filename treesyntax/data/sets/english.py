"""Constituency trees of the English of COGS and SLOG, from the sentence alone.

The sentences come from small grammars, so a small grammar parses them all. A word's kind follows from the
words before it: a noun follows ``a`` or ``the``, names are capitalised, any other word outside of a short
list is a verb. Only verbs with two objects are listed, as English has them.

Where a sentence has several trees, the rules are:

- a phrase with ``in``, ``on`` or ``beside``, and a relative clause, belong to the nearest noun before them;
- a verb takes the objects that follow it, and leaves some to the verb above only where the sentence has no
  tree otherwise: ``gave [a bird that was lent the cookie] [a cake]``.

The form of a sentence is never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from treesyntax.errors import TreeError
from treesyntax.trees.tree import NO_WORD, Tree

if TYPE_CHECKING:  # the library is loaded by those who parse
    from lark import Lark, Token
    from lark import Tree as Parse

_GRAMMAR = """
    start: s DOT | q ASK | np | one
    one: NOUN | VERB | DITR | WAS | BY
    s: np vp
    q: WH vp | WH DID np open_vp
    np: DET NOUN | DET NOUN pp | DET NOUN rc | NAME
    pp: PREP np
    rc: THAT vp | THAT np open_vp
    cp: THAT s
    vp: VERB | VERB np | VERB cp | VERB inf
      | DITR np np | DITR np to | DITR np | DITR
      | WAS VERB | WAS VERB by
      | WAS DITR np | WAS DITR np by | WAS DITR to | WAS DITR to by | WAS DITR | WAS DITR by
    inf: TO VERB | TO VERB np | TO DITR np np | TO DITR np to
    open_vp: VERB | VERB open_inf | VERB open_cp
      | DITR np | DITR to | DITR np TO | DITR
      | WAS VERB BY | WAS DITR np BY | WAS DITR TO | WAS DITR to BY | WAS VERB | WAS DITR by | WAS DITR TO by
    open_inf: TO VERB | TO DITR np | TO DITR to | TO DITR np TO
    open_cp: THAT np open_vp | THAT vp
    to: TO np
    by: BY np
    %declare DOT ASK NOUN VERB DITR WAS DET NAME PREP THAT TO BY WH DID
"""
_KINDS = {
    ".": "DOT", "?": "ASK", "a": "DET", "the": "DET", "A": "DET", "The": "DET", "in": "PREP",
    "on": "PREP", "beside": "PREP", "that": "THAT", "to": "TO", "by": "BY", "was": "WAS",
    "did": "DID", "who": "WH", "what": "WH", "Who": "WH", "What": "WH",
}  # fmt: skip
_LABELS = {
    "start": "TOP", "one": "X", "s": "S", "q": "SQ", "np": "NP", "pp": "PP", "rc": "RC", "cp": "CP",
    "vp": "VP", "inf": "INF", "open_vp": "VP", "open_inf": "INF", "open_cp": "CP", "to": "PP", "by": "PP",
    "DOT": ".", "ASK": ".", "DITR": "VERB",
}  # fmt: skip
_TWO_OBJECTS = """
    award awarded bring brought feed fed forward forwarded give gave given hand handed lend lended lent loan loaned
    mail mailed offer offered pass passed post posted promise promised rent rented return returned sell sold
    send sent serve served ship shipped slip slipped teleport teleported throw threw thrown toss tossed
    wire wired
"""


def parse(sentence: str) -> Tree:
    """The tree of a sentence, a noun phrase, a question or a single word; leaves are words.

    Raises:
        TreeError: if it is no sentence of this English.
    """
    words = sentence.split()
    from lark.exceptions import UnexpectedInput

    try:
        root = _parser("lalr").parse(sentence)
    except UnexpectedInput:
        try:
            root = _parser("earley").parse(sentence)
        except UnexpectedInput:
            shown = " ".join(words[:12])
            raise TreeError(f"{shown!r} is no sentence of the English of COGS and SLOG") from None
    return _tree(root)


def _kinds(words: list[str]) -> Iterator[str]:
    before = ""
    for word in words:
        if before == "DET":
            before = "NOUN"
        elif word in _KINDS:
            before = _KINDS[word]
        elif word[:1].isupper():
            before = "NAME"
        else:
            before = "DITR" if word in _ditransitive() else "VERB"
        yield before


@cache
def _ditransitive() -> frozenset[str]:
    return frozenset(_TWO_OBJECTS.split())


@cache
def _parser(kind: str) -> Lark:
    """``lalr`` is quick and takes what follows; ``earley`` is slow and finds a tree if there is one."""
    from lark import Lark, Token
    from lark.lexer import Lexer

    class Splitting(Lexer):
        """Hands the parser words that are separated by white space."""

        def __init__(self, _: Any) -> None:
            pass

        # lark's own signature is another; a lexer of one's own gets the text, as its manual says.
        def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
            words = text.split()
            for word, name in zip(words, _kinds(words), strict=True):
                yield Token(name, word)

    options = {"ambiguity": "resolve"} if kind == "earley" else {}
    return Lark(_GRAMMAR, parser=kind, lexer=Splitting, keep_all_tokens=True, **options)


def _tree(root: Parse) -> Tree:
    """Nodes of phrases, of kinds of words, and of words."""
    from lark import Tree as Parse

    parents: list[int] = []
    labels: list[str] = []
    words: list[int] = []
    agenda: list[tuple[int, Parse | Token]] = [(-1, root)]
    count = 0
    while agenda:
        parent, item = agenda.pop()
        name = str(item.data) if isinstance(item, Parse) else item.type
        parents.append(parent)
        labels.append(_LABELS.get(name, name))
        words.append(NO_WORD)
        if isinstance(item, Parse):
            agenda.extend((len(labels) - 1, child) for child in reversed(item.children))
            continue
        parents.append(len(labels) - 1)
        labels.append(str(item))
        words.append(count)
        count += 1
    return Tree(parents, labels, words)

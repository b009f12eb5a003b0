"""CoffeeScript as lines of tokens, one program a line, in the subset of Drissi et al. (2018).

``if a0 == 1 <IND> a0 = 2 <DED> <NL> a0`` is a program with a block; see `tokens`. The tree is the
parse tree, whose leaves are all tokens in order, so the text follows from the tree. A rule with a
single child makes no node.

Programs have assignments, ``+ * ==``, ``if`` and ``while`` before blocks and behind statements, and
``if then else`` on one line. As in the compiler, ``while`` behind a statement holds tighter than
``if`` there, and ``a while b while c`` has ``b while c`` as its test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from treesyntax.trees.formats.base import Format, RecordError, check_one_line, exact, line_records
from treesyntax.trees.formats.tokens import DEDENT, INDENT, NEW_LINE
from treesyntax.trees.tree import Tree

if TYPE_CHECKING:  # the library is loaded by those who parse
    from lark import Lark, Token
    from lark import Tree as Parse
    from lark.exceptions import UnexpectedInput

_GRAMMAR = """
    ?program: block
    ?block: _statement (NL _statement)*
    _statement: short | then | if | else | while
    then: IF test THEN short ELSE short
    if: IF test indented
    else: IF test indented BEFORE_ELSE ELSE indented
    while: WHILE test indented
    indented: IND block DED
    ?short: loop | short IF loop -> postfix_if
    ?loop: simple | simple WHILE loop -> postfix_while
    ?simple: test | NAME ASSIGN test -> assign
    ?test: sum | sum EQUAL sum -> equal
    ?sum: product | sum PLUS product -> plus
    ?product: operand | product TIMES operand -> times
    ?operand: NAME | NUMBER | OPEN test CLOSE -> parentheses
    %declare NL BEFORE_ELSE IND DED IF THEN ELSE WHILE ASSIGN EQUAL PLUS TIMES OPEN CLOSE NAME NUMBER
"""
_KINDS = {
    NEW_LINE: "NL", INDENT: "IND", DEDENT: "DED", "if": "IF", "then": "THEN", "else": "ELSE",
    "while": "WHILE", "=": "ASSIGN", "==": "EQUAL", "+": "PLUS", "*": "TIMES", "(": "OPEN",
    ")": "CLOSE",
}  # fmt: skip
_WORDS = {kind: token for token, kind in _KINDS.items()} | {"NAME": "a name", "NUMBER": "a number"}
_WORDS |= {"$END": "the end of the program"}
_NAME, _NUMBER = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII), re.compile(r"[0-9]+")


def _kind(word: str, following: str) -> str:
    if word == NEW_LINE and following == "else":
        return "BEFORE_ELSE"
    if word in _KINDS:
        return _KINDS[word]
    return "NAME" if _NAME.fullmatch(word) else "NUMBER" if _NUMBER.fullmatch(word) else "OTHER"


@cache
def _parser() -> Lark:
    from lark import Lark, Token
    from lark.lexer import Lexer

    class Splitting(Lexer):
        """Hands the parser tokens that are already separated by white space."""

        def __init__(self, _: Any) -> None:
            pass

        # lark's own signature is another; a lexer of one's own gets the text, as its manual says.
        def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
            words = text.split()
            for position, (word, following) in enumerate(pairwise([*words, ""]), start=1):
                yield Token(_kind(word, following), word, start_pos=position)

    return Lark(_GRAMMAR, parser="lalr", lexer=Splitting, keep_all_tokens=True, start="program")


def parse(text: str) -> Tree:
    """The tree of one line; blank text is the empty tree."""
    check_one_line(text)
    if not text.strip():
        return Tree([], [])
    from lark.exceptions import UnexpectedInput

    try:
        return _tree(_parser().parse(text))
    except UnexpectedInput as error:
        raise _fault(error, len(text.split())) from None


def _tree(root: Parse | Token) -> Tree:
    from lark import Tree as Parse

    parents: list[int] = []
    labels: list[str] = []
    agenda: list[tuple[int, Parse | Token]] = [(-1, root)]
    while agenda:
        parent, item = agenda.pop()
        if isinstance(item, Parse):
            agenda.extend((len(labels), child) for child in reversed(item.children))
        parents.append(parent)
        labels.append(f"<{item.data.upper()}>" if isinstance(item, Parse) else str(item))
    return Tree(parents, labels)


def _fault(error: UnexpectedInput, size: int) -> RecordError:
    expected = sorted(_WORDS[kind] for kind in getattr(error, "expected", ()) if kind in _WORDS)
    *others, last = expected
    wanted = f"{', '.join(others)} or {last}" if others else last
    token = getattr(error, "token", None)
    if token is None or token.type == "$END":
        return RecordError(f"the program ends after token {size}, expected {wanted}")
    return RecordError(f"token {token.start_pos} is {str(token)[:40]!r}, expected {wanted}")


def write(tree: Tree) -> str:
    """The leaves, once it is certain that they are a program with this tree."""
    text = " ".join(tree.labels[node] for node in tree.leaves)
    return exact("coffeescript", parse, tree, text)


COFFEESCRIPT = Format("coffeescript", ".coffee", line_records, parse, write, learned=True)

"""S-expressions as in the λ-calculus forms of Dong & Lapata (2016): ``( lambda $0 e ( f $0 ) )``.

A list of an atom and other items is a node with that label: ``( f a b )`` is f with the children a
and b. Any other list, ``( )``, ``( x )`` or ``( ( f a ) b )``, is a node labelled ``()`` with all
its items as children. No atom can be ``()``, so a text and its tree determine each other up to
spacing and quotes.

``sexpr`` writes the outer parentheses, ``sexpr_bare`` leaves them out as the GeoQuery files do.
Atoms are separated by ASCII white space and parentheses. Of Lisp, ``"new york"`` is one atom, whose
label has ``␣`` for each space since tokens hold none, and ``'x`` is read as ``( quote x )``, a backquote
as ``quasiquote``, ``,x`` and ``,@x`` as ``unquote`` and ``unquote-splicing``; ``'x`` is counted. Types, ``loc:<lo,<lo,t>>``, are
part of their atom. Comments, square and curly
brackets, ``|symbols|``, ``'single quotes'``, strings without a space beside them, ``"1998"^^year``, and what
looks like another language, ``f(x)`` and ``a = b``, are refused, as are graphs of AMR; ``( f(x) )`` is read as Lisp has it,
``( f ( x ) )``, and counted.
"""

from __future__ import annotations

import re

from treesyntax.remarks import Remark, remark
from treesyntax.trees.formats.base import (
    SPACE,
    Format,
    RecordError,
    check_one_line,
    exact,
    line_records,
    refuse_graph,
    subtrees_ending,
    with_visible_spaces,
)
from treesyntax.trees.formats.moses import TABS
from treesyntax.trees.tree import Tree

LIST = "()"
QUOTES = {"'": "quote", "`": "quasiquote", ",": "unquote", ",@": "unquote-splicing"}
INFIX = ("=", "==", ":=")
_TOKEN = re.compile(
    r"""[()] | "(?:[^"\\]|\\.)*+" | (?:,@|['`,])(?=[^\s)])
    | [^\s()\[\]{}"`,;|'][^\s()\[\]{}"`,;|]* | \S""",
    re.ASCII | re.VERBOSE,
)
_OTHER_QUOTES = re.compile(
    r"(?<![^\s(])'[^'()\"]*[^'()\"\s]'(?![^\s)])|[“‘][^()“‘”’]*[”’]", re.ASCII
)
GLUED = Remark(
    "names right before a bracket, f(x)",
    "each is read as two items, f and the list ( x ): write ( f x ) if x belongs to f",
)
QUOTED = Remark(
    "quotes right before a name ('s)",
    "each is read as Lisp has it, ( quote s ): write words of text, such as 's, in double quotes",
)
WRAPPED = Remark(
    "brackets around the whole tree", "they are read as a node (): use the format sexpr"
)
FLAT = Remark(
    "four items or more without brackets",
    "they are read as a single list: check that this is the file of forms, and not of text or of another language",
)
PAIRS = Remark(
    "pairs of pairs and words alone",
    "( the cat ) is read as cat below the: if this is a binary parse of a text, as SNLI's, name its brackets, "
    "(X (X the) (X cat)), and choose ptb",
    ("are", "is"),
)
COMPARED = Remark(
    "signs between what they compare (age > 5)",
    "the three are read as items of a list: write ( > age 5 ), or choose the format of such text",
)
_COMPARISONS = frozenset(("<", ">", "<=", ">=", "!=", "<>"))
_FEWEST = 4
_MARKS = {"(", ")", *QUOTES}
_CALL = re.compile(r"\s*([^\s()]+)\(", re.ASCII)
_NOT_ATOMS = {
    '"': ("a string is not closed", "end it with a double quote on the same line"),
    ";": ("';' begins a comment", "take comments out: a line is one tree"),
    "|": ("'|' begins a symbol with bars", "write it as a string in double quotes"),
    **dict.fromkeys("[]{}", ("there are brackets other than ( and )", "write lists as ( a b )")),
    **dict.fromkeys("'`,", ("a quote or comma stands alone, as in another language", "choose the format of such text, or write jsonl")),
}  # fmt: skip


def parse(text: str) -> Tree:
    """The tree of one line."""
    check_one_line(text)
    tokens = _split(text)
    tree, used = _first_item(tokens)
    if used < len(tokens):
        raise _rest(tokens[used], "use the format sexpr_bare if the outer parentheses are left out")
    if tree.labels[:1] == (LIST,) and _is_of_pairs(tree):
        remark(PAIRS)
    return tree


def parse_bare(text: str) -> Tree:
    """The tree of one line without its outer parentheses; a single atom is itself."""
    check_one_line(text)
    if "\t" in text.strip():  # a question and its form would be a single list
        remark(TABS)
    tokens = _split(text)
    if len(tokens) > 1 and tokens[-1] == ".":
        cause = "the expression ends with a full stop"
        raise RecordError(cause, "take it off: it would be read as an atom")
    if len(tokens) >= _FEWEST and not {"(", ")"}.intersection(tokens):
        remark(FLAT)
    if len(tokens) > 1 or {"(", ")"}.intersection(tokens):
        tokens = ["(", *tokens, ")"]
    tree, used = _first_item(tokens)
    if used < len(tokens):
        raise _rest(")", "")
    arities = tree.arities.tolist()
    if len(tree) > 1 and tree.labels[0] == LIST and arities[0] == 1 and arities[1]:
        remark(WRAPPED)
    return tree


def _is_of_pairs(tree: Tree) -> bool:
    """Whether every list has two items, as brackets of a binary parse have."""
    return all(
        arity == (2 if label == LIST else 1)
        for label, arity in zip(tree.labels, tree.arities.tolist(), strict=True)
        if arity or label == LIST
    )


def _split(text: str) -> list[str]:
    """The tokens of a line: parentheses, atoms, and the quotes before them.

    Raises:
        RecordError: for what is not an S-expression, or is one that has no tree here.
    """
    if call := _CALL.match(text):
        cause = f"{call[1][:40]!r} is followed by '(' without a space, as in another language"
        raise RecordError(cause, "write ( f x ) for f(x), or choose the format of such text")
    refuse_graph(text)
    if quoted := _OTHER_QUOTES.search(text):
        cause = f"{quoted[0][:40]} is in other quotes than the double ones of Lisp"
        raise RecordError(cause, "write strings in double quotes")
    tokens: list[str] = []
    end, in_type = -1, False  # where the last token ends; whether it goes on, as in loc:<lo,t>
    for match in _TOKEN.finditer(text):
        token, glued = match[0], match.start() == end
        end = match.end()
        if in_type and (not glued or token in ("(", ")")):
            raise RecordError(f"the type in {tokens[-1][:40]!r} is not closed", "end it with >")
        if in_type:
            tokens[-1] += token
            in_type = tokens[-1].count("<") > tokens[-1].count(">")
            continue
        if glued and token in (",", ",@") and tokens[-1] not in _MARKS:
            if tokens[-1].count("<") <= tokens[-1].count(">"):
                cause = f"a comma stands right behind {tokens[-1][:40]!r}, as in another language"
                raise RecordError(cause, "put spaces, or choose the format of such text")
            tokens[-1] += token
            in_type = True
            continue
        in_type = False
        if glued and token == "(" and tokens[-1] not in _MARKS:
            remark(GLUED)
        if glued and token in ("[", "{") and tokens[-1] not in _MARKS:
            cause = f"the name {tokens[-1][:40]!r} goes on with a bracket {token}"
            raise RecordError(cause, f'write it as a string, "{tokens[-1][:40]}{token}…"')
        if token in _NOT_ATOMS and (
            token not in QUOTES or text[match.end() : match.end() + 1] in ("", " ", ")")
        ):
            raise RecordError(*_NOT_ATOMS[token])
        if token == "'" and text[end] not in ("(", '"', *QUOTES):
            remark(QUOTED)
        if glued and '"' in (token[0], tokens[-1][0]) and not {token, tokens[-1]} & _MARKS:
            cause = f"{token[:40]!r} stands right behind {tokens[-1].replace(SPACE, ' ')[:40]!r}"
            remedy = "write both as one string, or a space between them if they are two items"
            raise RecordError(cause, remedy)
        tokens.append(with_visible_spaces(token) if token[0] == '"' else token)
    if in_type:
        raise RecordError(f"the type in {tokens[-1][:40]!r} is not closed", "end it with >")
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token in INFIX and before != "(" and after != ")":
            cause = f"{token!r} stands between {before[:40]!r} and {after[:40]!r}"
            remedy = f"write ( {token} a b ) with the operator first, or choose the format of a {token} b"
            raise RecordError(cause, remedy)
        if token in _COMPARISONS and before != "(" and after != ")":
            remark(COMPARED)
    return tokens


def _first_item(tokens: list[str]) -> tuple[Tree, int]:
    """The tree of the first atom or list, and the number of its tokens."""
    parents: list[int] = []
    labels: list[str] = []
    quoting: set[int] = set()
    current, index = -1, 0
    # The next two tokens decide the label of a list, so two are added at the end.
    padded = [*tokens, ")", ")"]
    while index < len(tokens) and (current >= 0 or not parents):
        token = tokens[index]
        index += 1
        if token == ")":
            if current < 0:
                break
            current = parents[current]
            while current in quoting:
                current = parents[current]
            continue
        parents.append(current)
        if token in QUOTES:
            current = len(labels)
            quoting.add(current)
            labels.append(QUOTES[token])
            continue
        if token == "(":
            current = len(labels)
            headed = padded[index] not in _MARKS and padded[index + 1] != ")"
            labels.append(padded[index] if headed else LIST)
            index += headed
            continue
        labels.append(token)
        while current in quoting:
            current = parents[current]
    if tokens and not parents:
        raise _rest(")", "")
    if current >= 0:
        count = tokens.count("(") - tokens.count(")")
        cause = f"{count} parenthes{'e' if count > 1 else 'i'}s still open at the end of the line"
        raise RecordError(cause, "write every tree on one line and balance its parentheses")
    return Tree(parents, labels), index


def _rest(token: str, remedy: str) -> RecordError:
    if token == ")":
        return RecordError("a ')' closes nothing", "balance the parentheses")
    return RecordError(f"{token[:40]!r} follows the end of the expression", remedy)


def _tokens(tree: Tree) -> list[str]:
    tokens: list[str] = []
    arities = tree.arities.tolist()
    for label, arity, endings in zip(tree.labels, arities, subtrees_ending(tree), strict=True):
        label = label.replace(SPACE, " ") if label.startswith('"') else label
        if arity:
            tokens.extend(("(",) if label == LIST else ("(", label))
        else:
            tokens.extend(("(", ")") if label == LIST else (label,))
        tokens.extend([")"] * endings)
    return tokens


def write(tree: Tree) -> str:
    """The tree on one line, tokens separated by single spaces."""
    return exact("sexpr", parse, tree, " ".join(_tokens(tree)))


def write_bare(tree: Tree) -> str:
    """As `write`, without the outer parentheses."""
    tokens = _tokens(tree)
    return exact("sexpr_bare", parse_bare, tree, " ".join(tokens[1:-1] or tokens))


SEXPR = Format("sexpr", ".sexpr", line_records, parse, write)
SEXPR_BARE = Format("sexpr_bare", ".sexpr", line_records, parse_bare, write_bare)

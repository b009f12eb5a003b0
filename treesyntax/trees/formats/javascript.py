"""JavaScript as lines of tokens separated by spaces, one program a line, parsed by tree-sitter.

The tree is tree-sitter's parse tree: interior nodes are labelled ``<TYPE>``, the leaves are all
tokens in order, so the text follows from the tree. Spaces in strings, templates, regular expressions, the
text of JSX and comments are ``␣`` in labels, since tokens hold none, and are written as spaces again.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from treesyntax.errors import OptionError, reason_of
from treesyntax.remarks import Remark, remark
from treesyntax.trees.formats.base import (
    SPACE,
    Format,
    RecordError,
    check_one_line,
    exact,
    line_records,
    with_visible_spaces,
)
from treesyntax.trees.tree import Tree

if TYPE_CHECKING:  # the library is loaded by those who parse
    from tree_sitter import Node, Parser


LONGEST = 1 << 20
"""Bytes of a program. tree-sitter takes some hundred bytes of memory for each, and where there is none
left it ends the process."""
WITHOUT_SPACES = ("<STRING>", "<TEMPLATE_STRING>", "<REGEX>", "<JSX_ELEMENT>")
"""Nodes between whose children white space would be text."""
LINE_COMMENTS = Remark(
    "comments from //, <!-- or #! to the end of the line",
    "all behind these signs is the comment: where lines were joined, write /* */ or leave comments out",
)
_COMMENTS = ("comment", "html_comment", "hash_bang_line")
_SPACES = re.compile(rf"[\s{SPACE}]")


@cache
def _parser() -> Parser:
    try:
        import tree_sitter_javascript
        from tree_sitter import Language, Parser

        return Parser(Language(tree_sitter_javascript.language()))
    except Exception as error:  # of versions that do not fit, as other packages pin them
        raise OptionError(
            f"tree-sitter cannot load its grammar of JavaScript ({reason_of(error)}); run: "
            "pip install --upgrade tree-sitter tree-sitter-javascript"
        ) from None


def parse(text: str) -> Tree:
    """The tree of one line; blank text is the empty tree."""
    check_one_line(text)
    if not text.strip():
        return Tree([], [])
    source = text.encode("utf-8", "surrogatepass")
    if len(source) > LONGEST:
        raise RecordError(
            f"the program has {len(source):,} bytes, more than {LONGEST:,}", "take shorter programs"
        )
    parents: list[int] = []
    labels: list[str] = []
    cursor = _parser().parse(source).walk()
    ancestors = [-1]
    while cursor.node is not None:
        node = cursor.node
        if node.is_error or node.is_missing:
            raise _fault(source, node)
        parents.append(ancestors[-1])
        labels.append(_label(node, source))
        if cursor.goto_first_child():
            ancestors.append(len(labels) - 1)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return Tree(parents, labels)
            ancestors.pop()
    return Tree(parents, labels)


def _label(node: Node, source: bytes) -> str:
    if node.child_count:
        return f"<{node.type.upper()}>"
    text = source[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")
    if node.type in _COMMENTS and not text.startswith("/*"):
        remark(LINE_COMMENTS)
    return with_visible_spaces(text) if _SPACES.search(text) else text


def _fault(source: bytes, node: Node) -> RecordError:
    before = len(source[: node.start_byte].split())
    rest = source[node.start_byte :].decode("utf-8", "replace").split()
    if node.is_missing or not rest:
        return RecordError(f"after token {before} JavaScript needs {node.type!r}")
    return RecordError(f"token {before + 1}, {rest[0][:40]!r}, does not fit JavaScript's grammar")


def write(tree: Tree) -> str:
    """The leaves, once it is certain that they are a program with this tree."""
    return exact("javascript", parse, tree, _text(tree))


def _text(tree: Tree) -> str:
    """The leaves with a space between them, or none where a space would be text itself."""
    labels, pieces = tree.labels, []
    arities, branches = tree.arities.tolist(), tree.branches.tolist()
    before = [""] * len(tree)  # what stands before each node
    for node, above in enumerate(tree.parents.tolist()):
        if above >= 0:
            between = "" if labels[above] in WITHOUT_SPACES else " "
            before[node] = between if branches[node] else before[above]
        if not arities[node]:
            pieces.append(before[node] + labels[node].replace(SPACE, " "))
    return "".join(pieces)


JAVASCRIPT = Format("javascript", ".js", line_records, parse, write, learned=True)

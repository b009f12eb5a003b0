"""Program text as lines of tokens separated by spaces, after Drissi et al. (2018).

In CoffeeScript ``<NL>`` ends a statement that another one follows, and ``<IND>`` and ``<DED>`` stand
around an indented block.
"""

from __future__ import annotations

import re

NEW_LINE, INDENT, DEDENT = "<NL>", "<IND>", "<DED>"
# Names, numbers, operators of several signs, single signs.
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|[0-9]+|===|==|[^\s\w]", re.ASCII)


def javascript_tokens(source: str) -> str:
    """The token line of a JavaScript program made of names, whole numbers and operators."""
    return " ".join(_TOKEN.findall(source))


def coffeescript_source(tokens: str) -> str:
    """The CoffeeScript program of a token line, indented by tabs."""
    lines: list[list[str]] = [[]]
    depths, depth = [0], 0
    for token in tokens.split():
        if token == DEDENT:
            depth -= 1
        elif token in (NEW_LINE, INDENT):
            depth += token == INDENT
            lines.append([])
            depths.append(depth)
        else:
            lines[-1].append(token)
    return "\n".join(
        "\t" * depth + " ".join(line) for depth, line in zip(depths, lines, strict=True)
    )

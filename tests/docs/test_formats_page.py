"""docs/data.md says of every format what is read, with an example that is."""

from __future__ import annotations

import re

import pytest
from support import ROOT

from treesyntax.errors import TreeError
from treesyntax.trees.formats import FORMATS, parse_tree

PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## What each format reads")[2].partition("\n## ")[0]
EXAMPLES = dict(re.findall(r"^([a-z_]+) {2,}(\S.*)$", SECTION, re.M))
ROWS = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \| (.*) \|$", SECTION, re.M)


def test_every_format_has_an_example_and_a_row():
    assert set(EXAMPLES) == set(FORMATS)
    assert sorted(re.findall(r"\w+", " ".join(names for names, _ in ROWS))) == sorted(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_the_example_is_read_and_written_back(name):
    tree = parse_tree(EXAMPLES[name], name)
    assert len(tree)
    assert FORMATS[name].parse(FORMATS[name].write(tree)) == tree


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ptb", "(VB like(d))"),
        ("sexpr", "f(x)"),
        ("sexpr", "( f a,b )"),
        ("prolog", "X^p(X)"),
        ("prolog", "a:-b"),
        ("prolog", "a-b"),
        ("funql", "answer(state(all))"),
        ("cogs_varfree", "eat(agent=Emma)"),
        ("javascript", 'x = "a\tb"'),
        ("coffeescript", 'a0 = "x"'),
    ],
)
def test_what_is_said_to_be_refused_is(name, text):
    with pytest.raises(TreeError):
        parse_tree(text, name)

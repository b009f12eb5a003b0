"""Text of data in the tables of a report."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from treesyntax.study.results.table_text import BOOKTABS, Table, latex_file, markdown_text


@pytest.mark.parametrize(
    "text",
    [
        "def __init__ ( self )", "_NP_ x", "f ( _x_ )", "*_x_*", "~~x~~", "x &lt; y &amp; &#60;", "a & b_c",
        "`x` <b> [a](b) | \\frac * 2 *",
    ],
)  # fmt: skip
def test_outputs_and_names_stand_in_markdown_as_they_are(text: str):
    """Names of code with underscores were bold, and entities became the characters that they stand for."""
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    table = page.render(f"| head |\n| --- |\n| {markdown_text(text)} |\n")
    cell = re.search("<td>(.*)</td>", table)
    assert cell is not None
    assert html.unescape(cell[1]) == text


def test_an_underscore_within_a_word_is_no_markup():
    assert markdown_text("relation_mask") == "relation_mask"


def test_a_title_of_several_lines_is_one_in_latex():
    """A blank line in a caption ends LaTeX with an error."""
    (caption,) = [
        line
        for line in Table("A title\n\nof two lines", ["row"], [["a"]]).latex()
        if "caption" in line
    ]
    assert caption == r"\caption{A title  of two lines}"


@pytest.mark.parametrize(
    ("name", "latin"), [("größe_1 ±°† ᵃ", True), ("модель", False), ("模型", False), ("λ", False)]
)
def test_latex_says_what_prints_letters_that_are_not_latin(name: str, latin: bool):
    """pdflatex stops at them: not set up for use with LaTeX."""
    lines = [*Table("title", ["row"], [[name]]).latex(), "% 模型"]
    first, second, *_ = latex_file(lines).splitlines()
    assert first == BOOKTABS
    assert ("lualatex" in second) is not latin

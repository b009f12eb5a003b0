"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

Rows = Sequence[Sequence[object]]

RAISED = dict(zip("ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", "abcdefghijklmnoprstuvwxyz", strict=True))
"""Raised letters, the marks of footnotes: all but q, of which there is none."""
BOOKTABS = r"% \usepackage{booktabs}"
OTHER_LETTERS = (
    "% letters that are not Latin: lualatex or xelatex, with a font that has them (\\setmainfont)"
)
_MARKUP = re.compile(r"[\\|*`~<\[\]]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
"""What begins markup; an underscore within a word does not."""
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "|": r"\textbar{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "†": r"$^{\dagger}$", "°": r"$^{\circ}$", "−": "$-$", "<": r"$<$", ">": r"$>$",
    **{raised: f"$^{{{letter}}}$" for raised, letter in RAISED.items()},
}  # fmt: skip
_LIGATURES = re.compile(r"([-'`,])(?=\1)|[?!](?=`)")
"""Pairs that fonts print as another character, such as ``--`` as a dash; the first letter of each."""


def latex_text(text: object) -> str:
    """Text that LaTeX prints as it is, in one line: a blank one would end a paragraph in the midst of a caption."""
    line = " ".join(str(text).splitlines())
    letters = "".join(_LATEX.get(letter, letter) for letter in line)
    return _LIGATURES.sub(r"\g<0>{}", letters).replace("–", "--")  # a dash that is meant


def markdown_text(text: object) -> str:
    """Text that Markdown shows as it is: no markup, link or HTML begins in it, and no character is written as ``&lt;``."""
    shown = " ".join(str(text).splitlines())
    return _MARKUP.sub(r"\\\g<0>", shown)


def latex_file(lines: Sequence[str]) -> str:
    """The content of a file of tables, first what its readers must do to print it."""
    printed = "".join(line for line in lines if not line.startswith("%"))
    letters = filter(str.isalpha, {*printed})
    latin = all(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    return "\n".join([BOOKTABS, *([] if latin else [OTHER_LETTERS]), *lines]) + "\n"


class Table(NamedTuple):
    """A table with a title; its first column is flush left, the others flush right."""

    title: str
    header: Sequence[object]
    rows: Rows

    def latex(self, label: str = "") -> list[str]:
        """The lines of the table for LaTeX, which needs the package booktabs."""
        head, *body = (
            " & ".join(map(latex_text, line)) + r" \\" for line in (self.header, *self.rows)
        )
        return [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(self.title)}}}",
            *([rf"\label{{{label}}}"] if label else []),
            rf"\begin{{tabular}}{{l{'r' * (len(self.header) - 1)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]

    def markdown(self) -> list[str]:
        """The lines of the table for Markdown, without its title."""
        rule = "|".join(["", "---", *(["---:"] * (len(self.header) - 1)), ""])
        first, *others = (
            "| " + " | ".join(map(markdown_text, row)) + " |" for row in (self.header, *self.rows)
        )
        return [first, rule, *others]


def csv_text(rows: Rows) -> str:
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()

"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

Rows = Sequence[Sequence[object]]

RAISED = dict(zip("ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", "abcdefghijklmnoprstuvwxyz", strict=True))
"""Raised letters, the marks of footnotes: all but q, of which there is none."""
BOOKTABS = r"% \usepackage{booktabs}"
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "†": r"$^{\dagger}$", "°": r"$^{\circ}$", "–": "--", "−": "$-$", "<": r"$<$", ">": r"$>$",
    **{raised: f"$^{{{letter}}}$" for raised, letter in RAISED.items()},
}  # fmt: skip


def latex_text(text: object) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_LATEX.get(letter, letter) for letter in str(text))


def latex_lines(caption: str, header: Sequence[object], rows: Rows, label: str = "") -> list[str]:
    """The lines of a table, which needs the package booktabs; its first column is flush left."""
    head, *body = (" & ".join(map(latex_text, line)) + r" \\" for line in (header, *rows))
    return [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        *([rf"\label{{{label}}}"] if label else []),
        rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def markdown_text(text: object) -> str:
    """Text that Markdown shows as it is: no markup, link or HTML begins in it."""
    shown = " ".join(str(text).splitlines())
    return re.sub(r"([\\|*`<\[\]])", r"\\\1", shown)


def markdown_lines(header: Sequence[object], rows: Rows) -> list[str]:
    """The lines of a table; its first column is flush left."""
    rule = "|".join(["", "---", *(["---:"] * (len(header) - 1)), ""])
    first, *others = ("| " + " | ".join(map(markdown_text, row)) + " |" for row in (header, *rows))
    return [first, rule, *others]


def csv_text(rows: Rows) -> str:
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()

"""The papers that code and pages cite by name and year: who wrote them, where they are, their BibTeX.

All come from the file ``references.bib``. A citation is written as in ``Shiv & Quirk 2019``, ``Shaw et al. 2018`` or
``Shaw, Uszkoreit & Vaswani 2018``; where two papers would be cited alike, one has a letter after its year.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

BIBLIOGRAPHY = Path(__file__).parent / "references.bib"
VENUES = ("journal", "booktitle", "publisher", "howpublished")
"""Fields that say where a paper appeared."""


@dataclass(frozen=True)
class Reference:
    """A paper.

    Attributes:
        key: under which BibTeX knows it.
        bibtex: its entry.
    """

    key: str
    bibtex: str

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields of the entry; braces keep capitals and names of several words together."""
        return dict(re.findall(r"^  (\w+) = \{(.*)\},$", self.bibtex, re.M))

    @property
    def markdown(self) -> str:
        """Authors, title with its link, and where it appeared."""
        fields = {
            name: value.replace("{", "").replace("}", "").replace("--", "–")
            for name, value in self.fields.items()
        }
        title = f"[{fields['title']}]({fields['url']})" if "url" in fields else fields["title"]
        where = next(fields[name] for name in VENUES if name in fields)
        numbers = [fields[name] for name in ("volume", "pages", "year") if name in fields]
        authors = fields["author"].replace(" and others", " et al.").replace(" and ", ", ")
        return f"{authors}: {title}. {', '.join([where, *numbers])}."

    @cached_property
    def citations(self) -> list[str]:
        """All ways in which it may be cited; the shortest is first."""
        year = self.key.rpartition("-")[2]
        names = re.findall(r"(?:\{([^}]+)\}|(\S+))(?: and |$)", self.fields["author"])
        *others, last = ["".join(name) for name in names]
        every = f"{', '.join(others)} & {last}" if others else last
        short = f"{others[0]} et al." if len(others) > 1 else every
        return list(dict.fromkeys((f"{short} {year}", f"{every} {year}")))


@cache
def references() -> dict[str, Reference]:
    """Return all papers by their keys, in the order of the file."""
    entries = re.finditer(
        r"^@\w+\{([\w-]+),\n.*?^\}$", BIBLIOGRAPHY.read_text("utf-8"), re.M | re.S
    )
    return {entry[1]: Reference(entry[1], entry[0]) for entry in entries}


def cited_in(text: str) -> list[Reference]:
    """Return the papers that a text cites, in the order of their first citation."""
    return list(dict.fromkeys(reference for _, reference in _citations(text)))


def link_citations(text: str, page: str) -> str:
    """Return a text of Markdown whose citations are links to their papers on a page."""
    for (begin, end), reference in reversed([*_citations(text)]):
        text = f"{text[:begin]}[{text[begin:end]}]({page}#{reference.key}){text[end:]}"
    return text


def _citations(text: str) -> Iterator[tuple[tuple[int, int], Reference]]:
    pattern, known = _spellings()
    for match in pattern.finditer(_without_accents(text)):
        yield match.span(), known[_words(match[0])]


@cache
def _spellings() -> tuple[re.Pattern[str], dict[str, Reference]]:
    """What matches any citation, the longest first, and the papers by the words of their citations."""
    known = {
        _words(_without_accents(citation)): reference
        for reference in references().values()
        for citation in reference.citations
    }
    longest_first = sorted(known, key=len, reverse=True)
    between = r"[.,]?\s+(?:# )?\(?"  # names go on in the next line, of a comment too
    texts = (re.escape(words).replace(r"\ ", between) for words in longest_first)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(texts)})(?!\w)"), known


def _words(citation: str) -> str:
    return " ".join(re.findall(r"[\w'-]+|&", citation))


def _without_accents(text: str) -> str:
    """A text of the same length without accents, since names are spelt with and without them."""
    return "".join(unicodedata.normalize("NFD", letter)[0] for letter in text)

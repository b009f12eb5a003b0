"""Check the prose of the pages: python .ci/prose.py

A paragraph has at most 60 words, a sentence 30, a list 110, and a paragraph has at most two numbers in brackets. A row that
a page names is explained on it. README and docs have at most 20,000 words, and the pages of results 4,000 of them. Code,
numbers and pages that are written from the code do not count.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PARAGRAPH, SENTENCE, LIST, BRACKETS = 60, 30, 110, 2
RESULTS = ("docs/results.", "docs/results-", "docs/reproduction", "docs/where-trees-help")
BUDGETS = {
    "README.md and docs/": (("README", "docs/"), 20_000),
    "the pages of results": (RESULTS, 4_000),
}
GENERATED = (
    "docs/methods/",
    "docs/commands.md",
    "docs/recipe-keys.md",
    "docs/glossary.md",
    "docs/references.md",
)

FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.S | re.M)
COMMENT = re.compile(r"<!--.*?-->", re.S)
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SENTENCE_END = re.compile(r"(?<=[.!?])[*_)”\"]*\s+(?=[A-Z0-9`*“\"(\[†°])")
ABBREVIATION = re.compile(r"\b(al|e\.g|i\.e|vs|cf|Eqs?|Fig|sd)\.(?=\s)")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
ROW = re.compile(r"`([a-z][a-z0-9_]*)`")


def pages() -> list[Path]:
    """All pages that somebody reads, but for tables that programs write and the map's plan, which stays as it was."""
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted(path for path in (ROOT / "docs").rglob("*.md") if "results" not in path.parts),
        ROOT / "docs/results/README.md",
        *sorted((ROOT / "recipes").rglob("README.md")),
        ROOT / "tests/reliability/README.md",
    ]


def row_names() -> set[str]:
    """The names of methods, and those of rows in the recipes that cannot be taken for a plain word."""
    catalogue = json.loads((ROOT / "treesyntax/methods/catalogue.json").read_text("utf-8"))
    names = {method["name"] for method in catalogue["methods"]}
    for path in sorted((ROOT / "recipes").rglob("*.yaml")):
        content = yaml.safe_load(path.read_text("utf-8"))
        rows = content.get("methods") if isinstance(content, dict) else None
        names |= {name for name in rows or () if "_" in name}
    return names


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs and list items of a page, without code, tables, titles and comments."""
    text = COMMENT.sub("", FENCE.sub("", text))
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        apart = not line.strip() or line.lstrip().startswith(("|", "#", ">", ":::", "!["))
        if (apart or ITEM.match(line)) and lines:
            yield " ".join(lines)
            lines = []
        if not apart:
            lines.append(ITEM.sub("", line).strip())


def lists(text: str) -> Iterator[str]:
    """The lists of a page, items together, as far as no empty line parts them."""
    for block in re.split(r"\n\s*\n", COMMENT.sub("", FENCE.sub("", text))):
        if ITEM.match(block):
            yield " ".join(ITEM.sub("", line).strip() for line in block.splitlines())


def words_of(text: str) -> int:
    """How many words a text has; code in a line is one."""
    text = re.sub(r"`[^`]*`", "code", text)
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def numbers_in_brackets(text: str) -> int:
    """How many numbers, years left out, stand in brackets."""
    groups = re.findall(r"\[[^\]]*\]|\([^)]*\)", re.sub(r"`[^`]*`", "", text))
    return sum(len(re.findall(r"\d[\d.,]*", YEAR.sub("", group))) for group in groups)


def unexplained(text: str, names: Collection[str]) -> list[str]:
    """The rows that a page names and nowhere explains, by a link, in a table, or in words beside the name."""
    text = COMMENT.sub("", FENCE.sub("", text))
    explained = set(re.findall(r"^#+ `?([a-z0-9_]+)`?$", text, re.M))
    for link, target in re.findall(r"\[([^\]]*)\]\(([^)]*)\)", text):
        explained.update(ROW.findall(link) if ".md" in target else ())
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            first = line.strip().strip("|").split("|")[0]
            if len(re.findall(r"\b[a-z]{2,}\b", LINK.sub(r"\1", line), re.I)) > 3:
                explained.update(ROW.findall(first))
    flat = re.sub(r"\s+", " ", text)
    explained.update(re.findall(r"\w[*\"”]? \(`([a-z0-9_]+)`", flat))
    after = r"(?:: | \(|, | is | are | has | reads | adds )"
    name = r"`[a-z0-9_]+`"
    for names_before in re.findall(rf"((?:{name}(?:, | and | or ))*{name})[*_]*{after}[a-z]", flat):
        explained.update(ROW.findall(names_before))
    return sorted({*ROW.findall(text)} & {*names} - explained)


def faults_of(text: str, names: Collection[str] = ()) -> list[str]:
    """What a page breaks of the rules, a line each."""
    faults = []
    for paragraph in paragraphs(text):
        plain = LINK.sub(r"\1", paragraph)
        begin = f"“{plain[:50]}…”"
        if (count := words_of(plain)) > PARAGRAPH:
            faults.append(f"{begin}: a paragraph of {count} words; at most {PARAGRAPH}")
        if (count := numbers_in_brackets(LINK.sub("", paragraph))) > BRACKETS:
            faults.append(f"{begin}: {count} numbers in brackets; at most {BRACKETS}")
        for sentence in SENTENCE_END.split(ABBREVIATION.sub(r"\1", plain)):
            if (count := words_of(sentence)) > SENTENCE:
                faults.append(
                    f"“{sentence[:50]}…”: a sentence of {count} words; at most {SENTENCE}"
                )
    for text_of_list in lists(text):
        if (count := words_of(LINK.sub(r"\1", text_of_list))) > LIST:
            faults.append(f"“{text_of_list[:50]}…”: a list of {count} words; at most {LIST}")
    return faults + [f"`{name}` is named but not explained" for name in unexplained(text, names)]


def size_of(text: str) -> int:
    """How many words a page has, those of its tables too; code and numbers are none."""
    text = re.sub(r"\]\([^)]*\)|<[^>]+>", "]", COMMENT.sub("", FENCE.sub("", text)))
    return sum(bool(re.search(r"[^\W\d_]", word)) for word in text.split())


def over_budget(known: Mapping[str, Path]) -> list[str]:
    """Which pages together have more words than they may."""
    sizes = {
        page: size_of(path.read_text("utf-8"))
        for page, path in known.items()
        if not page.startswith(GENERATED)
    }
    totals = {
        what: (sum(size for page, size in sizes.items() if page.startswith(begin)), most)
        for what, (begin, most) in BUDGETS.items()
    }
    return [
        f"{what}: {count:,} words together; at most {most:,}"
        for what, (count, most) in totals.items()
        if count > most
    ]


def main() -> int:
    """Print all faults; whether there are any is the verdict."""
    names, known = row_names(), {str(path.relative_to(ROOT)): path for path in pages()}
    faults = over_budget(known)
    for page, path in known.items():
        faults += [f"{page}: {fault}" for fault in faults_of(path.read_text("utf-8"), names)]
    print(*faults, sep="\n", end="\n" if faults else "")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())

"""Papers are cited by name and year; each is in the bibliography, and each method gives its BibTeX."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import yaml
from support import ROOT
from support.study_helpers import make_study, write_recipe

import treesyntax
from treesyntax.__main__ import main
from treesyntax.methods import METHODS
from treesyntax.references import cited_in, link_citations, references
from treesyntax.study.recipe.backbone import papers_of
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.paper import bibliography

NAME = r"[A-Z][\w’-]+"
CITATION = re.compile(
    rf"({NAME}(?:(?:, {NAME})* (?:&|and) {NAME}|\s+et\s+al\.)?),?\s+\(?((?:19|20)\d\d[a-z]?)\b"
)
NO_PAPER = re.compile(r"CoNLL-|IWSLT|WMT|SemEval|Since|November")
"""Years after a name that cite nothing: shared tasks and dates."""


def test_every_paper_that_is_named_is_in_the_list():
    files = [*ROOT.glob("*.md")]
    for folder, kinds in {
        "docs": ("md",), "recipes": ("md", "yaml"), "treesyntax": ("py",), "fairseq_plugins": ("py",)
    }.items():  # fmt: skip
        files += [file for kind in kinds for file in (ROOT / folder).rglob(f"*.{kind}")]
    unknown, cited = [], 0
    for file in {*files} - {ROOT / "docs/references.md"}:
        text = file.read_text("utf-8")
        cited += len(cited_in(text))
        rest = re.sub(r"\[[^][]*\]\(X#[\w-]+\)", "", link_citations(text, "X"))
        unknown += [
            (file.name, match[0])
            for match in CITATION.finditer(rest)
            if not NO_PAPER.search(match[0])
        ]
    assert unknown == []
    assert cited > 200


def test_an_entry_says_who_what_where_and_when():
    assert list(references()) == sorted(references())
    for key, reference in references().items():
        fields = reference.fields
        assert {"author", "title", "year"} <= {*fields}, key
        assert re.fullmatch(rf"[a-z]+-{fields['year']}[a-z]?", key)
        assert fields.get("url", "https://").startswith("https://")
        assert "url" in fields or reference.bibtex.startswith(("@book", "@misc{treesyntax"))
        assert reference.bibtex.count("{") == reference.bibtex.count("}")
    ways = [way for reference in references().values() for way in reference.citations]
    assert len(ways) == len({*ways})


def test_this_software_is_cited_with_its_version():
    own = references()["treesyntax-2026"]
    assert own.fields["howpublished"] == f"Software, version {treesyntax.__version__}"
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    titles = {re.sub(r"[{}]", "", one.fields["title"]).lower() for one in references().values()}
    assert {one["title"].lower() for one in cff["references"]} <= titles
    page = (ROOT / "docs/citing.md").read_text("utf-8")
    assert own.bibtex in page


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("as Shiv & Quirk 2019 do", ["shiv-2019"]),
        ("of Chen et\n# al. (2018, section 3)", ["chen-2018"]),
        ("Shaw, Uszkoreit and\nVaswani 2018", []),
        ("Shaw, Uszkoreit &\nVaswani 2018; Csordas et al. 2021", ["shaw-2018", "csordas-2021"]),
        ("Wang et al. 2020, Wang et al. 2020b", ["wang-2020", "wang-2020b"]),
        ("Wang et al. 2020c, Clark 19730, McClark 1973", []),
        ("de Bruijn 1972, Graliński, Bartkowiak & Graliński 2025", ["bruijn-1972", "bartkowiak-2025"]),
    ],
)  # fmt: skip
def test_a_citation_is_found(text: str, keys: list[str]):
    assert [reference.key for reference in cited_in(text)] == keys
    linked = link_citations(text, "p.md")
    assert re.findall(r"\]\(p\.md#([\w-]+)\)", linked) == keys
    assert re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", linked) == text


def test_each_method_names_a_paper_and_prints_its_bibtex(capsys: pytest.CaptureFixture[str]):
    for name, method in METHODS.items():
        papers = cited_in(method.paper)
        assert papers, name
        assert main(["methods", name, "--bibtex"]) == 0
        assert capsys.readouterr().out == "\n\n".join(one.bibtex for one in papers) + "\n"
    assert main(["methods", "stack_pe_icecaps", "--bibtex"]) == 0
    assert capsys.readouterr().out == f"{references()['shiv-2019'].bibtex}\n"


def test_a_paper_gets_the_bibtex_of_what_its_study_uses(tmp_path: Path):
    out = tmp_path / "paper"
    assert main(["report", str(make_study(tmp_path)), "--for-paper", str(out)]) == 0
    keys = re.findall(r"^@\w+\{(.*),$", (out / "references.bib").read_text("utf-8"), re.M)
    assert keys[0] == "treesyntax-2026"
    assert {"vaswani-2017", "mcdonald-2021", "shiv-2019"} <= {*keys}
    assert len(keys) == len({*keys})


def test_the_paper_of_an_own_method_is_asked_for(tmp_path: Path):
    train = {"encoder-injection": "mine+relation_mask"}
    assert papers_of("tree_sequence_mini", train) == {
        "sequence": METHODS["sequence"].paper, "mine": "", "relation_mask": METHODS["relation_mask"].paper,
    }  # fmt: skip
    recipe = read_recipe(write_recipe(tmp_path), ["methods.stack_pe.train.encoder-injection=mine"])
    assert bibliography(recipe, []).endswith("\n\n% mine: add its paper\n")


def test_a_site_links_citations_but_no_code_titles_or_links():
    make = runpy.run_path(str(ROOT / ".ci/method_pages.py"))["on_page_markdown"]
    page = type("Page", (), {"file": type("File", (), {"src_uri": "methods/pairs/x.md"})})
    text = "# Holm 1979\n\n`Holm 1979` [Holm 1979](x.md)\n```\nHolm 1979\n```\n"
    assert make(text, page) == text
    link = "[Holm 1979](../../references.md#holm-1979)"
    assert make(f"{text}After Holm 1979.\n", page) == f"{text}After {link}.\n"

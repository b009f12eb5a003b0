"""The check of prose in ``make docs`` finds what it is for, and the pages keep it."""

from __future__ import annotations

import runpy

import pytest
from support import ROOT

PROSE = runpy.run_path(str(ROOT / ".ci/prose.py"))
NAMES = {"lcrs_dfs", "stack_pe", "sequence"}


def faults(text: str) -> list[str]:
    return PROSE["faults_of"](text, NAMES)


def test_the_pages_keep_the_rules(capsys: pytest.CaptureFixture[str]):
    status = PROSE["main"]()
    assert (status, capsys.readouterr().out) == (0, "")


def test_a_page_against_the_rules_is_named(tmp_path, monkeypatch, capsys):
    page = tmp_path / "README.md"
    page.write_text("word " * 61, encoding="utf-8")
    for name, value in (
        ("ROOT", tmp_path),
        ("pages", lambda: [page]),
        ("row_names", lambda: NAMES),
    ):
        monkeypatch.setitem(PROSE["main"].__globals__, name, value)
    assert PROSE["main"]() == 1
    assert "README.md: “word word" in capsys.readouterr().out
    page.write_text("Short.\n", encoding="utf-8")
    assert PROSE["main"]() == 0


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("A word. " * 31, "a paragraph of 62 words; at most 60"),
        ("- " + "word " * 31, "a sentence of 31 words; at most 30"),
        ("- A word.\n- A word.\n" * 28, "a list of 112 words; at most 110"),
        ("Gains 2 points [1.0, 3.0], 3 runs (p = 0.1).", "3 numbers in brackets; at most 2"),
        ("The row `lcrs_dfs` wins.", "`lcrs_dfs` is named but not explained"),
        ("| `lcrs_dfs` | 81.1 | 0.4 |", "`lcrs_dfs` is named but not explained"),
    ],
)
def test_a_fault_is_found(text: str, fault: str):
    found = faults(text)
    assert len(found) == 1
    assert found[0].endswith(fault)


@pytest.mark.parametrize(
    "text",
    [
        "A word. " * 30,
        "word " * 30,
        "```text\n" + "word " * 100 + "\n```",
        "| " + "word " * 100 + "|",
        "- " + "word " * 25 + "\n- " + "word " * 25 + "\n- " + "word " * 25,
        "As shown before (Shaw et al. 2018; Omote et al. 2019; Cornfield & Tukey 1956).",
        "Of two ([table 1, 2, 3](x.md)), 2 points [1.0, 3.0].",
        "The decoder that grows the tree (`lcrs_dfs`) wins. `lcrs_dfs` again.",
        "| `lcrs_dfs` | the decoder that grows the tree | 81.1 |",
        "See [`stack_pe`](methods/stack_pe.md).",
        "`sequence`: the words alone.",
        "`lcrs_dfs` and `stack_pe`: rows with trees.",
        "# stack_pe\n\nUse `stack_pe`.",
    ],
)
def test_what_is_allowed_passes(text: str):
    assert faults(text) == []


def test_pages_over_their_budget_are_found(tmp_path):
    page = tmp_path / "results.md"
    page.write_text("word 12 " * 4001 + "\n```text\n" + "code " * 99 + "\n```\n", encoding="utf-8")
    found = PROSE["over_budget"]({"docs/results-more.md": page})
    assert found == ["the pages of results: 4,001 words together; at most 4,000"]
    assert PROSE["over_budget"]({"docs/methods/results.md": page, "docs/commands.md": page}) == []
    page.write_text("word | " * 20_001, encoding="utf-8")
    found = PROSE["over_budget"]({"docs/design.md": page})
    assert found == ["README.md and docs/: 20,001 words together; at most 20,000"]


def test_rows_are_those_of_methods_and_recipes():
    names = PROSE["row_names"]()
    assert {"sequence", "stack_pe", "lcrs_dfs", "relation_mask"} <= names
    assert "both" not in names

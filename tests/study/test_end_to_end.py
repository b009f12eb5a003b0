"""Studies with the real programs, from generated data to a report that a browser opens.

The slowest tests of studies. Steps are forks of one process, see `forked_programs`; in one study the
first step of each program is a process of its own, and in one they are forks of the study's server.
"""

from __future__ import annotations

import csv
import json
import re
import runpy
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from support.browser import PHONE, chromium, keep, opened
from support.tiny_studies import SHADOWS, STUDIES, run_study

from treesyntax.study.results.results import read_results
from treesyntax.study.run.failures import read_failures

SECTIONS = {
    "programs": {
        "verdict", "all-runs", "learning-curves", "score-by-size", "error-types", "cost", "attention-mass", "encoding-similarity",
        "relative-tables",
    },
    "forms": {
        "all-runs", "learning-curves", "score-by-size", "error-types", "cost", "mask-strengths", "encoding-similarity",
        "not-drawn",
    },
    "translation": {
        "verdict", "all-runs", "learning-curves", "score-by-size", "cost", "attention-mass", "mask-strengths",
        "sentence-masks", "strength-trajectories", "strength-study",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def studies(once: Callable[..., Path]) -> dict[str, Path]:
    return {name: once(f"study-{name}", partial(run_study, name)) / "out" for name in STUDIES}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def test_results_have_what_there_is_to_know(studies: dict[str, Path]):
    results = read_results(studies["translation"] / "runs.jsonl")
    assert sorted(result.key for result in results) == [
        (method, 1, metric)
        for method in ("relation_mask", "sequence")
        for metric in ("bleu", "chrf")
    ]
    first = next(result for result in results if result.method == "relation_mask")
    assert (first.n, first.updates, first.injection) == (24, 12, "relation_mask")
    assert first.parameters > 1000
    assert first.tokens_per_second > 0
    assert 0 < first.valid_loss < 20
    # Python with torch alone takes more than 100 MiB.
    assert 100 < first.peak_memory < 100_000
    table = (studies["translation"] / "tables/results.csv").read_text()
    assert len(list(csv.DictReader(table.splitlines()))) == len(results)


def test_the_mean_of_the_last_saves_is_tested(studies: dict[str, Path]):
    folder = studies["translation"]
    told = "checkpoint_average.pt: the mean of checkpoint_2_8.pt, checkpoint_3_12.pt"
    assert told in (folder / "logs/relation_mask-1/average.log").read_text()
    tested = f"--path {folder}/runs/relation_mask-1/checkpoint_average.pt"
    assert tested in (folder / "logs/relation_mask-1/generate.log").read_text()


def test_attention_is_measured_on_the_plain_model_too(studies: dict[str, Path]):
    for study, methods in (("programs", ("sequence", "paths")), ("translation", ("sequence",))):
        for method in methods:
            place = studies[study] / f"runs/{method}-1/analyses/encoder/attention_mass.json"
            found = json.loads(place.read_text())
            assert len(found["mass"]) == 2
            assert sum(found["chance"]) == pytest.approx(1)


def test_commands_may_be_forks_of_one_that_has_loaded_all(studies: dict[str, Path]):
    served = {name for name, out in studies.items() if (out / "logs/preloaded.log").exists()}
    assert served == {"programs"}  # whose results all other tests look at


def test_every_figure_has_its_numbers(studies: dict[str, Path]):
    for folder in studies.values():
        figures = [*folder.glob("figures/*.svg"), *folder.glob("runs/*/analyses/*/*.svg")]
        assert len(figures) > 4
        for figure in figures:
            assert "<image" not in figure.read_text(), f"{figure} holds a picture of pixels"
        for path in folder.glob("**/analyses/analyses.json"):
            for entry in json.loads(path.read_text())["drawn"]:
                assert entry["figures"]
                assert entry["numbers"]


def test_what_is_not_drawn_is_named(studies: dict[str, Path]):
    text = (studies["forms"] / "report.md").read_text()
    assert "- Attention by tree relation, grown-1: the source of its data has no trees\n" in text
    assert "- Mask strengths over training, grown-1: there are checkpoints of 1 updates" in text


def test_files_beside_the_recipe_take_the_place_of_no_module(studies: dict[str, Path]):
    folder = studies["forms"].parent
    for shadow in SHADOWS:
        with pytest.raises(ImportError, match=f"^{shadow} of the working folder$"):
            runpy.run_path(str(folder / shadow))
    assert read_failures(studies["forms"]) == {}
    assert {result.method for result in read_results(studies["forms"] / "runs.jsonl")} == {"grown"}
    assert (studies["forms"] / "report.html").is_file()


def test_every_link_of_the_markdown_report_resolves(studies: dict[str, Path]):
    for folder in studies.values():
        text = (folder / "report.md").read_text()
        links = [unquote(link) for link in re.findall(r"(?<!\\)\]\((\S+?)\)", text)]
        assert len(links) > 8
        assert [link for link in links if not (folder / link).is_file()] == []


@pytest.mark.parametrize("study", STUDIES)
def test_the_page_is_whole_in_a_browser(studies: dict[str, Path], browser: Any, study: str):
    with opened(browser, studies[study] / "report.html") as page:
        assert SECTIONS[study] | {"words"} == set(
            page.eval_on_selector_all("section > h2", "all => all.map(one => one.id)")
        )
        links = page.eval_on_selector_all(
            "[href]", "all => all.map(one => one.getAttribute('href'))"
        )
        assert all(link.startswith("#") for link in links)
        lost = page.evaluate(
            """() => [...document.querySelectorAll("*")].flatMap(one => [...one.attributes])
                .flatMap(one => /href$/.test(one.name) ? [one.value]
                    : [...one.value.matchAll(/url\\(["']?(#[^"')]+)/g)].map(found => found[1]))
                .filter(target => !document.getElementById(target.slice(1)))"""
        )
        assert lost == []
        open_all(page)
        shapes = page.eval_on_selector_all(
            "figure img",
            "all => all.map(one => [one.getBoundingClientRect(), one.getAttribute('alt')])",
        )
        assert len(shapes) >= 5
        for box, label in shapes:
            assert box["width"] > 200
            assert box["height"] > 80
            assert label
        keep(page, f"{study}-desktop")


def open_all(page: Any) -> None:
    """Unfold everything."""
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true })")


def column(page: Any, number: int, table: str = "#results") -> list[str]:
    cells = f"{table} tbody td:nth-child({number})"
    return page.eval_on_selector_all(cells, "all => all.map(one => one.textContent)")


def test_tables_are_sorted_by_mouse_and_keyboard(studies: dict[str, Path], browser: Any):
    with opened(browser, studies["translation"] / "report.html") as page:
        assert column(page, 1) == ["sequence", "relation_mask"]
        heading = page.locator("#results th").nth(4)
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == "descending"
        falling = [int(text.replace(",", "")) for text in column(page, 5)]
        assert falling == sorted(falling, reverse=True)
        page.keyboard.press("Enter")  # the button has the focus
        assert heading.get_attribute("aria-sort") == "ascending"
        assert column(page, 1) == ["sequence", "relation_mask"]
        page.locator("#results th").nth(0).locator("button").focus()
        page.keyboard.press("Space")
        page.keyboard.press("Space")
        assert column(page, 1) == ["relation_mask", "sequence"]
        assert heading.get_attribute("aria-sort") is None
        open_all(page)
        page.locator("#runs th button").first.click()
        assert column(page, 1, "#runs") == ["sequence-1", "relation_mask-1"]


def test_numbers_sort_as_numbers_and_gaps_come_last(
    studies: dict[str, Path], browser: Any, tmp_path: Path
):
    text = (studies["translation"] / "report.html").read_text()
    cells = ("9.50 ± 1.00 ns", "–", "10.25 ± –", "1,000")
    rows = "".join(f"<tr><td>{place}</td><td>{cell}</td></tr>" for place, cell in enumerate(cells))
    table = f"<thead><tr><th>a</th><th>b</th></tr></thead><tbody>{rows}</tbody>"
    file = tmp_path / "page.html"
    file.write_text(re.sub(r'(<table id="runs">).*?(</table>)', rf"\1{table}\2", text, flags=re.S))
    with opened(browser, file) as page:
        open_all(page)
        button = page.locator("#runs th button").nth(1)
        button.click()
        assert column(page, 1, "#runs") == ["3", "2", "0", "1"]
        button.click()
        assert column(page, 1, "#runs") == ["0", "2", "3", "1"]


def test_the_page_is_whole_without_scripts(studies: dict[str, Path], browser: Any):
    page_file = studies["programs"] / "report.html"
    with opened(browser, page_file, java_script_enabled=False) as page:
        assert page.locator("#results th button").count() == 0
        assert "paths" in page.locator("#results").inner_text()
        assert page.locator("figure img").count() >= 5


@pytest.mark.parametrize("study", STUDIES)
def test_nothing_sticks_out_on_a_phone(studies: dict[str, Path], browser: Any, study: str):
    with opened(browser, studies[study] / "report.html", PHONE) as page:
        open_all(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        boxes = page.locator(".wide")
        assert boxes.first.evaluate("box => box.scrollWidth > box.clientWidth")
        keep(page, f"{study}-phone")


def test_print_and_dark(studies: dict[str, Path], browser: Any, tmp_path: Path):
    file = studies["programs"] / "report.html"
    with opened(browser, file, (794, 1123)) as page:  # A4
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") <= 794
        assert not page.locator("nav").is_visible()
        assert not page.locator("#attention-mass").is_visible()  # folded
        keep(page, "programs-print")
        printed = page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        assert printed.count(b"/Type /Page\n") <= 2
        open_all(page)
        assert page.locator("#attention-mass").is_visible()
    with opened(browser, file, color_scheme="dark") as page:
        colours = page.evaluate(
            """() => [document.documentElement, document.querySelector(".drawing")]
                .map(one => getComputedStyle(one)).map(one => [one.backgroundColor, one.color])"""
        )
        assert colours[0][1] == "rgb(255, 255, 255)"
        assert colours[1][0] == "rgb(255, 255, 255)"
        keep(page, "programs-dark")

"""The report of a study folder from somebody else runs nothing and reads nothing outside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from reliability.figures import count
from support.browser import chromium
from support.study_helpers import make_study, result, write_recipe, write_study

from treesyntax.__main__ import main
from treesyntax.files import write_text
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.results.results import write_results

pytestmark = pytest.mark.usefixtures("empty_figures")
RUN = "document.title = 'executed'"
EVIL_SVG = f"""<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="{RUN}">
<script>{RUN}</script><image href="x" onerror="{RUN}"/></svg>
</div><script>{RUN}</script><img src="x" onerror="{RUN}">"""
MARKUP = [
    f"<script>{RUN}</script>",
    f'<img src=x onerror="{RUN}">',
    "[here](javascript:alert(1))",
    r"\[here](javascript:alert(1)) \\[here](javascript:alert(1))",
    "![here](http://outside/x.png)",
    "<javascript:alert(1)>",
    "x\n\n[here]: javascript:alert(1)\n\n[here]",
    "x\r<script>1</script>",
    "```\n<b>",
]
PLACE = "runs/relation_mask-1/analyses"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with results and a report."""
    folder = make_study(tmp_path_factory.mktemp("finished"), seeds=[1], score=["exact"])
    (folder / PLACE).mkdir(parents=True, exist_ok=True)
    (folder / PLACE / "fig.svg").write_text("<svg></svg>")
    list_figures(folder, ["fig.svg"], [])
    assert main(["report", str(folder)]) == 0
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    evil = " ".join(MARKUP)
    write_study(folder, read_recipe(write_recipe(tmp_path, title=evil, question=evil)))
    found = replace(result("sequence", 1, "exact", 40.0), device=evil)
    write_results(folder / "runs.jsonl", [found])
    failure = {"message": evil, "log": "logs/x.log"}
    write_text(folder / "failures.json", json.dumps({"stack_pe-1/train": failure}))
    write_text(tmp_path / "outside.svg", "<svg><!-- secret --></svg>")
    write_text(tmp_path / "outside.json", '{"learned_p": [0.123]}')
    return folder


def list_figures(folder: Path, figures: list[str], numbers: list[str], why: str = "") -> None:
    drawn = {"name": "mask_strengths", "side": "encoder", "figures": figures, "numbers": numbers}
    listed = {"drawn": [drawn], "absent": [{"name": why, "side": "encoder", "why": why}]}
    write_text(folder / PLACE / "analyses.json", json.dumps(listed))


def test_markup_is_shown_as_text(folder: Path):
    write_text(folder / PLACE / "fig.svg", EVIL_SVG)
    list_figures(folder, ["fig.svg"], [], why=" ".join(MARKUP))
    page = write_report(read_study(folder)).read_text()
    assert page.count("<script>") == 1
    assert "<img src=x" not in page
    assert "onload" not in page
    text = (folder / "report.md").read_text()
    body = text.split("Commands of the first seed")[0]
    assert not re.search(r"(?<!\\)<", body)
    links = re.findall(r"(?<!\\)\]\(([^)]*)", body)
    assert links[-1] == f"{PLACE}/fig.svg"
    assert all((folder / link).is_file() for link in links)
    count("untrusted: markup in reports", len(MARKUP) * 4)


def test_nothing_of_it_runs_in_a_browser(folder: Path):
    write_text(folder / PLACE / "fig.svg", EVIL_SVG)
    list_figures(folder, ["fig.svg"], [], why=" ".join(MARKUP))
    page = write_report(read_study(folder))
    injected = page.read_text().replace("<h1>", f'<h1 onclick="{RUN}"><script>{RUN}</script>')
    page.write_text(injected)  # even then the policy of the page forbids it
    with chromium() as browser:
        context = browser.new_context(offline=True)
        shown = context.new_page()
        shown.goto(page.as_uri())
        assert shown.title() != "executed"
        assert shown.locator("th button").count() > 0
        context.close()


@pytest.mark.parametrize(
    "name",
    ["../../../../outside.svg", "{outside}.svg", "link.svg", "linked/outside.svg", "loop.svg", ".",
     "a\0b", "missing.svg", "x" * 5000],
)  # fmt: skip
def test_only_files_of_the_study_are_read(name: str, folder: Path):
    place = folder / PLACE
    place.mkdir(parents=True)
    (place / "link.svg").symlink_to(folder.parent / "outside.svg")
    (place / "linked").symlink_to(folder.parent, target_is_directory=True)
    (place / "loop.svg").symlink_to(place / "loop.svg")
    name = name.format(outside=folder.parent / "outside")
    list_figures(folder, [name, "learned_p.svg"], [name.replace(".svg", ".json")])
    write_text(place / "learned_p.svg", "<svg/>")
    page = write_report(read_study(folder)).read_text()
    assert "c2VjcmV0" not in page
    assert "secret" not in page
    assert "0.123" not in page
    assert "is not drawn, as it is no figure in this folder" in page
    assert "learned p = ?" in page
    count("untrusted: files named by reports")


@pytest.mark.parametrize(
    "listed",
    ["[]", "null", "7", '{{"drawn": 1, "absent": null}}', '{{"drawn": [1, null, []], "absent": [[]]}}',
     '{{"drawn": [{entry}], "absent": []}}', '{{"drawn": [], "absent": [{{"name": [], "why": 1}}]}}'],
)  # fmt: skip
@pytest.mark.parametrize("value", ["null", "NaN", "[1]", '{{"a": 1}}', '"x"'])
def test_lists_of_another_form_are_left_out(listed: str, value: str, folder: Path):
    entry = f'{{"name": "mask_strengths", "side": {value}, "figures": {value}, "numbers": {value}}}'
    write_text(folder / PLACE / "analyses.json", listed.format(entry=entry).replace("{{", "{"))
    assert write_report(read_study(folder)).is_file()


KINDS = {
    "a named pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a folder": Path.mkdir,
}
READ = [
    "study.json", "recipe.yaml", "runs.jsonl", "failures.json", "digests.json",
    "tables/items.jsonl", "figures/learning_curves.json", ".lock",
    "logs/sequence-1/train.log", "runs/sequence-1/begun.json", "runs/sequence-1/hypotheses.txt",
    f"{PLACE}/analyses.json", f"{PLACE}/fig.svg", "done/sequence-1/hypotheses.json",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READ)
def test_what_is_no_file_is_passed_over_or_refused(
    kind: str, name: str, finished: Path, tmp_path: Path, capsys
):
    """A named pipe waits for ever for somebody who writes, and /dev/zero never ends."""

    def late(*_: object) -> None:
        raise AssertionError(f"{name} is waited for")

    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    path = folder / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](path)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    try:
        status = main(["report", str(folder)])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    said = capsys.readouterr().err
    assert status in (0, 2)
    assert said.count("\n") == (status == 2), said

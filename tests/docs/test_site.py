"""The pages of docs/ and what makes a site of them agree with the code."""

from __future__ import annotations

import ast
import importlib
import json
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from support import ROOT

import treesyntax
from treesyntax.__main__ import COMMANDS
from treesyntax.methods import METHODS

DOCS = ROOT / "docs"
CONFIG = ROOT / ".ci/mkdocs.yml"


def texts_of_the_code() -> list[str]:
    """All strings in the code; the parts of f-strings each for itself."""
    files = [*(ROOT / "treesyntax").rglob("*.py"), *(ROOT / "fairseq_plugins").rglob("*.py")]
    return [
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_every_message_of_the_troubleshooting_page_is_in_the_code():
    page = (DOCS / "troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.M)
    assert len(messages) >= 20
    texts = texts_of_the_code()
    parts = {part.strip() for message in messages for part in message.split("…")}
    gone = [part for part in parts if not any(part in text for text in texts)]
    assert gone == []


def pages_of(nav: list) -> list[str]:
    found = []
    for entry in nav:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += pages_of(inner) if isinstance(inner, list) else [inner]
    return found


def test_every_page_is_in_the_contents():
    listed = pages_of(yaml.safe_load(CONFIG.read_text("utf-8"))["nav"])
    pages = [*(path.name for path in DOCS.glob("*.md")), "results/README.md"]
    assert sorted(listed) == sorted(pages)
    start = (DOCS / "index.md").read_text("utf-8")
    linked = {name for name in listed if f"]({name})" in start}
    assert {*listed} - linked == {"index.md", "results/README.md"}


def test_the_api_page_has_all_public_names():
    page = (DOCS / "api.md").read_text("utf-8")
    places = re.findall(r"^::: ([\w.]+)$", page, re.M)
    names = [place.rpartition(".")[2] for place in places]
    assert sorted(names) == sorted({*treesyntax.__all__} - {"METHODS"})
    for place, name in zip(places, names, strict=True):
        module = importlib.import_module(place.rpartition(".")[0])
        assert getattr(module, name) is getattr(treesyntax, name)


def test_each_method_has_a_page_from_its_class():
    """make figures writes them again."""
    make = runpy.run_path(str(ROOT / ".ci/method_pages.py"))
    places = {name: make["place_of"](name) for name in METHODS}
    found = {str(page.relative_to(DOCS)) for page in (DOCS / "methods").rglob("*.md")}
    assert found == {f"methods/{place}.md" for place in places.values()}
    table = (DOCS / "methods.md").read_text("utf-8")
    for name, place in places.items():
        page = (DOCS / f"methods/{place}.md").read_text("utf-8")
        assert page == make["method_page"](name, page)
        assert make["by_hand"](page) not in ("", "(not written yet)")
        assert f"| [`{name}`](methods/{place}.md) |" in table
        assert METHODS[name].__module__.replace(".", "/") + ".py" in page
        rows = [re.sub(r"\\\|", "", row) for row in page.splitlines() if row.startswith("| ")]
        assert {row.count("|") for row in rows} <= {3, 4}
    pages = {
        name: (DOCS / f"methods/{place}.md").read_text("utf-8") for name, place in places.items()
    }
    assert "| trees | not needed |" in pages["sequence"]
    assert "| trees | in training only |" in pages["parent_head"]
    page = type("Page", (), {"file": type("File", (), {"src_uri": "results.md"})})
    text = "[every row](results/demo), [the front](../README.md), [costs](costs.md)"
    assert make["on_page_markdown"](text, page) == "every row, the front, [costs](costs.md)"


def test_the_pages_that_list_keys_and_commands_are_those_of_the_code():
    """make figures writes them again."""
    make = runpy.run_path(str(ROOT / ".ci/reference_pages.py"))
    code = "import json, runpy; pages = runpy.run_path('.ci/reference_pages.py')['PAGES']; "
    code += "print(json.dumps({name: make() for name, make in pages.items()}))"
    # In a process of its own: other tests here register parsers.
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    for name, text in json.loads(done.stdout).items():
        assert (DOCS / name).read_text("utf-8") == text, name
    text = make["command_page"]()
    assert {*COMMANDS} <= {*re.findall(r"^## (\w+)$", text, re.M)}
    for option in ("--mix-versions", "--subword-policy", "--skip-long", "--small-train"):
        assert f"`{option}" in text


def test_what_is_written_by_hand_in_a_page_is_kept_and_the_rest_is_made_anew():
    make = runpy.run_path(str(ROOT / ".ci/method_pages.py"))
    page = make["method_page"]("rotary", "")
    assert "(not written yet)" in page
    mine = page.replace("(not written yet)", "On Sundays.").replace("Su et al.", "Us")
    assert make["method_page"]("rotary", mine) == page.replace("(not written yet)", "On Sundays.")
    prose = """Sum.

    As :func:`treesyntax.nn.masks.register_relation` and :class:`TreeBatch` say, ``a|b``.

    Args:
        clip: a length,
            in edges.
        site: where.

    Attributes:
        table: [2].
    """
    summary, text, meanings = make["read_docstring"](prose)
    assert (summary, text) == ("Sum.", "As `register_relation` and `TreeBatch` say, `a|b`.")
    assert meanings == {"clip": "a length, in edges.", "site": "where."}


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra docs is not installed")
def test_the_site_is_built_without_a_warning(tmp_path: Path):
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", CONFIG]
    done = subprocess.run(
        [*words, "--site-dir", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    pages = {page.stem for page in (tmp_path / "methods").rglob("*.html")}
    assert pages == {*METHODS}
    assert "batch_trees" in (tmp_path / "api.html").read_text("utf-8")


@pytest.mark.skipif(find_spec("tensorboard") is None, reason="tensorboard is not installed")
def test_fairseq_writes_what_tensorboard_reads(tmp_path: Path):
    from fairseq.logging import meters, progress_bar
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    bar = progress_bar.progress_bar([], log_format="json", tensorboard_logdir=str(tmp_path))
    loss = meters.AverageMeter()
    for value in (4.0, 2.0):
        loss.update(value)
        bar.log({"loss": loss}, tag="train_inner", step=int(8 / value))
    progress_bar._close_writers()
    events = EventAccumulator(str(tmp_path / "train_inner"))
    events.Reload()
    assert [(one.step, one.value) for one in events.Scalars("loss")] == [(2, 4.0), (4, 2.0)]

"""The table and the report of a study."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from support.study_helpers import (
    make_study,
    recipe_content,
    result,
    write,
    write_recipe,
    write_study,
)

from treesyntax.__main__ import main
from treesyntax.data.dictionary import EOS
from treesyntax.data.token_files import write_tokens
from treesyntax.files import write_json
from treesyntax.palette import line_of
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.curves import data_uri, draw_curves, mean_curve
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.run_table import run_rows
from treesyntax.study.results.figure_files import svg_text
from treesyntax.study.results.results import read_results, write_results
from treesyntax.study.words import WORDS

TWO_LINES = 230
"""Letters of a note, which a page shows in some 115 a line."""

SVG = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd">
<svg width="90pt" height="80pt" viewBox="0 0 90 80" xmlns="http://www.w3.org/2000/svg">
<metadata><a href="https://matplotlib.org/"/></metadata>
<defs><clipPath id="p1"><rect width="9" height="8"/></clipPath></defs>
<g clip-path="url(#p1)"><use href="#p1"/><text>heads of MASK</text></g></svg>
"""


def log_text(losses: dict[int, float]) -> str:
    return "".join(
        f't | INFO | valid | {{"valid_loss": "{loss}", "valid_num_updates": "{update}"}}\n'
        for update, loss in losses.items()
    )


@pytest.fixture
def study_folder(tmp_path: Path) -> Path:
    """A study with two finished runs, one failed, others still missing."""
    recipe = read_recipe(write_recipe(tmp_path, question="Do trees help <here>?"))
    folder = tmp_path / "out"
    write_study(folder, recipe)
    results = [
        result(method, 1, metric, value)
        for method, value in (("sequence", 40.0), ("relation_mask", 60.0))
        for metric in ("exact", "tree:lambda")
    ]
    write_results(folder / "runs.jsonl", results)
    for name in ("sequence-1", "relation_mask-1"):
        log = folder / "logs" / name / "train.log"
        log.parent.mkdir(parents=True)
        log.write_text(log_text({100: 4.0, 200: 3.0}))
    place = folder / "runs" / "relation_mask-1" / "analyses"
    (place / "encoder").mkdir(parents=True)
    (place / "encoder" / "mask_strengths.svg").write_text(SVG)
    (place / "encoder" / "mask_strengths.json").write_text("{}")
    drawn = {
        "name": "mask_strengths", "side": "encoder", "figures": ["encoder/mask_strengths.svg"],
        "numbers": ["encoder/mask_strengths.json"],
    }  # fmt: skip
    absent = {"name": "attention_mass", "side": "encoder", "why": f"{folder}/x has <no> trees"}
    (place / "analyses.json").write_text(json.dumps({"drawn": [drawn], "absent": [absent]}))
    (folder / "failures.json").write_text(
        '{"stack_pe-1/train": {"message": "exit status 1: [bold]<b>| * bad", "log": "logs/x.log"}, '
        '"sequence-1/analyses": {"message": "killed by SIGKILL", "log": "logs/y.log"}}'
    )
    return folder


def test_the_mean_curve_is_over_shared_updates():
    assert mean_curve([{1: 2.0, 2: 4.0, 9: 1.0}, {2: 6.0, 1: 4.0}]) == {1: 3.0, 2: 5.0}
    assert mean_curve([]) == {}


LINES = {"a": line_of(0), "b": line_of(1)}


def test_curves_show_each_seed_and_the_mean():
    figure = draw_curves({"a": [{1: 2.0}, {1: 4.0}], "b": [{1: 3.0}]}, LINES)
    (panel,) = figure.axes
    assert [line.get_linewidth() for line in panel.lines] == [0.7, 0.7, 2, 0.7, 2]
    assert panel.lines[2].get_marker() == "o", "one point is no line"
    (more,) = draw_curves({"a": [{1: 2.0, 2: 1.0}]}, LINES).axes
    assert more.lines[1].get_marker() == "None"
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["a", "b"]
    text = svg_text(figure)
    assert "validation loss" in text
    assert svg_text(draw_curves({}, {})).startswith("<?xml")


class Page(HTMLParser):
    """Everything a browser would fetch, all ids, and whether tags are balanced."""

    VOID = ("meta", "link", "img", "br", "hr", "input", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.stack: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.stack.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "data", "poster", "action", "srcset"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.stack.pop()


def test_the_page_is_whole_and_fetches_nothing(study_folder: Path):
    text = write_report(read_study(study_folder)).read_text()
    page = Page(text)
    assert page.stack == []
    images = [link for link in page.links if not link.startswith("#")]
    assert len(images) == 3
    assert images[-1] == data_uri(SVG.encode())
    assert not page.tags & {"link", "svg", "iframe"}
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    (script,) = re.findall("<script>(.*)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert len(page.ids) == len(set(page.ids))
    assert {"results", "learning-curves", "mask-strengths", "cost"} <= set(page.ids)
    assert {link[1:] for link in page.links if link not in images} <= set(page.ids)


def test_the_page_shows_table_figures_failures_and_provenance(study_folder: Path):
    text = write_report(read_study(study_folder)).read_text()
    for part in (
        "<h1>A demo</h1>", "Do trees help &lt;here&gt;?", "<td>40.00 (1 run)</td>",
        'alt="relation_mask-1: mask strengths."', "0 of 2, 1 failed",
        "stack_pe-1 failed: exit status 1: [bold]&lt;b&gt;| * bad (see logs/x.log)",
        "McDonald &amp; Chiang 2021", "exact: s|1", "<code>figures/score_by_cost.json</code>",
        "Peak memory was not recorded", "sequence-1 failed: killed by SIGKILL (see logs/y.log)",
        "Attention by tree relation, relation_mask-1: x has &lt;no&gt; trees", "python 3", "<h3>stack_pe-1</h3>",
        "name=\"viewport\"", "@media print",
    ):  # fmt: skip
        assert part in text, part
    assert read_study(study_folder).identity.hash in text


def test_the_report_says_where_source_tokens_and_vocabularies_differ(study_folder: Path):
    for step, tokens, symbols in (("sequence", 1000, 50), ("relation_mask+stack_pe", 1300, 50)):
        manifest = {
            "sides": {"source": {"language": "for", "dictionary_symbols": symbols}},
            "splits": {"train": {"for": {"tokens": tokens}}},
        }
        write_json(study_folder / "binarized" / step / "binarize.json", manifest)
    (note,) = (text for text in read_study(study_folder).table.notes if "okens in" in text)
    assert note == (
        "Source tokens in training differ by more than 1% from the baseline's, so rows differ in "
        "more than the tree: relation_mask +30.0% (sequence), stack_pe +30.0% (sequence)"
    )


def test_peak_memory_is_shown_as_finely_as_it_was_measured():
    rows = run_rows(["exact"], [
        replace(result("a"), peak_memory=512.0, pairs=12345.0, epochs=2.25),
        replace(result("b"), peak_memory=2457.6, memory_step=102.4),
    ])  # fmt: skip
    assert [row[-1] for row in rows] == ["512 MiB", "2.4 GiB"]
    assert [row[5:7] for row in rows] == [["12,345", "2.2"], ["–", "–"]]


def test_the_markdown_report_names_files_that_exist(study_folder: Path):
    write_report(read_study(study_folder))
    text = (study_folder / "report.md").read_text()
    figures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert figures == [
        "figures/learning_curves.svg",
        "figures/score_by_cost.svg",
        "runs/relation_mask-1/analyses/encoder/mask_strengths.svg",
    ]
    links = re.findall(r"[^\\]\]\((.*?)\)", text)
    assert len(links) == 2 * len(figures)
    assert all((study_folder / link).is_file() for link in links)
    assert "| sequence | 40.00 (1 run) | 10 | 0.02 (training) | 5 (4 to 6) | 1 of 2 |" in text
    assert r"Do trees help \<here>?" in text


def test_a_report_of_nothing_yet(tmp_path: Path):
    recipe = read_recipe(write_recipe(tmp_path))
    write_study(tmp_path / "out", recipe)
    text = write_report(read_study(tmp_path / "out")).read_text()
    assert Page(text).stack == []
    assert "Learning curves" not in text


def test_the_report_command(study_folder: Path, capsys: pytest.CaptureFixture):
    assert main(["report", str(study_folder)]) == 0
    output = capsys.readouterr().out
    assert "40.00 (1 run)" in output
    assert "report.html" in output
    assert main(["report", str(study_folder / "runs")]) == 2
    assert "holds no study" in capsys.readouterr().err


def test_the_runs_table_names_what_chose_the_checkpoint_and_tells_lengths(tmp_path: Path):
    train = {**recipe_content()["train"], "best-checkpoint-metric": "accuracy"}
    folder = make_study(tmp_path, train=train, seeds=[1])
    results = read_results(folder / "runs.jsonl")
    text = "BP 0.950, length ratio 0.951"
    told = [
        replace(one, lengths=text) if (one.metric, one.method) == ("bleu", "sequence") else one
        for one in results
    ]
    write_results(folder / "runs.jsonl", told)
    write_report(read_study(folder))
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert (
        "| run | exact | bleu | valid accuracy | best update | updates | pairs seen "
        "| epochs | training | peak memory | lengths (bleu) |"
    ) in report
    assert "valid loss" not in report
    lines = [line for line in report.splitlines() if line.startswith("| sequence-1 |")]
    assert lines[0].endswith(f"| {text} |")
    assert "tokenizer 13a" not in report


def test_bleu_of_text_without_spaces_has_a_note(tmp_path: Path):
    folder = make_study(tmp_path, seeds=[1])
    lines = ["私は昨日学校に行きました。"] * 40
    for file in folder.rglob("hypotheses.txt"):
        write(file, lines)
    write(folder / "data/p/test.tgt", lines)
    (folder / "runs.jsonl").unlink()
    write_results(folder / "runs.jsonl", [result("sequence", 1, "bleu", 0.0)])
    assert any("tokenizer 13a" in note for note in read_study(folder).table.notes)


def test_outputs_in_another_unicode_composition_have_a_note(tmp_path: Path):
    folder = make_study(tmp_path, seeds=[1])
    write(folder / "data/p/test.tgt", ["un caf\u00e9"] * 40)
    write(folder / "runs/sequence-1/hypotheses.txt", ["un cafe\u0301"] * 40)
    (folder / "runs.jsonl").unlink()
    write_results(folder / "runs.jsonl", [result("sequence", 1, "exact", 0.0, 40)])
    (note,) = (note for note in read_study(folder).table.notes if "composition" in note)
    assert note.startswith("sequence-1 (1 of 3 runs have such outputs): 40 of 40 outputs")


def test_references_beyond_max_len_are_told_with_counts(tmp_path: Path):
    generate = {"max-len-b": 3}
    folder = make_study(tmp_path, seeds=[1], generate=generate)
    for name, lengths in (("for", [3, 3]), ("lambda", [3, 8])):
        for step in read_study(folder).plan.steps:
            if step.name.startswith("binarize"):
                path = folder / step.outputs[0] / f"test.for-lambda.{name}"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_tokens(path, [(np.full(sum(lengths), 4), np.array(lengths))], 9, EOS)
    (note,) = [note for note in read_study(folder).table.notes if "references" in note]
    assert note.startswith(
        "sequence, relation_mask, stack_pe: 1 of 2 references are longer (up to 8"
    )
    assert "--max-len-a 0 --max-len-b 3" in note


def test_notes_have_two_lines_and_words_are_explained(tmp_path: Path):
    study = read_study(make_study(tmp_path))
    text = write_report(study).read_text()
    notes = [unescape(note) for note in re.findall(r'<p class="note">(.*?)</p>', text, re.S)]
    notes += [unescape(caption) for caption in re.findall("<figcaption>(.*?) Numbers:", text, re.S)]
    long = [note for note in notes if len(re.sub("<.*?>", "", note)) > TWO_LINES]
    assert notes
    assert not long
    page = Page(text)
    assert "#words" in page.links
    assert {f"word-{anchor}" for anchor in WORDS} <= {*page.ids}
    explained = " ".join(word.text for word in WORDS.values())
    columns = [
        "conclusion",
        "minutes",
        "pairs/s",
        "seed",
        "row",
        "baseline",
        "difference",
        "interval",
        "Holm",
        "run",
        "item",
    ]
    for word in (*columns, "found in 80 %", "p on other lines", "would find", "†", "ns", "°"):
        assert word in explained
        assert word in text or word in "°†"


def test_a_report_says_what_rows_are(tmp_path: Path):
    methods = {"a": {"arch": "tree_a", "about": "reads <no> tree"}, "b": {"arch": "tree_a"}}
    write_study(
        tmp_path / "out", read_recipe(write_recipe(tmp_path, methods=methods, baseline="a"))
    )
    write_results(tmp_path / "out/runs.jsonl", [result("a")])
    page = write_report(read_study(tmp_path / "out"))
    assert "<dt>a</dt><dd>reads &lt;no&gt; tree</dd>\n</dl>" in page.read_text()
    assert "\n- a: reads \\<no> tree\n" in page.with_suffix(".md").read_text()


def test_the_table_of_a_folder_that_cannot_be_written_to_is_shown(tmp_path: Path, capsys):
    """As the study of another user's is."""
    folder = make_study(tmp_path, seeds=[1])
    (folder / "report.md").mkdir()
    assert main(["report", str(folder)]) == 2
    captured = capsys.readouterr()
    assert "stack_pe" in captured.out
    assert "check free space and permissions" in captured.err

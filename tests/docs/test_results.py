"""Figures of the docs are those of the results beside them."""

from __future__ import annotations

import base64
import csv
import itertools
import json
import re
import shlex
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from metrics.test_runs import slow

from treesyntax.__main__ import main
from treesyntax.metrics.line_file import unpack
from treesyntax.study.report.items import ITEMS_FILE, read_items, unpack_items
from treesyntax.study.results.results import (
    OLD_FILE,
    RESULTS_FILE,
    Result,
    read_results,
    results_file,
)

DOCS = Path(__file__).parents[2] / "docs"
METRICS = {
    "exact": "exact",
    "unseen": "exact:unseen",
    "dong_lapata": "dong_lapata:",
    "well-formed": "wellformed:",
    "node F1": "f1:",
    "BLEU": "bleu",
}
"""By column of the page's tables how the metric's name begins; the first column decides."""


PARTS = [
    part
    for page in sorted(DOCS.glob("results*.md"))
    for part in page.read_text("utf-8").split("\n## ")
]
"""The parts of the pages of results, whose table is that of the folder that they name first."""


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n ").split("|")]


def sections() -> list[tuple[str, list[str]]]:
    """The folder of results that each part of the pages with a table names first, and its lines."""
    with_table = [part for part in PARTS if "\n| row |" in part]
    return [(re.findall(r"]\(results/(\w+)", part)[0], part.splitlines()) for part in with_table]


@pytest.mark.parametrize(("folder", "lines"), sections(), ids=[name for name, _ in sections()])
def test_a_table_of_the_page_is_that_of_its_study(folder: str, lines: list[str]) -> None:
    with (DOCS / "results" / folder / "table.csv").open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    header = next(cells(line) for line in lines if line.startswith("| row |"))
    begin = next(n for n, line in enumerate(lines) if line.startswith("| row |"))
    rows = [cells(line) for line in itertools.takewhile(bool, lines[begin + 2 :])]
    assert len(rows) >= 2
    for row in rows:
        name = row[0].split("`")[1]
        own = [found for found in table if found["method"] == name]
        first = {
            column: next(one for one in own if one["metric"].startswith(metric))
            for column, metric in METRICS.items()
            if column in header
        }
        primary = first[header[1]]
        for column, text in zip(header[1:], row[1:], strict=True):
            if column in METRICS:
                mean, sd = (float(first[column][key]) for key in ("mean", "sd"))
                assert text == ("100" if mean == 100 else f"{mean:.2f} ± {sd:.2f}")
            elif column == "parameters":
                assert text == f"{int(primary['parameters']):,}"
            elif column == "p":
                p = primary["holm_p"] and f"{float(primary['holm_p']):.3f}"
                assert text == ("< 0.001" if p == "0.000" else p)
            else:
                assert column == "difference, 95 % interval"
                gaps = [primary[key] for key in ("difference", "low", "high")]
                difference, low, high = (f"{float(gap):+.2f}" if gap else "" for gap in gaps)
                assert text == (difference and f"{difference}, {low} to {high}")


def test_means_over_distinct_questions_are_those_of_the_scores_by_item() -> None:
    parts = [part for part in PARTS if "distinct questions: " in part]
    assert parts
    for part in parts:
        found = read_items(DOCS / "results" / re.findall(r"]\(results/(\w+)", part)[0] / ITEMS_FILE)
        count, named = re.findall(r"Over the (\d+) distinct questions: (.*)\.\n", part)[0]
        means: dict[str, list[float]] = {}
        for run in found.runs:
            if run.metric == "exact":
                lines = int(re.findall(r"(\d+) test\s+questions", part)[0])
                items = unpack_items(found.copies[run.copies], lines)
                first = np.unique(items, return_index=True)[1]
                assert len(first) == int(count)
                scores = unpack(run.scores, lines, 1)[first, 0]
                means.setdefault(run.row, []).append(100 * float(scores.mean()))
        told = {row: f"{np.mean(values):.2f}" for row, values in means.items()}
        assert dict(re.findall(r"`(\w+)` ([\d.]+)", named)) == told


def by_test_set() -> list[tuple[str, list[str], list[str]]]:
    """The folder that a part of the page names first, header and a row of its tables with a column a test set."""
    found = []
    for part in PARTS:
        header: list[str] = []
        for line in part.splitlines():
            row = cells(line) if line.startswith("|") else []
            header = row if "test2016" in row else header if row else []
            if header and row != header and not line.startswith("|---"):
                found.append((re.findall(r"]\(results/(\w+)", part)[0], header, row))
    return found


@pytest.mark.parametrize(
    ("folder", "header", "row"), by_test_set(), ids=[row[0][:30] for *_, row in by_test_set()]
)
def test_scores_by_test_set_are_those_of_their_studies(
    folder: str, header: list[str], row: list[str]
) -> None:
    """Of a row of the study, or of a training of the plain row that links its own results."""
    names = {"test2016": "test", "test2017": "test2017", "COCO": "testcoco"}
    own = re.findall(r"]\(results/(\w+)", row[0])
    method = "sequence" if own else row[0].strip("`")
    with (DOCS / "results" / (own or [folder])[0] / "categories.csv").open(
        encoding="utf-8"
    ) as stream:
        scores = {
            found["category"]: found
            for found in csv.DictReader(stream)
            if (found["method"], found["metric"]) == (method, "bleu")
        }
    for column, text in zip(header, row, strict=True):
        if column in names:
            score = scores[names[column]]
            sd = f" ± {float(score['sd']):.2f}" if score["sd"] else ""
            assert text == f"{float(score['mean']):.2f}{sd}"


def by_size() -> list[tuple[str, list[str], list[str]]]:
    """The folder that a part of the page names first, header and a row of its tables by length or depth."""
    found = []
    for part in PARTS:
        lines = part.splitlines()
        for begin, line in enumerate(lines):
            if line.startswith(("| by length ", "| by depth ")):
                rows = map(cells, itertools.takewhile(bool, lines[begin + 2 :]))
                folder = re.findall(r"]\(results/(\w+)", part)[0]
                found += [(folder, cells(line), row) for row in rows]
    return found


@pytest.mark.parametrize(
    ("folder", "header", "row"), by_size(), ids=[f"{name}-{row[0]}" for name, _, row in by_size()]
)
def test_scores_by_size_are_those_of_their_studies(
    folder: str, header: list[str], row: list[str]
) -> None:
    figures = [
        json.loads(path.read_text("utf-8"))
        for path in (DOCS / "results" / folder).glob("score_by_*.json")
    ]
    figure = next(one for one in figures if header[0] == f"by {one['quantity']}")
    bins = [(one["from"], one["to"]) for one in figure["bins"]]
    assert header[1:] == [str(low) if low == high else f"{low} to {high}" for low, high in bins]
    if row[0].startswith("`"):
        means = figure["mean"][row[0].strip("`")]
        assert row[1:] == [f"{mean:.1f}" for mean in next(iter(means.values()))]
    else:
        assert row[1:] == [f"{one['lines']:,}" for one in figure["bins"]]


def test_the_page_has_such_tables() -> None:
    assert {folder for folder, *_ in by_test_set()} >= {
        "multi30k_plain_long",
        "multi30k_trees",
    }
    assert {folder for folder, *_ in by_size()} >= {
        "coffeescript_javascript_100k",
        "multi30k_trees",
    }


def test_the_list_of_studies_says_what_each_has_shown() -> None:
    """All studies with a table on the pages, and those of their rows whose p is below 0.05, without a mark."""
    listed = {}
    for row in map(cells, (DOCS / "results.md").read_text("utf-8").splitlines()):
        if len(row) == 4 and "](results/" in row[1]:
            listed[re.findall(r"]\(results/(\w+)", row[1])[0]] = row
    assert {*listed} == {folder for folder, _ in sections()}
    for folder, (task, _, runs, shown) in listed.items():
        page, anchor = re.findall(r"]\(([\w-]+\.md)#([\w-]+)\)", task)[0]
        titles = re.findall(r"\n## (.*)\n", (DOCS / page).read_text("utf-8"))
        assert anchor in {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in titles}
        with (DOCS / "results" / folder / "table.csv").open(encoding="utf-8") as stream:
            table = list(csv.DictReader(stream))
        own = [row for row in table if row["metric"] == table[0]["metric"]]
        assert {runs} == {row["seeds"] for row in own}
        claims = [row for row in own if row["holm_p"] and float(row["holm_p"]) < 0.05]
        told = [f"`{row['method']}` {float(row['difference']):+.1f}" for row in claims]
        assert shown == (", ".join(told) or "none")


@pytest.mark.parametrize(
    ("page", "folder", "metric"),
    [
        ("README.md", "demo", "exact"),
        ("docs/pretrained.md", "pretrained_absa", "accuracy"),
        ("docs/pretrained.md", "pretrained_sst", "accuracy"),
    ],
)
def test_a_table_with_conclusions_is_that_of_its_study(page: str, folder: str, metric: str) -> None:
    with (DOCS / "results" / folder / "table.csv").open(encoding="utf-8") as stream:
        scores = {row["method"]: row for row in csv.DictReader(stream) if row["metric"] == metric}
    parts = re.split(r"^#+ ", (DOCS.parent / page).read_text("utf-8"), flags=re.M)
    (part,) = (part for part in parts if f"results/{folder})" in part)
    shown = {
        row[0].split("`")[1]: row[1:]
        for row in map(cells, part.splitlines())
        if row[0].startswith("`") and len(row) > 3 and "±" in row[1]
    }
    assert {*scores} == {*shown}
    for name, (score, difference, conclusion, *minutes) in shown.items():
        row = scores[name]
        assert score == f"{float(row['mean']):.2f} ± {float(row['sd']):.2f}"
        assert conclusion == (row["conclusion"] or "–")
        if minutes:
            taken = sum(float(row[key]) for key in row if key.startswith("minutes_"))
            assert minutes == [f"{taken:.1f}"]
        if row["difference"]:
            gap, low, high = (float(row[key]) for key in ("difference", "low", "high"))
            assert difference == f"{gap:+.2f}, {low:+.2f} to {high:+.2f}"


SHORT = {
    "GeoQuery": "geo",
    "JOBS": "jobs",
    "ATIS": "atis",
    "COGS": "cogs_varfree",
    "tense": "tense_reinflection",
}
"""The tasks of the map by their names on the page."""
TASKS = SHORT | {"COGS, new structures": "cogs_varfree"}


def tables_of(section: str) -> list[list[list[str]]]:
    """The tables of a section of the page that says where trees help, as rows of cells."""
    page = (DOCS / "where-trees-help.md").read_text("utf-8")
    text = next(part for part in page.split("\n## ") if part.startswith(f"{section}\n"))
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.M)
    return [[cells(line) for line in block.splitlines()] for block in blocks]


def test_the_map_is_that_of_its_study(tmp_path: Path) -> None:
    """The means of the table; differences, intervals and conclusions as drawn; and what is told by method."""
    with (DOCS / "results/map/map.csv").open(encoding="utf-8") as file:
        study = {(cell["test_set"], cell["row"]): cell for cell in csv.DictReader(file)}
    (head, _, *rows), *of_sources = tables_of("The map")
    shown = {
        (TASKS[task], row.strip("`")): text
        for row, *texts in rows
        for task, text in zip(head[1:], texts, strict=True)
    }
    for (title, *_), _, *rows in of_sources:
        task = SHORT[title.rpartition(", ")[2]]
        for row, *texts in rows:
            name = row.strip("`")
            names = (name, f"{name}_random")[: len(texts)]  # the baseline has no control
            shown |= {(task, each): text for each, text in zip(names, texts, strict=True)}
    assert shown == {
        name: f"{float(cell['mean']):.2f} ± {float(cell['sd']):.2f}" for name, cell in study.items()
    }
    shutil.copy(DOCS / "results/map/map.csv", tmp_path)
    assert main(["report", str(tmp_path / "map.csv")]) == 0
    drawn = (tmp_path / "map.svg").read_text("utf-8")
    assert drawn == (DOCS / "figures/map.svg").read_text("utf-8")


def test_conclusions_by_method_are_those_of_the_map() -> None:
    """Each row of the map on each of its tasks, with the difference where there is an effect."""
    with (DOCS / "results/map/map.csv").open(encoding="utf-8") as file:
        study = {(cell["test_set"], cell["row"]): cell for cell in csv.DictReader(file)}
    told, rows = {}, []
    for *method, text, where in tables_of("By method")[0][2:]:  # a method has several lines
        rows = re.findall(r"`(\w+)`", method[0]) if method else rows
        conclusion = re.match(r"\**([a-z ]+)\**(?:, ([-+][\d.]+))?$", text)
        tasks = re.sub(r",? \[below].*", "", where).split(", ")
        for task, row in itertools.product(SHORT.keys() & tasks, rows):
            told[SHORT[task], row] = conclusion.groups()
    expected = {}
    for name, cell in study.items():
        if word := cell["conclusion"]:
            helps = word != "not shown"
            expected[name] = (word, f"{float(cell['difference']):+.1f}" if helps else None)
    assert told == expected


@pytest.mark.parametrize(
    ("task", "file", "metric", "words", "trees"),
    [
        ("GeoQuery", "map/table.csv", "dong_lapata:", "sequence-task=geo", r"(nary|lcrs)-task=geo"),
        ("JOBS", "map/table.csv", "dong_lapata:", "sequence-task=jobs", r"(nary|lcrs)-task=jobs"),
        ("ATIS", "map/table.csv", "dong_lapata:", "sequence-task=atis", r"(nary|lcrs)-task=atis"),
        (
            "COGS",
            "map/table.csv",
            "exact@gen",
            "sequence-task=cogs_varfree",
            r"(nary|lcrs)-task=cogs_varfree",
        ),
        (
            "FOR to LAMBDA",
            "for2lam_pairs/table.csv",
            "exact",
            "sequence-pairs=8000",
            "tree2tree-pairs=8000",
        ),
        ("Multi30k, test2016", "multi30k_plain_long/categories.csv", "bleu", "sequence", "none"),
    ],
)
def test_our_levels_beside_published_ones_are_those_of_the_results(
    task: str, file: str, metric: str, words: str, trees: str
) -> None:
    """The best tree row is the best of the table; theirs are as on the page of the papers' tables."""
    shown = next(row for row in tables_of("Published levels")[0] if row[0].startswith(f"[{task}]"))
    with (DOCS / "results" / file).open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["metric"].startswith(metric)]
    rows = [row for row in rows if row.get("category", "test") == "test"]
    best: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: float(row["mean"])):
        sd = f" ± {float(row['sd']):.2f}" if row["sd"] else ""
        for name in (words, trees):
            if re.fullmatch(name, row["method"]):
                best[name] = f"{float(row['mean']):.2f}{sd}"
    assert shown[3:5] == [best[words], best.get(trees, "–")]
    theirs = {
        row[0]: dict(zip(("JOBS", "GeoQuery", "ATIS"), row[1:], strict=False))
        for row in map(cells, (DOCS / "reproduction.md").read_text("utf-8").splitlines())
        if row[0].startswith("*theirs:* sequence to")
    }
    if task in theirs["*theirs:* sequence to tree"]:
        assert shown[1:3] == [
            theirs[f"*theirs:* sequence to {kind}"][task] for kind in ("sequence", "tree")
        ]


def test_why_aims_are_missed_is_in_the_results() -> None:
    """Every question of training is right in every run of GeoQuery; the others decide."""
    scores: dict[str, dict[tuple[str, int], dict[str, tuple[float, int]]]] = {}
    for folder in ("map/geo", "geo_strong", "map/atis"):
        for one in read_results(results_file(DOCS / "results" / folder)):
            run = scores.setdefault(folder, {}).setdefault((one.method, one.seed), {})
            run[re.sub(":sexpr.*", "", one.metric)] = (one.value, one.n)
    unseen = {
        folder: next(iter(runs.values()))["exact:unseen"][1] for folder, runs in scores.items()
    }
    assert unseen["map/geo"] - unseen["geo_strong"] == 5
    seen, others = 280 - unseen["map/geo"], []
    for (row, _), run in scores["map/geo"].items():
        right = {name: run[name][0] * run[name][1] / 100 for name in ("exact", "exact:unseen")}
        assert right["exact"] - right["exact:unseen"] == pytest.approx(seen)
        if row == "sequence":
            others.append((run["dong_lapata"][0] * 2.8 - seen) / unseen["map/geo"])
    told = f"All {seen} test questions that are in training are right, and {np.mean(others):.0%} of"
    binary = [
        run["dong_lapata"][0] for (row, _), run in scores["map/atis"].items() if row == "lcrs"
    ]
    range_told = f"The five trainings of the binary tree lie between {min(binary):.1f} and {max(binary):.1f};"
    for text in (told.replace("%", " %"), range_told):
        assert text in (DOCS / "where-trees-help.md").read_text("utf-8")
    assert 5 * (1 - np.mean(others)) / 2.8 == pytest.approx(0.5, abs=0.05)


def test_the_reservation_on_cogs_is_in_the_results() -> None:
    """Scores on new structures rise with the length of a training, though all ended by validation data."""
    results = read_results(results_file(DOCS / "results/map/cogs_varfree"))
    assert {one.ended for one in results} == {"rested"}
    runs = {
        row: sorted(
            (one.updates, one.value)
            for one in results
            if (one.method, one.metric) == (row, "exact@gen")
        )
        for row in ("sequence", "lcrs")
    }
    words, worst = runs["sequence"], min(runs["lcrs"], key=lambda run: run[1])
    assert [score for _, score in words] == sorted(score for _, score in words)
    assert worst[1] > words[-1][1]
    page = " ".join((DOCS / "where-trees-help.md").read_text("utf-8").split())
    for text in (
        f"{words[0][1]:.1f} after {words[0][0]:,} updates, {words[-1][1]:.1f} after {words[-1][0]:,}.",
        f"The worst run of `lcrs` has {worst[1]:.1f} after {worst[0]:,} updates,",
    ):
        assert text in page


def test_the_curve_is_that_of_its_study(tmp_path: Path) -> None:
    """The figure, and what is told of factors, of differences and of how the trainings ended."""
    folder = DOCS / "results/for2lam_pairs"
    shutil.copy(folder / "items.jsonl", tmp_path)
    shutil.copy(results_file(folder), tmp_path)
    assert main(["report", str(tmp_path / "items.jsonl")]) == 0
    drawn = (tmp_path / "worth.svg").read_text("utf-8")
    assert drawn == (DOCS / "figures/for2lam_pairs.svg").read_text("utf-8")
    assert {run.ended for run in read_results(results_file(folder))} == {"rested"}
    with (folder / "worth.csv").open(encoding="utf-8") as stream:
        times = {
            int(point["pairs"]): [float(point[f"times{end}"]) for end in ("", "_low", "_high")]
            for point in csv.DictReader(stream)
            if point["row"] == "tree2tree"
        }
    factor, low, high = times[500]
    page = " ".join((DOCS / "where-trees-help.md").read_text("utf-8").split())
    for text in (
        f"[500 pairs with trees are worth {round(500 * factor, -1):,.0f} without](#how-much-data-is-a-tree-worth), "
        f"{round(500 * low, -1):,.0f} to {round(500 * high, -1):,.0f}.",
        f"With 500 pairs `sequence` needs **{factor:.1f} times as many** to reach it ({low:.1f} to {high:.1f}), "
        f"with 1,000 at least {times[1000][1]:.1f} times.",
    ):
        assert text in page
    with (folder / "table.csv").open(encoding="utf-8") as stream:
        rows = {
            int(row["method"].partition("=")[2]): row
            for row in csv.DictReader(stream)
            if row["metric"] == "exact" and row["method"].startswith("tree2tree-")
        }
    helped = {size: row for size, row in rows.items() if row["conclusion"] == "syntax helps"}
    gains = ", ".join(f"{float(row['difference']):+.1f}" for row in helped.values())
    sizes = ", ".join(f"{size:,}" for size in helped)
    assert f"| **syntax helps**, {gains} | {sizes} programs," in page
    assert [size for size, row in rows.items() if row["conclusion"] == "not shown"] == [250]
    assert "| not shown | 250 programs |" in page


def test_the_page_of_the_map_is_short() -> None:
    page = (DOCS / "where-trees-help.md").read_text("utf-8")
    assert sum(bool(re.search(r"\w", word)) for word in page.split()) <= 900


@pytest.mark.parametrize(("task", "row"), [("jobs", "nary"), ("geo", "lcrs")])
def test_cells_of_the_map_by_other_code(task: str, row: str) -> None:
    """Read from the lines of the study and computed sum by sum, without the library."""
    head, *lines = map(
        json.loads, (DOCS / f"results/map/{task}/items.jsonl").read_text("utf-8").splitlines()
    )
    tables, item_of = {}, []
    for name in (row, "sequence"):
        runs = [line for line in lines if (line["row"], line["metric"]) == (name, "exact")]
        assert sorted(line["seed"] for line in runs) == [1, 2, 3, 4, 5]
        right = [list(zlib.decompress(base64.b64decode(line["scores"]))) for line in runs]
        item_of, new = [], 0  # of each line: a new one, or that of so many lines before
        for back in zlib.decompress(base64.b64decode(head["copies"][runs[0]["copies"]])):
            item_of.append(item_of[-back] if back else new)
            new += not back
        first = [item_of.index(item) for item in range(new)]
        tables[name] = [[100 * run[line] for run in right] for line in first]
        table = tables[name]
        means = [sum(table[item][run] for item in item_of) / len(item_of) for run in range(5)]
        tables[f"mean of {name}"] = sum(means) / 5
    copies = [item_of.count(item) for item in range(max(item_of) + 1)]
    with (DOCS / "results/map/map.csv").open() as file:
        cell = next(c for c in csv.DictReader(file) if (c["test_set"], c["row"]) == (task, row))
    difference = tables[f"mean of {row}"] - tables["mean of sequence"]
    assert float(cell["mean"]) == pytest.approx(tables[f"mean of {row}"])
    assert float(cell["difference"]) == pytest.approx(difference)
    expected = slow(tables[row], tables["sequence"], copies)
    assert float(cell["p"]) == pytest.approx(expected.p(difference))
    assert expected.p(difference - float(cell["low"])) == pytest.approx(0.05)


def test_the_figure_of_the_demo_is_that_of_its_study(tmp_path: Path) -> None:
    for file in (DOCS / "results/demo/items.jsonl", results_file(DOCS / "results/demo")):
        shutil.copy(file, tmp_path)
    assert main(["report", str(tmp_path / "items.jsonl")]) == 0
    drawn = (DOCS / "figures/demo.svg").read_text("utf-8")
    assert (tmp_path / "verdict.svg").read_text("utf-8") == drawn


def study_commands(section: str) -> list[list[str]]:
    """The words of each ``treesyntax study`` of a section of the list of runs."""
    blocks = re.findall(r"```bash\n(.*?)```", section, re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.startswith("treesyntax study ")]


def test_the_list_of_runs_is_that_of_the_results() -> None:
    """Minutes and commits of each folder, and what its command says of rows, seeds and settings."""
    text = (DOCS / "results/README.md").read_text("utf-8")
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}
    listed = set()
    for row in map(cells, text.splitlines()):
        if len(row) != 8 or "](#" not in row[1]:
            continue
        name, anchor = row[0].strip("`"), row[1].partition("#")[2].strip(")")
        results = read_results(results_file(DOCS / "results" / name))
        minutes = sorted({f"{one.train_seconds / 60:.1f}" for one in results}, key=float)
        devices = {re.sub(r"\(R\)| Processor", "", one.device) for one in results}
        commits = dict.fromkeys(one.commit[:7] for one in results)
        assert row[3:] == [
            str(len({one.seed for one in results})),
            minutes[0] if len(minutes) == 1 else f"{minutes[0]} to {minutes[-1]}",
            ", ".join(commits),
            ", ".join(sorted(devices)),
            min(one.date for one in results)[:10],
        ]
        commands = study_commands(sections[anchor])
        own = [words for words in commands if {f"runs/{name}", f"recipes/{name}.yaml"} & {*words}]
        for words in own or [words for words in commands if "--out" not in words]:
            check_command(words, results)
        listed.add(name)
    folders = {
        str(path.parent.relative_to(DOCS / "results"))
        for path in DOCS.rglob("*.jsonl")
        if path.name in (RESULTS_FILE, OLD_FILE)
    }
    assert listed == folders


def test_how_far_runs_spread_is_that_of_the_results() -> None:
    page = (DOCS / "statistics.md").read_text("utf-8")
    half, most = re.findall(
        r"half have an sd below ([\d.]+), and one in ten above ([\d.]+)\.", page
    )[0]
    spreads = []
    for path in (DOCS / "results").glob("*/table.csv"):
        cells_of_map = path.with_name("map.csv")  # tasks have metrics of their own
        with (cells_of_map if cells_of_map.exists() else path).open(encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        if not cells_of_map.exists():
            rows = [row for row in rows if row["metric"] == rows[0]["metric"]]
        spreads += [float(row["sd"]) for row in rows if row["sd"]]
    assert np.median(spreads) == pytest.approx(float(half), abs=0.05)
    assert np.quantile(spreads, 0.9) == pytest.approx(float(most), abs=0.1)


def check_command(words: list[str], results: list[Result]) -> None:
    """What a command says stands in the commands that its trainings kept."""
    settings = dict(words[n + 1].split("=", 1) for n, word in enumerate(words) if word == "--set")
    assert {one.recipe for one in results} == {settings.get("name", results[0].recipe)}
    if "seeds" in settings:
        assert {one.seed for one in results} == {*json.loads(settings["seeds"])}
    if "--only" in words:
        rows = itertools.takewhile(
            lambda word: not word.startswith("--"), words[words.index("--only") + 1 :]
        )
        assert {one.method for one in results} == {*rows}
    for one in results:
        training = shlex.split(one.commands[0])
        for key, value in settings.items():
            flag = f"--{key.removeprefix('train.')}"
            if key.startswith("train."):
                assert flag in training
                assert value in ("true", training[training.index(flag) + 1])
            if key == "average" and value != "1":
                assert f"--last {value} " in " ".join(one.commands)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_results_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    named = {re.split("[)#]", part)[0] for part in text.split("](results/")[1:]}
    assert all((DOCS / "results" / name).exists() for name in named)

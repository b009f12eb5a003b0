"""items.jsonl: the tables of a study from that and runs.jsonl alone."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import study_helpers
from support.study_helpers import (
    LINES,
    keep_items,
    make_study,
    make_two_test_sets,
    outputs,
    recipe_content,
    result,
    write,
)

from treesyntax.__main__ import main
from treesyntax.files import sha256_of, write_text
from treesyntax.metrics import get_metric
from treesyntax.metrics.line_file import FILE, LineFile, pack, unpack
from treesyntax.study.report.examples.kinds import find_verdicts
from treesyntax.study.report.groups import Quantity, score_categories
from treesyntax.study.report.items import (
    ItemFile,
    pack_items,
    read_items,
    unpack_items,
    write_file,
    write_items,
)
from treesyntax.study.report.map import csv_rows, make_cells
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table_files import csv_text, table_csv
from treesyntax.study.results.results import read_results, write_results

TREES = [f"( tree n{line % 30} ( has {line % 30 % 7} leaves ) )" for line in range(LINES)]
METRICS = ["exact", "tree:sexpr", "wellformed:sexpr", "f1:sexpr", "productions:sexpr", "bleu", "chrf",
           "ter"]  # fmt: skip


def write_tables(out: Path) -> None:
    """What a report writes but its pages."""
    study = read_study(out)
    write_text(out / "tables/table.csv", table_csv(study.table))
    if cells := make_cells(study.scores, study.rows):
        write_text(out / "tables/map.csv", csv_text([*csv_rows(cells)]))
    write_items(study.outputs, study.rows, study.identity.hash, study.results)


def again(out: Path, folder: Path) -> Path:
    """A folder with the two files of a study and the tables that the command makes of them."""
    assert main(["report", str(keep_items(out, folder))]) == 0
    return folder


def test_tables_are_those_of_the_study_to_the_last_digit(tmp_path: Path, monkeypatch, capsys):
    """With copies of lines, whose outputs differ, and all kinds of metrics."""
    monkeypatch.setattr(study_helpers, "REFERENCES", TREES)
    methods = {name: recipe_content()["methods"][name] for name in ("sequence", "stack_pe")}
    out = make_study(tmp_path, methods=methods, score=[*METRICS, "exact:unseen"])
    write(out / "data/p/test.src", [f"source {line % 30}" for line in range(LINES)])
    write(out / "data/p/train.src", [f"source {line}" for line in range(10)])
    write(out / "data/p/train.tgt", TREES[:10])
    new = [line % 30 >= 10 for line in range(LINES)]
    write_results(out / "runs.jsonl", [
        result(name, seed, "exact:unseen",
               get_metric("exact:unseen", new)(outputs(name, seed), TREES)[0].value, sum(new))
        for name in methods for seed in (1, 2, 3)
    ])  # fmt: skip
    write_tables(out)
    folder = again(out, tmp_path / "kept")
    with (folder / "table.csv").open() as stream:
        items = {row["metric"]: row["items"] for row in csv.DictReader(stream) if row["p"]}
    assert items == {**dict.fromkeys(METRICS, "30"), "exact:unseen": "20"}
    assert (folder / "table.csv").read_bytes() == (out / "tables/table.csv").read_bytes()
    write_report(read_study(out))
    figure = (folder / "verdict.svg").read_bytes()
    assert figure == (out / "figures/verdict.svg").read_bytes()
    assert {file.name for file in folder.iterdir()} == {
        "items.jsonl", "runs.jsonl", "table.csv", "verdict.svg",
    }  # fmt: skip
    text = (folder / "items.jsonl").read_text()
    assert not any(word in text for word in ("leaves", "source", "dog"))
    # In the study's own folder too.
    before = (out / "tables/table.csv").read_bytes()
    assert main(["report", str(out / "tables/items.jsonl")]) == 0
    assert (out / "tables/table.csv").read_bytes() == before


def test_metrics_that_coincide_are_shown_once_as_in_the_study(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(study_helpers, "REFERENCES", TREES)
    methods = {name: recipe_content()["methods"][name] for name in ("sequence", "stack_pe")}
    out = make_study(tmp_path, methods=methods, score=["exact", "tree:sexpr"])
    results = []
    for run in read_results(out / "runs.jsonl"):
        right = 20 + run.seed + 5 * (run.method == "stack_pe")
        lines = [text if at < right else "( wrong )" for at, text in enumerate(TREES)]
        write(out / f"runs/{run.method}-{run.seed}/hypotheses.txt", lines)
        results.append(replace(run, value=100 * right / LINES))
    write_results(out / "runs.jsonl", results)
    write_tables(out)
    capsys.readouterr()
    again(out, tmp_path / "kept")
    printed = capsys.readouterr().out
    note = "tree:sexpr has the scores of exact in every run of every row: shown once"
    assert note in printed
    assert note in read_study(out).table.notes
    assert "tree:sexpr" not in printed.replace(note, "")
    assert "tree:sexpr" in (tmp_path / "kept/table.csv").read_text()


def domains_study(tmp_path: Path, strongest: tuple[str, ...]) -> Path:
    """A study with two test sets."""
    return make_two_test_sets(tmp_path, score=["exact", "chrf"], strongest=[*strongest])


def test_the_map_is_that_of_the_study(tmp_path: Path, capsys):
    out = domains_study(tmp_path, ("relation_mask", "stack_pe"))
    write_tables(out)
    folder = again(out, tmp_path / "kept")
    for name in ("map.csv", "table.csv"):
        assert (folder / name).read_bytes() == (out / "tables" / name).read_bytes()


def part_of(out: Path, folder: Path, rows: tuple[str, ...]) -> Path:
    """items.jsonl of a folder where only some rows were trained."""
    lines = (out / "whole.jsonl").read_text().strip().split("\n")
    chosen = [line for line in lines if json.loads(line)["method"].startswith(rows)]
    (out / "runs.jsonl").write_text("".join(f"{line}\n" for line in chosen))
    (out / "tables/items.jsonl").unlink(missing_ok=True)
    write_tables(out)
    return keep_items(out, folder)


@pytest.mark.parametrize("strongest", [("relation_mask", "stack_pe"), ("relation_mask",)])
def test_parts_with_different_rows_give_the_tables_of_the_whole(
    tmp_path: Path, capsys, strongest: tuple[str, ...]
):
    """Each part alone has another strongest row, or one has none; and one of them has no baseline."""
    out = domains_study(tmp_path, strongest)
    shutil.copy(out / "runs.jsonl", out / "whole.jsonl")
    write_tables(out)
    whole = {name: (out / "tables" / name).read_text() for name in ("table.csv", "map.csv")}
    here = part_of(out, tmp_path / "here", ("sequence", "relation_mask"))
    there = part_of(out, tmp_path / "there", ("stack_pe",))
    (both := tmp_path / "both").mkdir()
    assert main(["report", str(here), str(there), "--out", str(both)]) == 0
    for name, text in whole.items():
        assert sorted((both / name).read_text().splitlines()) == sorted(text.splitlines())
    capsys.readouterr()
    for given, why in (
        ([here, there], "several parts are given by their items.jsonl, with --out FOLDER"),
        ([here, both, "--out", both], "several parts are given by their items.jsonl, with --out"),
        ([here, "--baseline", "x"], "--baseline is for the folder of a study"),
        ([here, "--baseline", "a"], "--baseline is for the folder of a study"),
        ([both, "--out", both], "--out is for the tables from items.jsonl"),
        ([here, here, "--out", both], "has runs of sequence-domain=law, as "),
    ):
        assert main(["report", *map(str, given)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert why in line
    results = there.with_name("runs.jsonl")
    write_results(results, [replace(one, data_sha256="other") for one in read_results(results)])
    assert main(["report", str(here), str(there), "--out", str(both)]) == 2
    assert "has scores on domain=law of other data" in capsys.readouterr().err


def test_studies_of_different_tasks_are_columns_of_a_map(tmp_path: Path, capsys):
    """Named after their folders; with the same data they are the same runs twice, which is refused."""
    given = []
    for task in ("forms", "lists"):
        (tmp_path / task).mkdir()
        out = make_study(tmp_path / task, score=["exact"])
        write_tables(out)
        folder = shutil.copytree(out / "tables", tmp_path / "map" / task)
        results = read_results(out / "runs.jsonl")
        write_results(folder / "runs.jsonl", [replace(one, data_sha256=task) for one in results])
        given.append(str(folder / "items.jsonl"))
    alone = {row["row"]: row for row in read_rows(Path(given[0]).with_name("table.csv"))}
    assert main(["report", *given, "--out", str(tmp_path)]) == 0
    assert ": not shown on forms, lists" in capsys.readouterr().out
    cells = read_rows(tmp_path / "map.csv")
    assert [cell["test_set"] for cell in cells] == ["forms"] * 3 + ["lists"] * 3
    assert {cell["baseline"] for cell in cells} == {"sequence"}
    for cell in cells[:3]:
        assert cell["p"] == alone[cell["row"]]["p"]
        assert cell["difference"] == alone[cell["row"]]["difference"]
        # Tests of a method on two tasks are a family.
        assert not cell["p"] or float(cell["holm_p"]) == min(1, 2 * float(cell["p"]))
    write_results(Path(given[1]).with_name("runs.jsonl"), results)
    write_results(Path(given[0]).with_name("runs.jsonl"), results)
    assert main(["report", *given, "--out", str(tmp_path)]) == 2
    assert "has runs of sequence, as " in capsys.readouterr().err


def read_rows(path: Path) -> list[dict[str, str]]:
    """The lines of a table, by column."""
    with path.open() as stream:
        return [{"row": row.get("system", ""), **row} for row in csv.DictReader(stream)]


def everything(out: Path) -> list[object]:
    """All that a report makes of the lines of the outputs."""
    write_tables(out)
    study = read_study(out)
    quantity = Quantity("length", "length", tuple(line % 7 for line in range(LINES)))
    metrics = study.plan.recipe.score
    return [
        *((out / "tables" / name).read_bytes() for name in ("items.jsonl", "table.csv")),
        score_categories(study.scores, study.rows, metrics),
        quantity.break_down(study.outputs, study.scores, study.rows, metrics).scores,
        find_verdicts(study.outputs).letters,
    ]


def test_lines_that_the_step_score_has_judged_are_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Table, categories, bins, examples and items are made of its file; it does not count for other outputs."""
    monkeypatch.setattr(study_helpers, "REFERENCES", TREES)
    names = ["exact", "bleu", "tree:sexpr"]
    out = make_study(tmp_path, score=names, categories="{data}/p/test.cat")
    (out / "data/p/test.cat").write_text("".join(f"kind {line % 2}\n" for line in range(LINES)))
    before = everything(out)
    reference = str(out / "data/p/test.tgt")
    for run in sorted((out / "runs").iterdir()):
        metrics = [word for name in names for word in ("--metric", name)]
        metrics += ["--json", "--lines", str(run / FILE)]
        words = ["--reference", reference, "--hypothesis", str(run / "hypotheses.txt"), *metrics]
        assert main(["score", *words]) == 0
    with monkeypatch.context() as patch:
        patch.setattr("treesyntax.study.results.outputs.measured", None)
        patch.setattr("treesyntax.study.results.outputs.kinds_of", None)
        assert everything(out) == before
    file = LineFile(out / "runs/sequence-1" / FILE)
    assert file.statistics("exact", {"reference": sha256_of(reference)}).shape == (LINES, 1)
    assert file.statistics("exact", {"reference": "other"}) is None
    assert file.statistics("exact:unseen", {}) is None
    assert LineFile(out / "no").statistics("exact", {}) is None
    for text in ("[]", '{"metrics": {"exact": 1}}', '{"metrics": {"exact": [1, 1, "x"]}}'):
        (out / "damaged").write_text(text)
        assert LineFile(out / "damaged").statistics("exact", {}) is None


@pytest.mark.parametrize("largest", [1, 255, 256, 65_536, 2**32 - 1])
@pytest.mark.parametrize("columns", [1, 3])
def test_numbers_are_packed_without_loss(largest: int, columns: int):
    numbers = np.random.default_rng(0).integers(largest, size=(50, columns), endpoint=True)
    numbers[7, 0] = largest
    assert np.array_equal(unpack(pack(numbers), 50, columns), numbers)
    for lines in (49, 51, 0, -1, 2**62):
        with pytest.raises(ValueError, match="numbers for each|too large"):
            unpack(pack(numbers), lines, columns)


def test_items_are_packed_without_loss_and_small():
    items = np.array([0, 1, 0, 2, 1, 1, 3, 0])
    assert unpack_items(pack_items(items), 8).tolist() == items.tolist()
    with pytest.raises(ValueError, match="before the first"):
        unpack_items(pack(np.array([[0], [2]])), 2)
    assert len(pack_items(np.arange(10_000))) < 100
    assert len(pack(np.random.default_rng(0).integers(2, size=(10_000, 1)))) < 2500


def first(found: ItemFile, **changes: object) -> ItemFile:
    """With another first run."""
    return replace(found, runs=(replace(found.runs[0], **changes), *found.runs[1:]))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A study's two files."""
    out = make_study(tmp_path_factory.mktemp("made"), score=["exact"])
    write_tables(out)
    return again(out, out / "kept")


@pytest.fixture
def kept(made: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return shutil.copytree(made, tmp_path / "kept") / "items.jsonl"


@pytest.mark.parametrize(("change", "why"), [
    (lambda one: first(one, row="nobody"), "nobody-1 in exact, which runs.jsonl lacks"),
    (lambda one: first(one, seed=2), "which runs.jsonl lacks, or has them twice"),
    (lambda one: first(one, metric="bleu"), "in bleu, which runs.jsonl lacks"),
    (lambda one: first(one, copies="x"), "lacks its copies"),
    (lambda one: first(one, scores=pack(np.ones((39, 1)))), "not 1 numbers for each of 40 lines"),
    (lambda one: first(one, scores=pack(np.ones((40, 1)))), "100.00, but runs.jsonl has"),
    (lambda one: first(one, scores="none"), "which are damaged: "),
    (lambda one: replace(one, copies=dict.fromkeys(one.copies, "AA==")), "copies are damaged: "),
    (lambda one: replace(one, runs=one.runs[3:]), "lacks the scores of relation_mask in exact"),
    (lambda one: replace(one, hash="other"), "which runs.jsonl lacks"),
    (lambda one: replace(one, seeds=("1",)), "(seeds.0: input should be a valid integer)"),
])  # fmt: skip
def test_scores_that_do_not_fit_the_results_are_refused(kept: Path, change, why: str, capsys):
    write_file(kept, change(read_items(kept)))
    assert main(["report", str(kept)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert line.endswith("take items.jsonl and runs.jsonl from the same study")


@pytest.mark.parametrize(("change", "why"), [
    (lambda text: text[:-20], "holds no scores by test item"),
    (lambda text: "\n".join(text.splitlines()[:-1]), "its checksum differs"),
    (lambda text: text.replace('"seed": 3', '"seed": 4', 1), "its checksum differs"),
    (lambda _: "", "is empty; copy it again, or write it again in its study: treesyntax report"),
    (lambda _: "[1]\n", "holds no scores by test item: it is damaged or another file; take"),
    (lambda _: '{"sha256": 1}\n3\n', "its checksum differs"),
])  # fmt: skip
def test_a_damaged_file_is_refused(kept: Path, change, why: str, capsys):
    kept.write_text(change(kept.read_text()))
    assert main(["report", str(kept)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    kept.unlink()
    assert main(["report", str(kept)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_scores_by_item_stay_where_a_part_of_the_data_is_gone(tmp_path: Path, capsys):
    """As in a folder that was copied without some data, or without the outputs of a run."""
    out = domains_study(tmp_path, ("sequence",))
    write_report(read_study(out))
    said = "items.jsonl stays as it was"
    file = out / "tables/items.jsonl"
    whole = file.read_bytes()
    for lost in (out / "data/law.tgt", out / "runs/stack_pe-domain=law-1/hypotheses.txt"):
        text = lost.read_bytes()
        lost.unlink()
        assert main(["report", str(out)]) == 0
        assert said in capsys.readouterr().out
        assert file.read_bytes() == whole
        lost.write_bytes(text)
    assert main(["report", str(out)]) == 0
    assert said not in capsys.readouterr().out
    file.unlink()
    lost.unlink()
    write_report(read_study(out))
    assert len(read_items(file).runs) == len(whole.splitlines()) - 1 - 2  # in two metrics

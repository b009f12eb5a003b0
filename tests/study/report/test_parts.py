"""Which results and rows the tables from items.jsonl are made of: parts, other outputs, other code."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from support.study_helpers import (
    LINES,
    REFERENCES,
    keep_items,
    make_study,
    make_two_test_sets,
    outputs,
    recipe_content,
    write,
)

from treesyntax.__main__ import main
from treesyntax.study.report.items import read_items, write_file
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.tables_again import join, read_part
from treesyntax.study.results.results import Result, read_results, write_results

pytestmark = pytest.mark.usefixtures("empty_figures")


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return {row["method"]: row for row in csv.DictReader(stream)}


def kept(out: Path, folder: Path) -> Path:
    """items.jsonl and runs.jsonl of a study whose report is written, in another folder."""
    write_report(read_study(out))
    return keep_items(out, folder)


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """A study with two points on one test set, so with two baselines there."""
    axes = {"size": {"train.lr": {"small": 0.1, "large": 0.2}}}
    return make_study(tmp_path, score=["exact"], axes=axes)


def part_of(out: Path, folder: Path, chosen: Sequence[str]) -> Path:
    """The part of some rows, named by their ends; the study's own results stay whole."""
    path = out / "runs.jsonl"
    whole = read_results(path)
    path.unlink()
    write_results(path, [one for one in whole if one.method.endswith(tuple(chosen))])
    (out / "tables/items.jsonl").unlink(missing_ok=True)
    part = kept(out, folder)
    write_results(path, whole)
    return part


@pytest.mark.parametrize("ends", [
    (["small"], ["large"]), (["sequence-size=large", "small"], ["mask-size=large", "pe-size=large"]),
])  # fmt: skip
def test_points_of_an_axis_keep_their_own_baselines(points: Path, tmp_path: Path, ends, capsys):
    """Also where the baseline of a part's rows is in another part."""
    write_report(read_study(points))
    whole = rows_of(points / "tables/table.csv")
    parts = [part_of(points, tmp_path / str(at), end) for at, end in enumerate(ends)]
    assert main(["report", *map(str, parts), "--out", str(tmp_path)]) == 0
    both = rows_of(tmp_path / "table.csv")
    assert both.keys() == whole.keys()
    for name, row in both.items():
        for column in ("baseline", "difference", "low", "high", "p", "holm_p"):
            assert row[column] == whole[name][column]
    assert both["stack_pe-size=large"]["baseline"] == "sequence-size=large"


def test_a_part_from_before_that_does_not_say_its_baseline_is_refused(
    points: Path, tmp_path: Path, capsys
):
    large = ["sequence-size=large", "mask-size=large"]
    parts = [
        part_of(points, tmp_path / str(at), end)
        for at, end in enumerate([["small"], large, ["pe-size=large"]])
    ]
    for path in parts:
        found = read_items(path)
        write_file(path, replace(found, rows=tuple(replace(row, asked="") for row in found.rows)))
    assert main(["report", *map(str, parts), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith(
        f"{parts[2]}: does not say which of sequence-size=small, sequence-size=large the row "
        "stack_pe-size=large is compared with; write the part's report again\n"
    )


def test_outputs_that_the_study_has_no_more_do_not_count(tmp_path: Path, capsys):
    out = make_study(tmp_path, score=["exact"])
    path = out / "runs.jsonl"
    results = read_results(path)
    path.unlink()
    write_results(path, [
        replace(one, run="of another beam", value=0.0)
        if (one.method, one.seed) == ("stack_pe", 3) else one
        for one in results
    ])  # fmt: skip
    again = kept(out, tmp_path / "kept")
    assert main(["report", str(again)]) == 0
    table, own = rows_of(again.with_name("table.csv")), rows_of(out / "tables/table.csv")
    assert (table["stack_pe"]["seeds"], table["sequence"]["seeds"]) == ("2", "3")
    for name, row in own.items():
        assert (table[name]["mean"], table[name]["seeds"]) == (row["mean"], row["seeds"])


def test_a_run_that_stands_twice_in_the_results_is_refused(tmp_path: Path, capsys):
    """Two files of results in one: the run would count as two."""
    again = kept(make_study(tmp_path, score=["exact"]), tmp_path / "kept")
    file = again.with_name("runs.jsonl")
    whole = file.read_text()
    assert main(["report", str(again)]) == 0
    results = read_results(file)
    write_results(file, [replace(one, train_seconds=9.0) for one in results if one.seed == 1])
    file.write_text(file.read_text() + whole)
    assert main(["report", str(again)]) == 2
    assert f"{file}: holds two results of sequence-1 in exact" in capsys.readouterr().err


def domains(folder: Path) -> Path:
    """A study with two test sets, categories and one plain row, of which ``sequence`` is of other code."""
    out = make_two_test_sets(
        folder, score=["exact"], strongest=["sequence"], categories="{data}/{d}.kind"
    )
    for domain in ("law", "news"):
        write(out / f"data/{domain}.kind", [f"kind {line % 2}" for line in range(LINES)])
    results = read_results(out / "runs.jsonl")
    (out / "runs.jsonl").unlink()
    write_results(out / "runs.jsonl", [
        replace(one, code={"train: nn/*.py": "old" if one.method.startswith("sequence") else "new"})
        for one in results
    ])  # fmt: skip
    return out


def differences(folder: Path, name: str) -> list[str]:
    with (folder / name).open(encoding="utf-8") as stream:
        return [row["difference"] for row in csv.DictReader(stream)]


def test_rows_of_other_code_are_compared_nowhere_unless_asked(tmp_path: Path, capsys):
    out = domains(tmp_path)
    path = kept(out, tmp_path / "kept")
    tables = ("table.csv", "map.csv", "categories.csv")
    for name in tables:
        assert not any(differences(out / "tables", name)), name
    write_report(read_study(out, mix_versions=True))
    for name in tables:
        assert any(differences(out / "tables", name)), name
    mixed = keep_items(out, tmp_path / "mixed")
    capsys.readouterr()
    for place in (path, mixed):
        assert main(["report", str(place)]) == 0
        for name in tables:
            assert not any(differences(place.parent, name)), name
    assert "not tested (--mix-versions tests them): relation_mask-domain=law" in (
        capsys.readouterr().out
    )
    assert main(["report", str(mixed), "--mix-versions"]) == 0
    for name in tables:
        assert differences(mixed.parent, name) == differences(out / "tables", name)
    assert "compared as you asked" in capsys.readouterr().out


def two_parts(folder: Path, **of_second: object) -> tuple[Path, Path]:
    """Rows of two studies over the same data; the second lacks the baseline."""
    rows = recipe_content()["methods"]
    parts = []
    for name, row, changes in (("first", "stack_pe", {}), ("second", "relation_mask", of_second)):
        (folder / name).mkdir()
        chosen = {of: rows[of] for of in ("sequence", row)}
        out = make_study(folder / name, score=["exact"], methods=chosen, **changes)
        part_of(out, folder / f"kept-{name}", [row] if name == "second" else ["sequence", row])
        parts.append(folder / f"kept-{name}/items.jsonl")
    return parts[0], parts[1]


def test_parts_of_unequal_budgets_are_refused(tmp_path: Path, capsys):
    """A fixed budget allows marks where trainings had not rested: not those of the other part."""
    first, second = two_parts(tmp_path, budget="fixed")
    for given in ((first, second), (second, first)):
        assert main(["report", *map(str, given), "--out", str(tmp_path / "joined")]) == 2
        error = capsys.readouterr().err
        assert str(given[1]) in error
        assert "budget: fixed" in error
    assert not (tmp_path / "joined").exists()


@pytest.mark.parametrize(("data", "code"), [("d", 0), ("other", 2)])
def test_scores_of_other_data_are_refused_without_the_primary_metric(
    tmp_path: Path, data: str, code: int, capsys
):
    """Else lines of two test sets were tested against each other, one by one."""
    files = two_parts(tmp_path)
    for path in files:
        items = read_items(path)
        rows = tuple(replace(row, primary="bleu", strongest="") for row in items.rows)
        write_file(path, replace(items, rows=rows, score=("bleu", "exact"), primary=("bleu",)))
    results = files[1].with_name("runs.jsonl")
    write_results(results, [replace(run, data_sha256=data) for run in read_results(results)])
    assert main(["report", *map(str, files), "--out", str(tmp_path / "joined")]) == code
    assert ("has scores of other data" in capsys.readouterr().err) is bool(code)


def test_no_figure_of_other_comparisons_stays_beside_a_table(tmp_path: Path):
    """Of rows that were compared in spite of their code, and then not."""
    first, second = two_parts(tmp_path)
    for number, part in enumerate((first, second)):
        file = part.with_name("runs.jsonl")
        code = {"train: nn": f"{number}", "train: rule": "3"}
        write_results(file, [replace(one, code=code) for one in read_results(file)])
    items, joined = read_items(first), tmp_path / "joined"
    write_file(first, replace(items, rows=tuple(row for row in items.rows if row.row == "sequence"),
               runs=tuple(run for run in items.runs if run.row == "sequence")))  # fmt: skip
    joined.mkdir()
    (joined / "map.svg").write_text("of the user")
    words = ["report", str(first), str(second), "--out", str(joined)]
    assert main([*words, "--mix-versions"]) == 0
    assert (joined / "verdict.svg").is_file()
    assert (joined / "map.svg").is_file()
    assert main(words) == 0
    assert not (joined / "verdict.svg").exists()


def test_what_rows_of_two_studies_differ_in_is_told(tmp_path: Path, capsys):
    first, second = two_parts(tmp_path)
    train = (
        "fairseq-train '{out}/binarized/x' --arch tree_sequence_mini --lr 0.001 --seed 1 "
        "--encoder-injection relative_position"
    )
    other = (
        "fairseq-train '{out}/binarized/y' --arch tree_relation_mask_mini --lr 0.01 --seed 2 "
        "--encoder-injection relative_position+relation_mask --save-dir '{out}/runs/y'"
    )
    search = "fairseq-generate '{out}/binarized/x' --path '{out}/x.pt' --beam"
    for part, commands, values in (
        (first, [train, f"{search} 5"], {"parameters": 10, "pairs": 1000.0}),
        (second, [other, f"{search} 20"], {"parameters": 1000, "pairs": 1e7, "ended": "cap"}),
    ):
        path = part.with_name("runs.jsonl")
        write_results(
            path, [replace(one, commands=commands, **values) for one in read_results(path)]
        )
    assert main(["report", str(first), str(second), "--out", str(tmp_path / "joined")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "UNEQUAL SETTINGS of relation_mask and sequence, which other studies trained: "
        "train.lr 0.01 and 0.001; generate.beam 20 and 5"
    ) in text
    assert "Parameters differ by more than 1%" in text
    assert "UNEQUAL TRAINING: pairs an update differ by more than 2%" in text  # one part rested
    assert "UNEQUAL SETTINGS of stack_pe" not in text  # its recipe answers for that


def test_columns_of_a_map_are_named_after_folders_whatever_these_are_called(tmp_path: Path):
    items = []
    for number, name in enumerate(("geo-lr=1", "geo-size=1")):
        (tmp_path / f"made{number}").mkdir()
        out = make_study(tmp_path / f"made{number}", score=["exact"])
        path = out / "runs.jsonl"
        write_results(path, [replace(one, data_sha256=f"d{number}") for one in read_results(path)])
        items.append(str(kept(out, tmp_path / name)))
    assert main(["report", *items, "--out", str(tmp_path / "joined")]) == 0
    with (tmp_path / "joined/map.csv").open(encoding="utf-8") as stream:
        assert {row["test_set"] for row in csv.DictReader(stream)} == {"geo-lr=1", "geo-size=1"}


SOME = "exact@gen"


def part_of_categories(folder: Path, row: str, counted: Sequence[int], **changes: object) -> Path:
    """A part with a row and, beside stack_pe, the baseline; ``SOME`` counts lines with some numbers."""
    folder.mkdir()
    rows = recipe_content()["methods"]
    out = make_study(
        folder, score=["exact", SOME], methods={of: rows[of] for of in ("sequence", row)},
        categories="{data}/cat", **changes,
    )  # fmt: skip
    write(out / "data/cat", ["gen" if line in counted else "test" for line in range(LINES)])
    path = out / "runs.jsonl"
    write_results(path, [
        replace(one, metric=SOME, value=score_of(one, counted), n=len(counted))
        for one in read_results(path)
    ])  # fmt: skip
    return part_of(out, folder / "kept", [row, "sequence"] if row == "stack_pe" else [row])


def score_of(one: Result, lines: Sequence[int]) -> float:
    """The share of right ones among some lines of a run."""
    return fmean(100 * (outputs(one.method, one.seed)[line] == REFERENCES[line]) for line in lines)


ODD, EVEN = range(1, LINES, 2), range(0, LINES, 2)


@pytest.mark.parametrize("counted", [EVEN, range(LINES // 2 + 1)])
def test_a_metric_that_counts_other_lines_in_another_part_is_refused(
    tmp_path: Path, counted: Sequence[int], capsys
):
    first = part_of_categories(tmp_path / "a", "stack_pe", ODD)
    same = part_of_categories(tmp_path / "b", "relation_mask", ODD)
    other = part_of_categories(tmp_path / "c", "relation_mask", counted)
    out = ["--out", str(tmp_path / "joined")]
    assert main(["report", str(first), str(same), *out]) == 0
    assert main(["report", str(first), str(other), *out]) == 2
    assert "of other lines, or of other categories of lines, than" in capsys.readouterr().err


def test_whose_lines_a_metric_counts_is_known_without_the_other_metrics(tmp_path: Path, capsys):
    """Each counted line is in the one category: only their numbers differ."""
    parts = [
        part_of_categories(tmp_path / row, row, counted)
        for row, counted in (("stack_pe", ODD), ("relation_mask", EVEN))
    ]
    for path in parts:
        whole = read_items(path)
        write_file(path, replace(whole, runs=tuple(run for run in whole.runs if run.metric == SOME),
                   rows=tuple(replace(row, primary=SOME, tested=(SOME,) * bool(row.tested), strongest="")
                              for row in whole.rows)))  # fmt: skip
    assert main(["report", *map(str, parts), "--out", str(tmp_path / "joined")]) == 2
    assert f"has {SOME} of other lines" in capsys.readouterr().err


def test_unseen_lines_of_other_training_data_are_not_compared(tmp_path: Path):
    """As within one study: rows of other data leave out other lines."""
    unseen = "exact:unseen"
    for data, compared in (("d", True), ("other", False)):
        (tmp_path / data).mkdir()
        parts = two_parts(tmp_path / data)
        for path in parts:
            whole, file = read_items(path), path.with_name("runs.jsonl")
            rows = (
                replace(row, tested=("exact", unseen)[: 2 * len(row.tested)]) for row in whole.rows
            )
            runs = (*whole.runs, *(replace(run, metric=unseen) for run in whole.runs))
            score = ("exact", unseen)
            write_file(path, replace(whole, rows=tuple(rows), runs=runs, score=score))
            results = read_results(file)
            write_results(file, [replace(one, metric=unseen) for one in results])
        # The files of a row's source may be its own, so that one of two is enough to be of the same test set.
        write_results(
            file, [replace(one, data_sha256=data) for one in read_results(file) if one.seed > 1]
        )
        joined = tmp_path / data / "joined"
        assert main(["report", *map(str, parts), "--out", str(joined)]) == 0
        with (joined / "table.csv").open(encoding="utf-8") as stream:
            tested = {
                (row["method"], row["metric"])
                for row in csv.DictReader(stream)
                if row["difference"]
            }
        assert ("stack_pe", unseen) in tested
        assert (("relation_mask", unseen) in tested) is compared


def test_a_column_without_its_baseline_stays_blank(tmp_path: Path, capsys):
    items = []
    for number, rows in enumerate((["sequence", "stack_pe"], ["stack_pe"])):
        (tmp_path / f"made{number}").mkdir()
        out = make_study(tmp_path / f"made{number}", score=["exact"])
        path = part_of(out, tmp_path / f"task{number}", rows)
        file = path.with_name("runs.jsonl")
        write_results(file, [replace(one, data_sha256=f"d{number}") for one in read_results(file)])
        items.append(str(path))
    assert main(["report", *items, "--out", str(tmp_path / "joined")]) == 0
    with (tmp_path / "joined/map.csv").open(encoding="utf-8") as stream:
        assert {row["test_set"] for row in csv.DictReader(stream)} == {"task0"}
    note = (
        "Not compared with sequence-task=task1, which none of these files has: stack_pe-task=task1"
    )
    assert note in " ".join(capsys.readouterr().out.split())


def test_columns_of_folders_of_one_name_are_refused(tmp_path: Path, capsys):
    """As those of one study on two machines, each with data of its own."""
    items = []
    for machine in ("a", "b"):
        (tmp_path / machine).mkdir()
        out = make_study(tmp_path / machine, score=["exact"])
        path = out / "runs.jsonl"
        write_results(path, [replace(run, data_sha256=machine) for run in read_results(path)])
        write_report(read_study(out))
        items.append(str(out / "tables/items.jsonl"))
    assert main(["report", *items, "--out", str(tmp_path / "joined")]) == 2
    error = capsys.readouterr().err
    assert f"{items[1]}: has other data than {items[0]}, in a folder of the same name, out" in error


def plain_rows(folder: Path, **values: object) -> list[str]:
    """Rows of two test sets with their baseline, and in another study the plain row that scores highest there."""
    rows = recipe_content()["methods"]
    items = []
    for name, row in (("trees", "stack_pe"), ("plain", "relation_mask")):
        (folder / name).mkdir()
        chosen = {of: rows[of] for of in ("sequence", row)}
        out = make_two_test_sets(
            folder / name, score=["exact"], strongest=["sequence", "relation_mask"][: 1 + (name == "plain")],
            methods=chosen,
        )  # fmt: skip
        path = out / "runs.jsonl"
        changes = values if name == "plain" else {}
        write_results(path, [replace(run, **changes) for run in read_results(path)])
        rows_of_part = [f"{of}-domain={d}" for of in chosen for d in ("law", "news")]
        kept_rows = rows_of_part if name == "trees" else [of for of in rows_of_part if row in of]
        items.append(str(part_of(out, folder / f"kept-{name}", kept_rows)))
    return items


def test_what_rows_differ_in_from_a_plain_row_of_another_study_is_told(tmp_path: Path, capsys):
    """The map compares them with it, though the baseline of the table is their own."""
    train = "fairseq-train '{out}/binarized/x' --arch tree_sequence_mini --lr 0.01"
    items = plain_rows(tmp_path, commands=[train], parameters=1000)
    assert main(["report", *items, "--out", str(tmp_path / "joined")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    with (tmp_path / "joined/map.csv").open(encoding="utf-8") as stream:
        assert {row["baseline"] for row in csv.DictReader(stream)} == {"relation_mask"}
    assert (
        "UNEQUAL SETTINGS of stack_pe-domain=law and relation_mask-domain=law, which other studies trained: train.lr none"
        in text
    )
    assert "Parameters differ by more than 1%" in text


def test_the_map_compares_unseen_lines_of_the_same_data_alone(tmp_path: Path):
    """Of other training data other lines are unseen."""
    items = [Path(path) for path in plain_rows(tmp_path, data_sha256="other")]
    for path in items:
        whole, unseen = read_items(path), "exact:unseen"
        rows = (
            replace(row, primary=unseen, tested=(unseen,) * bool(row.tested)) for row in whole.rows
        )
        runs = tuple(replace(run, metric=unseen) for run in whole.runs)
        write_file(
            path, replace(whole, rows=tuple(rows), runs=runs, score=(unseen,), primary=(unseen,))
        )
        file = path.with_name("runs.jsonl")
        results = read_results(file)
        file.unlink()
        # One run of a row over the same files is enough for a test set to be the same.
        write_results(file, [
            replace(run, metric=unseen, data_sha256="d" if run.seed == 1 else run.data_sha256)
            for run in results
        ])  # fmt: skip
    assert main(["report", *map(str, items), "--out", str(tmp_path / "joined")]) == 0
    with (tmp_path / "joined/map.csv").open(encoding="utf-8") as stream:
        assert {row["row"] for row in csv.DictReader(stream)} == {"relation_mask"}


def test_runs_are_counted_of_the_seeds_of_one_study(tmp_path: Path):
    """A row with three runs of three was shown as one with three of six."""
    first, second = two_parts(tmp_path)
    file, whole = second.with_name("runs.jsonl"), read_items(second)
    runs = tuple(replace(run, seed=run.seed + 3) for run in whole.runs)
    write_file(second, replace(whole, runs=runs, seeds=(4, 5, 6)))
    results = [replace(run, seed=run.seed + 3) for run in read_results(file)]
    file.unlink()
    write_results(file, results)
    study = join([read_part(path) for path in (first, second)])
    assert len(study.stored.seeds) == 3
    assert {run.seed for run in study.results} == {1, 2, 3, 4, 5, 6}


def test_a_row_without_trees_is_none_in_another_part_either(tmp_path: Path, capsys):
    """Nor is one whose baseline there wrote none: it was said to be worse than that."""
    first, second = two_parts(tmp_path)
    for treeless, paths in (("relation_mask", (first, second)), ("sequence", (second, first))):
        for path in (first, second):
            whole = read_items(path)
            names = {row.row for row in whole.rows} & {treeless}
            rows = (replace(row, no_trees=row.row * (row.row in names)) for row in whole.rows)
            write_file(path, replace(whole, rows=tuple(rows)))
        assert main(["report", *map(str, paths), "--out", str(tmp_path / "joined")]) == 0
        row = rows_of(tmp_path / "joined/table.csv")["relation_mask"]
        assert (row["conclusion"], row["p"]) == ("nothing to compare", "")
        assert row["why"] == f"none of the outputs of {treeless} is a tree"

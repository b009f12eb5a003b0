"""Which results and rows the tables from items.jsonl are made of: parts, other outputs, other code."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.study_helpers import (
    LINES,
    keep_items,
    make_study,
    make_two_test_sets,
    recipe_content,
    write,
)

from treesyntax.__main__ import main
from treesyntax.study.report.items import read_items, write_file
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.results.results import read_results, write_results


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
    assert "UNEQUAL TRAINING: pairs seen differ by more than 2%" in text
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

"""Scores by length and depth, and scores against cost, against what they should be by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from support.study_helpers import ONE, recipe_content, result, write_recipe

from treesyntax.data.dictionary import EOS
from treesyntax.data.token_files import write_tokens
from treesyntax.metrics import METRICS
from treesyntax.palette import line_of
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.cost import compute_costs, cost_numbers, draw_costs
from treesyntax.study.report.curves import draw_curves, lines_of, told_apart
from treesyntax.study.report.groups import (
    Breakdown,
    Quantity,
    draw_breakdowns,
    find_quantities,
    make_bins,
)  # fmt: skip
from treesyntax.study.report.verdict import draw_verdict
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.results.results import Result
from treesyntax.study.results.rows import make_rows
from treesyntax.study.run.plan import Plan, make_plan

REFERENCES = ["unit", "(\\ a . a)", "f a b", "unit", "x"]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(1, 6))
def test_bins_hold_every_value_once_and_are_not_too_many(values: list[int], most: int):
    bins = make_bins(values, most)
    assert 1 <= len(bins) <= most
    assert all(sum(low <= value <= high for low, high in bins) == 1 for value in values)
    assert bins == sorted(bins)
    assert all({low, high} <= set(values) for low, high in bins)
    commonest = max(Counter(values).values())
    largest = max(sum(low <= value <= high for value in values) for low, high in bins)
    assert largest <= -(-len(values) // most) + commonest


def test_bins_of_different_values_are_about_equal():
    assert make_bins(list(range(10))) == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    assert make_bins([3, 3, 3]) == [(3, 3)]


@pytest.fixture
def study(tmp_path: Path) -> tuple[Plan, Path]:
    methods = {
        "sequence": {"arch": "tree_sequence_mini"},
        "other": {"arch": "tree_stack_pe_mini", "binarize": {"source-format": "sexpr"}},
    }
    recipe = write_recipe(tmp_path, methods=methods, score=["exact", "bleu", "exact:unseen"])
    plan, out = make_plan(read_recipe(recipe)), tmp_path / "out"
    data = out / "data" / "p"
    data.mkdir(parents=True)
    (data / "test.tgt").write_text("".join(f"{line}\n" for line in REFERENCES))
    (data / "test.src").write_text("a\n( a b )\n( a ( b ( c d ) ) )\na\n( a b )\n")
    binarized = out / "binarized" / "sequence"
    binarized.mkdir(parents=True)
    sizes = np.array([3, 4, 10, 3, 4])
    batch = (np.full(int(sizes.sum()), 4), sizes)
    write_tokens(binarized / "test.for-lambda.for", [batch], 9, EOS)
    for number, name in enumerate(("sequence-1", "sequence-2", "other-1")):
        lines = [line if place != number else "wrong" for place, line in enumerate(REFERENCES)]
        folder = out / "runs" / name
        folder.mkdir(parents=True)
        (folder / "hypotheses.txt").write_text("".join(f"{line}\n" for line in lines))
    return plan, out


RESULTS = [
    result(method, seed, metric, 80.0)
    for method, seed in (("sequence", 1), ("sequence", 2), ("other", 1))
    for metric in ("exact", "bleu")
]


def by_depth(plan: Plan, folder: Path, results: list[Result] = RESULTS) -> Breakdown:
    outputs = Outputs(plan, folder, results)
    rows = make_rows(outputs, results, lambda *_: True)
    quantity = Quantity("depth", "depth", (0, 1, 3, 0, 1))
    return quantity.break_down(outputs, ItemScores(outputs, results), rows, plan.recipe.score)


def test_quantities_are_lengths_and_depths(study: tuple[Plan, Path]):
    length, depth = find_quantities(*study)
    assert (length.name, length.values) == ("source_length", (3, 4, 10, 3, 4))
    assert (depth.name, depth.values) == ("source_depth", (0, 1, 3, 0, 1))
    assert "tokens of sequence" in length.label


def test_what_cannot_be_read_is_left_out(study: tuple[Plan, Path]):
    plan, folder = study
    (folder / "data/p/test.src").write_text("( a\n")
    assert [one.name for one in find_quantities(plan, folder)] == ["source_length"]
    (folder / "data/p/test.tgt").unlink()
    assert find_quantities(plan, folder) == []


def test_scores_by_bin_are_those_of_the_lines_in_it(study: tuple[Plan, Path]):
    plan, folder = study
    found = by_depth(plan, folder)
    assert list(found.bins.values()) == [(0, 0), (1, 1), (3, 3)]
    assert found.metrics == ["exact", "bleu"]
    numbers = found.numbers()
    assert numbers["mean"]["sequence"]["exact"] == pytest.approx([75.0, 75.0, 100.0])
    assert numbers["mean"]["other"]["exact"] == pytest.approx([100.0, 100.0, 0.0])
    runs = numbers["runs"]["sequence"]
    assert [sorted(group) for group in runs["exact"]] == [[50, 100], [50, 100], [100, 100]]
    hypotheses = ["wrong", *REFERENCES[1:]]
    lines = [0, 3]
    (expected,) = METRICS["bleu"]([hypotheses[n] for n in lines], [REFERENCES[n] for n in lines])
    assert runs["bleu"][0][0] == pytest.approx(expected.value, abs=1e-9)
    assert numbers["bins"][0] == {"name": "0", "from": 0, "to": 0, "lines": 2}
    assert [group[0] for group in runs["exact"]] == [50.0, 100.0, 100.0]
    # The difference from the baseline stands beside it.
    (other,) = [
        one
        for one in found.scores
        if (one.group, one.method, one.metric) == ("3", "other", "exact")
    ]
    assert (other.comparison.baseline, other.comparison.difference) == ("sequence", -100.0)


def test_a_panel_a_metric_and_a_line_a_method(study: tuple[Plan, Path]):
    plan, folder = study
    found = by_depth(plan, folder)
    lines = lines_of(plan.recipe)
    figure = draw_breakdowns([(found, "exact"), (found, "bleu")], lines, {"other": "the other row"})
    panels = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_ylabel() for panel in panels] == ["exact", "bleu"]
    assert [line.get_label() for line in panels[0].lines] == ["sequence", "other"]
    assert list(panels[0].lines[0].get_ydata()) == pytest.approx([75.0, 75.0, 100.0])
    labels = [label.get_text() for label in panels[0].get_xticklabels()]
    assert labels == ["0\n(2)", "1\n(2)", "3\n(1)"]
    assert panels[0].get_xlabel()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["sequence", "the other row"]


LINES = {"a": line_of(0), "b": line_of(1)}


def test_costs_are_means_of_what_is_known():
    results = [
        replace(result("a", 1, "bleu", 10.0), peak_memory=100.0, pairs_per_second=None),
        replace(result("a", 2, "bleu", 14.0), peak_memory=300.0),
        result("b", 1, "bleu", 9.0),
        result("b", 1, "chrf", 99.0),
    ]
    found = compute_costs(results, ["b", "a", "c"], "bleu")
    assert list(found) == ["b", "a"]
    assert found["a"].score.mean == 12.0
    assert found["a"].costs == {"parameters": 10, "pairs_per_second": 5.0, "peak_memory": 200.0}
    assert "peak_memory" not in found["b"].costs
    assert cost_numbers(found, "bleu")["methods"]["b"]["score"] == 9.0
    labels = [panel.get_xlabel() for panel in draw_costs(found, "bleu", LINES).axes]
    assert labels[2] == "peak memory in training (MiB)"
    only = {"b": found["b"]}
    assert len(draw_costs(only, "bleu", LINES).axes) == 2


def test_twenty_methods_are_told_apart_by_colour_and_marker():
    lines = [line_of(number) for number in range(20)]
    assert len({(line["color"], line["marker"]) for line in lines}) == 20
    assert len({(line["color"], line["linestyle"]) for line in lines}) == 20


def test_a_row_has_one_colour_in_all_figures(study: tuple[Plan, Path]):
    """Also where other rows of the recipe were not run, and stand before it."""
    plan, folder = study
    lines, colour = lines_of(plan.recipe), line_of(1)["color"]
    assert lines["other"]["color"] == colour != lines["sequence"]["color"]
    (panel,) = draw_curves({"other": [{1: 2.0, 2: 1.0}]}, lines).axes
    assert {to_hex(line.get_color()).upper() for line in panel.lines} == {colour}
    results = [one for one in RESULTS if one.method == "other"]
    (panel,) = draw_breakdowns([(by_depth(plan, folder, results), "exact")], lines, {}).axes
    assert {to_hex(line.get_color()).upper() for line in panel.lines} == {colour}
    for panel in draw_costs(compute_costs(results, [*lines], "exact"), "exact", lines).axes:
        assert [bar.lines[0].get_color() for bar in panel.containers] == [colour]
    (panel,) = draw_verdict([replace(ONE, method="other")], lines).axes
    assert panel.lines[1].get_color() == colour


def test_a_system_has_one_colour_on_all_test_sets(tmp_path: Path):
    data = recipe_content()["data"]
    data["target"]["test"] = "{d}.tgt"
    axes = {"domain": {"vars.d": ["law", "news", "web", "talk", "mail"]}}
    recipe = read_recipe(write_recipe(tmp_path, data=data, vars={"size": 8, "d": "law"}, axes=axes))
    lines = lines_of(recipe)
    assert len(lines) == 15
    colours = {(row.base, lines[row.name]["color"]) for row in recipe.methods}
    assert len(colours) == len({colour for _, colour in colours}) == 3
    assert told_apart(lines, lines, "marker")
    assert told_apart(lines, lines, "linestyle")
    curves = {name: [{1: 2.0, 2: 1.0}] for name in lines}
    (panel,) = draw_curves(curves, lines).axes
    assert len(panel.get_legend().get_texts()) == 15
    alike = {name: line_of(0) for name in lines}
    assert draw_curves(curves, alike).axes[0].get_legend() is None

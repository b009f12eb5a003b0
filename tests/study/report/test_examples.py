"""Kinds of errors, first differences and the examples of a report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.study_helpers import make_study, result, write, write_recipe, write_study

from treesyntax.metrics import METRICS, measured
from treesyntax.metrics.kinds import KINDS, kind_of, kinds_of
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.examples.choice import Marked, clipped, first_token, outline
from treesyntax.study.report.examples.kinds import first_difference, judge, judging_metric
from treesyntax.study.report.examples.sections import outputs_sections
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.results.results import write_results
from treesyntax.study.run.plan import make_plan
from treesyntax.trees.formats import parse_tree
from treesyntax.trees.formats.sexpr import SEXPR
from treesyntax.trees.tree import Tree

GOAL = "( lambda $0 e ( and ( city:t $0 ) ( loc:t $0 s0 ) ) )"


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("", "e"), ("( lambda $0", "x"), (")", "x"),
        (GOAL.replace("( ", "("), "s"),
        ("( lambda $0 e ( and ( loc:t $0 s0 ) ( city:t $0 ) ) )", "o"),
        ("( lambda $1 e ( and ( loc:t $1 s0 ) ( city:t $1 ) ) )", "v"),
        (GOAL.replace("s0", "s1"), "l"),
        (GOAL.replace("city:t", "river:t"), "n"),
        (GOAL.replace("( city:t $0 ) ", ""), "m"),
        (GOAL.replace(" s0", ""), "m"),
        (GOAL.replace("s0", "s0 s0"), "a"),
        (GOAL.replace("( city:t", "( big:t $0 ) ( city:t"), "a"),
        (GOAL.replace("( city:t $0 ) ", "").replace("s0", "s1"), "t"),
    ],
)  # fmt: skip
def test_each_wrong_output_has_one_kind(output: str, kind: str):
    assert kind_of(output, GOAL, "sexpr") == kind
    assert kind in KINDS


def test_order_counts_where_it_has_a_meaning():
    assert kind_of("( f b a )", "( f a b )", "sexpr") == "l"
    assert kind_of("( and b a )", "( and a b )", "sexpr") == "o"


TREES = st.recursive(
    st.sampled_from("abc"), lambda below: st.tuples(st.just("f"), st.lists(below, min_size=1, max_size=3)),
    max_leaves=9,
)  # fmt: skip


def build(shape: object) -> Tree:
    labels, parents = [], []

    def grow(shape: object, parent: int) -> None:
        label, below = (shape, []) if isinstance(shape, str) else shape
        labels.append(label)
        parents.append(parent)
        node = len(labels) - 1
        for child in below:
            grow(child, node)

    grow(shape, -1)
    return Tree(parents, labels)


def route(tree: Tree, node: int | None) -> list[int]:
    """Branches from the root to a node."""
    steps: list[int] = []
    while node:
        steps.insert(0, int(tree.branches[node]))
        node = int(tree.parents[node])
    return steps


@settings(deadline=None, max_examples=150)
@given(TREES, TREES)
def test_the_first_difference_is_that_of_a_walk_over_both(first: object, second: object):
    left, right = build(first), build(second)
    found = first_difference(left, right, "jsonl")

    def walk(one: Tree, a: int | None, other: Tree, b: int | None) -> object:
        if a is None or b is None or one.labels[a] != other.labels[b]:
            return a, b
        below = one.children()[a], other.children()[b]
        for place in range(max(map(len, below))):
            pair = [own[place] if place < len(own) else None for own in below]
            if (difference := walk(one, pair[0], other, pair[1])) is not None:
                return difference
        return None

    assert (found[-1] if found else None) == walk(left, 0, right, 0)  # which no equal trees have
    for own, other in found:
        assert None in (own, other) or route(left, own) == route(right, other)


@settings(deadline=None, max_examples=100)
@given(TREES, TREES, st.data())
def test_a_missing_subtree_is_found_wherever_it_stood(
    first: object, second: object, data: st.DataObject
):
    whole = build(("f", [first, second]))
    cut = data.draw(st.integers(1, len(whole) - 1))
    end = int(whole.last_descendants[cut])
    kept = [node for node in range(len(whole)) if not cut <= node <= end]
    parents = [kept.index(int(whole.parents[node])) if node else -1 for node in kept]
    part = Tree(parents, [whole.labels[node] for node in kept])
    texts = [SEXPR.write(tree) for tree in (part, whole)]
    assert kind_of(*texts, "sexpr") == "m"
    assert kind_of(*texts[::-1], "sexpr") == "a"


def test_the_kind_of_a_wide_tree_is_found_at_once():
    wide = f"( f {'x ' * 100_000})"
    assert kind_of(wide, f"( f {'x ' * 99_999}y y )", "sexpr") == "t"
    assert kind_of(wide, f"( f {'x ' * 99_999})", "sexpr") == "a"


@pytest.mark.parametrize("label", ["and", "and:<t*,t>"])
def test_conjuncts_in_another_order_are_no_difference(label: str):
    wanted = parse_tree(GOAL.replace("and", label), "sexpr")
    turned = parse_tree(f"( lambda $0 e ( {label} ( loc:t $0 s1 ) ( city:t $0 ) ) )", "sexpr")
    own, other = first_difference(turned, wanted, "sexpr")[-1]
    assert (turned.labels[own], wanted.labels[other]) == ("s1", "s0")
    lacking = parse_tree(f"( lambda $0 e ( {label} ( loc:t $0 s0 ) ) )", "sexpr")
    above, (own, other) = first_difference(lacking, wanted, "sexpr")[-2:]
    assert lacking.labels[above[0]] == wanted.labels[above[1]] == label
    assert own is None
    assert wanted.labels[other] == "city:t"


def test_large_trees_are_shown_around_the_mark():
    small = parse_tree("( f a ( g b ) )", "sexpr")
    assert [line.before + line.marked for line in outline(small, 2)] == ["f", "· a", "· g", "· · b"]
    assert outline(small, 2)[2] == Marked("· ", "g")
    wide = parse_tree(f"( f {' '.join(['( g b c )'] * 300)} ( h x ) )", "sexpr")
    lines = outline(wide, len(wide) - 1)
    assert lines[-1] == Marked("· ", "x")
    assert lines[0] == Marked("…")
    assert Marked("g  (2 below)") in lines
    assert len(lines) < 45
    assert outline(wide, None, len(wide) - 2)[-1].before == "· x"
    deep = outline(Tree(range(-1, 9999), ["x"] * 10_000), 9_999)
    assert deep[-1].marked == "x"
    assert len(deep[-1].before) < 100


def test_a_line_is_clipped_around_the_mark_and_has_no_controls():
    words = [str(number) for number in range(500)]
    assert first_token("a b x", "a b c d") == 2
    shown = clipped(" ".join(words), 250)
    assert shown.marked == "250"
    assert shown.before.startswith("… 210 ")
    assert shown.after.endswith("290 …")
    assert clipped("a b", 2).marked == "(ends here)"
    assert clipped("a\u202eb\x07 " + "x" * 999).before == "a\ufffdb\ufffd " + "x" * 60 + "…"


@settings(deadline=None, max_examples=60)
@given(st.lists(TREES, min_size=1, max_size=4), st.data())
def test_letters_say_what_the_metric_says(shapes: list[object], data: st.DataObject):
    wanted = [SEXPR.write(build(shape)) for shape in shapes]
    outputs = [
        data.draw(st.sampled_from([*wanted, text, "", "( f", "( f a b )"])) for text in wanted
    ]
    for metric in ("exact", "tree:sexpr", "unordered:sexpr"):
        right = measured(metric, outputs, wanted).lines[:, 0] > 0
        letters = judge(kinds_of(outputs, wanted, "sexpr"), right.tolist())
        (score,) = METRICS[metric](outputs, wanted)
        assert 100 * letters.count(".") / len(letters) == pytest.approx(score.value)
        assert set(letters) <= {".", *KINDS}


def test_the_metric_is_one_that_judges_lines():
    assert judging_metric(["exact", "tree:sexpr"], "tree:sexpr:unseen") == "tree:sexpr"
    assert judging_metric(["bleu"], "bleu") == "exact"


EVIL = '<script>document.title="x"</script>|</pre>**[a](javascript:alert(1))`'
REFERENCES = ["( f a ( g b ) )", "( f a )", "( f c )", "( f a )"]
OUTPUTS = {
    "sequence": [["( f a ( g c ) )", "( f a )", f"( f {EVIL} )", "( f a )"]] * 2,
    "stack_pe": [REFERENCES, ["( f a ( g b ) )", "", "( f c )", "( f a"]],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    methods = {name: {"arch": "tree_sequence_mini"} for name in OUTPUTS}
    recipe = read_recipe(
        write_recipe(tmp_path, methods=methods, score=["exact", "tree:sexpr"], analyses=False)
    )
    out = tmp_path / "out"
    write_study(out, recipe)
    write(out / "data/p/test.tgt", REFERENCES)
    write(out / "data/p/test.src", ["one", f"two {EVIL}", "three", f"two {EVIL}"])
    results = []
    for run in make_plan(recipe).runs:
        lines = OUTPUTS[run.method.name][run.seed - 1]
        write(out / run.folder / "hypotheses.txt", lines)
        for metric in recipe.score:
            value = METRICS[metric](lines, REFERENCES)[0].value
            results.append(result(run.method.name, run.seed, metric, value))
    write_results(out / "runs.jsonl", results)
    return out


def sections(folder: Path) -> list:
    study = read_study(folder)
    return outputs_sections(study.outputs)


def test_the_tables_count_each_wrong_output_once(folder: Path):
    types, _ = sections(folder)
    assert types.table.header == (
        "row", "runs", "outputs", "right", "empty", "not a tree", "only other leaves",
    )  # fmt: skip
    assert types.table.rows == [
        ["sequence", "2", "8", "50.0 % (4)", "0.0 % (0)", "25.0 % (2)", "25.0 % (2)"],
        ["stack_pe", "2", "8", "75.0 % (6)", "12.5 % (1)", "12.5 % (1)", "0.0 % (0)"],
    ]
    assert types.tables["error_types.csv"][1] == ["sequence", 2, 8, 4, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0]


def test_examples_go_both_ways_and_a_pair_is_shown_once(folder: Path):
    (group,) = sections(folder)[1].examples
    assert "none of the other: 2 and 0" in group.heading
    first, second, third = group.shown
    assert first.heading == (
        "Line 3: right in 2 of 2 runs of stack_pe, wrong in 2 of 2 runs of sequence"
    )
    assert second.note == "only other leaves"
    assert [name for name, _ in second.texts] == ["source", "reference", "sequence-1, wrong"]
    (_, wanted), (name, found) = second.trees
    assert name == "sequence-1"
    assert [line.marked for line in wanted] == ["", "", "", "b"]
    assert [line.marked for line in found] == ["", "", "", "c"]
    assert third.heading.startswith("Line 2: right in 2 of 2 runs of sequence, wrong in 1 of 2")
    assert third.texts[2] == ("stack_pe-2, wrong", Marked("", "empty"))
    assert third.trees == ()  # line 4 is the same pair


def test_outputs_are_shown_as_text(folder: Path):
    page = write_report(read_study(folder)).read_text()
    assert page.count("<script>") == 1
    assert "&lt;script&gt;document" in page
    assert "<mark>c</mark>" in page
    assert page.count("</pre>") == page.count("<pre")
    report = (folder / "report.md").read_text()
    shown = report.split("## Examples")[1].split("## ")[0]
    for line in shown.splitlines():
        if not line.startswith("    "):  # code, where nothing is markup
            assert not re.search(r"(?<!\\)[<\[`]", line), line
            if line.startswith("|"):
                assert len(re.findall(r"(?<!\\)\|", line)) == 3, line
    assert "· · c   ◀ first difference" in report
    assert r"**\<script" in report


def test_text_has_examples_with_a_marked_token_and_no_kinds(tmp_path: Path):
    folder = make_study(tmp_path, score=["exact", "bleu"])
    types, examples = sections(folder)
    assert not types.table.rows
    groups = {group.heading.partition(" ")[0]: group for group in examples.examples}
    (first, *_) = groups["relation_mask"].shown
    assert first.trees == ()
    assert dict(first.texts)["reference"].marked == "tree"
    assert [text.marked for name, text in first.texts if name.endswith("wrong")] == ["dog"]

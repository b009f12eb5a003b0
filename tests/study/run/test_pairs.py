"""All rows use the same pairs: else nothing is trained, or all rows leave the same ones out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from study.run.growing_studies import content, run, trained
from support import fake_programs
from support.study_helpers import plan_of, recipe_with, result, write_recipe
from support.study_runs import commands_in, refused

from treesyntax.data.pairs import Limits, read_left_out
from treesyntax.data.token_files import write_tokens
from treesyntax.study.report.pair_notes import pair_notes
from treesyntax.study.run.logs import read_log
from treesyntax.study.run.pairs import bounds_of, conflicts, uses_of
from treesyntax.study.run.plan import make_plan

pytestmark = pytest.mark.usefixtures("quick")

SHORT = [3] * 6
Lines = dict[str, tuple[list[int], list[int]]]
"""By split the tokens of sources and of targets, without their end."""


def write_data(folder: Path, lines: Lines) -> None:
    """The token files of a data folder, with sentences of the lengths that are asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "valid", "test"):
        for side, sizes in zip(("for", "lambda"), lines.get(split, (SHORT, SHORT)), strict=True):
            ids = np.full(sum(sizes), 5)
            write_tokens(folder / f"{split}.for-lambda.{side}", [(ids, np.array(sizes))], 9, 2)


@pytest.fixture
def binarized(monkeypatch: pytest.MonkeyPatch) -> Callable[[Lines, Lines], None]:
    """Sets what the stand-in of binarize writes: for text, and for trees."""
    act, data = fake_programs.treesyntax, [{}, {}]

    def with_lengths(arguments: list[str]) -> None:
        act(arguments)
        if arguments[0] == "binarize":
            write_data(Path(arguments[1]), data["--source-format" in arguments])

    def set_data(text: Lines, trees: Lines) -> None:
        data[:] = [text, trees]

    monkeypatch.setattr(fake_programs, "treesyntax", with_lengths)
    return set_data


def lengths(*over: int, size: int = 1024) -> list[int]:
    """Targets of which some have too many tokens, with their end."""
    return [size if number in over else 3 for number in range(6)]


LONG = {"train": (SHORT, lengths(1, 4))}


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_rows_that_would_learn_from_different_pairs_are_not_trained(tmp_path, binarized, capsys):
    binarized(LONG, {})
    started = run(tmp_path, status=2)
    assert started.split().count("binarize") == 2
    assert not trained(started)
    told = said(capsys)
    assert (
        "fairseq leaves out of 6 training pairs 2 of more than 1024 tokens on either side (number 2, "
        "5) (sequence); none (stack_pe); raise train.max-target-positions for all rows, or take these "
        "pairs out of the data, or write skip: allowed" in told
    )
    assert not trained(run(tmp_path, "--plan"))
    assert "NOTHING WILL BE TRAINED: rows would not use the same pairs" in said(capsys)
    run(tmp_path, "--plan", "--json")
    assert json.loads(said(capsys))["pairs"]["sequence"]["train"] == {
        "pairs": 6, "too_long": 2, "empty": 0,
    }  # fmt: skip


def test_pairs_that_all_rows_leave_out_are_told_and_noted(tmp_path, binarized, capsys):
    binarized(LONG, LONG)
    assert len(trained(run(tmp_path))) == 4
    told = said(capsys)
    line = "2 of 6 training pairs are left out of sequence, stack_pe (they are too long in each of them)"
    assert told.index(line) < told.index("start  sequence-1/train")
    assert (
        "PAIRS LEFT OUT: no row used 2 of 6 training pairs, which are too long for each of" in told
    )


def test_skips_that_are_allowed_leave_the_same_pairs_out_of_all_rows(tmp_path, binarized, capsys):
    binarized(LONG, {"train": (lengths(0), SHORT), "valid": (SHORT, lengths(5))})
    started = run(tmp_path, skip="allowed")
    assert len(trained(started)) == 4
    listed = tmp_path / "out/left_out/all.json"
    found = {split: numbers.tolist() for split, numbers in read_left_out(listed).items()}
    assert found == {"train": [0, 1, 4], "valid": [5]}
    trainings = [
        text for text in commands_in(tmp_path, "start") if text.startswith("fairseq-train")
    ]
    assert all(f"--leave-out\x1f{listed}" in text for text in trainings)
    assert "3 of 6 training pairs are left out of sequence, stack_pe (skip: allowed)" in said(
        capsys
    )
    assert run(tmp_path, skip="allowed") == "", "all is done"


def test_data_of_all_rows_decide_what_is_left_out_of_a_part(tmp_path, binarized):
    binarized({}, LONG)
    assert trained(run(tmp_path, "--only", "sequence", skip="allowed")) == [
        "sequence-1",
        "sequence-2",
    ]
    assert read_left_out(tmp_path / "out/left_out/all.json")["train"].tolist() == [1, 4]
    assert trained(run(tmp_path, skip="allowed")) == ["stack_pe-1", "stack_pe-2"]


def test_a_row_that_would_leave_out_more_is_refused_once_others_are_trained(
    tmp_path, binarized, capsys
):
    longer = {"train": (SHORT, lengths(1, size=8))}
    binarized(longer, longer)
    run(tmp_path, skip="allowed")
    methods = content(tmp_path)["methods"]
    flags = {"arch": "tree_stack_pe_mini", "train": {"max-target-positions": 5}}
    more = {**methods, "new": {**methods["stack_pe"], **flags}}
    why = {"train.max-target-positions": "to see"}
    capsys.readouterr()
    assert not trained(run(tmp_path, status=2, skip="allowed", methods=more, differences=why))
    assert (
        "sequence-1, sequence-2, stack_pe-1, stack_pe-2 began without other pairs than all"
        in said(capsys)
    )


@pytest.mark.parametrize("skip", [{}, {"skip": "allowed"}])
def test_a_test_set_is_never_cut(tmp_path, binarized, capsys, skip):
    binarized({"test": (lengths(2), SHORT)}, {})
    assert not trained(run(tmp_path, status=2, **skip))
    told = said(capsys)
    assert "rows cannot read of 6 test pairs 1 of more than 1024 tokens" in told
    assert (
        "raise train.max-source-positions for all rows, or take these pairs out of the data\n"
        in told
    )


def test_validation_stops_at_long_pairs_unless_it_skips_them(tmp_path, binarized, capsys):
    binarized({"valid": (lengths(2), SHORT)}, {"valid": (lengths(2), SHORT)})
    assert not trained(run(tmp_path, status=2))
    assert "rows cannot read of 6 validation pairs 1 of more than" in said(capsys)
    flag = {"train": {"max-update": 5, "skip-invalid-size-inputs-valid-test": True}}
    assert len(trained(run(tmp_path, out="skipped", **flag))) == 4


def test_lines_that_are_empty_in_one_row_alone_are_no_pairs_to_compare(tmp_path, binarized, capsys):
    empty = [0 if number == 3 else 3 for number in range(6)]
    binarized({}, {"train": (empty, SHORT)})
    assert not trained(run(tmp_path, status=2))
    assert "of 6 training pairs 1 have no token in some rows and tokens in others (sequence 0, stack_pe 1; number 4)" in said(capsys)  # fmt: skip
    binarized({"train": (empty, SHORT)}, {"train": (empty, SHORT)})
    assert len(trained(run(tmp_path, "--set", "vars.size=9", out="alike"))) == 4
    binarized({}, {"train": (empty, SHORT)})
    run(tmp_path, "--set", "vars.size=7", out="allowed", skip="allowed")
    assert read_left_out(tmp_path / "allowed/left_out/all.json")["train"].tolist() == [3]


def test_a_row_whose_data_cannot_be_made_does_not_hold_the_others(tmp_path, binarized, monkeypatch):
    act = fake_programs.treesyntax

    def fail(arguments: list[str]) -> None:
        if arguments[0] == "binarize" and "--source-format" in arguments:
            raise SystemExit("no such tree")
        act(arguments)

    binarized({}, {})
    monkeypatch.setattr(fake_programs, "treesyntax", fail)
    assert trained(run(tmp_path, status=1)) == ["sequence-1", "sequence-2"]


def bounds(folder: Path, train: dict, generate: dict) -> dict[str, tuple]:
    recipe = recipe_with(folder, train={"max-update": 5, **train}, generate=generate)
    found = bounds_of(recipe, recipe.methods[0])
    return {split: tuple(one.limits) for split, one in found.items()}


def test_the_limits_of_a_row_are_those_of_its_steps(tmp_path):
    """As of fairseq's trainer and fairseq-generate, and of `TreeTranslationTask.max_positions`."""
    assert bounds(tmp_path, {"max-tokens": 500}, {}) == {
        "train": (500, 500), "valid": (500, 500), "test": (1024, 1024),
    }  # fmt: skip
    flags = {"max_source_positions": 3000, "max-tokens": 2000, "max-tokens-valid": 9000}
    assert bounds(tmp_path, flags, {"batch-size": 4, "max-target-positions": 100}) == {
        "train": (2000, 1024), "valid": (3000, 1024), "test": (3000, 100),
    }  # fmt: skip
    assert bounds(tmp_path, {"max-source-positions": 20000}, {})["test"] == (12000, 1024)
    assert "valid" not in bounds(tmp_path, {"disable-validation": True}, {})
    assert str(Limits(5, 5)) == "5 tokens on either side"
    assert str(Limits(None, 5)) == "5 target tokens"


def test_a_recipe_without_skips_has_the_keys_that_it_had(tmp_path):
    plan, allowed = plan_of(tmp_path), plan_of(tmp_path, "skip=allowed")
    refusing = plan_of(tmp_path, "skip=refused")
    assert [step.command for step in plan.steps] == [step.command for step in refusing.steps]
    assert [
        s.name for s, t in zip(plan.steps, allowed.steps, strict=True) if s.command != t.command
    ] == [run.step("train") for run in plan.runs]


def test_a_recipe_says_whether_skips_are_allowed_and_nothing_else(tmp_path):
    write_recipe(tmp_path, skip="perhaps")
    assert "skip is 'perhaps'; it must be one of allowed, refused" in refused(tmp_path)
    write_recipe(tmp_path, train={"leave-out": "x.json", "max-update": 1})
    assert "train.leave-out is set by the study; write skip: allowed" in refused(tmp_path)


def test_points_of_a_shared_axis_are_compared_by_themselves(tmp_path):
    recipe = recipe_with(
        tmp_path, axes={"most": {"train.max-target-positions": [100, 200]}},
        train={"max-update": 5},
    )  # fmt: skip
    plan = make_plan(recipe)
    for step in plan.steps:
        if step.kind == "binarize":
            write_data(tmp_path / step.outputs[0], {"train": (SHORT, lengths(1, size=150))})
    uses = uses_of(plan, tmp_path)
    assert {row: len(own["train"].long) for row, own in uses.items()} == {
        f"{row}-most={most}": most == 100
        for row in ("sequence", "relation_mask", "stack_pe")
        for most in (100, 200)
    }
    assert not conflicts(recipe, uses)


TOLD = '2026-11-25 23:40:20 | INFO | fairseq_plugins.pairs | pairs | {"split": "%s", "pairs": 80, "left_out": 0, "too_long": %d, "empty": 1, "limits": [1024, 1024], "crc32": %d}\n'


def test_what_a_training_tells_of_its_pairs_reaches_the_table(tmp_path):
    plan = plan_of(tmp_path)
    results = []
    for row, long in (("sequence", 8), ("stack_pe", 0)):
        log = tmp_path / "train.log"
        log.write_text(TOLD % ("train", 3, 7) + TOLD % ("train", long, long) + "pairs | {\n")
        used = read_log(log).used
        assert used["train"]["too_long"] == long
        results.append(result(row, used=json.dumps(used)))
    loud, empty = pair_notes(plan, tmp_path, ["sequence", "stack_pe"], results)
    assert loud.startswith(
        "UNEQUAL PAIRS: rows used different training pairs of 80: sequence without 8, stack_pe without 0"
    )
    assert empty == (
        "Of 80 training pairs some have no token on a side, and are used all the same: sequence 1, "
        "stack_pe 1"
    )
    assert not pair_notes(plan, tmp_path, ["sequence"], [result("sequence", used="{")])


def test_a_folder_that_fairseq_would_split_is_refused_at_once(tmp_path, capsys):
    assert run(tmp_path, out="at 10:30", status=2) == ""
    assert "at 10:30: fairseq takes ':' for the end of a path; choose a name" in said(capsys)
    assert not (tmp_path / "at 10:30").exists()


def test_a_file_of_methods_is_in_a_path_that_a_list_of_paths_can_hold(tmp_path, capsys):
    own = tmp_path / "at 10:30" / "own.py"
    own.parent.mkdir()
    own.write_text("")
    run(tmp_path, status=2, **{"import": ["at 10:30/own.py"]})
    assert "own.py holds ':'; choose a path without it" in said(capsys)


def test_validation_on_some_batches_is_on_other_pairs_in_each_row(tmp_path, binarized, capsys):
    binarized({}, {})
    flags = {"max-update": 5, "max-valid-steps": 3}
    assert not trained(run(tmp_path, status=2, train=flags))
    assert "sequence has train.max-valid-steps, which validates on the first batches" in said(
        capsys
    )


def test_subsets_of_a_recipe_are_left_to_its_trainings(tmp_path):
    recipe = recipe_with(tmp_path, train={"max-update": 5, "valid-subset": "valid,test"})
    assert bounds_of(recipe, recipe.methods[0])["valid"].subsets == ("valid", "test")


def test_batches_that_did_not_fit_into_memory_are_told(tmp_path):
    log = tmp_path / "train.log"
    lost = (
        "x | WARNING | fairseq.trainer | attempting to recover from OOM in forward/backward pass\n"
    )
    log.write_text(2 * lost)
    used = json.dumps(read_log(log).used)
    (note,) = pair_notes(plan_of(tmp_path), tmp_path, ["sequence"], [result("sequence", used=used)])
    assert "BATCHES LOST: out of memory, these rows saw fewer pairs" in note
    assert "sequence 2 in one run" in note


def test_a_training_that_left_out_other_pairs_than_its_data_say_is_told(tmp_path):
    plan = plan_of(tmp_path)
    for step in plan.steps:
        if step.kind == "binarize":
            write_data(tmp_path / step.outputs[0], LONG)
    told = {"pairs": 6, "left_out": 0, "empty": 0, "crc32": 1}
    for long, notes in ((2, 1), (3, 2)):
        used = json.dumps({"train": {**told, "too_long": long}})
        found = pair_notes(plan, tmp_path, ["sequence"], [result("sequence", used=used)])
        assert len(found) == notes
    assert found[1] == (
        "sequence left 3 of 6 training pairs out, but of the 6 in its data 2 are too long: the data or limits "
        "are not those of its training"
    )


def test_trials_of_a_search_use_the_same_pairs_too(tmp_path, binarized, capsys):
    binarized(LONG, {})
    search = {"over": {"train.lr": [0.1, 0.2]}}
    assert not trained(run(tmp_path, status=2, search=search))
    assert "rows would not use the same pairs: fairseq leaves out of 6 training pairs 2" in said(
        capsys
    )
    started = run(tmp_path, out="allowed", search=search, skip="allowed")
    assert len(trained(started)) == 8, "four trials, and two runs of each row"
    for listed in (tmp_path / "allowed").glob("**/left_out/*.json"):
        assert read_left_out(listed)["train"].tolist() == [1, 4]

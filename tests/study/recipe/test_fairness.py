"""Differences between methods that are not compared must be explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.study_helpers import recipe_content, recipe_with, result

from treesyntax.errors import OptionError
from treesyntax.made.digests import Digests
from treesyntax.study.recipe.backbone import SIZES
from treesyntax.study.recipe.fairness import (
    NO_EFFECT,
    NOT_IN_KEYS,
    check_fairness,
    find_differences,
    own_settings,
    repeated,
)
from treesyntax.study.report.table import make_table
from treesyntax.study.run.fairseq import RECORDS
from treesyntax.study.run.keys import Keys
from treesyntax.study.run.plan import make_plan


@pytest.mark.parametrize(
    ("override", "kind"),
    [
        ("train.lr=1", "train.lr (optimiser): sequence has 0.001, stack_pe has 1"),
        ("train.adam_eps=1", "train.adam-eps (optimiser): sequence has none, stack_pe has 1"),
        ("train.dropout=0", "train.dropout (optimiser): sequence has none, stack_pe has 0"),
        ("train.max-update=9", "train.max-update (budget)"),
        ("train.update-freq=2", "train.update-freq (budget)"),
        ("train.best-checkpoint-metric=x", "(choice of the checkpoint)"),
        ("train.train-subset=x", "train.train-subset (data)"),
        ("train.encoder-layers=9", "train.encoder-layers (model size)"),
        (
            "train.encoder-injection=relative_position+stack_pe",
            "train.encoder-injection (model below the method)",
        ),
        ("train.decoder_injection=rotary", "train.decoder-injection (model below the method)"),
        ("train.encoder-positions=none", "train.encoder-positions (model below the method)"),
        ("train.embedding-scaling=down", "train.embedding-scaling (model below the method)"),
        ("train.copy-source=true", "train.copy-source (model below the method)"),
        ("arch=tree_relative_depth_mini", "train.decoder-injection (model below the method)"),
        ("binarize.subword-vocab=9", "binarize.subword-vocab (tokenisation)"),
        ("generate.beam=1", "generate.beam (decoding): sequence has 5, stack_pe has 1"),
    ],
)
def test_differences_beside_the_method_are_refused(tmp_path: Path, override: str, kind: str):
    recipe = recipe_with(tmp_path, f"methods.stack_pe.{override}")
    with pytest.raises(OptionError) as error:
        check_fairness(recipe)
    message = str(error.value)
    assert message.startswith(f"{recipe.path}: methods differ in ")
    assert kind in message
    (difference,) = find_differences(recipe)
    assert f'differences: {{{difference.key}: "why"}}' in message
    why = f"differences.{difference.key}=it is needed"
    check_fairness(recipe_with(tmp_path, f"methods.stack_pe.{override}", why))


@pytest.mark.parametrize("rate", ["0.001", "1e-3", "'1e-3'", "'0.0010'"])
def test_numbers_are_compared_however_they_are_written(tmp_path: Path, rate: str):
    """YAML reads 1e-3 as a text, since it has no point."""
    recipe = recipe_with(
        tmp_path,
        f"methods.stack_pe.train.lr={rate}",
        "train.clip-norm=1.0",
        "methods.stack_pe.train.clip-norm=1",
    )
    assert find_differences(recipe) == []


def test_rows_that_are_the_same_but_for_their_names_are_told(tmp_path: Path):
    """Both were trained for hours, and the table said *not shown*."""
    assert repeated(recipe_with(tmp_path)) == ""
    recipe = recipe_with(tmp_path, "axes={rate: {train.lr: [1e-1, 0.1, 0.2]}}")
    said = repeated(recipe)
    assert "nothing but their names: sequence-rate=1e-1 and sequence-rate=0.1; " in said
    assert "rate=0.2" not in said


@pytest.mark.parametrize("flag", NO_EFFECT)
def test_rows_may_differ_in_flags_that_change_no_number(tmp_path: Path, flag: str):
    value = "'{run}/1'" if flag in RECORDS else "1"
    recipe = recipe_with(tmp_path, f"methods.stack_pe.train.{flag}={value}")
    check_fairness(recipe)
    keys = [
        Keys(make_plan(one), Digests(tmp_path), {}).of for one in (recipe_with(tmp_path), recipe)
    ]
    same = keys[0]["stack_pe-1/train"] == keys[1]["stack_pe-1/train"]
    assert same is (flag in NOT_IN_KEYS)


@pytest.mark.parametrize(
    ("arch", "own"),
    [("tree_stack_pe_small", "small"), ("tree_stack_pe", "base"), ("transformer", "transformer")],
)
def test_rows_have_one_size_unless_declared(tmp_path: Path, arch: str, own: str):
    override = f"methods.stack_pe.arch={arch}"
    with pytest.raises(OptionError, match=f"methods differ in size: stack_pe has {arch}, sequence"):
        check_fairness(recipe_with(tmp_path, override))
    recipe = recipe_with(tmp_path, override, "differences.train.arch=as published")
    check_fairness(recipe)
    notes = make_table(make_plan(recipe), [result("stack_pe")], {}).notes
    assert any(f"stack_pe: own settings (size {own}: as published)" in note for note in notes)


STRONG = ("train.encoder-injection=relative_position", "train.decoder-injection=relative_position")


def test_a_row_keeps_the_positions_of_its_baseline(tmp_path: Path):
    """As it spells them: a preset and its arguments are the method that they stand for."""
    kept = "methods.stack_pe.train.encoder-injection=relative_position(clip=16)+stack_pe(depth=9)"
    dropped = "methods.stack_pe.train.encoder-injection=stack_pe(depth=9)"
    mask = "methods.relation_mask.train.encoder-injection=relation_mask+relative_position"
    check_fairness(recipe_with(tmp_path, *STRONG, kept, mask))
    why = "differences.train.encoder-injection=places take the place of positions"
    for changed in (
        dropped,
        "methods.stack_pe.train.encoder-injection=relative_position_shaw+stack_pe",
    ):
        with pytest.raises(
            OptionError, match=r"methods differ in train.encoder-injection .*sequence has"
        ):
            check_fairness(recipe_with(tmp_path, *STRONG, changed, mask))
        check_fairness(recipe_with(tmp_path, *STRONG, changed, mask, why))
    recipe = recipe_with(tmp_path, *STRONG, dropped, mask, why)
    row = next(method for method in recipe.methods if method.name == "stack_pe")
    assert own_settings(recipe, row, find_differences(recipe)) == [
        "no --encoder-injection: places take the place of positions"
    ]


def test_the_sizes_are_those_of_the_plugins():
    pytest.importorskip("fairseq")
    from fairseq_plugins.archs import SIZES as PLUGIN_SIZES

    assert tuple(PLUGIN_SIZES) == SIZES


def test_batches_of_tokens_are_refused_where_rows_read_other_sequences(tmp_path: Path):
    with pytest.raises(OptionError, match="batches hold tokens .* relation_mask reads other sequ"):
        check_fairness(recipe_with(tmp_path, "train.max-tokens=1000"))
    for override in (
        "train.batch-size=32",
        "differences.train.max-tokens=as published",
        "binarize={source-format: for, source-view: words}",
    ):
        methods = {name: {"arch": "tree_sequence_mini"} for name in ("a", "b")}
        changes = {"methods": methods} if "words" in override else {}
        check_fairness(recipe_with(tmp_path, "train.max-tokens=1000", override, **changes))


def test_what_is_compared_may_differ(tmp_path: Path):
    check_fairness(recipe_with(
        tmp_path,
        "methods.stack_pe.train.encoder-injection=stack_pe",
        "methods.stack_pe.train.decoder_injection=stack_pe",
        "methods.stack_pe.binarize.source-control=random",
        "methods.stack_pe.binarize.subword-policy=copy",
        "methods.stack_pe.binarize.target-linearization=nary_dfs",
        "methods.stack_pe.generate.tree-constraints=tree",
        "methods.stack_pe.train.bf16=false",
    ))  # fmt: skip


def test_a_flag_that_all_methods_set_alike_is_fair(tmp_path: Path):
    overrides = [f"methods.{name}.train.lr=0.5" for name in recipe_content()["methods"]]
    check_fairness(recipe_with(tmp_path, *overrides))
    with pytest.raises(OptionError, match="train.lr"):
        check_fairness(recipe_with(tmp_path, *overrides[:2]))


def test_an_axis_for_all_is_fair_and_one_for_a_single_method_is_not(tmp_path: Path):
    check_fairness(recipe_with(tmp_path, axes={"lr": {"train.lr": [1, 2]}}))
    recipe = recipe_with(tmp_path, axes={"lr": {"methods.stack_pe.train.lr": [1, 2]}})
    with pytest.raises(OptionError, match=r"train\.lr \(optimiser\): sequence has 0\.001, stack_"):
        check_fairness(recipe)


@pytest.mark.parametrize(
    ("differences", "message"),
    [
        ({"lr": "x"}, "differences has the key 'lr'; write SECTION.FLAG, such as train.lr"),
        ({"train.lr": " "}, "differences.train.lr is empty; say why"),
        ({"train.lr": 3}, "differences.train.lr is 3; it must be text"),
        ([], "differences is []; it must be a mapping"),
    ],
)
def test_explanations_are_checked(tmp_path: Path, differences: object, message: str):
    with pytest.raises(OptionError) as error:
        recipe_with(tmp_path, differences=differences)
    assert message in str(error.value)


def test_explanations_stand_in_the_report(tmp_path: Path):
    recipe = recipe_with(
        tmp_path, "methods.stack_pe.train.lr=1", "differences.train.lr=its weights divide it"
    )
    assert make_table(make_plan(recipe), [result("stack_pe")], {}).notes[1:] == (
        "ᵃ stack_pe: own settings (--lr 1: its weights divide it), not equal to those of the other rows",
    )


def test_averaged_checkpoints_are_noted(tmp_path: Path):
    recipe = recipe_with(tmp_path, "average=2", "train.save-interval-updates=2")
    assert make_table(make_plan(recipe), [], {}).notes == (
        "Tested is the mean of the last 2 checkpoints of each run (Vaswani et al. 2017, section 6.1)",
    )


def test_noticeably_different_sizes_are_noted(tmp_path: Path):
    results = [
        replace(result("sequence"), parameters=1000),
        replace(result("relation_mask"), parameters=1010),
        replace(result("stack_pe"), parameters=950),
    ]
    notes = make_table(make_plan(recipe_with(tmp_path)), results, {}).notes
    assert notes[1:] == (  # the first says that the table is partial
        "Parameters differ by more than 1% from the baseline's, so size may explain part of the "
        "difference: stack_pe -5.0% (sequence)",
    )


def test_an_architecture_does_not_lose_its_method_to_a_flag_of_all_rows(tmp_path: Path):
    shared = ["train.encoder-injection=relative_position"]
    mask = "methods.relation_mask.train.encoder-injection=relative_position+relation_mask"
    stack = "methods.stack_pe.train.encoder-injection=relative_position+stack_pe"
    lost = r"stands for relation_mask, but train\.encoder-injection puts relative_position in its place; write"
    with pytest.raises(
        OptionError, match=f"{lost} relation_mask into it: relative_position.relation_mask"
    ):
        check_fairness(recipe_with(tmp_path, *shared, stack))
    check_fairness(recipe_with(tmp_path, *shared, stack, mask))
    # Also one that needs no tree: its row would be the baseline a second time.
    rows = {name: recipe_content()["methods"]["sequence"] for name in ("sequence", "rotary")}
    rows["rotary"] = {"arch": "tree_rotary_mini"}
    with pytest.raises(OptionError, match="stands for rotary, but .* write rotary into it"):
        check_fairness(recipe_with(tmp_path, *shared, methods=rows))

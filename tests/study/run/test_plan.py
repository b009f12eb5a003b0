"""The plan of a study: its steps, their commands and what each needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fake_programs import UPDATES
from support.study_helpers import recipe_content, recipe_with

from treesyntax.errors import OptionError
from treesyntax.study.recipe.recipe import flag_words, read_recipe
from treesyntax.study.run.plan import Plan, make_plan
from treesyntax.study.run.process import resolve


def test_flags_become_words():
    flags = {
        "beam": 5, "fp16": True, "off": False, "none": None, "lr": 1e-5,
        "betas": "(0.9, 0.98)", "files": ["a", "b"], "min": -1,
    }  # fmt: skip
    assert flag_words(flags) == [
        "--beam", "5", "--fp16", "--lr", "1e-05", "--betas", "(0.9, 0.98)", "--files", "a", "b",
        "--min=-1",
    ]  # fmt: skip


def steps_by_name(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {step.name: step.command for step in plan.steps}


def test_a_plan_has_every_step_once_after_what_it_needs(path: Path):
    plan = make_plan(read_recipe(path))
    assert [run.name for run in plan.runs] == [
        "sequence-1", "relation_mask-1", "stack_pe-1", "sequence-2", "relation_mask-2",
        "stack_pe-2",
    ]  # fmt: skip
    names = [step.name for step in plan.steps]
    assert len(names) == len(set(names))
    for index, step in enumerate(plan.steps):
        assert set(step.needs) <= set(names[:index])
    assert [name for name in names if name.startswith("binarize")] == [
        "binarize/sequence",
        "binarize/relation_mask+stack_pe",
    ]
    assert [name for name in names if name.endswith("/analyses")] == [
        f"{run.name}/analyses" for run in plan.runs
    ]
    assert names[-1] == "analyses"
    assert plan.steps[-1].needs == tuple(
        f"{method}-{seed}/analyses" for seed in (1, 2) for method in ("sequence", "relation_mask")
    )


def test_no_two_steps_have_one_name_where_a_label_has_a_plus(tmp_path: Path):
    """The data of two rows and those of one row had one name, so that each row trained on whichever came last."""
    method = recipe_content()["methods"]["sequence"]
    axes = {"x": {"methods.a.binarize.subword-vocab": {"1": 5, "1+b": 9}}}
    changes = {"binarize": {"subword-vocab": 5}, "differences": {"binarize.subword-vocab": "x"}}
    methods = {"a": method, "b": method}
    plan = make_plan(recipe_with(tmp_path, **changes, axes=axes, methods=methods))
    assert len({step.name for step in plan.steps}) == len(plan.steps)
    needs = {run.name: plan.steps_of(run)[0].needs for run in plan.runs if run.seed == 1}
    assert needs["a-x=1-1"] == needs["b-1"] == ("binarize/a-x=1+b",)
    assert needs["a-x=1+b-1"] == ("binarize/a-x=1+b+",)


def test_a_study_may_do_without_analyses(path: Path):
    whole, short = (
        make_plan(read_recipe(path, [f"analyses={value}"])) for value in ("true", "false")
    )
    left = [step for step in whole.steps if not step.name.endswith("analyses")]
    assert len(left) < len(whole.steps)
    assert [step.name for step in short.steps] == [step.name for step in left]


@pytest.mark.parametrize("value", ["0", "'no'", "[]"])
def test_analyses_are_wanted_or_not(path: Path, value: str):
    with pytest.raises(OptionError, match="analyses is .*; it must be true or false"):
        read_recipe(path, [f"analyses={value}"])


def test_text_borrows_trees_from_the_data_of_others(path: Path):
    steps = {step.name: step for step in make_plan(read_recipe(path)).steps}
    plain, own = steps["sequence-1/analyses"], steps["stack_pe-1/analyses"]
    assert plain.needs == ("sequence-1/facts", "binarize/relation_mask+stack_pe")
    assert plain.command[plain.command.index("--trees") + 1] == ("{out}/binarized/relation_mask")
    assert "--trees" not in own.command
    assert own.needs == ("stack_pe-1/facts",)


def test_figures_are_drawn_where_the_report_shows_them(path: Path):
    steps = steps_by_name(make_plan(read_recipe(path)))
    drawn = [name for name in steps if name.endswith("-1/analyses")]
    assert len(drawn) == len([name for name in steps if name.endswith("-2/analyses")]) > 1
    for name, command in steps.items():
        if name.endswith("/analyses"):
            assert ("--numbers-only" in command) == (name not in drawn)


def test_the_last_checkpoints_may_be_averaged(path: Path):
    overrides = ["average=4", "train.save-interval-updates=1"]
    commands = steps_by_name(make_plan(read_recipe(path, overrides)))
    train, mean, generate, facts, analyses = (
        commands[f"stack_pe-2/{kind}"]
        for kind in ("train", "average", "generate", "facts", "analyses")
    )
    assert train[train.index("--keep-interval-updates") + 1] == "4"
    assert mean == (
        "treesyntax", "average", "{out}/runs/stack_pe-2/checkpoints", "--last", "4",
        "--out", "{out}/runs/stack_pe-2/checkpoint_average.pt",
    )  # fmt: skip
    assert generate[generate.index("--path") + 1] == mean[-1]
    assert facts[3] == analyses[analyses.index("--tested") + 1] == mean[-1]
    for more in (overrides, []):
        recipe = read_recipe(path, [*more, "train.keep-interval-updates=9"])
        train = steps_by_name(make_plan(recipe))["stack_pe-2/train"]
        assert train.count("--keep-interval-updates") == 1
        assert train[train.index("--keep-interval-updates") + 1] == "9"


@pytest.mark.parametrize(
    ("value", "told"),
    [("-1", "average is -1"), ("true", "average is True"), ("best", "average is 'best'"),
     ("9", "average is 9, but 12 updates with a checkpoint every 3 have fewer; change")],
)  # fmt: skip
def test_what_cannot_be_averaged_is_told_before_training(path: Path, value: str, told: str):
    overrides = [f"average={value}", "train.save-interval-updates=3", "train.max-update=12"]
    with pytest.raises(OptionError, match=told):
        make_plan(read_recipe(path, overrides))


@pytest.mark.parametrize("updates", ["max-update='12'", "max_update=12", "save-interval-updates=0"])
def test_checkpoints_are_counted_however_a_flag_is_written(path: Path, updates: str):
    overrides = ["average=9", "train.save-interval-updates=3", f"train.{updates}"]
    with pytest.raises(OptionError, match="average is 9, but"):
        make_plan(read_recipe(path, overrides))


@pytest.mark.parametrize(
    ("average", "validated", "fits"), [(4, 3, True), (5, 3, False), (2, 1, False), (1, 1, True)]
)
def test_a_training_may_rest_before_there_are_checkpoints_to_average(
    path: Path, average: int, validated: int, fits: bool
):
    """It ends after 1 + 3 validations at the earliest, each after 3 updates as the checkpoints, or after one."""
    recipe = read_recipe(
        path,
        [f"average={average}", "train.patience=3", "train.max-update=90", "train.save-interval-updates=3",
         f"train.validate-interval-updates={validated}"],
    )  # fmt: skip
    if fits:
        assert make_plan(recipe)
    else:
        with pytest.raises(OptionError, match="patience 3 may end with .* raise train.patience"):
            make_plan(recipe)


def test_commands_of_a_run(path: Path):
    overrides = ["train.log-interval=7", "methods.stack_pe.train.lr=0.5"]
    commands = steps_by_name(make_plan(read_recipe(path, overrides)))
    train = commands["stack_pe-2/train"]
    assert train[:2] == ("fairseq-train", "{out}/binarized/relation_mask")
    text = " ".join(train)
    for part in (
        "--user-dir {plugins} --task tree_translation --source-lang for --target-lang lambda",
        "--arch tree_stack_pe_mini", "--seed 2", f"--max-update {UPDATES}", "--lr 0.5",
        "--log-interval 7", "--save-dir {out}/runs/stack_pe-2/checkpoints",
        "--no-epoch-checkpoints --keep-interval-updates 1 --log-format json",
        "--save-interval-updates 250",
    ):  # fmt: skip
        assert part in text
    assert "--cpu" not in train
    generate = " ".join(commands["stack_pe-2/generate"])
    assert "--path {out}/runs/stack_pe-2/checkpoints/checkpoint_best.pt" in generate
    assert "--beam 5" in generate
    score = commands["stack_pe-2/score"]
    metrics = ("--metric", "exact", "--metric", "tree:lambda", "--json")
    assert score[-7:] == (*metrics, "--lines", "{out}/runs/stack_pe-2/lines.json")
    binarize = commands["binarize/relation_mask+stack_pe"]
    assert binarize[-4:] == ("--workers", "1", "--source-format", "for")
    place = binarize.index("--valid")
    assert binarize[place + 1 : place + 3] == ("{out}/data/p/valid.src", "{out}/data/p/valid.tgt")


def test_symbolic_commands_are_resolved():
    words = resolve(("tool", "{out}/a", "{x}"), {"tool": ("py", "-m")}, {"{out}": "/o"})
    assert words == ["py", "-m", "/o/a", "{x}"]
    assert resolve(("other", "a"), {}, {}) == ["other", "a"]

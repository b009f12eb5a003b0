"""A study with trainer: huggingface: from a JSON-lines file and a model folder to a report with conclusions."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import ROOT, wait_until
from support.forked_programs import treesyntax

pytest.importorskip("transformers", reason="transformers is no part of the base")
pytest.importorskip("accelerate", reason="accelerate is no part of the base")

from treesyntax.errors import OptionError
from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.data_notes import without_trees
from treesyntax.study.results.results import read_results
from treesyntax.study.run.code import code_of
from treesyntax.study.run.early import check_early
from treesyntax.study.run.plan import make_plan


def content(pretrained: Path, **changes: Any) -> dict[str, Any]:
    return {
        "name": "furry",
        "title": "Furry or not",
        "trainer": "huggingface",
        "model": str(pretrained / "bert"),
        "task": "sequence-classification",
        "data": {
            **{split: str(pretrained / f"{split}.jsonl") for split in ("train", "valid", "test")},
            "format": "ptb",
        },
        "train": {
            "learning_rate": 0.02, "tree_learning_rate": 0.05, "num_train_epochs": 2,
            "per_device_train_batch_size": 8, "logging_steps": 2, "patience": 2, "use_cpu": True,
        },
        "score": ["accuracy", "macro_f1"],
        "seeds": [1, 2],
        "baseline": "plain",
        "methods": {
            "plain": {"about": "the model without trees"},
            "masks": {"injection": "tree_distance", "controls": ["random"]},
        },
        **changes,
    }  # fmt: skip


def write(folder: Path, recipe: dict[str, Any]) -> Path:
    file = folder / "furry.yaml"
    file.write_text(yaml.safe_dump(recipe, sort_keys=False), "utf-8")
    return file


@pytest.fixture(scope="module")
def study(pretrained: Path, once: Callable[..., Path], empty_figures: None) -> Path:
    def make(folder: Path) -> None:
        write(folder, content(pretrained))
        treesyntax(folder, "study", "furry.yaml", "--out", "out", "--jobs", "1")

    return once("study-furry", make) / "out"


def test_a_study_goes_from_lines_and_a_model_to_a_report(study: Path):
    results = read_results(study / "runs.jsonl")
    rows = ["plain", "masks", "masks/random"]
    assert sorted({(result.method, result.seed, result.metric) for result in results}) == sorted(
        (row, seed, metric)
        for row in rows
        for seed in (1, 2)
        for metric in ("accuracy", "macro_f1")
    )
    one = next(result for result in results if result.method == "masks")
    assert one.injection == "tree_distance"
    assert one.ended in ("rested", "cap", "last")
    assert one.updates == 6
    assert "train: transformers" in one.code
    assert "train: method tree_distance" in one.code
    assert "train: finetune" in one.code
    assert "train: fairseq_plugins" not in one.code
    report = (study / "report.html").read_text("utf-8")
    loss = f"{one.valid_loss:.3f}"
    for word in ("masks/random", "accuracy", "macro_f1", "Furry or not", "valid loss", loss):
        assert word in report
    with (study / "tables/table.csv").open(encoding="utf-8") as stream:
        assert {line["method"] for line in csv.DictReader(stream)} == {*rows}


def test_a_control_reads_other_trees_and_the_plain_row_none(study: Path):
    jobs = {
        name: json.loads((study / f"runs/{name}-1/checkpoints/finetune.json").read_text())
        for name in ("plain", "masks", "masks.random")
    }
    assert [job["control"] for job in jobs.values()] == ["", "", "random"]
    assert [job["injection"] for job in jobs.values()] == ["", "tree_distance", "tree_distance"]


def test_a_killed_study_goes_on_to_the_same_table(study: Path, pretrained: Path, tmp_path: Path):
    recipe, out = write(tmp_path, content(pretrained, seeds=[1])), tmp_path / "out"
    words = ["study", str(recipe), "--out", str(out), "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "treesyntax", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    saved = "runs/masks-1/checkpoints/checkpoint-*/trainer_state.json"
    wait_until(lambda: process.poll() is not None or [*out.glob(saved)], 600)
    process.kill()
    assert process.wait() < 0
    treesyntax(tmp_path, *words)
    tables = [
        sorted((one.method, one.seed, one.metric, one.value, one.valid_loss, one.updates, one.ended)
               for one in read_results(folder / "runs.jsonl") if one.seed == 1)
        for folder in (study, out)
    ]  # fmt: skip
    assert len(tables[0]) == 2 * 3
    assert tables[0] == tables[1]


def test_a_run_is_done_by_hand(pretrained: Path, tmp_path: Path):
    words = ("finetune", write(tmp_path, content(pretrained)), "--out", tmp_path / "out")
    said = treesyntax(tmp_path, *words, "--row", "masks", "--seed", "2")
    assert json.loads(said[said.index("[\n") :])[0]["metric"] == "accuracy"
    assert "--seed 9: the recipe has 1, 2" in treesyntax(tmp_path, *words, "--seed", "9", status=2)
    said = treesyntax(tmp_path, *words, "--row", "mask", status=2)
    assert "--row: no row is named 'mask'; did you mean 'masks'?" in said
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/finetune.json").write_text("{}")
    other = (*words[:3], tmp_path / "mine")
    said = treesyntax(tmp_path, *other, "--row", "masks", status=2)
    assert f"{tmp_path}/mine has another finetuning; choose another --out" in said
    flags = ["--max-steps", "4", "--bf16", "--set", "learning_rate=7"]
    said = treesyntax(tmp_path, *words, *flags, status=2)
    assert "--set, --max-steps, --bf16 would do nothing here; the recipe says all" in said


def test_a_report_counts_examples_without_a_tree(study: Path, tmp_path: Path):
    plan = make_plan(read_recipe(study / "recipe.yaml"))
    assert without_trees(plan, study) == []
    shutil.copytree(study / "data", tmp_path / "data")
    for split, count in (("train", 3), ("test", 1)):
        file = tmp_path / f"data/{split}.jsonl"
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for row in rows[:count]:
            row["text"] += ' "tree": '
            del row["tree"]
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        size = len(rows)
    (note,) = without_trees(plan, tmp_path)
    assert note.startswith("Examples without a tree: 3 of ")
    assert note.endswith(f"in train, 1 of {size} in test")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trainer": "hugingface"}, "no trainer is named 'hugingface'; did you mean 'huggingface'?"),
        ({"task": "tagging"}, "task is 'tagging'; it must be one of sequence-classification"),
        ({"model": None}, "lacks the key 'model'"),
        ({"average": 3}, "average does not belong to trainer: huggingface"),
        ({"data": {"train": "a", "valid": "b", "tset": "c"}}, "did you mean 'test'"),
        ({"methods": {"plain": {"arch": "tree_sequence"}}}, "has an unknown key 'arch'"),
        ({"methods": {"plain": {"controls": ["random"]}, "x": {}}}, "controls"),
        ({"data": {"train": "a", "test": "c"}}, "needs valid, or hold-out: N examples of train, not both"),
        ({"data": {"train": "a", "valid": "b", "test": "c", "hold-out": 3}}, "needs valid, or hold-out"),
        ({"data": {"train": "a", "test": "c", "hold-out": 3, "parser": "p"}}, "parser give valid in its place"),
        ({"data": {"train": "a", "valid": "b", "test": "c", "parser": "p"}}, "data lacks the key 'format' of its trees"),
        ({"data": {"train": "a", "valid": "b", "test": "c", "parser": "p", "trees": {"train": "t"}}},
         "has parser and trees; keep one of them"),
    ],
)  # fmt: skip
def test_recipes_are_checked(
    pretrained: Path, tmp_path: Path, changes: dict[str, Any], message: str
):
    recipe = {**content(pretrained), **changes}
    recipe = {key: value for key, value in recipe.items() if value is not None}
    with pytest.raises(OptionError) as caught:
        read_recipe(write(tmp_path, recipe))
    assert message in str(caught.value)


def test_keys_of_this_trainer_belong_to_it(pretrained: Path, tmp_path: Path):
    recipe = {**content(pretrained), "trainer": "fairseq"}
    with pytest.raises(OptionError, match="model belongs to trainer: huggingface"):
        read_recipe(write(tmp_path, recipe))


def test_rows_that_differ_in_training_are_refused(pretrained: Path, tmp_path: Path):
    recipe = content(pretrained)
    recipe["methods"]["masks"]["train"] = {"learning_rate": 0.1}
    with pytest.raises(OptionError, match="methods differ in train.learning"):
        check_fairness(read_recipe(write(tmp_path, recipe)))


@pytest.mark.usefixtures("quick_flags")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": {"learning_rat": 1}}, "train.learning_rat: no setting of training is named"),
        ({"model": "no/model"}, "model: no/model is no folder, and no model of that name is in the cache"),
        ({"model": "/no/model"}, "in the cache of Hugging Face; check the path"),
        ({"train": {"batch_size": 1}}, "is named 'batch_size'; did you mean 'per_device_train_batch_size'?"),
        ({"methods": {"plain": {}, "x": {"injection": "relation_mas"}}}, "methods.x.injection: unknown method 'relation_mas'"),
        ({"methods": {"plain": {}, "x": {"injection": "linearized"}}}, "methods.x.injection: linearized acts through the text"),
        ({"score": ["acuracy"]}, "score: no metric is named 'acuracy'"),
        ({"data": {"columns": {"label": "mood"}}}, "data: TRAIN:1: has no column 'mood' (label); it has text, tokens, tree, label"),
        ({"data": {"columns": {"trees": "tree"}}}, "no kind of column is named 'trees'; did you mean 'tree'?"),
        ({"data": {"format": None}}, "TRAIN:1: trees are text, but of no known format; give data.format"),
        ({"data": {"columns": {"text": "tree", "tree": "tags"}}}, "data: TRAIN:1: "),
        ({"task": "causal", "score": ["exact"], "data": {"columns": {"tree": "label"}}}, "data: TRAIN:1: "),
    ],
)  # fmt: skip
def test_what_would_fail_is_told_before_anything_is_made(
    pretrained: Path, tmp_path: Path, changes: dict[str, Any], message: str
):
    recipe = {**content(pretrained), **changes}
    data = {**content(pretrained)["data"], **changes.get("data", {})}
    recipe["data"] = {key: value for key, value in data.items() if value is not None}
    plan = make_plan(read_recipe(write(tmp_path, recipe)))
    with pytest.raises(OptionError) as caught:
        check_early(plan)
    assert message.replace("TRAIN", data["train"]) in str(caught.value)


@pytest.mark.usefixtures("quick_flags")
def test_data_without_trees_are_refused_where_a_method_needs_some(pretrained: Path, tmp_path: Path):
    recipe, file = content(pretrained), tmp_path / "train.jsonl"
    bare, treed = '{"text": "a", "label": 1}\n', '{"text": "a", "tree": "(S a)", "label": 1}\n'
    recipe["data"]["train"] = str(file)
    file.write_text(bare * 3)
    with pytest.raises(OptionError, match=r"train.jsonl: has no tree in any example, but the met"):
        check_early(make_plan(read_recipe(write(tmp_path, recipe))))
    file.write_text(bare + treed)
    check_early(make_plan(read_recipe(write(tmp_path, recipe))))
    file.write_text(bare * 4)  # a sound answer is of the file as it was
    with pytest.raises(OptionError, match="has no tree in any example"):
        check_early(make_plan(read_recipe(write(tmp_path, recipe))))
    del recipe["methods"]["masks"]
    check_early(make_plan(read_recipe(write(tmp_path, recipe))))


@pytest.mark.usefixtures("quick_flags")
def test_the_recipe_of_the_page_is_sound(pretrained: Path, tmp_path: Path):
    page = (ROOT / "docs/pretrained.md").read_text("utf-8")
    recipe = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.S)[0])
    recipe |= {"model": str(pretrained / "bert")}
    for split in ("train", "valid", "test"):
        recipe["data"][split] = str(pretrained / recipe["data"][split])
    plan = make_plan(read_recipe(write(tmp_path, recipe)))
    check_early(plan)
    assert [method.name for method in plan.recipe.methods] == [
        "plain", "distance", "distance/random", "depth", "depth/random",
    ]  # fmt: skip


def test_a_parser_makes_the_trees(pretrained: Path, tmp_path: Path):
    recipe = content(pretrained)
    recipe["data"] |= {"format": "conllu", "parser": "--parser stanza-dep --model models/en"}
    steps = make_plan(read_recipe(write(tmp_path, recipe))).prepare
    assert [step.command[1] for step in steps] == [
        "finetune",
        "parse",
        "parse",
        "parse",
        "finetune",
    ]
    assert steps[1].command[2:4] == ("{out}/data/train.text", "{out}/data/train.parsed")
    assert "{out}/data/test.parsed" in steps[-1].command


def test_data_are_looked_at_without_torch(pretrained: Path):
    """So a plan after new data takes no longer than one before."""
    files = [f"--{split}={pretrained / split}.jsonl" for split in ("train", "valid", "test")]
    words = ["finetune", "--write-data=x", "--task=causal", "--injection=tree_distance", *files]
    asked = json.dumps([[*words, "--tree-format=ptb"], [*words, "--tree-format=conllu"]])
    code = (
        "import json, sys; from treesyntax.finetune.checking import check; "
        "print(json.dumps([*map(check, json.loads(sys.argv[1]))])); "
        "assert not {'torch', 'transformers'} & {*sys.modules}"
    )
    sound, fault = json.loads(subprocess.check_output([sys.executable, "-c", code, asked]))
    assert sound is None
    assert fault[0] == "data"
    assert fault[1].startswith(f"{pretrained / 'train'}.jsonl:1: ")


def test_the_code_of_a_training_is_that_of_its_trainer():
    ours, theirs = code_of("train", ["finetune"]), code_of("train", ["fairseq-train"])
    assert "train: finetune" in ours
    assert "train: finetune" not in theirs
    assert "train: fairseq_plugins" in theirs
    assert "train: fairseq_plugins" not in ours
    assert not [part for part in ours if "study" in part]

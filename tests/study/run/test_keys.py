"""What a step's key depends on, and what it does not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.study_helpers import recipe_content, write_recipe

from treesyntax.made.digests import Digests, files_in
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.keys import Keys
from treesyntax.study.run.plan import make_plan

MAKERS = ("generate", "data make")
"""The old name and the new one."""


def keys(path: Path, *overrides: str) -> Keys:
    return Keys(make_plan(read_recipe(path, overrides)), Digests(path.parent / "none"), {})


def content_in_p() -> dict:
    """A recipe whose data lies in a folder of what its prepare commands make."""
    content = recipe_content()
    for side, suffix in (("source", "en"), ("target", "ja")):
        names = {split: f"{{data}}/p/{split}.{suffix}" for split in ("train", "valid", "test")}
        content["data"][side] |= names
    return content


def changed(before: Keys, after: Keys) -> set[str]:
    """The steps that both have and that are others."""
    return {name for name in before.of if name in after.of and before.of[name] != after.of[name]}


def of_runs(found: Keys, *kinds: str) -> set[str]:
    return {name for name in found.of if name.rpartition("/")[2] in kinds}


def test_what_determines_no_run_changes_no_key(path: Path):
    first = keys(path)
    more = '{"new": {"arch": "tree_up_down_mini", "binarize": {"source-format": "for"}}}'
    for override in ("title=x", "question=x", "name=x", "seeds=[3, 2, 1]", "baseline=stack_pe",
                     f"methods={more}", "train.log-interval=7",
                     "train.num-workers=3", "train.tensorboard-logdir='{run}/tensorboard'",
                     "train.wandb-project=x", "binarize.workers=2"):  # fmt: skip
        names = {name for name in changed(first, keys(path, override)) if name != "analyses"}
        if override.startswith("seeds"):  # the report has the figures of the first one's runs
            names -= of_runs(first, "analyses")
        assert not names, override
    again = recipe_content()
    for section in ("train", "data"):
        again[section] = dict(reversed(again[section].items()))
    first_row, *others = again["methods"].items()  # whose data a row without any has
    again["methods"] = dict([first_row, *reversed(others)])
    assert changed(first, keys(write_recipe(path.parent, **again))) <= {"analyses"}


def test_a_key_follows_what_the_step_reads(path: Path):
    first = keys(path)
    evaluated = of_runs(first, "generate", "hypotheses", "score")
    trained = evaluated | of_runs(first, "train", "facts") | {
        name for name in first.of if name.endswith("-1/analyses") or name.endswith("-2/analyses")
    }  # fmt: skip
    assert changed(first, keys(path, "score=[exact]")) == of_runs(first, "score") | {"analyses"}
    assert changed(first, keys(path, "generate.beam=2")) == evaluated | {"analyses"}
    assert changed(first, keys(path, "train.lr=0.5")) == trained | {"analyses"}
    one = changed(first, keys(path, "methods.stack_pe.train.lr=0.5"))
    assert one - {"analyses"} == {name for name in trained if name.startswith("stack_pe-")}
    vocabulary = changed(first, keys(path, "binarize.subword-vocab=9"))
    assert vocabulary == set(first.of) - {"prepare-1"}
    assert changed(first, keys(path, "size=9")) == set(first.of)


def test_a_key_follows_the_data_of_a_row_at_a_point_of_axes(path: Path):
    """Names of such rows have an equals sign, where their folders were cut off: no step read what another had made."""
    axes = {"control": {"binarize.source-control": ["given", "random"]}}
    found = keys(write_recipe(path.parent, **recipe_content() | {"axes": axes}))
    for kind, read in (("train", "binarize"), ("generate", "train"), ("score", "hypotheses")):
        step = f"stack_pe-control=random-1/{kind}"
        assert any(read in name for name in found.reads[step])
        assert found.of[step] != found.of[f"stack_pe-control=given-1/{kind}"]
    vocabulary = changed(found, keys(path, "binarize.subword-vocab=9"))
    assert vocabulary == set(found.of) - {"prepare-1"}


def test_a_renamed_row_has_the_same_keys(path: Path):
    content = recipe_content()
    content["methods"] = {
        ("paths" if name == "stack_pe" else name): method
        for name, method in content["methods"].items()
    }
    first, second = keys(path), keys(write_recipe(path.parent, **content))
    for kind in ("train", "generate", "hypotheses", "score", "facts"):
        assert first.of[f"stack_pe-2/{kind}"] == second.of[f"paths-2/{kind}"]
    assert first.of["binarize/relation_mask+stack_pe"] == second.of["binarize/relation_mask+paths"]


def test_files_and_folders_count_by_content_not_by_name(tmp_path: Path):
    content = recipe_content()
    content["vars"] = {"root": str(tmp_path / "one")}
    content["prepare"] = ["treesyntax parse {root}/a.txt {data}/p/train.src --model {root}/model"]
    content["binarize"] = {"source-subword-model": "{root}/spm.model"}
    content["data"]["source"]["test"] = "{root}/test.src"
    path = write_recipe(tmp_path, **content)
    for root in ("one", "two"):
        (tmp_path / root / "model").mkdir(parents=True)
        for name in ("a.txt", "model/weights", "model/config", "spm.model", "test.src"):
            (tmp_path / root / name).write_text(name)
    first = keys(path)
    assert set(first.inputs["prepare-1"]) == {f"{tmp_path}/one/a.txt", f"{tmp_path}/one/model"}
    assert keys(path, f"root={tmp_path}/two").of == first.of
    parsed = {"prepare-1", *first.of}
    binarized = set(first.of) - {"prepare-1"}
    for name, expected in (("a.txt", parsed), ("model/weights", parsed), ("model/more", parsed),
                           ("spm.model", binarized), ("test.src", binarized)):  # fmt: skip
        file = tmp_path / "one" / name
        before = file.read_bytes() if file.exists() else None
        file.write_text("other")
        assert changed(first, keys(path)) == expected, name
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)
    assert keys(path).of == first.of


@pytest.mark.parametrize(
    ("setting", "kind"),
    [("binarize.source-subwords=codes", "binarize"), ("binarize.source-text=[a, b, codes]", "binarize"),
     ("binarize.target-dict=codes", "binarize"), ("train.encoder-embed-path=codes", "train"),
     ("categories=codes", "score")],
)  # fmt: skip
def test_a_file_named_by_a_bare_word_counts_after_a_flag_of_files(
    tmp_path: Path, monkeypatch, setting: str, kind: str
):
    monkeypatch.chdir(tmp_path)
    for name in ("codes", "test"):  # the second is what --gen-subset names
        Path(name).write_text("old\n")
    path = write_recipe(tmp_path, score=["exact@gen"], categories="x/y")
    first = keys(path, setting)
    steps = [step for step in first.plan.steps if first.inputs[step.name] == ["codes"]]
    assert {step.kind for step in steps} == {kind}
    assert not any("test" in inputs for inputs in first.inputs.values())
    Path("codes").write_text("new\n")
    assert {step.name for step in steps} <= changed(first, keys(path, setting))
    Path("codes").rename("others")
    assert (
        keys(path, setting.replace("codes", "others")).of
        == keys(path, setting.replace("codes", "./others")).of
    )


@pytest.mark.parametrize(
    "command",
    ["bash -c 'sort <raw/a.txt >{data}/x'", "bash -c 'head raw/a.txt|tail > {data}/x'",
     "bash -c 'cat raw/*.txt > {data}/x'", "bash -c 'for s in a b; do cat raw/$s.txt >> {data}/x; done'",
     "bash -c 'cat $RAW/a.txt > {data}/x'", "bash -c 'cat \"$RAW/a.txt\" > {data}/x'",
     "python make.py in=raw/a.txt {data}/x",
     'bash -c "cat \'raw/a.txt\' > {data}/x"'],
)  # fmt: skip
def test_a_file_in_the_text_of_a_command_is_an_input(tmp_path: Path, monkeypatch, command: str):
    """It stood between signs of the shell, and nobody noticed a change."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAW", "raw")
    (tmp_path / "raw").mkdir()
    path = write_recipe(tmp_path, prepare=[command])
    before = keys(path)
    (tmp_path / "raw/a.txt").write_text("a")
    (tmp_path / "log").write_text("what a command writes is no input")
    noted = command.replace("{data}/x", "{data}/x 2>log")
    found = keys(write_recipe(tmp_path, prepare=[noted]))
    assert found.inputs["prepare-1"] == ["raw/a.txt"]
    of_a = keys(write_recipe(tmp_path, prepare=[command]))
    digest = of_a.digest("raw/a.txt")
    assert changed(before, of_a) >= {"prepare-1"}
    (tmp_path / "raw/a.txt").write_text("b")
    assert changed(of_a, keys(path)) >= {"prepare-1"}
    (tmp_path / "raw/a.txt").unlink()
    gone = Keys(of_a.plan, Digests(tmp_path / "none"), {"raw/a.txt": digest})
    assert gone.of == of_a.of
    (tmp_path / "raw/notes.txt").write_text("later")
    later = Keys(of_a.plan, Digests(tmp_path / "none"), {"raw/a.txt": digest})
    assert (later.of == of_a.of) == ("*" not in command)  # which reads it


def test_the_offsets_beside_trees_and_the_model_to_start_from_are_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    content = recipe_content()
    content["data"]["source"] |= {"train": "train.ptb.gz", "valid": "valid.ptb"}
    content["train"]["finetune-from-model"] = "start"
    for name in ("train.ptb.gz", "valid.ptb"):
        (tmp_path / name).write_text("(S a)")
    before = keys(path := write_recipe(tmp_path, **content))
    for name in ("train.ptb.offsets", "valid.ptb.offsets", "start"):
        (tmp_path / name).write_text("0:1")
    found = keys(path)
    assert found.inputs["binarize/sequence"][-2:] == ["train.ptb.offsets", "valid.ptb.offsets"]
    assert "start" in found.inputs["sequence-1/train"]
    assert changed(before, found) >= {"binarize/sequence", "sequence-1/train"}
    (tmp_path / "start").write_text("another model")
    again = changed(found, keys(path))
    assert "sequence-1/train" in again
    assert "binarize/sequence" not in again


@pytest.mark.parametrize("maker", MAKERS)
def test_prepare_commands_depend_on_those_whose_files_they_read(tmp_path: Path, maker: str):
    prepare = [
        f"treesyntax {maker} pairs --out {{data}}/text --valid a b",
        f"treesyntax {maker} pairs --out {{data}}/train --pairs 9",
        "treesyntax parse {data}/text/valid.en {data}/text/valid.trees --model m",
        "treesyntax parse {data}/text/valid.en {data}/text/valid.other --model n",
    ]
    path = write_recipe(tmp_path, prepare=prepare)
    first = keys(path)
    assert first.reads["prepare-3"] == first.reads["prepare-4"] == {"prepare-1"}
    assert first.reads["prepare-2"] == set()
    swapped = keys(write_recipe(tmp_path, prepare=[*prepare[:2], prepare[3], prepare[2]]))
    assert swapped.of["prepare-3"] == first.of["prepare-4"]
    # What names no file under {data} may make all of it.
    scripts = keys(write_recipe(tmp_path, prepare=["bash make.sh", *prepare[:3]]))
    assert scripts.reads["prepare-2"] == {"prepare-1"}
    piped = ["bash -c 'cat {data}/text/valid.en > {data}/all'"]
    found = keys(write_recipe(tmp_path, prepare=[prepare[0], *piped]))
    assert found.reads["prepare-2"] == {"prepare-1"}


@pytest.mark.parametrize(
    "write",
    ["bash -c 'for s in train valid test; do tr A B < raw/$s > {data}/p/$s.en; done'",
     "bash -c 'for s in train valid test; do tr A B < raw/$s > {data}/p/\"$s\".en; done'",
     "bash -c 'for p in p q; do tr A B < raw/train > {data}/$p/train.en; done'",
     "bash -c 'cp raw/* {data}/p/; sed -i s/A/B/ {data}/p/*.en'", "bash -c 'tr A B < raw | tee {data}/p/{train,test}.en'",
     "cp A B raw/train.en {data}/p/", "cp A B raw/train.en {data}//p", "cp A B raw/train.en {data}/./p/.",
     "cp A B raw/train.en {data}/q/../p", "clean raw/train A B {data}/p/train", "split -A B raw {data}/p/tra"],
)  # fmt: skip
def test_a_command_that_leaves_names_to_others_made_what_it_may_have_made(
    tmp_path: Path, write: str
):
    """Beside one that names their folder, an edit of it had trained nothing again."""
    content = content_in_p()
    prepare = ["mkdir -p {data}/p {data}/q", write]
    before = keys(write_recipe(tmp_path, **content | {"prepare": prepare}))
    assert before.reads["binarize/sequence"] >= {"prepare-1", "prepare-2"}
    prepare = [prepare[0], write.replace("A", "C")]
    after = keys(write_recipe(tmp_path, **content | {"prepare": prepare}))
    assert changed(before, after) >= {"prepare-2", "binarize/sequence", "sequence-1/train"}
    row = before.plan.runs[0].method
    assert before.data(row)["data.source.train"] != after.data(row)["data.source.train"]


@pytest.mark.parametrize(
    "later",
    ["bash -c 'for s in train valid; do tr A B < {data}/p/$s.en > {data}/p/$s.low; done'",
     "bash -c 'for s in train valid; do tr A B < \"{data}/p/$s.en\" > {data}/q/$s.en; done'",
     "tr A B {data}/p/*.low", "treesyntax parse {data}/p/train.en {data}/p/train.en.ptb"],
)  # fmt: skip
def test_a_study_grows_by_commands_that_make_other_files(tmp_path: Path, later: str):
    content = content_in_p()
    prepare = ["mkdir -p {data}/p", "bash -c 'for s in train test; do cp $s {data}/p/$s.en; done'"]
    before = keys(write_recipe(tmp_path, **content | {"prepare": prepare}))
    after = keys(write_recipe(tmp_path, **content | {"prepare": [*prepare, later]}))
    assert changed(before, after) == {"analyses"}  # of the whole folder


@pytest.mark.parametrize(
    "read", ["{data}/p/$s.en", "{data}/p/*.en", "{data}//p", "{data}/p/train", "{data}/p/"]
)
def test_a_command_that_reads_what_it_does_not_name_whole_follows_its_makers(
    tmp_path: Path, read: str
):
    first = ["mkdir -p {data}/p", "cp A {data}/p/train.en"]
    second = ["mkdir -p {data}/p", "cp B {data}/p/train.en"]
    last = f"bash -c 'cat < {read} > {{data}}/x'"
    before, after = (
        keys(write_recipe(tmp_path, prepare=[*prepare, last])) for prepare in (first, second)
    )
    assert "prepare-3" in changed(before, after)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_folder_named_as_a_data_set_is_no_input_of_it(tmp_path: Path, monkeypatch, maker: str):
    """Such as the folder of the study itself, beside which the recipe is run."""
    monkeypatch.chdir(tmp_path)
    prepare = [
        "treesyntax data get slog {data}/slog --from files",
        f"treesyntax {maker} for2lam --out {{data}}/p",
    ]
    path = write_recipe(tmp_path, prepare=prepare)
    first = keys(path)
    for name in ("slog", "data", "get", "make", "for2lam", "generate"):
        (tmp_path / name).mkdir()
    assert keys(path).of == first.of
    assert keys(path).inputs["prepare-1"] == keys(path).inputs["prepare-2"] == []
    (tmp_path / "files").mkdir()
    assert keys(path).inputs["prepare-1"] == ["files"]


def test_digests_notice_every_change_and_trust_no_damaged_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file, study = tmp_path / "file", tmp_path / "study"
    file.write_text("aaaa")
    study.mkdir()
    digests = Digests(study)
    first = digests.of(file)
    file.write_text("bbbb")  # the same size, within one tick of the clock
    second = digests.of(file)
    assert first != second
    os.utime(file, (1, 1))  # which no change of the content can hide behind
    assert digests.of(file) == second
    assert str(file) not in digests.known
    monkeypatch.setattr("treesyntax.made.digests.FRESH", -1)
    assert digests.of(file) == second
    digests.save()
    assert Digests(study).known[str(file)][-1] == second
    text = (study / "digests.json").read_text()
    (study / "digests.json").write_text(text.replace(second, first))
    assert Digests(study).of(file) == second


def test_a_folder_is_its_files_but_for_hidden_ones_and_studies(tmp_path: Path):
    for name in ("b", "a/c", ".hidden", ".git/x", "runs/demo/study.json", "runs/demo/data/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert files_in(tmp_path) == ["a/c", "b"]


@pytest.mark.parametrize("name", ["test", "en", "text"])
def test_words_of_the_study_are_no_files(path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(path.parent)
    (path.parent / name).mkdir()
    assert not any(keys(path).inputs.values())


def test_a_pretrained_model_and_files_of_its_settings_are_known_by_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The folder of a model may be named by a bare word; what a setting names by a bare word, or a folder, is no input."""
    monkeypatch.chdir(tmp_path)
    recipe = {
        "name": "t", "title": "T", "trainer": "huggingface", "model": "bert", "seeds": [1], "score": ["accuracy"],
        "task": "sequence-classification", "baseline": "plain", "methods": {"plain": {}}, "train": {"max_steps": 3, "accelerator_config": "acc.json", "optim": "sgd", "logging_dir": "./log"},
        "data": {"train": "a.jsonl", "valid": "a.jsonl", "test": "a.jsonl"},
    }  # fmt: skip
    (tmp_path / "a.jsonl").write_text('{"text": "a b", "label": "x"}\n')
    (tmp_path / "bert").mkdir()
    path = tmp_path / "recipe.yaml"
    path.write_text(json.dumps(recipe))
    (tmp_path / "bert/model.safetensors").write_text("a")
    first = keys(path)
    (tmp_path / "bert/model.safetensors").write_text("other weights")
    assert "plain-1/train" in changed(first, keys(path))
    (tmp_path / "log").mkdir()
    for name, counts in (("acc.json", True), ("sgd", False), ("log/written", False)):
        before = keys(path)
        (tmp_path / name).write_text("{}")
        assert ("plain-1/train" in changed(before, now := keys(path))) is counts
        (tmp_path / name).write_text('{"split_batches": true}')
        assert ("plain-1/train" in changed(now, keys(path))) is counts

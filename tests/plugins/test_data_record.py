"""A checkpoint and data that do not fit each other, in training, generation and translation."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from plugins.test_plugin import PLUGINS, fairseq, train
from support.translate_helpers import binarize, lines_of, save_model, write_texts

from treesyntax.__main__ import main
from treesyntax.data.manifest import SideData, read_data
from treesyntax.errors import InputError, OptionError
from treesyntax.files import sha256_of
from treesyntax.model.checkpoint import load_checkpoint, peek

from fairseq_plugins import resume  # isort: skip  (registered by translate_helpers)
from fairseq_plugins.task import TreeTranslationConfig, TreeTranslationTask  # isort: skip

ARCH = ("--arch", "tree_relation_mask_tiny")
LABELLED = (*ARCH, "--encoder-injection", "relation_mask+labelled_relation")
QUICK = (*ARCH, "--max-update", "2", "--disable-validation")
LINEARIZATION = (
    "the model was trained on sources in the linearization words, but those of {} are in preorder"
)
MISFITS = {
    "view": (LINEARIZATION, "binarize them with --source-linearization words"),
    "control": (
        "the model was trained on sources with given trees, but those of {} have random ones",
        "binarize them with --source-control given",
    ),
    "format": (
        "the model was trained on sources in the format conllu, but those of {} are in ptb",
        "binarize them with --source-format conllu",
    ),
    "policy": (
        "trained on sources with the subword policy copy, but those of {} have first",
        "binarize them with --subword-policy copy",
    ),
    "units": (
        "trained on sources with the subword units token, but those of {} have line",
        "binarize them with --subword-units token",
    ),
    "subwords": (
        "the model was trained on targets in other subwords than those of {}",
        "or binarize with its subwords (--target-subword-model)",
    ),
    "source dictionary": (
        "the source dictionary of {} is not the one that the model was trained with",
        "or binarize with its dictionary (--source-dict)",
    ),
    "target dictionary": (
        "the target dictionary of {} is not the one that the model was trained with",
        "or binarize with its dictionary (--target-dict)",
    ),
    "labels": (
        "the dictionary of source labels of {} is not the one that the model was trained with",
        "or binarize with its labels (--source-label-dict)",
    ),
}
WHEN_USED = [kind for kind in MISFITS if kind not in ("control", "format")]
STRICT = ("view", "source dictionary", "target dictionary", "labels")
FILES = {
    "source dictionary": "dict.src.txt",
    "target dictionary": "dict.tgt.txt",
    "labels": "labels.src.txt",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a model of it, and for each way not to fit other data of the same sizes."""
    folder = tmp_path_factory.mktemp("record")
    write_texts(folder)
    flags = ("--source-format", "conllu", "--subword-policy", "copy", "--subword-vocab", "40",
             "--source-labels", "--source-label-threshold", "0")  # fmt: skip
    data = binarize(folder, "data", "conllu", "target", *flags)
    edit(data, "units", "token", None)  # as if it had been cut by places
    save_model(data, folder / "model.pt", *LABELLED)
    for kind in MISFITS:
        shutil.copytree(data, folder / kind)
    edit(folder / "view", "view", "preorder", "words")
    edit(folder / "control", "control", "random", "given")
    edit(folder / "format", "format", "ptb", "conllu")
    edit(folder / "policy", "subword_policy", "first", "copy")
    edit(folder / "units", "units", "line", "token")
    model = folder / "subwords" / "subwords.tgt.model"
    shutil.copy(data / "subwords.src.model", model)
    for kind, name in FILES.items():
        path = folder / kind / name
        first, second, *rest = lines_of(path)
        write_dictionary(path, [second, first, *rest])
    return folder


def write_dictionary(path: Path, lines: list[str]) -> None:
    """As if binarize had written this dictionary."""
    path.write_text("".join(f"{line}\n" for line in lines))
    manifest = json.loads((path.parent / "binarize.json").read_text())
    manifest["dictionaries"][path.name] = sha256_of(path)
    (path.parent / "binarize.json").write_text(json.dumps(manifest))


def edit(data: Path, field: str, value: str, before: str | None) -> None:
    manifest = json.loads((data / "binarize.json").read_text())
    field = "subword_units" if field == "units" else field
    assert manifest["sides"]["source"][field] == before
    manifest["sides"]["source"][field] = value
    (data / "binarize.json").write_text(json.dumps(manifest))


def task_of(data: Path | str) -> TreeTranslationTask:
    return TreeTranslationTask.setup_task(TreeTranslationConfig(data=str(data)))


def test_other_trees_may_be_shown_to_a_trained_model(folder):
    state = load_checkpoint(folder / "model.pt")["task_state"]
    task_of(folder / "control").load_state_dict(state)


def test_a_trained_model_on_trees_of_another_format_is_warned_of(folder, caplog):
    state = load_checkpoint(folder / "model.pt")["task_state"]
    task_of(folder / "format").load_state_dict(state)
    assert MISFITS["format"][0].format(folder / "format") in caplog.text
    caplog.clear()
    task_of(folder / "data").load_state_dict(state)
    assert not caplog.text


def test_penn_treebanks_on_one_line_and_on_several_are_of_one_format(folder, tmp_path):
    records = []
    for name in ("ptb", "mrg"):
        data = shutil.copytree(folder / "data", tmp_path / name)
        edit(data, "format", name, "conllu")
        records.append(task_of(data).records)
    assert records[0] == records[1]


def test_labels_are_recorded_only_where_the_model_reads_them(folder, tmp_path):
    save_model(folder / "data", tmp_path / "model.pt", *ARCH)
    state = load_checkpoint(tmp_path / "model.pt")["task_state"]
    assert "labels" not in state["data"]["source"]
    task_of(folder / "labels").load_state_dict(state)


@pytest.mark.parametrize("kind", MISFITS)
def test_data_folders_of_one_training_must_fit_each_other(folder, kind):
    first, other = folder / "data", folder / kind
    assert task_of(f"{first}:{first}")
    cause = MISFITS[kind][0].format(other)
    if not cause.startswith("the model"):
        cause = cause.replace("that the model was trained with", f"of {first}")
    cause = cause.replace("the model was trained on", f"{first} has").removeprefix("trained on ")
    with pytest.raises(OptionError) as caught:
        task_of(f"{first}:{other}")
    assert cause in str(caught.value)
    assert str(caught.value).endswith("; binarize the folders of a training alike")


@pytest.mark.parametrize("kind", WHEN_USED)
def test_generation_and_validation_with_other_data_are_refused(folder, kind):
    state = load_checkpoint(folder / "model.pt")["task_state"]
    cause, remedy = MISFITS[kind]
    with pytest.raises(OptionError) as caught:
        task_of(folder / kind).load_state_dict(state)
    assert cause.format(folder / kind) in str(caught.value)
    assert str(caught.value).endswith(remedy)
    assert "\n" not in str(caught.value)


# Units need raw text, which is refused without a parser before all else.
@pytest.mark.parametrize("kind", [kind for kind in WHEN_USED if kind != "units"])
def test_translation_with_other_data_is_refused(folder, kind, capsys):
    words = ["translate", str(folder / kind), "--path", str(folder / "model.pt"), "--cpu"]
    assert main([*words, "--parsed", "--input", str(folder / "all.conllu")]) == 2
    said = capsys.readouterr().err
    assert f"{folder / 'model.pt'}: " in said
    assert MISFITS[kind][0].format(folder / kind) in said
    assert len(said.splitlines()) == 1


@pytest.fixture
def loaded() -> list[str]:
    """What fairseq's own loading is then asked for."""
    return []


def trainer_of(data: Path, *reset: str) -> SimpleNamespace:
    flags = dict.fromkeys(resume.RESETS, False) | dict.fromkeys(reset, True)
    task = task_of(data)
    cfg = SimpleNamespace(checkpoint=SimpleNamespace(no_save=True, **flags), task=task.cfg)
    return SimpleNamespace(task=task, cfg=cfg, get_model=lambda: torch.nn.Module())


def go_on(loaded: list[str], data: Path, checkpoint: Path, *reset: str) -> None:
    load = resume.resuming_on_data_that_fit(lambda trainer, name, *rest: loaded.append(name))
    load(trainer_of(data, *reset), str(checkpoint), "reset_optimizer" in reset)


@pytest.mark.parametrize("kind", MISFITS)
def test_a_training_does_not_go_on_with_other_data(folder, kind, loaded):
    go_on(loaded, folder / "data", folder / "model.pt")
    go_on(loaded, folder / "data", folder / "gone.pt")
    with pytest.raises(InputError) as caught:
        go_on(loaded, folder / kind, folder / "model.pt")
    assert loaded == [str(folder / "model.pt"), str(folder / "gone.pt")]
    assert str(caught.value).startswith(f"{folder / 'model.pt'}: ")
    assert MISFITS[kind][0].format(folder / kind) in str(caught.value)
    remedy = "; go on with the data of its training, or train anew in another --save-dir"
    assert str(caught.value).endswith(remedy)


@pytest.mark.parametrize("reset", ["reset_optimizer", "reset_meters"])
def test_parameters_of_another_model_are_named_in_one_line(folder, reset):
    """In place of fairseq's traceback, which says that architectures should match."""

    def load(trainer, name, *rest):
        try:
            torch.nn.Linear(2, 2).load_state_dict(
                {"weight": torch.ones(2, 2), "more": torch.ones(1)}
            )
        except Exception:
            raise Exception(f"Cannot load model parameters from checkpoint {name}; …")  # noqa: B904

    flags = dict.fromkeys(resume.RESETS, False) | {reset: True}
    cfg = SimpleNamespace(checkpoint=SimpleNamespace(no_save=True, **flags))
    trainer = SimpleNamespace(task=task_of(folder / "data"), cfg=cfg)
    message = r'model.pt: holds .* Missing key.*"bias". Unexpected key.*"more".*; give the --arch'
    with pytest.raises(InputError, match=message) as caught:
        resume.resuming_on_data_that_fit(load)(trainer, str(folder / "model.pt"), True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AssertionError("Optimizer does not match; please …"), "--optimizer; .* --reset-optimizer"),
        (AssertionError("Criterion does not match; please …"), "--criterion; .* --reset-optimizer"),
        (KeyError("best"), "--lr-scheduler; .* --reset-lr-scheduler"),
    ],
)
def test_other_flags_than_those_of_a_checkpoint_are_named_in_one_line(folder, error, message):
    def load(trainer, name, *rest):
        raise error

    cfg = SimpleNamespace(
        checkpoint=SimpleNamespace(no_save=True, **dict.fromkeys(resume.RESETS, False))
    )
    trainer = SimpleNamespace(task=task_of(folder / "data"), cfg=cfg)
    with pytest.raises(InputError, match=f"was trained with another {message}"):
        resume.resuming_on_data_that_fit(load)(trainer, str(folder / "model.pt"), False)


@pytest.mark.parametrize("state", [{}, {"last_optimizer_state": None}])
def test_a_checkpoint_without_its_optimizer_is_no_training_to_go_on_with(folder, state):
    """fairseq would go on in its epoch with update 0 and a new optimizer."""

    def load(trainer, name, reset_optimizer, *rest):
        resume.checkpoint_utils.load_checkpoint_to_cpu(name)

    whole = load_checkpoint(folder / "model.pt")
    torch.save({**whole, **state}, folder / "bare.pt")
    with pytest.raises(InputError, match=r"bare.pt: holds no state .* or add --reset-optimizer$"):
        resume.checked_load(load, trainer_of(folder / "data"), str(folder / "bare.pt"))
    trainer = trainer_of(folder / "data", "reset_optimizer")
    resume.checked_load(load, trainer, str(folder / "bare.pt"), True)


def test_the_best_of_another_number_or_of_other_pairs_is_refused(folder, loaded):
    """fairseq compares them: a perplexity is never as low as the best loss."""
    model = str(folder / "model.pt")

    def go_on_with(metric: str, subset: str, *reset: str) -> None:
        trainer = trainer_of(folder / "data", *reset)
        trainer.cfg.checkpoint.best_checkpoint_metric = metric
        trainer.cfg.dataset = SimpleNamespace(valid_subset=subset)
        resume.checked_load(lambda trainer, name, *rest: loaded.append(name), trainer, model)

    go_on_with("loss", "valid,other")
    go_on_with("ppl", "other", "reset_meters")
    assert loaded == [model] * 2
    for metric, subset, message in (
        ("ppl", "valid", r"--best-checkpoint-metric loss, not ppl; go on .* with --reset-meters$"),
        ("loss", "other,valid", r"--valid-subset valid, not other,valid; go on with"),
    ):
        with pytest.raises(InputError, match=rf"model.pt: has its best validation .*{message}"):
            go_on_with(metric, subset)


def test_what_chooses_the_best_checkpoint_is_checked_before_a_training(folder):
    trainer = trainer_of(folder / "data")
    trainer.cfg.checkpoint.best_checkpoint_metric = "accuracy"
    trainer.cfg.checkpoint.maximize_best_checkpoint_metric = False
    trainer.cfg.criterion = SimpleNamespace(
        _name="label_smoothed_cross_entropy", report_accuracy=True
    )
    trainer.cfg.dataset = SimpleNamespace(disable_validation=False)
    with pytest.raises(OptionError, match="^--best-checkpoint-metric is accuracy, and the lowest"):
        resume.checked_load(lambda *_: None, trainer, "none.pt")


@pytest.mark.parametrize("kind", MISFITS)
@pytest.mark.parametrize("reset", resume.RESETS)
def test_fine_tuning_may_change_the_trees_but_not_what_tokens_mean(folder, kind, reset, loaded):
    if kind not in STRICT:
        go_on(loaded, folder / kind, folder / "model.pt", reset)
        assert len(loaded) == 1
        return
    with pytest.raises(InputError, match=re.escape(MISFITS[kind][1]) + "$"):
        go_on(loaded, folder / kind, folder / "model.pt", reset)


@pytest.mark.parametrize("kind", ["data", *MISFITS])
def test_checkpoints_that_remember_nothing_still_load(folder, kind, tmp_path, loaded):
    state = torch.load(folder / "model.pt", weights_only=True)
    for old in ({}, {"target_view": "words", "predicts_end": True}, None):
        torch.save(
            {**state, "task_state": old} if old is not None else {"model": {}}, tmp_path / "m.pt"
        )
        go_on(loaded, folder / kind, tmp_path / "m.pt")
        task_of(folder / kind).load_state_dict(old or {})
    assert len(loaded) == 3


def test_data_without_a_record_are_known_by_their_dictionaries(folder, tmp_path):
    state = load_checkpoint(folder / "model.pt")["task_state"]
    for kind, fits in (("data", True), ("view", True), ("target dictionary", False)):
        shutil.copytree(folder / kind, tmp_path / kind)
        (tmp_path / kind / "binarize.json").unlink()
        task = task_of(tmp_path / kind)
        if fits:
            task.load_state_dict(state)
            continue
        with pytest.raises(OptionError, match="the target dictionary of .* is not the one"):
            task.load_state_dict(state)
    (tmp_path / "data" / "subwords.tgt.model").unlink()
    shutil.copy(folder / "data" / "binarize.json", tmp_path / "data")
    task_of(tmp_path / "data").load_state_dict(state)


def test_counts_of_a_dictionary_do_not_matter(folder, tmp_path):
    shutil.copytree(folder / "data", tmp_path / "data")
    path = tmp_path / "data" / "dict.tgt.txt"
    symbols = [line.rpartition(" ")[0] for line in lines_of(path)]
    write_dictionary(path, [f"{symbol} 1" for symbol in symbols])
    task_of(tmp_path / "data").load_state_dict(peek(folder / "model.pt")["task_state"])


def test_data_without_subwords_are_no_data_with(folder, tmp_path):
    data = binarize(folder, "whole", "txt", "target")
    assert task_of(data).records["source"]["subword_model"] == "none"
    record = task_of(folder / "data").records
    assert set(record["source"]) == {
        "view", "control", "format", "subword_policy", "subword_units", "subword_model", "dictionary",
        "labels",
    }  # fmt: skip
    assert set(record["target"]) == {"view", "subword_model", "dictionary"}, (
        "a target's trees are in its tokens, so their format says nothing more"
    )


@pytest.mark.parametrize("language", ["src", "tgt"])
def test_a_dictionary_that_is_not_the_datas_is_refused(folder, tmp_path, language):
    """In another order, every token was another word."""
    data = shutil.copytree(folder / "data", tmp_path / "data")
    path = data / f"dict.{language}.txt"
    path.write_text("".join(f"{line}\n" for line in sorted(lines_of(path))))
    told = rf"dict.{language}.txt: is not the file that binarize.json describes, its checksum"
    for reader in (task_of, lambda data: read_data(data).dictionary(side_named(data, language))):
        with pytest.raises(InputError, match=told):
            reader(data)
    manifest = json.loads((data / "binarize.json").read_text())
    del manifest["dictionaries"]  # as folders have it that were written before
    (data / "binarize.json").write_text(json.dumps(manifest))
    task_of(data)


def side_named(folder: Path, language: str) -> SideData:
    data = read_data(folder)
    return next(side for side in (data.source, data.target) if side.language == language)


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"a 1\nb", "is no dictionary"), (b"", "has 4 symbols, but binarize wrote"),
     ("a 1\n".encode("utf-16"), "is no dictionary")],
)  # fmt: skip
def test_a_damaged_dictionary_is_told(folder, tmp_path, content, told):
    data = shutil.copytree(folder / "data", tmp_path / "data")
    (data / "dict.tgt.txt").write_bytes(content)
    with pytest.raises(InputError, match=rf"dict.tgt.txt: {told}.*run treesyntax binarize again"):
        task_of(data)


def test_only_what_is_a_checkpoint_can_be_peeked_into(folder, tmp_path):
    (tmp_path / "text").write_text("no checkpoint")
    torch.save([1], tmp_path / "list.pt")
    for path in (tmp_path / "text", tmp_path / "list.pt", tmp_path / "gone"):
        assert peek(path) == {}
    assert peek(folder / "model.pt")["task_state"]["target_view"] == "words"


def test_fairseqs_own_commands_say_it(folder, tmp_path):
    first = train(folder / "data", tmp_path / "save", *QUICK)
    assert first.returncode == 0, first.stderr
    last = tmp_path / "save" / "checkpoint_last.pt"
    for done in (
        train(folder / "control", tmp_path / "save", *QUICK, "--max-update", "4"),
        train(folder / "control", tmp_path / "other", *QUICK, "--restore-file", last),
    ):
        assert done.returncode != 0
        said = done.stderr.splitlines()[-1]
        assert f"{last}: {MISFITS['control'][0].format(folder / 'control')}" in said
    tuned = train(folder / "control", tmp_path / "tuned", *QUICK, "--finetune-from-model", last)
    assert tuned.returncode == 0, tuned.stderr
    # What was fine-tuned goes on with the data of its fine-tuning.
    more = train(folder / "control", tmp_path / "tuned", *QUICK, "--max-update", "3",
                 "--finetune-from-model", last)  # fmt: skip
    assert more.returncode == 0, more.stderr
    for command in ("generate", "validate"):
        done = fairseq(
            command, folder / "target dictionary", "--user-dir", PLUGINS, "--task",
            "tree_translation", "--path", last, "--batch-size", "5",
        )  # fmt: skip
        assert done.returncode != 0
        assert "is not the one that the model was trained with" in done.stderr.splitlines()[-1]

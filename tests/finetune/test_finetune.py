"""One command finetunes a tiny model of each task, goes on after a kill, and writes what score reads."""

from __future__ import annotations

import json
import shutil
import signal
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="transformers is no part of the base")
pytest.importorskip("accelerate", reason="accelerate is no part of the base")

from support import wait_until
from support.forked_programs import Fork, fork
from torch import nn

from treesyntax.__main__ import main
from treesyntax.errors import OptionError
from treesyntax.finetune import training
from treesyntax.finetune.job import FACTS_FILE, Job, read_job
from treesyntax.finetune.models import (
    Losses,
    check_model,
    collator_of,
    load_model,
    split_spec,
)
from treesyntax.finetune.outputs import tags_of
from treesyntax.made import lock
from treesyntax.methods import METHODS
from treesyntax.nn.injection import Injection, Site
from treesyntax.nn.tree_batch import TreeBatch

LOSS_ALONE = ["--set", "metric_for_best_model=loss", "--set", "max_grad_norm=0"]
QUICK = [
    "--set", "logging_steps=2", "--set", "learning_rate=0.01", "--set", "use_cpu=true",
    "--set", "per_device_train_batch_size=8",
]  # fmt: skip
BY_TASK = {
    "sequence-classification": ("bert", ["--columns", "text=text"]),
    "token-classification": ("bert", ["--columns", "words=tokens", "label=tags"]),
    "seq2seq": ("t5", []),
    "causal": ("gpt2", []),
}


def words(pretrained: Path, out: Path, task: str = "sequence-classification", *more: str):
    kind, columns = BY_TASK[task]
    files = [f"--{split}={pretrained / f'{split}.jsonl'}" for split in ("train", "valid")]
    return [
        "finetune", "--model", str(pretrained / kind), "--task", task, *files, *columns,
        "--tree-format", "ptb", "--out", str(out), *QUICK, *more,
    ]  # fmt: skip


def two_updates(pretrained: Path, out: Path, *more: str) -> dict[str, Any]:
    """The numbers of a classifier after two updates."""
    from safetensors.torch import load_file

    short = ["--max-steps", "2", "--set", "eval_steps=2"]
    assert main(words(pretrained, out, "sequence-classification", *short, *more)) == 0
    return load_file(out / "model/model.safetensors")


@pytest.mark.parametrize("task", BY_TASK)
def test_each_task_is_trained_and_writes_a_line_an_example(
    pretrained: Path, tmp_path: Path, task: str, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    test = str(pretrained / "test.jsonl")
    arguments = words(
        pretrained, out, task, "--injection", "tree_distance", "--max-steps", "6",
        "--test", test, "--set", "eval_steps=3", "--set", "max_target_length=6",
    )  # fmt: skip
    assert main(arguments) == 0
    hypotheses, references = (
        (out / f"{name}.txt").read_text("utf-8").splitlines()
        for name in ("hypotheses", "references")
    )
    assert len(hypotheses) == len(references) == 8
    assert "best at update" in capsys.readouterr().out
    rows = [json.loads(line) for line in Path(test).read_text("utf-8").splitlines()]
    key = {"sequence-classification": "label", "token-classification": "tags"}.get(task, "target")
    wanted = [row[key] if isinstance(row[key], str) else " ".join(row[key]) for row in rows]
    assert references == wanted
    if task == "token-classification":
        assert [len(line.split()) for line in hypotheses] == [len(row["tokens"]) for row in rows]
    if task == "sequence-classification":
        assert {*hypotheses} <= {"furry", "other"}
    facts = json.loads((out / FACTS_FILE).read_text("utf-8"))
    assert facts["updates"] == 6
    assert facts["best_update"] in (3, 6)
    assert facts["injection"] == "tree_distance"
    assert not [*out.glob("checkpoint-*")]


def test_a_class_is_learnt(pretrained: Path, tmp_path: Path):
    out = tmp_path / "out"
    arguments = words(
        pretrained, out, "sequence-classification", "--set", "num_train_epochs=12",
        "--test", str(pretrained / "test.jsonl"),
    )  # fmt: skip
    assert main(arguments) == 0
    lines = [(out / f"{name}.txt").read_text("utf-8") for name in ("hypotheses", "references")]
    assert lines[0] == lines[1]


class Killed(BaseException):
    """As by the system."""


@pytest.mark.parametrize("task", ["sequence-classification", "seq2seq"])
def test_a_killed_training_goes_on_to_the_same_numbers(
    pretrained: Path, tmp_path: Path, task: str, monkeypatch: pytest.MonkeyPatch
):
    more = ["--injection", "relative_depth+tree_distance", "--set", "num_train_epochs=4"]
    more += ["--set", "tree_learning_rate=0.05", "--patience", "3"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(words(pretrained, whole, task, *more)) == 0
    saved = training.Log.on_save
    seen: list[int] = []

    def kill(self, args, state, control, **rest):
        saved(self, args, state, control, **rest)
        seen.append(state.global_step)
        if len(seen) in (1, 3):
            raise Killed

    monkeypatch.setattr(training.Log, "on_save", kill)
    for _ in range(2):
        with pytest.raises(Killed):
            main(words(pretrained, cut, task, *more))
    # A kill within a save leaves a checkpoint without its last file.
    last = training.last_checkpoint(cut)
    assert last is not None
    broken = cut / "checkpoint-99"
    shutil.copytree(last, broken)
    (broken / "trainer_state.json").unlink()
    assert main(words(pretrained, cut, task, *more)) == 0
    ours, theirs = ((folder / "model/model.safetensors").read_bytes() for folder in (whole, cut))
    assert ours == theirs
    facts = [json.loads((folder / FACTS_FILE).read_text()) for folder in (whole, cut)]
    for fact in facts:
        fact.pop("train_seconds")
    assert facts[0] == facts[1]


def test_a_training_that_rests_ends_early_also_when_it_was_killed_there(
    pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # At this rate nothing is learnt, so that no validation is better than the first.
    more = ["--patience", "2", "--set", "num_train_epochs=9", "--set", "learning_rate=0"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(words(pretrained, whole, "sequence-classification", *more)) == 0
    facts = json.loads((whole / FACTS_FILE).read_text())
    assert (facts["best_update"], facts["updates"], facts["ended"]) == (3, 9, "rested")
    with monkeypatch.context() as patch:
        patch.setattr(training, "_facts", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            main(words(pretrained, cut, "sequence-classification", *more))
    assert main(words(pretrained, cut, "sequence-classification", *more)) == 0
    again = json.loads((cut / FACTS_FILE).read_text())
    assert (again["best_update"], again["updates"], again["ended"]) == (3, 9, "rested")


def test_a_training_killed_after_its_cap_trains_no_more(
    pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The cap is within an epoch, where transformers would do one more update before it looks."""
    more = ["--max-steps", "4", "--set", "eval_steps=2", "--set", "metric_for_best_model=loss"]
    more += ["--injection", "tree_distance", "--set", "lr_scheduler_type=constant"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(words(pretrained, whole, "sequence-classification", *more)) == 0
    with monkeypatch.context() as patch:
        patch.setattr(training, "_keep", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            main(words(pretrained, cut, "sequence-classification", *more))
    assert main(words(pretrained, cut, "sequence-classification", *more)) == 0
    facts = [json.loads((folder / FACTS_FILE).read_text()) for folder in (whole, cut)]
    assert [fact["updates"] for fact in facts] == [4, 4]
    for key in ("best_update", "valid_loss", "ended"):
        assert facts[0][key] == facts[1][key]
    ours, theirs = ((folder / "model/model.safetensors").read_bytes() for folder in (whole, cut))
    assert ours == theirs


def test_a_folder_that_was_moved_keeps_its_best_model(pretrained: Path, tmp_path: Path):
    out = tmp_path / "out"
    state = {"global_step": 6, "best_global_step": 3, "best_model_checkpoint": "/gone/checkpoint-3"}
    for step in (3, 6):
        (out / f"checkpoint-{step}").mkdir(parents=True)
        (out / f"checkpoint-{step}/trainer_state.json").write_text(
            json.dumps({**state, "global_step": step})
        )
    last = training.last_checkpoint(out)
    assert last == out / "checkpoint-6"
    known = json.loads((last / "trainer_state.json").read_text())
    assert known["best_model_checkpoint"] == str(out / "checkpoint-3")


def test_a_seed_sets_head_order_and_dropout(pretrained: Path, tmp_path: Path):
    files = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        out = tmp_path / name
        assert (
            main(
                words(
                    pretrained,
                    out,
                    "sequence-classification",
                    "--seed",
                    seed,
                    "--max-steps",
                    "2",
                    "--set",
                    "eval_steps=2",
                )
            )
            == 0
        )
        files.append((out / "model/model.safetensors").read_bytes())
    assert files[0] == files[1] != files[2]


@pytest.mark.parametrize("injection", ["", "tree_distance", "stack_pe", "tree_reg(weight=0.1)"])
def test_all_methods_begin_with_the_same_head(pretrained: Path, injection: str):
    import torch

    made = []
    for spec in ("", injection):
        job = Job(
            str(pretrained / "bert"), "sequence-classification", injection=spec, labels=("a", "b")
        )
        torch.manual_seed(5)
        made.append(load_model(job).model.classifier.weight)
    assert torch.equal(*made)


def test_a_loss_from_trees_changes_training_and_needs_no_tree_afterwards(
    pretrained: Path, tmp_path: Path
):
    import torch

    specs = {"plain": "", "loss": "tree_reg(layer=1, weight=0.1)"}
    weights = [
        two_updates(pretrained, tmp_path / name, "--injection", spec)
        for name, spec in specs.items()
    ]
    assert weights[0].keys() == weights[1].keys()
    assert not all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"text": "the cat sat"}\n{"text": "the bird sang"}\n')
    assert main(["finetune", "--predict", str(tmp_path / "loss"), "--test", str(bare)]) == 0
    assert len((tmp_path / "loss/hypotheses.txt").read_text().splitlines()) == 2


def test_layers_that_are_frozen_stay_and_others_move(pretrained: Path, tmp_path: Path):
    import torch
    from safetensors.torch import load_file

    after = two_updates(pretrained, tmp_path / "out", "--set", "freeze=1")
    before = {
        f"bert.{name}": value
        for name, value in load_file(pretrained / "bert/model.safetensors").items()
    }
    moved = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert {name for name in moved if "layer.1." in name}
    assert not {name for name in moved if "layer.0." in name or "embeddings" in name}


def test_a_rate_of_their_own_moves_the_methods_further(pretrained: Path, tmp_path: Path):
    sizes = []
    for name, rate in (("slow", "0"), ("fast", "0.1")):
        numbers = two_updates(
            pretrained, tmp_path / name, "--injection", "tree_distance",
            "--set", f"tree_learning_rate={rate}", "--set", "learning_rate=0.0001",
            "--set", "lr_scheduler_type=constant",
        )  # fmt: skip
        sizes.append(
            max(float(value.abs().max()) for key, value in numbers.items() if ".trees." in key)
        )
    assert sizes[1] / sizes[0] == pytest.approx(1000, rel=0.3)


def in_two_processes(arguments: list[str], folder: Path) -> list[Fork]:
    """Run the command in two processes as torchrun starts them."""
    from accelerate.state import AcceleratorState

    def run() -> int:
        AcceleratorState._reset_state(reset_partial_state=True)  # of trainings before
        return main(arguments)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    ranks = [{"RANK": rank, "LOCAL_RANK": rank} for rank in "01"]
    jobs = [
        fork(run, folder / f"log{number}", None, {**address, **rank, "WORLD_SIZE": "2"})
        for number, rank in enumerate(ranks)
    ]
    for job in jobs:
        assert job.wait() == 0, job.output()
    return jobs


def test_a_model_in_the_cache_is_not_looked_up_on_the_network(
    pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With PEFT, transformers asked for an adapter of it, for half a minute where no network answers."""
    from huggingface_hub import constants, file_download

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    shutil.copytree(pretrained / "bert", tmp_path / "models--us--tiny/snapshots/abc")
    (tmp_path / "models--us--tiny/refs").mkdir()
    (tmp_path / "models--us--tiny/refs/main").write_text("abc")
    files: list[str] = []

    def look_up(*_: Any, url: str, **__: Any) -> Any:
        files.append(url)
        raise OSError

    monkeypatch.setattr(file_download, "get_hf_file_metadata", look_up)
    load_model(Job("us/tiny", "sequence-classification", labels=("a", "b")))
    assert not files


def test_shares_of_the_steps_are_settings():
    training.check_settings({"warmup_steps": 0.1, "logging_steps": 0.5, "eval_delay": 0.5})


def test_processes_that_would_train_alone_are_refused(
    pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As on a CPU with use_cpu=false, or where a script tells transformers no LOCAL_RANK."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    options: dict[str, Any] = {"tree_format": "ptb", "settings": {"use_cpu": False}}
    with pytest.raises(OptionError, match="2 processes were started"):
        training.finetune(
            Job(str(pretrained / "bert"), "sequence-classification", **options),
            tmp_path / "out",
            {split: pretrained / f"{split}.jsonl" for split in ("train", "valid")},
        )


def test_a_rank_that_another_program_left_changes_nothing(
    pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Outputs were not written, and nobody held the folder."""
    monkeypatch.setenv("RANK", "3")
    files = ["--test", str(pretrained / "test.jsonl")]
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", "--max-steps", "1")
    assert main([*arguments, *files]) == 0
    assert (tmp_path / "out/hypotheses.txt").exists()


def test_a_tokenizer_that_does_not_say_where_its_tokens_are_is_refused_early(
    pretrained: Path, tmp_path: Path
):
    from transformers import ByT5Tokenizer

    shutil.copytree(pretrained / "t5", tmp_path / "byt5")
    for file in (tmp_path / "byt5").glob("tokenizer*"):
        file.unlink()
    ByT5Tokenizer().save_pretrained(tmp_path / "byt5")
    with pytest.raises(OptionError, match="byt5 has a ByT5Tokenizer, which does not say where"):
        check_model(Job(str(tmp_path / "byt5"), "seq2seq"))


def without_dropout(pretrained: Path, tmp_path: Path, task: str) -> Path:
    """The model of a task, whose training draws no numbers, which differ by process and batch."""
    kind = BY_TASK[task][0]
    folder = tmp_path / kind
    shutil.copytree(pretrained / kind, folder)
    names = (
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "resid_pdrop",
        "embd_pdrop",
        "attn_pdrop",
    )
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **dict.fromkeys(names, 0.0)}))
    return folder


@pytest.mark.parametrize("task", ["sequence-classification", "causal"])
def test_collected_batches_and_two_processes_equal_one_large_batch(
    pretrained: Path, tmp_path: Path, task: str
):
    from safetensors.torch import load_file

    kind = without_dropout(pretrained, tmp_path, task)
    ways = {
        "large": ["--set", "per_device_train_batch_size=8"],
        "collected": ["--set", "per_device_train_batch_size=4", "--accumulate", "2"],
    }
    if task == "causal":  # whose loss is a mean over the tokens of all processes
        ways["processes"] = ["--set", "per_device_train_batch_size=4"]
    plain = ["--set", "optim=sgd", "--set", "learning_rate=0.5", "--set", "max_grad_norm=0"]
    spec = ["--injection", "tree_distance", "--max-steps", "3", "--set", "eval_steps=3"]
    found = {}
    for name, batches in ways.items():
        arguments = words(pretrained, tmp_path / name, task, *plain, *spec, *batches)
        arguments[arguments.index("--model") + 1] = str(kind)
        if name == "processes":
            if not torch.accelerator.is_available():  # where nobody need say so
                at = arguments.index("use_cpu=true")
                del arguments[at - 1 : at + 1]
            outputs = [job.output() for job in in_two_processes(arguments, tmp_path)]
            assert sum(output.count("best at update") for output in outputs) == 1
        else:
            assert main(arguments) == 0
        facts = json.loads((tmp_path / name / FACTS_FILE).read_text())
        found[name] = load_file(tmp_path / name / "model/model.safetensors"), facts["valid_loss"]
    numbers, loss = found.pop("large")
    for name, (others, other_loss) in found.items():
        assert other_loss == pytest.approx(loss, rel=1e-4), name
        for key, value in numbers.items():
            torch.testing.assert_close(
                others[key], value, rtol=1e-4, atol=1e-5, msg=f"{name}: {key}"
            )


def test_fewer_batches_at_the_end_of_an_epoch_weigh_a_loss_from_trees_no_less(
    pretrained: Path, tmp_path: Path
):
    from safetensors.torch import load_file

    plain = ["--set", "optim=sgd", "--set", "learning_rate=0.5", "--set", "max_grad_norm=0"]
    spec = ["--injection", "tree_reg(weight=10.0)", "--max-steps", "1", "--set", "eval_steps=1"]
    model, numbers = without_dropout(pretrained, tmp_path, "causal"), []
    for size, count in ((24, 1), (12, 8)):  # of 24 examples
        ways = ["--set", f"per_device_train_batch_size={size}", "--accumulate", str(count)]
        arguments = words(pretrained, tmp_path / str(count), "causal", *plain, *spec, *ways)
        arguments[arguments.index("--model") + 1] = str(model)
        assert main(arguments) == 0
        numbers.append(load_file(tmp_path / str(count) / "model/model.safetensors"))
    for key, value in numbers[0].items():
        torch.testing.assert_close(numbers[1][key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "learning_rat=1"], "train.learning_rat: no setting of training is named 'learning_rat'; did you mean 'learning_rate'?"),
        (["--set", "learning_rate=quick"], "train.learning_rate is 'quick'; it must be like its default"),
        (["--set", "max_steps=0.5"], "train.max_steps is 0.5; it must be like its default"),
        (["--set", "seed=3"], "train.seed is set by treesyntax; give --seed"),
        (["--set", "patience=-1"], "train.patience is -1; it must be a whole number, 0 or more"),
        (["--set", "freeze=3"], "train.freeze is 3, but the model has 2 layers"),
        (["--set", "metric_for_best_model=acuracy"], "did you mean 'accuracy'"),
        (["--task", "tagging"], "--task: no task is named 'tagging'"),
        (["--model", "no-such/model"], "no-such/model is no folder, and no model of that name is in the cache of Hugging Face; download it first, with hf download no-such/model"),
        (["--columns", "text=sentence"], "train.jsonl:1: has no column 'sentence' (text); it has text, tokens"),
        (["--columns", "tekst=text"], "--columns: no kind of column is named 'tekst'"),
        (["--injection", "relation_mas"], "unknown method 'relation_mas'"),
        (["--injection", "linearized"], "linearized acts through the text; write the brackets into the text"),
        (["--injection", "parent_head"], "this loss is about attention"),
        (["--set", "push_to_hub=true"], "train.push_to_hub is set by treesyntax; nothing is uploaded"),
        (["--set", "greater_is_better=false"], "train.greater_is_better is False, but a higher accuracy is better, and the worst"),
        (["--set", "metric_for_best_model=loss", "--set", "greater_is_better=true"], "is True, but a lower loss is better"),
        (["--set", "eval_strategy=no"], "train.eval_strategy is no; only what is validated is saved"),
        (["--set", "per_device_train_batch_size=0"], "train: batch_size should be a positive integer"),
        (["--set", "per_device_eval_batch_size=0"], "train: batch_size should be a positive integer"),
        (["--seed", "-1"], "--seed -1: a seed is from 0 to 4294967295"),
        (["--seed", "4294967296"], "--seed 4294967296: a seed is from 0 to"),
        (["--set", "train_sampling_strategy=group_by_length"], "would have another order of examples after a kill"),
        (["--max-steps", "2", "--set", "max_steps=6"], "--set max_steps=6: has a flag of its own, too; give one of them"),
        (["--batch-size", "0"], "--batch-size 0: give 1 or more"),
        (["--hold-out", "-2"], "--hold-out -2: give 0 or more"),
        (["--hold-out", "2"], "--hold-out takes examples of --train in place of --valid; give one of them"),
        (["--predict", "out"], "--model, --task, --train, --valid, --columns, --set, --out would do nothing here"),
        (["--set", "optim=adamw_bnb_8bit"], "train: You need to install `bitsandbytes`"),
        (["--set", "lr_scheduler_kwargs={a: 1}"], "train: get_linear_schedule_with_warmup() got an unexpected"),
        (["--set", "learning_rate=1e30", *LOSS_ALONE], "a validation whose result is a number; lower learning_rate"),
        (["--columns", "text=text", "label=text_of_all"], "train.jsonl:1: has no column 'text_of_all'"),
        (["--test", "no-such.jsonl"], "no-such.jsonl: cannot be read"),
        (["--injection", "tree_distance", "--columns", "text=text", "tree=other"], "has no column 'other' (tree)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    pretrained: Path, tmp_path: Path, more: list[str], message: str, capsys
):
    assert main([*words(pretrained, tmp_path / "out"), *more]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "| INFO |" not in line]
    assert len(lines) == 1
    assert message in lines[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("num_beams=3 num_return_sequences=3", "--generate: gives 6 outputs for 2 inputs"),
        ("max_new_token=3", "--generate: The following `model_kwargs` are not used by the model"),
        ("return_dict_in_generate=true", "--generate: "),
    ],
)
def test_what_cannot_be_generated_is_told_before_anything_is_trained(
    pretrained: Path, tmp_path: Path, given: str, message: str, capsys
):
    options = [word for option in given.split() for word in ("--generate", option)]
    assert main([*words(pretrained, tmp_path / "out", "causal"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "| train" not in error


def test_answers_end_where_the_positions_of_a_model_do(pretrained: Path, tmp_path: Path):
    """64 positions, and 128 tokens that are never an end."""
    arguments = words(pretrained, tmp_path / "out", "causal", "--max-steps", "1")
    files = ["--test", str(pretrained / "test.jsonl"), "--generate", "bad_words_ids=[[4]]"]
    assert main([*arguments, *files]) == 0
    lines = (tmp_path / "out/hypotheses.txt").read_text("utf-8").splitlines()
    assert max(len(line.split()) for line in lines) > 50


def test_smoothed_labels_are_learnt_by_an_encoder_decoder(pretrained: Path, tmp_path: Path):
    smooth = ["--set", "label_smoothing_factor=0.1", "--injection", "tree_distance"]
    arguments = words(pretrained, tmp_path / "out", "seq2seq", "--max-steps", "1", *smooth)
    assert main(arguments) == 0


class Probe(Injection):
    """A user's loss, of a projection that is learnt."""

    def __init__(self, site: Site, learned: bool = True) -> None:
        super().__init__(site)
        self.of_depth = nn.Linear(site.d_model, 1).requires_grad_(learned)

    def loss(self, layer, states, tree):
        return self.of_depth(states.outputs).square().sum()


def test_a_loss_whose_parameters_nothing_would_train_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(METHODS, "probe", Probe)
    assert split_spec("probe+tree_distance") == ("tree_distance", "probe")
    with pytest.raises(OptionError, match="the loss of probe has parameters, which finetune would"):
        Losses("probe", Site(8, 2, 1))
    losses = Losses("probe(learned=False)", Site(8, 2, 1))
    # Where the model is, not where methods are made.
    states = torch.zeros(2, 1, 5, 8, device="meta")
    tree = TreeBatch.without_trees(states[0, :, :, 0].long())
    assert losses((*states,), tree).device == states.device


@pytest.mark.parametrize("injection", ["tree_distance", "tree_reg"])
def test_data_without_any_tree_is_refused_to_methods(
    pretrained: Path, tmp_path: Path, injection: str, capsys
):
    for split in ("train", "valid"):
        text = (pretrained / f"{split}.jsonl").read_text("utf-8").replace('"tree"', '"parse"')
        (tmp_path / f"{split}.jsonl").write_text(text, "utf-8")
    files = [f"--{split}={tmp_path / f'{split}.jsonl'}" for split in ("train", "valid")]
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", *files)
    assert main([*arguments, "--injection", injection]) == 2
    assert (
        "train.jsonl: has no tree in any example, but the methods need" in capsys.readouterr().err
    )
    assert main([*arguments, "--max-steps", "1"]) == 0
    assert main(["finetune", "--predict", str(tmp_path / "out"), "--test", files[1][8:]]) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "a b", "tree": "(S a)"}, "test.jsonl:3: the text goes on"),
        ({"label": None}, "test.jsonl:3: has no column 'label'"),
    ],
)
def test_a_fault_in_the_test_set_is_told_before_anything_is_trained(
    pretrained: Path, tmp_path: Path, change: dict[str, Any], message: str, capsys
):
    rows = [json.loads(line) for line in (pretrained / "test.jsonl").open(encoding="utf-8")]
    rows[2] |= change
    file = tmp_path / "test.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    out = tmp_path / "out"
    assert main([*words(pretrained, out), "--test", str(file)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_class_of_the_test_set_alone_counts_as_wrong(pretrained: Path, tmp_path: Path, capsys):
    file = tmp_path / "test.jsonl"
    file.write_text('{"text": "the cat", "label": "furry"}\n{"text": "the cat", "label": "new"}\n')
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", "--max-steps", "1")
    assert main([*arguments, "--test", str(file)]) == 0
    message = "test.jsonl:2: has the class 'new', which the training data lacks"
    assert message in capsys.readouterr().err
    assert (tmp_path / "out/references.txt").read_text() == "furry\nnew\n"


def test_an_encoder_does_not_write(pretrained: Path, tmp_path: Path, capsys):
    """Its tokens see those that follow, so it would be trained on what it is to write."""
    arguments = words(pretrained, tmp_path / "out", "causal")
    assert main([*arguments, "--model", str(pretrained / "bert")]) == 2
    assert "is an encoder (bert), whose tokens see those that follow" in capsys.readouterr().err


def test_an_encoder_alone_does_not_turn_one_text_into_another(
    pretrained: Path, tmp_path: Path, capsys
):
    arguments = words(pretrained, tmp_path / "out", "seq2seq")
    assert main([*arguments, "--model", str(pretrained / "bert")]) == 2
    assert "(bert) has no decoder beside an encoder; the task seq2seq" in capsys.readouterr().err


def test_examples_without_a_tree_are_counted(pretrained: Path, tmp_path: Path, capsys):
    lines = (pretrained / "train.jsonl").read_text("utf-8").splitlines()
    lines[1:4] = [line.replace('"tree"', '"parse"') for line in lines[1:4]]
    file = tmp_path / "train.jsonl"
    file.write_text("\n".join(lines), "utf-8")
    more = ["--train", str(file), "--max-steps", "1"]
    arguments = words(pretrained, tmp_path / "plain", "sequence-classification", *more)
    assert main(arguments) == 0
    assert "have no tree" not in capsys.readouterr().err
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", *more)
    assert main([*arguments, "--injection", "tree_distance"]) == 0
    error = capsys.readouterr().err
    assert f"3 of {len(lines)} examples of train have no tree" in error
    assert "of valid" not in error


def test_examples_are_left_to_train_on(pretrained: Path, tmp_path: Path, capsys):
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", "--hold-out", "999")
    arguments = [word for word in arguments if not word.startswith("--valid=")]
    assert main(arguments) == 2
    assert "train.jsonl: has nothing left to train on; hold out fewer" in capsys.readouterr().err


def test_a_class_alone_is_refused(pretrained: Path, tmp_path: Path, capsys):
    file = tmp_path / "one.jsonl"
    file.write_text('{"text": "the cat", "label": "x"}\n')
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", "--train", str(file))
    assert main([*arguments, "--valid", str(file)]) == 2
    assert "one.jsonl: has one class alone, x" in capsys.readouterr().err


def test_classes_are_looked_at_where_a_study_writes_its_data(
    pretrained: Path, tmp_path: Path, capsys
):
    """One line of the user's file, and not one of each training about the study's copy."""
    file = tmp_path / "one.jsonl"
    file.write_text('{"text": "the cat", "label": "x"}\n')
    task = ["--task", "sequence-classification", "--tree-format", "ptb"]
    files = {name: pretrained / f"{name}.jsonl" for name in ("train", "valid", "test")}
    for split, message in (
        ("train", "one.jsonl: has one class alone, x; give"),
        ("valid", "one.jsonl:1: has the class 'x', which the training data lacks"),
        ("test", ""),
    ):
        given = [f"--{name}={path}" for name, path in {**files, split: file}.items()]
        data = str(tmp_path / split)
        assert main(["finetune", "--write-data", data, *task, *given]) == (2 if message else 0)
        assert message in capsys.readouterr().err


def _save(folder: Path, pretrained: Path, model: Any, tokenizer: Any = None) -> Path:
    import transformers

    model.save_pretrained(folder)
    tokenizer = tokenizer or transformers.AutoTokenizer.from_pretrained(pretrained / "bert")
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    "settings",
    [{"num_labels": 5}, {"problem_type": "multi_label_classification"}, {"num_labels": 1, "problem_type": "regression"},
     {"return_dict": False}],
)  # fmt: skip
def test_the_head_of_another_task_is_replaced(pretrained: Path, tmp_path: Path, settings):
    import transformers

    config = transformers.AutoConfig.from_pretrained(pretrained / "bert")
    config.update(settings)
    model = transformers.BertForSequenceClassification(config)
    folder = _save(tmp_path / "model", pretrained, model)
    assert two_updates(pretrained, tmp_path / "out", "--model", str(folder))[
        "classifier.bias"
    ].shape == (2,)


@pytest.mark.parametrize("pad", [None, 0, 4])
def test_a_decoder_classifies_a_text_alike_whatever_stands_beside_it(
    pretrained: Path, tmp_path: Path, pad: int | None
):
    """Its head reads the last token that is no padding; a model may name another one than its tokenizer."""
    import torch

    folder = tmp_path / "gpt2"
    shutil.copytree(pretrained / "gpt2", folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "pad_token_id": pad}), "utf-8")
    job = Job(model=str(folder), task="sequence-classification", labels=("furry", "other"))
    trained = load_model(job)
    collate = collator_of(job, trained)
    short, long = ({"text": text, "tree": None} for text in ("the cat", "the dog that sang sang"))
    alone, beside = (dict(collate(texts)) for texts in ([short], [short, long]))
    del alone["tree"], beside["tree"]
    model = trained.model.eval()
    torch.testing.assert_close(model(**alone).logits[0], model(**beside).logits[0])


def changed(file: Path, folder: Path, numbers: list[int], **columns: Any) -> Path:
    """A copy of a data file without trees, in which some lines have other columns."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for number, row in enumerate(rows, start=1):
        del row["tree"]
        row.update({name: make(row) for name, make in columns.items()} if number in numbers else {})
    copy = folder / file.name
    copy.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return copy


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("task", ["sequence-classification", "causal"])
def test_a_text_without_a_token_is_refused_before_anything_is_trained(
    pretrained: Path, tmp_path: Path, task: str, split: str, capsys
):
    """A decoder whose tokenizer puts no mark around texts reads nothing of an empty one."""
    file = changed(pretrained / f"{split}.jsonl", tmp_path, [3], text=lambda row: "")
    arguments = words(pretrained, tmp_path / "out", task, "--max-steps", "2")
    arguments += ["--model", str(pretrained / "gpt2"), "--test", str(pretrained / "test.jsonl")]
    arguments += ["--columns", "text=text", f"--{split}", str(file)]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert f"{file}:3: the text has no token, and a model needs one" in said
    assert "num_updates" not in said


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize(
    "column", [{"text": lambda row: f"{row['text']} </s>"}, {"text_pair": lambda row: "the cat"}]
)
def test_an_encoder_decoder_classifies_texts_with_as_many_ends(
    pretrained: Path, tmp_path: Path, column, split: str, capsys
):
    """Its head looks for the last end of each text in the whole batch, and text may have that mark in it."""
    file = changed(pretrained / f"{split}.jsonl", tmp_path, [2, 5], **column)
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", "--max-steps", "2")
    arguments += ["--model", str(pretrained / "t5"), "--test", str(pretrained / "test.jsonl")]
    assert main([*arguments, f"--{split}", str(file)]) == 2
    said = capsys.readouterr().err
    assert f"{file}:2: has 2 tokens '</s>' in its input, but most have 1, and T5" in said
    assert "num_updates" not in said


def test_an_encoder_decoder_classifies_texts_with_an_end(pretrained: Path, tmp_path: Path, capsys):
    import transformers

    folder = tmp_path / "t5"
    shutil.copytree(pretrained / "t5", folder)
    transformers.AutoTokenizer.from_pretrained(pretrained / "gpt2").save_pretrained(folder)
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", "--max-steps", "2")
    assert main([*arguments, "--model", str(folder)]) == 2
    assert "train.jsonl:1: has no '</s>' in its input, whose state" in capsys.readouterr().err


def test_words_that_a_tokenizer_leaves_out_are_told_and_not_called_cut(
    pretrained: Path, tmp_path: Path, capsys
):
    """As BERT's leaves out characters that nobody sees, such as the selector behind an emoji."""
    import transformers
    from tokenizers import normalizers

    folder = tmp_path / "bert"
    shutil.copytree(pretrained / "bert", folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.save_pretrained(folder)
    columns = {
        "tokens": lambda row: [*row["tokens"], "\ufe0f"],
        "tags": lambda row: [*row["tags"], "O"],
    }
    files = [
        changed(pretrained / f"{split}.jsonl", tmp_path, [2, 3], **columns)
        for split in ("train", "test")
    ]
    arguments = words(pretrained, tmp_path / "out", "token-classification", "--max-steps", "2")
    arguments += ["--model", str(folder), "--train", str(files[0]), "--test", str(files[1])]
    assert main(arguments) == 0
    said = capsys.readouterr().err
    assert f"{files[0]}:2: 2 of 24 examples hold words without a token of the model" in said
    assert "2 inputs have words without a token, since they were cut or" in said
    lines = (tmp_path / "out/hypotheses.txt").read_text("utf-8").splitlines()
    assert [number for number, line in enumerate(lines, start=1) if line.endswith(" _")] == [2, 3]


def test_longer_texts_than_a_model_has_positions_are_cut(pretrained: Path, tmp_path: Path, capsys):
    import transformers

    config = transformers.AutoConfig.from_pretrained(pretrained / "bert")
    config.max_position_embeddings = 4
    tokenizer = transformers.AutoTokenizer.from_pretrained(pretrained / "bert", model_max_length=99)
    folder = _save(tmp_path / "model", pretrained, transformers.BertModel(config), tokenizer)
    two_updates(pretrained, tmp_path / "out", "--model", str(folder))
    assert "inputs or outputs are too long for the model and are cut" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs"), "cannot be loaded as a model"),
        (lambda folder: [file.unlink() for file in folder.glob("token*")], "has no tokenizer, or one without words"),
        (lambda folder: shutil.copy(folder.parent / "gpt2/model.safetensors", folder), "has no numbers of 37 parameters of a Bert"),
    ],
)  # fmt: skip
def test_a_model_of_random_numbers_or_words_is_refused(
    pretrained: Path, tmp_path: Path, break_it, message: str, capsys
):
    for kind in ("bert", "gpt2"):
        shutil.copytree(pretrained / kind, tmp_path / kind)
    break_it(tmp_path / "bert")
    arguments = words(pretrained, tmp_path / "out", "sequence-classification")
    assert main([*arguments, "--model", str(tmp_path / "bert")]) == 2
    assert message in capsys.readouterr().err


def test_words_beyond_the_embeddings_are_named(pretrained: Path, tmp_path: Path, capsys):
    import transformers

    config = transformers.AutoConfig.from_pretrained(pretrained / "bert")
    config.vocab_size = 8
    folder = _save(tmp_path / "model", pretrained, transformers.BertModel(config))
    arguments = words(pretrained, tmp_path / "out", "sequence-classification")
    assert main([*arguments, "--model", str(folder)]) == 2
    assert "train.jsonl:1: the model has 8 tokens, and its tokenizer has" in capsys.readouterr().err


def test_a_second_training_in_a_folder_is_refused(
    pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    def hold() -> int:
        with lock.training_in(tmp_path / "out", "--out"):
            (tmp_path / "held").touch()
            signal.pause()
        return 0

    monkeypatch.setattr(lock, "TRAINING_WAIT", 0.3)
    other = fork(hold, tmp_path / "log")
    wait_until((tmp_path / "held").exists, 20)
    arguments = words(pretrained, tmp_path / "out", "causal", "--max-steps", "1")
    assert main(arguments) == 2
    told = f"out: another training writes here (process {other.pid} on"
    assert told in capsys.readouterr().err
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert main(arguments) == 0


def test_another_job_in_a_folder_is_refused(pretrained: Path, tmp_path: Path, capsys):
    short = ["--max-steps", "1", "--set", "eval_steps=1"]
    arguments = words(pretrained, tmp_path / "out", "sequence-classification", *short)
    assert main(arguments) == 0
    assert main([*arguments, "--seed", "2"]) == 2
    assert (
        "has another finetuning, with another seed; choose another --out" in capsys.readouterr().err
    )
    assert main(arguments) == 0
    assert read_job(tmp_path / "out").labels == ("furry", "other")


def test_the_log_names_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """As fairseq does: a study's record of a run has the GPU and not the processor, and its own memory alone."""
    import torch

    from treesyntax.study.run.logs import read_log

    gpu = SimpleNamespace(major=9, minor=0, total_memory=79 * 2**30, name="NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 3 * 2**29)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (50 * 2**30, 79 * 2**30))
    told = training.Log(tmp_path, True)
    told.begin(None, torch.device("cuda"))
    told.on_log(
        SimpleNamespace(
            device=torch.device("cuda"),
            train_batch_size=8,
            gradient_accumulation_steps=1,
            world_size=1,
        ),
        SimpleNamespace(global_step=5, epoch=0.5),
        None,
        {"loss": 1.0},
    )
    (tmp_path / "train.log").write_text(capsys.readouterr().err)
    log = read_log(tmp_path / "train.log")
    assert (log.device, log.gpu_total) == ("NVIDIA H100 80GB HBM3", 79.0)
    assert log.peak_memory == 1.5 * 1024
    training.Log(tmp_path, True).begin(None, torch.device("cpu"))
    assert "rank" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("injection", "blind"),
    [("relation_mask", "relation_mask"), ("tree_distance+relation_mask", "relation_mask"),
     ("tree_distance", ""), ("relative_depth", ""), ("stack_pe", ""), ("up_down", "")],
)  # fmt: skip
def test_a_method_that_sees_nothing_of_the_trees_is_refused(
    pretrained: Path, tmp_path: Path, injection: str, blind: str, capsys
):
    """Words are leaves of these constituents: no token is parent, child or sibling of another."""
    short = ["--max-steps", "1", "--set", "eval_steps=1", "--injection", injection]
    status = main(words(pretrained, tmp_path / "out", "sequence-classification", *short))
    error = capsys.readouterr().err
    assert status == (2 if blind else 0)
    assert (f"{blind} would learn nothing from these trees: over 24 sentences" in error) == bool(
        blind
    )


@pytest.mark.parametrize("key", ["tree", "tree_pair"])
def test_a_method_that_sees_nothing_of_several_trees_is_refused(
    pretrained: Path, tmp_path: Path, key: str, capsys
):
    text = "the cat that sat sat"
    tree = "(S (NP (DT the) (NN cat) (SBAR (IN that) (VBD sat))) (VP (VBD sat)))"
    row = {"text": f"{text} {text}", "tree": [tree, tree]}
    if key == "tree_pair":
        row = {"text": text, "text_pair": text, "tree_pair": tree}
    file = tmp_path / "several.jsonl"
    file.write_text("".join(json.dumps({**row, "label": label}) + "\n" for label in "ab"))
    files = [f"--train={file}", f"--valid={file}", "--max-steps", "1", "--injection"]
    for spec, status in (("relation_mask", 2), ("tree_distance", 0)):
        arguments = words(pretrained, tmp_path / spec, "sequence-classification", *files, spec)
        assert main(arguments) == status
    assert "relation_mask would learn nothing from these trees: over 2" in capsys.readouterr().err


def test_a_mask_over_dependency_trees_is_trained(pretrained: Path, tmp_path: Path):
    for split in ("train", "valid"):
        rows = [
            {"words": ["the", "cat", "barked", "that"], "heads": [2, 3, 0, 3], "label": "furry"},
            {"words": ["the", "cat", "barked", "that"], "heads": [0, 1, 1, 3], "label": "other"},
        ]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / f"{split}.jsonl").write_text(lines, "utf-8")
    given = [f"--{split}={tmp_path / f'{split}.jsonl'}" for split in ("train", "valid")]
    done = main([
        "finetune", "--model", str(pretrained / "bert"), "--task", "sequence-classification", *given,
        "--out", str(tmp_path / "out"), *QUICK, "--max-steps", "2", "--set", "eval_steps=2",
        "--injection", "relation_mask",
    ])  # fmt: skip
    assert done == 0


def test_relations_are_read_by_methods_of_labels(pretrained: Path, tmp_path: Path, capsys):
    """Each relation of the training data has a row of the table, and the unknown one learns nothing."""
    from safetensors.torch import load_file

    tree = {"words": ["the", "cat", "barked", "that"], "heads": [2, 3, 0, 3]}
    rows = [
        {**tree, "relations": ["det", relation, "root", "det"], "label": label}
        for relation, label in (("nsubj", "furry"), ("obj", "other"))
    ]
    train, bare = tmp_path / "train.jsonl", tmp_path / "bare.jsonl"
    train.write_text("".join(f"{json.dumps(row)}\n" for row in rows * 8), "utf-8")
    bare.write_text("".join(f"{json.dumps(tree | {'label': name})}\n" for name in "ab"), "utf-8")

    def finetune(file: Path, out: str) -> int:
        return main([
            "finetune", "--model", str(pretrained / "bert"), "--task", "sequence-classification",
            f"--train={file}", f"--valid={file}", f"--test={file}", "--out", str(tmp_path / out), *QUICK,
            "--max-steps", "2", "--set", "eval_steps=2", "--injection", "labelled_relation",
        ])  # fmt: skip

    assert finetune(train, "out") == 0
    assert read_job(tmp_path / "out").node_labels == ("det", "root", "nsubj", "obj")
    assert len((tmp_path / "out/hypotheses.txt").read_text().splitlines()) == 16
    parameters = load_file(tmp_path / "out/model/model.safetensors")
    (rows_of_labels,) = (value for name, value in parameters.items() if "labelled_relation" in name)
    learned = rows_of_labels.abs().sum((0, 1)) > 0
    assert learned[:6].tolist() == [False, True, False, True, True, False]  # a root has no arc
    capsys.readouterr()
    assert finetune(bare, "bare") == 2
    assert "bare.jsonl: has trees without relations or categories" in capsys.readouterr().err


def test_the_tag_of_a_word_that_was_cut_is_no_class():
    """Else it might be right, and inputs of that class would count as cut."""
    numbers, words = np.array([1, 0, 0]), np.array([-100, 0, -100])
    assert tags_of(numbers, words, ("A", "B"), 2) == ["A", "_"]
    assert tags_of(numbers, words, ("_", "__"), 2) == ["_", "___"]

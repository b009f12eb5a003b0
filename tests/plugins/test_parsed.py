"""Options that fairseq's parsers let pass and that end in a traceback, or do nothing without a word."""

from __future__ import annotations

import pytest
from fairseq import options

from fairseq_plugins.flags import check
from treesyntax.errors import OptionError

WORDS = ("data", "--task", "tree_translation")
PATH = ("--path", "m.pt")


def parse_generation(*words: str) -> options.argparse.Namespace:
    return options.parse_args_and_arch(options.get_generation_parser(), [*WORDS, *words])


def test_two_kinds_of_half_precision_are_refused_in_one_line():
    words = [*WORDS, "--arch", "tree_sequence_tiny", "--fp16", "--bf16"]
    with pytest.raises(OptionError, match="^--fp16 and --bf16 exclude each other; leave one out$"):
        options.parse_args_and_arch(options.get_training_parser(), words)


TRAINING = (*WORDS, "--arch", "tree_sequence_tiny", "--batch-size", "8", "--max-update", "9")


@pytest.mark.parametrize(
    ("words", "package", "pip"),
    [
        (["--tensorboard-logdir", "events"], "tensorboard", "tensorboard"),
        (["--wandb-project", "x"], "wandb", "wandb"),
        (["--aim-repo", "x"], "aim", "aim"),
        (["--azureml-logging"], "azureml", "azureml-core"),
        (["--tpu"], "torch_xla", "torch_xla"),
        (["--ddp-backend", "fully_sharded"], "fairscale", "fairscale"),
        (["--zero-sharding", "os"], "fairscale", "fairscale"),
    ],
)
def test_an_option_without_its_package_is_refused(words, package, pip, monkeypatch):
    """fairseq trained without a word but in its log, and nothing was tracked, or ended in a traceback."""
    there: set[str] = set()
    monkeypatch.setattr("fairseq_plugins.parsed.find_spec", lambda name: name in there or None)
    fault = check("fairseq-train", [*TRAINING, *words])
    assert fault is not None
    assert f"--{fault.flag}" == words[0]
    assert fault.problem.endswith(
        f"needs a package that is not installed; pip install {pip}, or leave it out"
    )
    there.add(package)
    assert check("fairseq-train", [*TRAINING, *words]) is None


def test_other_values_of_such_an_option_need_no_package(monkeypatch):
    monkeypatch.setattr("fairseq_plugins.parsed.find_spec", lambda _: None)
    for words in (["--ddp-backend", "legacy_ddp"], ["--zero-sharding", "none"]):
        assert check("fairseq-train", [*TRAINING, *words]) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # Without the package iopath fairseq ended with status 0 and had trained nothing.
        (["--write-checkpoints-asynchronously"], "writes one of the checkpoints that are due"),
        (["--model-parallel-size", "2"], "needs models that are made for it, as none here is"),
        (["--pipeline-model-parallel"], "needs models that are made for it, as none here is"),
        (["--fp16", "--amp"], "and --amp exclude each other; leave one out"),
        (["--quantization-config-path", "none.yaml"], "none.yaml: no such file; give a YAML file"),
        (["--store-ema"], "keeps a mean of weights that no validation and no search reads"),
    ],
)
def test_options_with_which_nothing_or_something_else_is_trained_are_refused(words, message):
    fault = check("fairseq-train", [*TRAINING, *words])
    assert fault is not None
    assert f"--{fault.flag}" == words[0]
    assert message in fault.problem


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        ("inverse_sqrt --warmup-updates 0", "--warmup-updates of 1 or more"),
        ("inverse_sqrt --lr 0.1,0.01", "a single --lr and"),
        ("cosine --max-update 0 --max-epoch 9", "--max-update above --warmup-updates, or"),
        ("cosine --warmup-updates 9", "--max-update above --warmup-updates, or"),
        ("polynomial_decay", "--total-num-update of 1 or more"),
        ("polynomial_decay --total-num-update nine", "--total-num-update of 1 or more"),
        ("tri_stage --warmup-steps 2", "--decay-steps of 1 or more, or --phase-ratio with"),
        ("triangular --max-lr 0.001 --lr 0.01", "a single --lr below --max-lr"),
        ("triangular --max-lr 0.1 --lr 0.01 --lr-period-updates 1", "--lr-period-updates of 2"),
        ("reduce_lr_on_plateau --lr 0.1,0.01", "a single --lr"),
    ],
)
def test_a_schedule_without_a_rate_is_refused(words, needs):
    """fairseq divided by nothing, or ended in an assertion or an error of hydra."""
    fault = check("fairseq-train", [*TRAINING, "--lr-scheduler", *words.split()])
    assert fault is not None
    assert fault.flag == "lr-scheduler"
    assert "gives no rate with these options; it needs " in fault.problem
    assert needs in fault.problem


@pytest.mark.parametrize(
    "words",
    [
        "inverse_sqrt", "inverse_sqrt --warmup-updates 1", "cosine --warmup-updates 8", "step",
        "cosine --max-update 0 --max-epoch 9 --lr-period-updates 5", "fixed --lr 0.1,0.01",
        "polynomial_decay --total-num-update 9", "tri_stage --decay-steps 2",
        "tri_stage --phase-ratio [0.1,0.4,0.5]", "triangular --max-lr 0.1 --lr 0.01",
        "reduce_lr_on_plateau --warmup-updates 3",
    ],
)  # fmt: skip
def test_a_schedule_with_a_rate_is_taken(words):
    assert check("fairseq-train", [*TRAINING, "--lr-scheduler", *words.split()]) is None


def test_shards_that_divide_nothing_are_refused():
    with pytest.raises(OptionError, match="--num-shards divides nothing .* each a split of its"):
        parse_generation(*PATH, "--num-shards", "4")
    assert parse_generation(*PATH, "--num-shards", "1").num_shards == 1


def test_a_search_without_a_checkpoint_is_refused():
    with pytest.raises(OptionError, match="^--path is missing; give a checkpoint, such as --path"):
        parse_generation()
    assert check("fairseq-generate", WORDS) is None, "a study adds the path later"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--replace-unk"], "^--replace-unk needs attention weights, .* train with --copy-source$"),
        (["--sacrebleu"], "^--sacrebleu changes nothing .* give --scoring sacrebleu$"),
        (["--constraints"], "^--constraints are read by fairseq-interactive alone"),
        (["--sampling", "--beam", "4", "--nbest", "2"], "^--sampling writes .*; give --nbest 4$"),
    ],
)
def test_options_that_end_in_a_traceback_or_change_nothing_are_refused(words, message):
    with pytest.raises(OptionError, match=message):
        parse_generation(*PATH, *words)


def test_sacrebleu_as_the_scoring_is_taken():
    words = ("--sacrebleu", "--scoring", "sacrebleu")
    assert parse_generation(*PATH, *words).scoring == "sacrebleu"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("{data: 1}", r"^--model-overrides {data: 1} is no dictionary; write {'name': value}$"),
        ("[1]", r"^--model-overrides \[1\] is no dictionary"),
        (
            "{'encoder_injectoin': 'none'}",
            "named 'encoder_injectoin'; did you mean 'encoder_injection'",
        ),
        (
            "{'max-source-positions': 9}",
            "'max-source-positions'; did you mean 'max_source_positions'",
        ),
        (
            "{'model': {'dropuot': 0}}",
            "no setting of a model is named 'dropuot'; did you mean 'drop",
        ),
        ("{'encoder_layers_to_keep': '0'}", "is named 'encoder_layers_to_keep'; "),
        ("{7: 1}", "is named '7'; "),
    ],
)
def test_overrides_that_would_change_nothing_are_refused(overrides: str, message: str):
    with pytest.raises(OptionError, match=message):
        parse_generation(*PATH, "--model-overrides", overrides)


def test_overrides_of_the_model_the_task_and_their_groups_are_taken():
    text = "{'max_source_positions': 9, 'left_pad_source': False, 'model': {'dropout': 0.0}}"
    assert parse_generation(*PATH, "--model-overrides", text).model_overrides == text

"""Command lines of fairseq, checked without being run."""

from __future__ import annotations

import pytest

from fairseq_plugins.flags import check

TRAIN = ("data", "--task", "tree_translation", "--arch", "tree_sequence_mini", "--batch-size", "8")
ADAM = ("--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--lr", "0.1", "--max-update", "9")


@pytest.mark.parametrize(
    ("words", "flag", "told"),
    [
        (
            ["--lr-schedular", "fixed"],
            "lr-schedular",
            "has no such flag; did you mean lr-scheduler",
        ),
        (["--label-smoothing", "0.1"], "label-smoothing", "fairseq-train has no such flag"),
        (["--max-update", "ten"], "max-update", "invalid int value: 'ten'"),
        (["--lr", "abc"], "lr", "invalid value: 'abc'"),
        (["--criterion", "cross_entrop"], "criterion", "did you mean cross_entropy"),
        (["--arch", "tree_sequence_mimi"], "arch", "did you mean tree_sequence_mini"),
        (["--arch", "fconv"], "arch", "is fconv, which --task tree_translation does not build"),
        (
            ["--criterion", "adaptive_loss"],
            "criterion",
            "take one of cross_entropy, label_smoothed",
        ),
        (["--criterion", "ctc"], "criterion", "is ctc, for models with other outputs"),
        (["--encoder-injection", "stak_pe"], "encoder-injection", "unknown method 'stak_pe'"),
        (["--encoder-injection", "stack_pe(deth=3)"], "encoder-injection", "no argument 'deth'"),
        (["--fp16", "--bf16"], "fp16", "exclude each other; leave one out"),
        (["--encoder-injection", "pushdown"], "encoder-injection", "is for a decoder alone"),
        (["--share-encoder-layers", "4"], "share-encoder-layers", "no divisor of 2 layers"),
        (["--decoder-injection", "relation_mask("], "decoder-injection", "cannot read the methods"),
        (["--encoder-embed-dim", "7"], "encoder-embed-dim", "attention heads do not divide"),
        (["--lr", "0.1,-1"], "lr", "is -1.0; it must be above 0"),
        (["--dropout", "2"], "dropout", "is 2.0; it must be from 0 to 1"),
        (["--dropout", "nan"], "dropout", "is nan; it must be from 0 to 1"),
        (["--save-interval", "0"], "save-interval", "is 0; it must be 1 or more"),
        (["--log-interval", "0"], "log-interval", "is 0; it must be 1 or more"),
        (["--batch-size", "0"], "batch-size", "is 0; it must be 1 or more"),
        (["--adam-betas", "0.9"], "adam-betas", "is 0.9; it must be two numbers below 1"),
        (["--adam-betas", "(0.9, 1)"], "adam-betas", "it must be two numbers below 1"),
        (["--adam-betas", "exit(3)"], "adam-betas", "is exit(3); it must be two numbers below 1"),
        (
            ["--best-checkpoint-metric", "accuracy"],
            "best-checkpoint-metric",
            "add --report-accuracy",
        ),
        (["--best-checkpoint-metric", "bleu"], "best-checkpoint-metric", "add --eval-bleu"),
        (["--best-checkpoint-metric", "los"], "best-checkpoint-metric", "take one of loss, ppl"),
        (["--best-checkpoint-metric", "nll_loss"], "best-checkpoint-metric", "does not report"),
        (
            ["--best-checkpoint-metric", "bleu", "--eval-bleu"],
            "best-checkpoint-metric",
            "the lowest would be kept as the best; add --maximize-best-checkpoint-metric",
        ),
        (
            ["--maximize-best-checkpoint-metric"],
            "maximize-best-checkpoint-metric",
            "would keep the highest loss as the best",
        ),
        (["--max-update", "0"], "max-update", "is missing or 0, so training would never end"),
    ],
)
def test_a_fault_is_named_with_its_flag(words: list[str], flag: str, told: str):
    fault = check("fairseq-train", [*TRAIN, *ADAM, *words])
    assert fault is not None
    assert fault.flag == flag
    assert told in fault.problem


def test_a_training_needs_a_size_of_batches():
    fault = check("fairseq-train", TRAIN[:-2])
    assert fault == ("batch-size", "is missing; fairseq-train needs it or max-tokens")


SMOOTHED = ("--criterion", "label_smoothed_cross_entropy")


@pytest.mark.parametrize(
    "words",
    [
        ("--best-checkpoint-metric", "bleu", "--eval-bleu", "--maximize-best-checkpoint-metric"),
        (
            "--best-checkpoint-metric", "accuracy", "--report-accuracy",
            "--maximize-best-checkpoint-metric",
        ),
        ("--best-checkpoint-metric", "nll_loss"),
        ("--best-checkpoint-metric", "anything", "--disable-validation"),
    ],
)  # fmt: skip
def test_a_number_that_is_reported_may_choose_the_best_checkpoint(words: tuple[str, ...]):
    assert check("fairseq-train", [*TRAIN, *ADAM, *SMOOTHED, *words]) is None


def test_valid_command_lines_pass_and_search_is_checked_too():
    schedule = ("--lr-scheduler", "inverse_sqrt", "--warmup-updates", "9")
    assert check("fairseq-train", [*TRAIN, *ADAM, *schedule]) is None
    assert check("fairseq-generate", ["data", "--task", "tree_translation", "--beam", "5"]) is None
    assert check("fairseq-generate", ["data", "--beam", "0"]) == (
        "beam", "is 0; it must be 1 or more",
    )  # fmt: skip
    fault = check("fairseq-generate", ["data", "--beem", "5"])
    assert fault == ("beem", "fairseq-generate has no such flag; did you mean beam")

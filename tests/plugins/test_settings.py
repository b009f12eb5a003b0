"""Settings of a checkpoint set something, and do nothing else."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairseq
import fairseq_cli
import pytest
import torch
from fairseq import checkpoint_utils, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from reliability.figures import count
from support.translate_helpers import binarize, save_model, write_texts

from treesyntax.__main__ import main
from treesyntax.errors import OptionError, TreeSyntaxError

from fairseq_plugins.literals import EVALUATING, parse_literal  # isort: skip
from fairseq_plugins.settings import check_settings  # isort: skip

ARCH = ("--arch", "tree_sequence_tiny", "--source-lang", "src", "--target-lang", "tgt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("settings")
    write_texts(folder)
    save_model(binarize(folder, "data", "txt", "target"), folder / "whole.pt", *ARCH)
    return folder


def changed(folder: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The checkpoint with other settings."""
    state = torch.load(folder / "whole.pt", weights_only=True)
    change(state["cfg"])
    torch.save(state, to / "m.pt")
    return to / "m.pt"


def evil(trace: Path) -> str:
    return f"__import__('os').mkdir({str(trace)!r})"


FAIRSEQS = {
    "fconv": ("encoder_layers", "decoder_layers", "encoder_attention"),
    "fconv_self_att": ("pretrained", "encoder_layers"),
    "lightconv": ("adaptive_softmax_cutoff", "decoder_conv_kernel_size_list"),
    "lstm": ("decoder_attention", "adaptive_softmax_cutoff"),
    "transformer": ("adaptive_softmax_cutoff",),
    "transformer_lm": ("character_filters", "adaptive_input_cutoff"),
    "hubert": ("conv_feature_layers",),
    "wav2vec": ("conv_feature_layers", "conv_aggregator_layers"),
    "wav2vec2": ("conv_feature_layers",),
}  # fmt: skip
ATTEMPTS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    f"{model}: {key}": ("model", lambda code, model=model, key=key: {"_name": model, key: code})
    for model, keys in FAIRSEQS.items()
    for key in keys
} | {
    "model without a name": ("model", lambda code: {"fconv": {"encoder_layers": code}}),
    "task": ("task", lambda code: {"_name": "audio_pretraining", "post_save_script": code}),
    "old form": ("args", lambda code: {"arch": "fconv", "encoder_layers": code}),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_no_setting_of_a_checkpoint_is_run(name: str, folder: Path, tmp_path: Path, capsys):
    section, make = ATTEMPTS[name]
    trace = tmp_path / "executed"
    values = make(evil(trace))
    namespace = {"section": Namespace(**values)} if section != "args" else {}
    for form in (values, *namespace.values()):
        path = changed(folder, tmp_path, lambda cfg, form=form: cfg.update({section: form}))
        if section == "args":
            state = torch.load(path, weights_only=True)
            torch.save(
                {**state, "args": Namespace(**values, task="translation"), "cfg": None}, path
            )
        assert main(["translate", str(folder / "data"), "--path", str(path), "--cpu",
                     "--input", str(folder / "all.txt")]) == 2  # fmt: skip
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert f"{path}: " in said
        with pytest.raises(TreeSyntaxError, match=re.escape(str(path))):  # as in fairseq-generate
            checkpoint_utils.load_model_ensemble_and_task([str(path)])
        assert not trace.exists()
        count("untrusted: settings of checkpoints")


def test_a_criterion_evaluates_nothing(folder: Path, tmp_path: Path):
    """As in fairseq-validate, which builds the criterion of the checkpoint: refused by name here, and
    even where it is built nothing runs."""
    trace = tmp_path / "executed"
    section = {"_name": "ctc", "wer_args": evil(trace), "zero_infinity": True}
    path = changed(folder, tmp_path, lambda cfg: cfg.update(criterion=section))
    _, cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(path)])
    with pytest.raises(OptionError, match="^--criterion is ctc, for models with other outputs"):
        task.build_criterion(cfg.criterion)
    with pytest.raises(OptionError, match="no literal, and code in settings is not run"):
        tasks.FairseqTask.build_criterion(task, cfg.criterion)
    assert not trace.exists()


WRONG = [
    ("model", "encoder_layers", "two"),
    ("model", "encoder_layers", [2]),
    ("model", "encoder_layers", {"a": 2}),
    ("model", "activation_fn", "no_such"),
    ("model", "dropout", float("nan")),
    ("model", "encoder_injection", "${oc.env:HOME}"),
    ("model", "decoder_injection", b"stack_pe"),
    ("task", "data", "${oc.env:HOME}"),
    ("task", "tree_constraints", "most"),
    ("task", "left_pad_source", torch.ones(2)),
    ("criterion", "sentence_avg", [["deep"] * 3] * 3),
    ("optimizer", "lr", "fast"),
    ("optimizer", "adam_betas", "${hydra:runtime.cwd}"),
    ("common", "user_dir", {"a": 1}),
    ("common", "seed", None),
    ("distributed_training", "distributed_port", "x"),
    ("bpe", "_name", b"x"),
]


@pytest.mark.parametrize(("section", "key", "value"), WRONG)
def test_every_setting_has_the_type_that_its_dataclass_says(
    section, key, value, folder: Path, tmp_path: Path
):
    def change(cfg: dict[str, Any]) -> None:
        cfg[section] = {**(cfg[section] or {}), key: value}

    path = changed(folder, tmp_path, change)
    with pytest.raises(TreeSyntaxError, match=rf"{re.escape(str(path))}: its setting {section}\b"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))  # as a resumed training does


def test_settings_that_hold_themselves_are_refused(folder: Path):
    deep: dict[str, Any] = {}
    deep["common"] = deep
    wide: list[Any] = [1] * 10
    for _ in range(8):
        wide = [wide] * 10
    for cfg in (deep, {"common": wide}):
        with pytest.raises(TreeSyntaxError, match="m.pt: its setting common.* holds too much"):
            check_settings("m.pt", {"cfg": cfg})


def test_our_task_builds_our_models_only(folder: Path):
    words = Namespace(arch="transformer", task="tree_translation", data=str(folder / "data"),
                      source_lang="src", target_lang="tgt")  # fmt: skip
    cfg = convert_namespace_to_omegaconf(words)
    with pytest.raises(OptionError, match="builds no transformer; take an --arch that"):
        tasks.setup_task(cfg.task).build_model(cfg.model)


def test_every_module_of_fairseq_that_evaluates_text_is_known():
    """A newer fairseq that evaluates more fails here."""
    top = Path(fairseq.__file__).parents[1]
    found = {
        ".".join(path.relative_to(top).with_suffix("").parts)
        for package in (fairseq, fairseq_cli)
        for path in Path(package.__file__).parent.rglob("*.py")
        if "examples" not in path.parts
        and re.search(r"(?<![.\w])(eval|exec)\(", path.read_text(encoding="utf-8"))
    }
    # These two evaluate --model-overrides, which is of the command line.
    assert found - {"fairseq_cli.validate", "fairseq_cli.eval_lm"} == {*EVALUATING}


LITERALS = [
    "(0.9, 0.98)",
    "[(512, 3)] * 20",
    "[1] + [2]*3",
    "None",
    " 1e-3",
    "'a'",
    "{'a': -1}",
    "[]",
]


@pytest.mark.parametrize("text", LITERALS)
def test_literals_keep_their_value(text: str):
    assert parse_literal(text) == eval(text)


CODE = ["f()", "a", "[0] * 10**9", "([0] * 9999) * 9999", "(1)(2)", "lambda: 0", "[x for x in ()]",
        "[" * 5000, "a.b", "'a' * 99999", "[1] * True", "2 ** 99999", "f'{1}'", "", "\0"]  # fmt: skip


@pytest.mark.parametrize("text", CODE)
def test_anything_else_is_refused(text: str):
    with pytest.raises(OptionError, match="is no literal"):
        parse_literal(text)
    with pytest.raises(TypeError):
        parse_literal([text])  # type: ignore[arg-type]

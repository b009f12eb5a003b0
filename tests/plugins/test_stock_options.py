"""Options of stock fairseq that reach into a model or a batch: honoured with trees, or refused."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq import options
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY
from fairseq.criterions import label_smoothed_cross_entropy_with_rdrop as r_drop
from fairseq.criterions.label_smoothed_cross_entropy_with_rdrop import (
    RdropLabelSmoothedCrossEntropyCriterion,
)
from fairseq.models.transformer import TransformerModel
from omegaconf import OmegaConf
from plugins.test_trees import TreeTransformer, TreeTransformerConfig, data, model_of, task_of
from support.helpers import batch_of
from torch import Tensor

from fairseq_plugins.flags import check
from fairseq_plugins.limits import CRITERIA
from treesyntax.errors import OptionError
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.trees.tree import Tree

__all__ = ["data"]  # a fixture


@pytest.fixture
def parts(data):
    """A model with dropout over source and target trees, and a batch."""
    task = task_of(data / "lcrs_bfs")
    task.load_dataset("train")
    dataset = task.datasets["train"]
    torch.manual_seed(0)
    methods = {f"{side}_injection": "stack_pe+relation_mask" for side in ("encoder", "decoder")}
    model = model_of(task, dropout=0.4, attention_dropout=0.4, **methods)
    return task, model, dataset.collater([dataset[index] for index in range(6)])


def logits(model, batch) -> Tensor:
    return model(**batch["net_input"])[0]


def inference(**flags: object) -> SimpleNamespace:
    return SimpleNamespace(generation=SimpleNamespace(**flags))


def test_retained_dropout_makes_each_search_another_sample(parts):
    _, model, batch = parts
    model.eval()
    assert torch.equal(logits(model, batch), logits(model, batch))
    model.prepare_for_inference_(inference(retain_dropout=True, retain_dropout_modules=None))
    assert not torch.allclose(logits(model, batch), logits(model, batch))


def test_dropout_is_off_in_search_unless_it_is_retained(parts):
    _, model, batch = parts
    model.eval().prepare_for_inference_(inference())
    assert torch.equal(logits(model, batch), logits(model, batch))


def test_dropout_cannot_be_retained_in_modules_of_other_models(parts):
    asked = inference(retain_dropout=True, retain_dropout_modules=["TransformerDecoder"])
    with pytest.raises(
        OptionError, match="--retain-dropout-modules names modules of fairseq's own"
    ):
        parts[1].prepare_for_inference_(asked)


def test_r_drop_doubles_the_trees(parts):
    task, model, batch = parts
    criterion = RdropLabelSmoothedCrossEntropyCriterion(task, False, 0.1, rdrop_alpha=1.0)
    model.eval()
    plain = RdropLabelSmoothedCrossEntropyCriterion(task, False, 0.1)(model, batch)[0]
    twice, _, logged = criterion(model, batch)
    # Without dropout both passes agree: no divergence, and twice the loss.
    assert logged["rdrop_kl_loss"] == pytest.approx(0, abs=1e-4)
    assert twice.item() == pytest.approx(2 * plain.item(), rel=1e-5)
    model.train()
    assert criterion(model, batch)[2]["rdrop_kl_loss"] > 0


def test_r_drop_doubles_labels_too():
    tree = batch_of([Tree([-1, 0, 0], list("abc")), Tree([-1], ["d"])])
    assert tree.label is not None
    batch = {"src_tokens": torch.ones(2, 4), "source_tree": tree.to_dict()}
    doubled = r_drop.duplicate_input({"net_input": batch})["net_input"]
    found = TreeBatch.from_dict(doubled["source_tree"])
    assert found.label is not None
    assert torch.equal(found.label, tree.label.repeat(2, 1))
    assert torch.equal(found.parent, tree.parent.repeat(2, 1))
    assert len(doubled["src_tokens"]) == 4


@pytest.mark.parametrize("flag", ["encoder_layerdrop", "decoder_layerdrop"])
def test_layers_are_left_out_when_asked(parts, flag):
    task, _, batch = parts
    model = model_of(task, dropout=0.0, **{flag: 0.5}).train()
    found = {round(float(logits(model, batch).detach()[0, 0, 0]), 5) for _ in range(12)}
    assert 1 < len(found) <= 4


def test_activations_may_be_computed_again(parts):
    task, _, batch = parts
    models = [model_of(task, dropout=0.0, checkpoint_activations=asked) for asked in (False, True)]
    models[1].load_state_dict(models[0].state_dict())
    for model in models:
        logits(model.train(), batch).square().mean().backward()
    one, other = (dict(model.named_parameters()) for model in models)
    assert all(torch.allclose(one[name].grad, other[name].grad, atol=1e-6) for name in one)


def flags_of(model) -> dict[str, argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False)
    model.add_args(parser)
    return {flag: action for action in parser._actions for flag in action.option_strings}


STOCK, OURS = flags_of(TransformerModel), flags_of(TreeTransformer)


def test_every_option_of_the_stock_transformer_that_is_not_ours_is_refused_by_name():
    others = {flag for flag in STOCK if flag not in OURS and flag.startswith("--")}
    assert {"--layernorm-embedding", "--quant-noise-pq", "--adaptive-softmax-cutoff",
            "--encoder-embed-path", "--offload-activations"} < others  # fmt: skip
    parser = options.get_training_parser()
    known = {flag for action in parser._actions for flag in action.option_strings}
    assert not others & known, "fairseq-train itself takes these, and nothing would come of it"
    line = (
        "data",
        "--task",
        "tree_translation",
        "--arch",
        "tree_sequence_tiny",
        "--batch-size",
        "8",
    )
    for flag in ("--layernorm-embedding", "--quant-noise-pq"):
        fault = check("fairseq-train", [*line, flag, *["0.1"] * (STOCK[flag].nargs != 0)])
        assert fault.flag == flag.removeprefix("--")
        assert fault.problem.startswith("fairseq-train has no such flag")


def test_alignments_are_refused(data):
    with pytest.raises(OptionError, match="--load-alignments needs attention weights"):
        task_of(data / "lcrs_bfs", load_alignments=True)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"eval_bleu_args": "beam=4"}, "^--eval-bleu-args beam=4 is no JSON object; write"),
        ({"eval_bleu_args": "[4]"}, r"^--eval-bleu-args \[4\] is no JSON object; write"),
        ({"eval_bleu_detok_args": "{"}, "^--eval-bleu-detok-args { is no JSON object; write"),
        ({"eval_bleu_args": '{"beem": 1}'}, "a search is named 'beem'; did you mean 'beam'"),
    ],
)
def test_settings_of_bleu_that_would_be_passed_over_are_refused(data, flags, message):
    with pytest.raises(OptionError, match=message):
        task_of(data / "lcrs_bfs", eval_bleu=True, **flags)
    task_of(data / "lcrs_bfs", **flags)
    task_of(data / "lcrs_bfs", eval_bleu=True, eval_bleu_args='{"beam": 1, "max_len_a": 1.2}')


def test_a_tokenizer_of_bleu_that_is_not_installed_is_told(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    task = task_of(data / "lcrs_bfs", eval_bleu=True, eval_bleu_detok="moses")
    settings = TreeTransformerConfig(_name="tree_transformer", encoder_layers=1, decoder_layers=1)
    with pytest.raises(OptionError, match="^--eval-bleu-detok moses: .* pip install sacremoses$"):
        task.build_model(OmegaConf.structured(settings))


def test_a_search_without_memory_or_output_is_told_in_one_line(parts):
    task, model, batch = parts

    def generate(*words, **named):
        raise AssertionError("min_len cannot be larger than max_len, please adjust these!")

    with pytest.raises(OptionError, match="^min_len cannot be larger than max_len"):
        task.inference_step(SimpleNamespace(generate=generate), [model], batch)


@pytest.mark.parametrize("name", sorted(CRITERION_REGISTRY))
def test_a_criterion_fits_the_models_or_is_refused_by_name(name: str, parts):
    task, model, batch = parts
    if name not in CRITERIA:
        with pytest.raises(OptionError, match=f"^--criterion is {name}, for models with other"):
            task.build_criterion(Namespace(_name=name))
        return
    settings = CRITERION_DATACLASS_REGISTRY[name](_name=name, sentence_avg=False)
    criterion = task.build_criterion(OmegaConf.structured(settings))
    assert criterion(model, batch)[0] > 0


def value_of(action: argparse.Action) -> object:
    """Another value than the default of a flag of a model."""
    if action.nargs == 0:
        return True
    if action.choices:
        default = str(getattr(TreeTransformerConfig(), action.dest))
        return next(choice for choice in reversed(list(action.choices)) if choice != default)
    if action.type is int:
        return 16 if "embed" in action.dest else 1 if "share" in action.dest else 4
    return {float: 0.25, str: "relative_position(clip=3)"}[action.type or str]


@pytest.mark.parametrize("flag", sorted(flag for flag in OURS if flag.startswith("--")))
def test_every_option_that_the_model_takes_changes_it(flag: str, parts):
    task, _, _ = parts
    name = flag.removeprefix("--").replace("-", "_")
    if name == "share_all_embeddings":  # takes one dictionary: tested with architectures
        return
    more = {"decoder_injection": "stack_pe"} if name == "decoder_next_slot" else {}
    value = value_of(OURS[flag])
    widths = {f"{side}_embed_dim": 8 for side in ("encoder", "decoder")}
    small = {"encoder_layers": 2, "decoder_layers": 2, **widths, **more}
    models = [
        TreeTransformer.build_model(TreeTransformerConfig(**{**small, **change}), task)
        for change in ({}, {name: value})
    ]
    one, other = (
        (model.encoder.settings, model.decoder.settings, list(model.state_dict()),
         [p.shape for p in model.parameters()])
        for model in models
    )  # fmt: skip
    assert one != other

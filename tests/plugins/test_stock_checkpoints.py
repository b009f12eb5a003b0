"""Going on from a checkpoint of stock fairseq, and from one of ours with parameters in an older order."""

from __future__ import annotations

import copy
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq.models import build_model
from plugins.test_archs import Task, convert_namespace_to_omegaconf, options
from plugins.test_plugin import data, fairseq, train
from torch import nn

from fairseq_plugins.resume import _check_methods
from fairseq_plugins.training.moments import reorder_moments
from treesyntax.errors import InputError
from treesyntax.model.checkpoint import load_checkpoint

__all__ = ["data"]  # a fixture
SMALL = [
    word
    for side in ("encoder", "decoder")
    for name, size in (("embed-dim", 16), ("ffn-embed-dim", 24), ("layers", 2), ("attention-heads", 2))
    for word in (f"--{side}-{name}", str(size))
]  # fmt: skip


@pytest.mark.parametrize(
    "flags", [[], ["--share-all-embeddings"], ["--encoder-normalize-before"], ["--decoder-learned-pos"]]
)  # fmt: skip
def test_parameters_are_in_the_order_of_fairseq(flags: list[str]):
    def names(arch: str, task: str, *more: str) -> list[str]:
        words = ["data", "--task", task, "--arch", arch, *SMALL, *flags, *more]
        args = options.parse_args_and_arch(options.get_training_parser(), words)
        model = build_model(convert_namespace_to_omegaconf(args).model, Task())
        return [name for name, _ in model.named_parameters()]

    stock = names("transformer", "translation")
    assert names("tree_sequence", "tree_translation") == stock
    methods = ("--encoder-injection", "relation_mask", "--decoder-injection", "relative_position",
               "--encoder-positions", "absolute", "--decoder-positions", "absolute")  # fmt: skip
    ours = names("tree_sequence", "tree_translation", *methods)
    for side in ("encoder", "decoder"):
        shared = [name for name in stock if name.startswith(side)]
        own = [name for name in ours if name.startswith(side)]
        assert own[: len(shared)] == shared, "methods come after what is shared"
        assert all(".injections." in name for name in own[len(shared) :])


def test_a_training_of_stock_fairseq_goes_on(data: Path, tmp_path: Path):
    one_batch = ("--max-tokens", "9999", "--required-batch-size-multiple", "1", "--dropout", "0",
                 "--disable-validation", "--optimizer", "adam", "--lr", "0.01", *SMALL)  # fmt: skip

    def stock(save: Path, updates: int) -> None:
        done = fairseq(
            "train", data / "plain", "--task", "translation", "--arch", "transformer",
            "--max-update", str(updates), "--save-dir", save, "--no-epoch-checkpoints", "--cpu",
            "--user-dir", Path(__file__).parents[2] / "fairseq_plugins", *one_batch,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    stock(tmp_path / "stock", 3)
    (tmp_path / "ours").mkdir()
    last = "checkpoint_last.pt"
    (tmp_path / "ours" / last).write_bytes((tmp_path / "stock" / last).read_bytes())
    begin = load_checkpoint(tmp_path / "ours" / last)["model"]
    stock(tmp_path / "stock", 6)
    done = train(
        data / "plain", tmp_path / "ours", "--max-update", "6", *one_batch, arch="tree_sequence"
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = (load_checkpoint(tmp_path / name / last) for name in ("ours", "stock"))
    assert ours["optimizer_history"][-1]["num_updates"] == 6
    moved = 0
    for name, tensor in theirs["model"].items():
        if not name.endswith("k_proj.bias"):  # its gradient is rounding, which Adam makes large
            assert torch.allclose(tensor, ours["model"][name], atol=1e-5), name
            moved += not torch.allclose(tensor, begin[name], atol=1e-3)
    assert moved > 40


class Parts(nn.Module):
    """Three parameters, of which two have one shape, in a given order."""

    def __init__(self, *order: str) -> None:
        super().__init__()
        for name in order:
            self.register_parameter(
                name, nn.Parameter(torch.full((2,) if name != "c" else (3,), 1.0))
            )
        self.frozen = nn.Parameter(torch.zeros(4), requires_grad=False)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        sum(k * (p**2).sum() for k, p in enumerate(map(self.get_parameter, "abc"), 1)).backward()
        optimizer.step()


def adam(model: nn.Module) -> torch.optim.Adam:
    return torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.1)


def test_moments_of_an_older_order_go_to_their_parameters():
    older, newer = Parts("b", "c", "a"), Parts("a", "b", "c")
    optimizer = adam(older)
    for _ in range(2):
        older.step(optimizer)
    state = {"model": older.state_dict(), "last_optimizer_state": optimizer.state_dict()}
    state = copy.deepcopy(state)
    newer.load_state_dict(state["model"])
    reorder_moments(state, newer, "x.pt")
    other = adam(newer)
    other.load_state_dict(state["last_optimizer_state"])
    older.step(optimizer)
    newer.step(other)
    for name in "abc":
        assert torch.equal(older.get_parameter(name), newer.get_parameter(name))


def test_moments_in_one_vector_are_cut_and_put_together_again():
    older, newer = Parts("b", "c", "a"), Parts("a", "b", "c")
    vector = torch.tensor([1.0, 1, 2, 2, 2, 3, 3])
    moments = {"state": {0: {"step": 4, "exp_avg": vector}}, "param_groups": [{"params": [0]}]}
    state = {"model": older.state_dict(), "last_optimizer_state": moments}
    reorder_moments(state, newer, "x.pt")
    assert moments["state"][0]["exp_avg"].tolist() == [3, 3, 1, 1, 2, 2, 2]
    assert moments["state"][0]["step"] == 4


def test_what_cannot_be_told_is_refused_and_what_is_in_order_stays():
    older, newer = Parts("b", "c", "a"), Parts("a", "b", "c")
    groups = [{"params": [0, 1]}, {"params": [2]}]
    moments = {"state": {0: {"x": torch.ones(2)}}, "param_groups": groups}
    state = {"model": older.state_dict(), "last_optimizer_state": moments}
    with pytest.raises(InputError, match=r"x\.pt: the state of its .* or add --reset-optimizer"):
        reorder_moments(state, newer, "x.pt")
    before = copy.deepcopy(moments)
    reorder_moments({**state, "model": newer.state_dict()}, newer, "x.pt")
    assert str(before) == str(moments)


def test_other_methods_or_positions_than_those_of_the_checkpoint_are_refused():
    then = {"encoder_injection": "relative_position", "decoder_injection": "none",
            "encoder_positions": "auto"}  # fmt: skip
    _check_methods({"cfg": {"model": then}}, Namespace(**then), "x.pt")
    _check_methods({"cfg": {"model": {"arch": "transformer"}}}, Namespace(**then), "x.pt")
    for change in ({"decoder_injection": "relative_position"}, {"encoder_positions": "absolute"}):
        flag = next(iter(change)).replace("_", "-")
        with pytest.raises(
            InputError, match=rf"x\.pt: was trained with --{flag} '.*go on with --{flag}"
        ):
            _check_methods({"cfg": {"model": then}}, Namespace(**{**then, **change}), "x.pt")

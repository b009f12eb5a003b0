"""The mean of checkpoints, against a loop over numbers."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from treesyntax.__main__ import main
from treesyntax.analysis.facts import count_parameters
from treesyntax.commands.average import average, find_checkpoints
from treesyntax.model.checkpoint import load_checkpoint


def state_of(number: int, **others: torch.Tensor) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(number)
    tied = torch.randn(3, 2, generator=generator)
    model = {
        "embed.weight": tied, "out.weight": tied, "fc.weight": tied[1:],
        "half": torch.randn(4, generator=generator).half(), "step": torch.tensor([number]), **others,
    }  # fmt: skip
    return {
        "model": model, "cfg": Namespace(arch="x"), "extra_state": {"val_loss": number},
        "optimizer_history": [{"num_updates": number}], "last_optimizer_state": {"state": tied},
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (9, 10, 200):
        torch.save(state_of(number), tmp_path / f"checkpoint_1_{number}.pt")
    torch.save(state_of(1), tmp_path / "checkpoint3.pt")
    torch.save(state_of(2), tmp_path / "checkpoint_best.pt")
    return tmp_path


def test_it_is_the_mean_of_the_last(folder: Path, capsys):
    out = folder / "new" / "mean.pt"
    out.parent.mkdir()
    assert main(["average", str(folder), "--last", "2", "--out", str(out)]) == 0
    assert capsys.readouterr().out == (
        f"{out}: the mean of checkpoint_1_10.pt, checkpoint_1_200.pt\n"
    )
    found, last = load_checkpoint(out), state_of(200)
    models = [state_of(10)["model"], last["model"]]
    for name, tensor in found["model"].items():
        assert tensor.dtype == models[1][name].dtype
        for place, value in enumerate(tensor.flatten().tolist()):
            values = [float(model[name].flatten()[place]) for model in models]
            wanted = values[1] if name == "step" else sum(values) / 2
            assert value == pytest.approx(wanted, rel=1e-3 if name == "half" else 1e-6)
    # Tied weights are one tensor still; what is a part of another is not.
    assert count_parameters(found["model"]) == 6 + 4 + 4 + 1
    assert found["extra_state"] == last["extra_state"]
    assert found["optimizer_history"] == last["optimizer_history"]
    assert "last_optimizer_state" not in found


def test_one_checkpoint_is_its_own_mean(folder: Path):
    (only,) = find_checkpoints(folder)[-1:]
    model, expected = average([only])["model"], state_of(200)["model"]
    assert all(torch.equal(model[name], expected[name]) for name in expected)
    assert [path.name for path in find_checkpoints(folder)] == [
        "checkpoint_1_9.pt", "checkpoint_1_10.pt", "checkpoint_1_200.pt",
    ]  # fmt: skip


def model_settings(**changes: object) -> dict[str, Any]:
    """The settings of a checkpoint, in one of two forms, which a training may mix."""
    flags = {
        "encoder_injection": "relation_mask",
        "decoder_normalize_before": False,
        "dropout": 0.1,
        **changes,
    }
    model = Namespace(**flags) if changes else flags
    return {"cfg": {"common": {"seed": 1}, "model": model}}


@pytest.mark.parametrize(
    ("what", "left"),
    [
        ("seed", {"cfg": {"common": {"seed": 2}}}),
        ("data", {"task_state": {"data": {"source": {"dictionary": "b"}}}}),
        ("--encoder-injection", model_settings(encoder_injection="tree_distance")),
        ("--decoder-normalize-before", model_settings(decoder_normalize_before=True)),
    ],
)
def test_what_an_earlier_training_has_left_is_refused(folder: Path, capsys, what: str, left: dict):
    """fairseq deletes the checkpoints with the lowest updates, so the new ones are mixed with the old ones."""
    own = {**model_settings(), "task_state": {"data": {"source": {"dictionary": "a"}}}}
    torch.save({**state_of(200), **own}, folder / "checkpoint_1_200.pt")
    torch.save({**state_of(10), **own, **left}, folder / "checkpoint_1_10.pt")
    words = ["average", str(folder), "--last", "2", "--out", str(folder / "mean.pt")]
    assert main(words) == 2
    message = (
        f"checkpoint_1_10.pt: is of another {what} than checkpoint_1_200.pt; average one train"
    )
    assert message in capsys.readouterr().err
    for unrecorded in (
        {},
        model_settings(dropout=0.3),
        {"task_state": None},
        {"cfg": None},
        {"task_state": {"data": {}}},
    ):
        torch.save({**state_of(10), **own, **unrecorded}, folder / "checkpoint_1_10.pt")
        assert main(words) == 0


def test_epochs_serve_where_there_are_no_updates(folder: Path):
    for path in folder.glob("checkpoint_1_*.pt"):
        path.unlink()
    torch.save(state_of(1), folder / "checkpoint12.pt")
    assert [path.name for path in find_checkpoints(folder)] == ["checkpoint3.pt", "checkpoint12.pt"]


@pytest.mark.parametrize("fault", ["none", "no folder", "few", "damaged", "other", "number"])
def test_faults_are_one_line_and_nothing_is_written(folder: Path, capsys, fault: str):
    out, last = folder / "out" / "mean.pt", "3"
    out.parent.mkdir()
    if fault == "none":
        folder, told = out.parent, "has no checkpoint_EPOCH_UPDATE.pt and no checkpointEPOCH.pt"
    elif fault == "no folder":
        folder, told = folder / "gone", "gone: is no folder; give the one that has the checkpoints"
    elif fault == "few":
        last, told = "4", "has 3 checkpoints, not 4; give --last 3, train longer, or save and keep"
    elif fault == "damaged":
        (folder / "checkpoint_1_9.pt").write_bytes(b"x")
        told = "checkpoint_1_9.pt: "
    elif fault == "other":
        torch.save(state_of(9, more=torch.ones(1)), folder / "checkpoint_1_9.pt")
        told = "checkpoint_1_9.pt: is of another model than checkpoint_1_200.pt"
    else:
        last, told = "0", "--last 0: give 1 or more"
    assert main(["average", str(folder), "--last", last, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not list(out.parent.iterdir())


@pytest.mark.parametrize("number", [10, 200])
def test_weights_that_are_no_numbers_are_refused(folder: Path, capsys, number: int):
    state = state_of(number)
    state["model"]["fc.weight"][0, 1] = float("nan" if number == 10 else "inf")
    torch.save(state, folder / f"checkpoint_1_{number}.pt")
    out = folder / "mean.pt"
    assert main(["average", str(folder), "--last", "2", "--out", str(out)]) == 2
    message = f"checkpoint_1_{number}.pt: embed.weight holds NaN or infinity; the training diverged"
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_checkpoint_is_not_replaced_by_its_mean(folder: Path, capsys):
    out = folder / "checkpoint_1_10.pt"
    before = out.read_bytes()
    assert main(["average", str(folder), "--last", "2", "--out", str(out)]) == 2
    assert "is one of the checkpoints to average; name another file" in capsys.readouterr().err
    assert out.read_bytes() == before

"""GPUs are shared out among the commands of a study."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.study_helpers import write_recipe
from support.study_runs import journal, start_forked, study

from treesyntax.commands.study import check_gpus
from treesyntax.errors import OptionError
from treesyntax.jobs.cluster import Cluster
from treesyntax.study.run.process import PROGRAMS, Devices, read_slots, safe_environment


def gpus_seen(folder: Path) -> dict[str, set[str]]:
    """CUDA_VISIBLE_DEVICES of each stand-in, by program."""
    seen: dict[str, set[str]] = {}
    for words in journal(folder):
        if words[0] == "gpus":
            seen.setdefault(words[1], set()).add(words[2])
    return seen


def test_commands_share_out_the_gpus(tmp_path: Path):
    write_recipe(tmp_path, seeds=[1])
    process = study(tmp_path, "--gpus", "4,5", "6,7", start=start_forked)
    assert process.returncode == 0
    assert "2 at once" in process.output()
    seen = gpus_seen(tmp_path)
    assert seen["fairseq-train"] == {"4,5", "6,7"}
    assert seen["fairseq-generate"] <= {"4", "6"}
    assert "treesyntax" not in seen


def test_a_gpu_goes_to_whom_has_fewest_users():
    devices = Devices(["0", "1"], {})
    assert [devices.take("fairseq-train") for _ in range(3)] == ["0", "1", "0"]
    devices.give("1")
    assert devices.take("fairseq-generate") == "1"
    assert devices.take("python") == ""
    assert devices.environment("fairseq-train", "") == {}


def test_commands_without_gpus_of_their_own_share_the_first_one():
    """fairseq would train on all that it sees, with batches as many times as large."""
    devices = Devices([], {})
    slots = [devices.take("fairseq-train") for _ in range(2)]
    assert [devices.environment("fairseq-train", slot) for slot in slots] == [
        {"CUDA_VISIBLE_DEVICES": "0"}
    ] * 2
    assert devices.take("python") == ""
    for given in ("", "-1"):  # the CPU
        assert Devices([], {"CUDA_VISIBLE_DEVICES": given}).take("fairseq-train") == ""


def test_gpus_are_read():
    assert read_slots(None, {}) == ()
    assert read_slots(None, {"CUDA_VISIBLE_DEVICES": "3"}) == ("3",)
    assert read_slots(None, {"CUDA_VISIBLE_DEVICES": ""}) == ()
    assert read_slots(None, {"CUDA_VISIBLE_DEVICES": "-1"}) == ()
    assert read_slots(None, {"CUDA_VISIBLE_DEVICES": "3,1"}) == ("3", "1")
    assert read_slots(["0", "1"], {"CUDA_VISIBLE_DEVICES": "3,1"}) == ("0", "1")
    for gpus in (["0", "0"], ["0,1", "1,2"], ["0,"]):
        with pytest.raises(OptionError, match=f"--gpus {' '.join(gpus)}: name each GPU once"):
            read_slots(gpus, {})
    with pytest.raises(OptionError, match="give each run as many GPUs, since batches grow"):
        read_slots(["0,1", "2"], {})


def test_the_working_folder_is_kept_off_the_import_path_of_our_programs_only():
    ours, path = PROGRAMS["treesyntax"], os.pathsep.join(("", ".", "/a", "b", "/c d"))
    assert safe_environment(ours, {"PYTHONPATH": path}) == {
        "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(("/a", "/c d")),
    }  # fmt: skip
    assert safe_environment(ours, {}) == {"PYTHONSAFEPATH": "1"}
    assert safe_environment(("python", "make_data.py"), {"PYTHONPATH": path}) == {}


def test_what_a_launcher_has_left_does_not_reach_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As in a shell of a container: fairseq refused to train, and accelerate waited without end."""
    write_recipe(tmp_path, seeds=[1])
    for name, value in {"WORLD_SIZE": "8", "RANK": "3", "LOCAL_RANK": "3"}.items():
        monkeypatch.setenv(name, value)
    process = study(tmp_path)
    assert process.returncode == 0, process.output()


def test_gpus_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch):
    for name in ("x", "-1", "0:1"):
        with pytest.raises(OptionError, match="is no number of a GPU"):
            read_slots([name], {})
    assert read_slots(["GPU-8a3f/0"], {}) == ("GPU-8a3f/0",)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(OptionError, match="--gpus 0: there is no GPU"):
        check_gpus(("0",))


def test_a_misspelt_setting_of_a_cluster_leaves_nothing_behind(tmp_path: Path):
    pytest.importorskip("submitit")
    with pytest.raises(OptionError, match="'foo'.*such as slurm_partition=gpu"):
        Cluster("local", tmp_path, {"foo": 5})
    assert not any(tmp_path.iterdir())

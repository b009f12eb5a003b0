"""Two processes, or gradients collected over several batches, train as one process does.

fairseq-train itself, over gloo on a CPU. Its default backend, PyTorch's, wants a GPU; here it does
without, see `fairseq_jobs`, so that its checks of unused parameters are in force.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from reliability.fairseq_jobs import (
    SOAK,
    binarize_texts,
    environment,
    flags_of,
    losses,
    parameters,
    train,
    train_by_two,
    training_words,
)  # fmt: skip
from support import ROOT
from support.forked_programs import Fork

from treesyntax.methods import METHODS
from treesyntax.model.checkpoint import load_checkpoint

BACKENDS = ("legacy_ddp", "pytorch_ddp")
LINEARIZATIONS = ("nary_bfs", "nary_dfs", "lcrs_bfs")
SPECS = ["everything", *(METHODS if SOAK else [])]
CASES = [
    (spec, LINEARIZATIONS[number % len(LINEARIZATIONS)], backend)
    for number, spec in enumerate(SPECS)
    for backend in BACKENDS
]
UNEVEN = CASES if SOAK else CASES[:1]
UPDATES = 8 if SOAK else 5
TOLERANCE = 2e-5
# Plain descent with momentum: Adam divides by the size of gradients, and would make a step out of
# the rounding of one that is 0, such as that of the biases of keys.
DESCENT = ["--optimizer", "nag", "--momentum", 0.9, "--lr", 0.05, "--max-update", UPDATES]


def assert_close(first: Fork, second: Fork, tolerance: float = TOLERANCE) -> None:
    one, other = parameters(first), parameters(second)
    assert list(one) == list(other)
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], atol=tolerance, rtol=0, msg=name)


def assert_moved(job: Fork, start: Fork) -> None:
    """Every parameter that was learned has changed; else equality would say nothing."""
    one, other = parameters(job), parameters(start)
    still = [name for name, value in one.items() if torch.equal(value, other[name])]
    known = ("version", "_float_tensor", "k_proj.bias")
    assert not [name for name in still if not name.endswith(known)]


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory) -> Callable[..., Fork]:
    """Trainings by one process in one batch, each done once: methods, order of trees, options."""

    @cache
    def trained(spec: str, linearization: str, *more: object) -> Fork:
        flags = [*DESCENT, *flags_of(spec), "--batch-size", 32, *more]
        return train(data / linearization, tmp_path_factory.mktemp("one"), *flags)

    return trained


@pytest.mark.skipif(
    not SOAK, reason="the test of gradients collected by two compares the same; runs with make soak"
)
@pytest.mark.parametrize(("spec", "linearization", "backend"), CASES)
def test_two_processes_equal_one_with_the_same_global_batch(
    spec, linearization, backend, data: Path, undisturbed, tmp_path: Path
):
    flags = [*DESCENT, *flags_of(spec)]
    one = undisturbed(spec, linearization)
    two = train_by_two(
        data / linearization, tmp_path / "two", *flags, "--batch-size", 16, "--ddp-backend", backend
    )
    assert losses(two) == pytest.approx(losses(one), abs=2e-3)
    assert len(losses(two)) == UPDATES
    assert_close(one, two)
    assert_moved(one, undisturbed(spec, linearization, "--lr", 0, "--max-update", 1))


@pytest.mark.parametrize(("spec", "linearization", "backend"), UNEVEN)
def test_uneven_shards_equal_gradients_collected_by_one_process(
    spec, linearization, backend, data: Path, tmp_path: Path
):
    """32 formulas in batches of 11 are 3 batches: the second process idles in each second step."""
    flags = [*DESCENT, *flags_of(spec), "--batch-size", 11]
    one = train(data / linearization, tmp_path / "one", *flags, "--update-freq", 2)
    two = train_by_two(data / linearization, tmp_path / "two", *flags, "--ddp-backend", backend)
    assert losses(two) == pytest.approx(losses(one), abs=2e-3)
    assert_close(one, two)


@pytest.mark.parametrize(("spec", "linearization"), list(dict.fromkeys(case[:2] for case in CASES)))
def test_gradients_collected_over_batches_equal_one_batch(
    spec, linearization, data: Path, undisturbed, tmp_path: Path
):
    """Dropout aside, 4 batches of 8 are one of 32; in two processes, 2 each."""
    flags = [*DESCENT, *flags_of(spec), "--batch-size", 8]
    one = undisturbed(spec, linearization)
    if SOAK:  # the test above does so too
        four = train(data / linearization, tmp_path / "four", *flags, "--update-freq", 4)
        assert_close(one, four)
    flags += ["--update-freq", 2, "--ddp-backend", "pytorch_ddp"]
    both = train_by_two(data / linearization, tmp_path / "both", *flags)
    assert losses(both) == pytest.approx(losses(one), abs=2e-3)
    assert len(losses(both)) == UPDATES
    assert_close(one, both)
    assert_moved(one, undisturbed(spec, linearization, "--lr", 0, "--max-update", 1))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trees of one node, sources that are empty on every other line: hardly any pair occurs."""
    folder = tmp_path_factory.mktemp("bare")
    return binarize_texts(folder, "nary_dfs", "p\n\n" * 8, "q\nr\n" * 8)


@pytest.mark.parametrize("spec", SPECS)
def test_parameters_that_no_pair_of_a_batch_uses(spec, bare: Path, tmp_path: Path):
    """PyTorch's backend stops at the second step if any parameter had no gradient in the first."""
    flags = [*DESCENT, *flags_of(spec)]
    one = train(bare, tmp_path / "one", *flags, "--batch-size", 2, "--update-freq", 2)
    two = train_by_two(
        bare, tmp_path / "two", *flags, "--batch-size", 2, "--ddp-backend", "pytorch_ddp"
    )
    assert losses(two) == pytest.approx(losses(one), abs=2e-3)
    assert_close(one, two)


OPTIONS = [
    "stack_pe(parameters=0)",
    "stack_pe(learned=False, projection='plain')",
    "relation_mask(relations='parent, near=left_sibling|right_sibling', learned=False)",
    "relation_mask(per_layer=False, per_head=False)",
    "relative_depth(keys=False)+relative_position(values=False)",
    "relative_position(per_head=True)",
]


@pytest.mark.skipif(not SOAK, reason="the test above has the same fault; runs with make soak")
@pytest.mark.parametrize("spec", OPTIONS)
def test_options_that_leave_parameters_out(spec, data: Path, undisturbed, tmp_path: Path):
    flags = [*DESCENT, *flags_of(spec)]
    two = train_by_two(data / "nary_dfs", tmp_path / "two", *flags, "--ddp-backend", "pytorch_ddp")
    assert_close(undisturbed(spec, "nary_dfs"), two)


def test_two_processes_stop_and_go_on(data: Path, tmp_path: Path):
    """Resuming by two processes: the first one reads the checkpoint and tells the other."""
    folder, spec = data / "nary_dfs", "everything" if SOAK else "relation_mask"
    flags = [*DESCENT, *flags_of(spec), "--batch-size", 5, "--ddp-backend", "pytorch_ddp"]
    flags += ["--update-epoch-batch-itr", "True"]
    whole = train_by_two(folder, tmp_path / "whole", *flags)
    train_by_two(folder, tmp_path / "half", *flags, "--max-update", 3)
    (tmp_path / "half/rendezvous").unlink(missing_ok=True)
    resumed = train_by_two(folder, tmp_path / "half", *flags)
    assert "@ 3 updates)" in resumed.output()
    assert_close(whole, resumed, tolerance=0)


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """An environment in which the shell finds the programs of the documentation."""
    modules = {
        "torchrun": "torch.distributed.run", "fairseq-train": "fairseq_cli.train", "treesyntax": "treesyntax",
    }  # fmt: skip
    for name, module in modules.items():
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
        file.chmod(0o755)
    found = environment()
    return {**found, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{found['PATH']}"}


@pytest.mark.skipif(not SOAK, reason="two torchrun from the start; runs with make soak")
def test_torchrun_of_the_documentation_on_two_machines(
    data: Path, tmp_path: Path, programs: dict[str, str]
):
    """Both are this machine: only their addresses differ from the printed command."""
    flags = [*DESCENT, *flags_of("relation_mask")]
    one = train(data / "nary_dfs", tmp_path / "one", *flags, "--batch-size", 32)
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "docs/cluster.md").read_text("utf-8"), re.S)
    (command,) = (block for block in blocks if "torchrun" in block and "--cpu" in block)
    words = training_words(data / "nary_dfs", tmp_path / "two", *flags, "--batch-size", 16)
    given = " ".join(words[words.index("--task") :])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for printed, meant in {
        "DATA": words[0], "checkpoints": str(tmp_path / "two"), "…": given,
        "node1:29500": f"127.0.0.1:{port} --local-addr 127.0.0.1",
    }.items():  # fmt: skip
        assert command.count(printed) == 1
        command = command.replace(printed, meant)
    logs = [tmp_path / f"node-{node}.txt" for node in (0, 1)]
    nodes = []
    for log in logs:
        with log.open("wb") as stream:
            nodes.append(
                subprocess.Popen(
                    ["bash", "-c", command],
                    stdout=stream,
                    stderr=stream,
                    env=programs,
                    start_new_session=True,
                )
            )
    try:
        for node, log in zip(nodes, logs, strict=True):
            assert node.wait(300) == 0, log.read_text()[-4000:]
    finally:
        for node in nodes:
            if node.poll() is None:
                os.killpg(node.pid, signal.SIGTERM)  # torchrun then ends what it has started
                node.wait(60)
    said = [log.read_text() for log in logs]
    assert sum("distributed init (rank 0)" in text for text in said) == 1
    assert sum("distributed init (rank 1)" in text for text in said) == 1
    first, other = parameters(one), load_checkpoint(tmp_path / "two/checkpoint_last.pt")["model"]
    assert list(first) == list(other)
    for name, value in first.items():
        torch.testing.assert_close(value, other[name], atol=TOLERANCE, rtol=0, msg=name)

"""Killed and interrupted studies go on where they were, over stand-ins for the real programs."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from reliability.figures import amount
from support import ROOT, wait_until
from support.fake_programs import UPDATES
from support.study_helpers import write_recipe
from support.study_runs import (
    alive,
    check_complete,
    commands_in,
    done_steps,
    journal,
    start_forked,
    start_process,
    study,
    wait_for_events,
)  # fmt: skip

from treesyntax.jobs.interrupts import STOP_SIGNALS, raise_if_asked, stop_signals_interrupt
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.executor import Executor
from treesyntax.study.run.plan import make_plan
from treesyntax.study.run.process import resolve


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are tied on Linux only")
def test_kill_9_anywhere_loses_nothing_and_repeats_nothing(tmp_path: Path):
    write_recipe(tmp_path, seeds=[1])
    choose = random.Random(7)
    for kill in range(amount(5, 8)):
        process = study(tmp_path, "--jobs", "2", wait=False, start=start_process)
        wait_for_events(tmp_path, len(journal(tmp_path)) + choose.randint(1, 9), process)
        time.sleep(choose.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.05)  # for a line that was being written
        events = journal(tmp_path)
        # On a busy machine a child that was killed is there for a while, but it does nothing more.
        wait_until(lambda: not any(alive(int(words[-1])) for words in journal(tmp_path)), 20)
        assert journal(tmp_path) == events, "children outlive a killed study"
        noted = [len(commands_in(tmp_path, "start")), sorted(done_steps(tmp_path))]
        (tmp_path / f"kill-{kill}").write_text(json.dumps(noted))
    last = study(tmp_path)
    assert last.returncode == 0, last.output()
    check_complete(tmp_path)
    check_no_repeats(tmp_path)


def check_no_repeats(folder: Path) -> None:
    starts = commands_in(folder, "start")
    plan = make_plan(read_recipe(folder / "recipe.yaml"))
    replace = {"{out}": str(folder / "out"), "{plugins}": str(ROOT / "fairseq_plugins")}
    label = {
        step.name: " ".join(resolve(step.command, {}, replace)).replace(" ", "\x1f")
        for step in plan.steps
    }
    assert set(label.values()) == set(starts)
    for file in folder.glob("kill-*"):  # a step that was noted as done is never started again
        count, done = json.loads(file.read_text())
        assert not {label[name] for name in done} & set(starts[count:])
    # Training goes on from its last checkpoint: an update is made anew at most once for each kill.
    kills = len(list(folder.glob("kill-*")))
    updates = [tuple(words[1:3]) for words in journal(folder) if words[0] == "update"]
    assert len(set(updates)) == 3 * UPDATES
    assert len(updates) <= 3 * UPDATES + 2 * kills


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_children_and_the_study_goes_on_later(
    tmp_path: Path, number: signal.Signals
):
    write_recipe(tmp_path, seeds=[1])
    process = study(tmp_path, wait=False, start=start_process)
    wait_for_events(tmp_path, 9, process)
    process.send_signal(number)
    assert process.wait() == 130
    # A child that the signal met in the middle of its start is killed by the kernel, a moment later.
    late = time.monotonic() + 5
    while any(alive(int(words[-1])) for words in journal(tmp_path)):
        assert time.monotonic() < late
        time.sleep(0.01)
    assert study(tmp_path).returncode == 0
    check_complete(tmp_path)


class Finalised:
    """Sends this process a signal where Python drops what the handler raises."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


@pytest.fixture
def heeds_signals() -> Iterator[None]:
    """Also where the tests are a background job, which ignores some."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_whose_exception_is_dropped_is_remembered(
    number: signal.Signals, heeds_signals: None
):
    with pytest.raises(KeyboardInterrupt), stop_signals_interrupt():
        try:
            Finalised(number)
        except KeyboardInterrupt:  # Python would have told
            pytest.fail("nothing was dropped")
        raise_if_asked()
    raise_if_asked()  # the next command begins anew


def test_a_study_heeds_a_signal_whose_exception_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    collect = Executor._collect

    def finalise_and_collect(self: Executor) -> None:
        if self.done and not hasattr(self, "was_signalled"):
            self.was_signalled = True
            Finalised(signal.SIGTERM)
        collect(self)

    write_recipe(tmp_path, seeds=[1])
    with monkeypatch.context() as patch:
        patch.setattr(Executor, "_collect", finalise_and_collect)
        assert study(tmp_path, start=start_forked).returncode == 130
    assert study(tmp_path).returncode == 0
    check_complete(tmp_path)

"""Programs as forks of a server that has loaded what they need: the same as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import wait_until
from support.study_runs import alive

from treesyntax.jobs import processes
from treesyntax.jobs.preloaded import Preloaded

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks are for Linux")
PROGRAM = """
import atexit, json, os, signal, sys, time
def told():
    status = open("/proc/self/status").read().split()
    return {
        "name": __name__, "words": sys.argv[1:], "folder": os.getcwd(), "color": os.environ.get("COLOR"),
        "group": os.getpgid(0) == os.getsid(0) == os.getpid(), "input": sys.stdin.read(),
        "safe": "" not in sys.path and os.getcwd() not in sys.path, "main": sys.modules["__main__"].__spec__.name,
        "heeds": signal.getsignal(signal.SIGINT) is signal.default_int_handler, "open": sorted(map(int, os.listdir("/proc/self/fd")))[:3],
    }
if __name__ == "__main__":
    print(json.dumps(told()))
    print("to the log", file=sys.stderr)
    atexit.register(lambda: print("at the end"))
    if "fail" in sys.argv:
        raise ValueError("as asked")
    if "sleep" in sys.argv:
        print("asleep", flush=True)
        time.sleep(60)
    sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "sayer.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def programs(folder: Path) -> Iterator[Preloaded]:
    found = Preloaded(folder / "server.log", {}, 2, ["json", "sayer"], ["sayer"])
    yield found
    found.close()


def sayer(*words: object) -> list[str]:
    return [sys.executable, "-P", "-m", "sayer", *map(str, words)]


Start = Callable[..., processes.Process]


def ready(programs: Preloaded, folder: Path) -> Start:
    """The first command launches the server, and is a process of its own."""
    first = programs.start(sayer(0), folder / "first.log", None, {})
    assert isinstance(first, subprocess.Popen)
    assert first.wait() == 0
    wait_until(lambda: programs.read() or programs.ready)
    return programs.start


def outcome(start: Start, folder: Path, *words: object) -> tuple[int, str, str]:
    out, log = folder / "out", folder / "logs" / "log"
    log.unlink(missing_ok=True)
    child = start(sayer(*words), log, out, {"COLOR": "blue"})
    code = child.wait()
    assert child.poll() == child.returncode == code
    return code, out.read_text(), log.read_text()


@pytest.mark.parametrize("words", [(0, "ä b"), (3,), (0, "fail")])
def test_a_fork_is_the_same_as_a_process(
    folder: Path, programs: Preloaded, words: tuple[object, ...]
):
    start = ready(programs, folder)
    wanted, found = (outcome(one, folder, *words) for one in (processes.start, start))
    assert found[:2] == wanted[:2]
    assert found[2].splitlines()[0] == wanted[2].splitlines()[0] == "to the log"
    assert found[2].splitlines()[-1] == wanted[2].splitlines()[-1]
    said = json.loads(found[1].splitlines()[0])
    assert (said["name"], said["color"], said["group"]) == ("__main__", "blue", True)
    assert (said["words"], said["folder"]) == ([str(word) for word in words], str(folder))
    assert found[1].endswith("at the end\n")


def test_after_an_edit_of_what_is_loaded_a_program_is_a_process_of_its_own(
    folder: Path, programs: Preloaded
):
    """A fork would run the former code, while the study records the new one."""
    helper, lib = folder / "lib" / "loaded_before.py", folder / "lib" / "sayer.py"
    helper.write_text("COLOR = 'red'\n")
    lib.write_text(
        "import loaded_before, time\nprint(loaded_before.COLOR, flush=True)\ntime.sleep(1)\n"
    )
    programs.loaded = ["loaded_before"]
    start = ready(programs, folder)
    before = start(sayer(), folder / "before", None, {})
    assert not isinstance(before, subprocess.Popen)
    wait_until(lambda: (folder / "before").exists() and (folder / "before").read_text())
    helper.write_text("COLOR = 'green'\n")
    after = [start(sayer(), folder / f"after{number}", None, {}) for number in range(2)]
    assert [child.wait() for child in (before, *after)] == [0, 0, 0]
    said = [(folder / name).read_text() for name in ("before", "after0", "after1")]
    assert said == ["red\n", "green\n", "green\n"]


def test_forks_run_at_once_and_are_polled(folder: Path, programs: Preloaded):
    start = ready(programs, folder)
    logs = [folder / f"{number}.log" for number in range(3)]
    children = [start(sayer(0, "sleep"), log, None, {}) for log in logs]
    assert len({child.pid for child in children}) == 3
    wait_until(lambda: all(log.exists() and "asleep" in log.read_text() for log in logs))
    assert [processes.poll(child) for child in children] == [(None, 0)] * 3
    os.kill(children[1].pid, signal.SIGKILL)
    wait_until(lambda: children[1].poll() is not None)
    status, peak = processes.poll(children[1])
    assert (status, children[0].poll()) == (-signal.SIGKILL, None)
    assert 1 << 20 < peak < 1 << 30
    processes.stop(children)
    assert [child.returncode for child in children] == [
        -signal.SIGTERM,
        -signal.SIGKILL,
        -signal.SIGTERM,
    ]
    assert not any(alive(child.pid) for child in children)


def test_other_commands_and_few_runs_have_no_server(folder: Path, programs: Preloaded):
    start = ready(programs, folder)
    for words in ([sys.executable, "-c", "pass"], [sys.executable, "-P", "-m", "this"], ["true"]):
        child = start(words, folder / "log", None, {})
        assert isinstance(child, subprocess.Popen)
        assert child.wait() == 0
    alone = Preloaded(folder / "log", {}, 1, [], ["sayer"])
    assert isinstance(alone.start(sayer(0), folder / "log", None, {}), subprocess.Popen)
    assert alone.server is None


def test_without_its_server_commands_are_processes_again(folder: Path, programs: Preloaded):
    start = ready(programs, folder)
    child = start(sayer(0, "sleep"), folder / "log", None, {})
    assert not isinstance(child, subprocess.Popen)
    assert programs.server is not None
    os.kill(programs.server.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    wait_until(lambda: not alive(child.pid))
    assert outcome(start, folder, 3)[0] == 3
    assert not programs.ready


def test_a_server_that_cannot_load_is_not_waited_for(folder: Path):
    programs = Preloaded(folder / "server.log", {}, 2, ["no_such_module"], ["sayer"])
    assert programs.start(sayer(0), folder / "log", None, {}).wait() == 0
    assert programs.server is not None
    programs.server.wait()
    assert outcome(programs.start, folder, 3)[0] == 3
    assert "no_such_module" in (folder / "server.log").read_text()
    programs.close()


def test_nothing_outlives_the_one_who_started_it(folder: Path):
    """Killed without a word, and with a fork at work."""
    script = folder / "parent.py"
    script.write_text(f"""
import sys, time
from pathlib import Path
from treesyntax.jobs.preloaded import Preloaded
programs = Preloaded(Path("server.log"), {{}}, 2, ["json"], ["sayer"])
programs.start({sayer(0)!r}, Path("log"), None, {{}}).wait()
while not programs.ready:
    programs.read(0.1)
child = programs.start({sayer(0, "sleep")!r}, Path("log"), None, {{}})
Path("pids").write_text(f"{{programs.server.pid}} {{child.pid}}")
Path("pids").rename("told")
time.sleep(60)
""")
    parent = subprocess.Popen([sys.executable, script])
    wait_until(lambda: (folder / "told").exists())
    pids = [int(word) for word in (folder / "told").read_text().split()]
    assert all(alive(pid) for pid in pids)
    parent.kill()
    parent.wait()
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_the_end_of_the_server_is_the_end_of_its_socket(folder: Path, programs: Preloaded):
    ready(programs, folder)
    assert programs.server is not None
    assert programs.connection is not None
    programs.connection.close()
    begun = time.monotonic()
    assert programs.server.wait() == 0
    assert time.monotonic() - begun < 30
    programs.connection = None


def test_a_log_that_a_loaded_module_set_up_does_not_reach_the_answer(folder: Path):
    """fairseq logs to standard output from its import on; sacrebleu's warning stood among scores."""
    (folder / "lib" / "noisy.py").write_text(
        "import logging, sys\nlogging.basicConfig(stream=sys.stdout)\n"
    )
    (folder / "lib" / "warner.py").write_text(
        "import logging\nlogging.getLogger('scores').warning('careful')\nprint('[1]')\n"
    )
    programs = Preloaded(folder / "server.log", {}, 2, ["noisy", "sayer"], ["sayer", "warner"])
    try:
        start = ready(programs, folder)
        child = start([sys.executable, "-P", "-m", "warner"], folder / "log", folder / "out", {})
        assert not isinstance(child, subprocess.Popen)
        assert child.wait() == 0
    finally:
        programs.close()
    assert (folder / "out").read_text() == "[1]\n"
    assert "careful" in (folder / "log").read_text()

"""Slurm on this machine: munge, slurmctld and slurmd with a configuration of their own.

Needs to be root on Debian with slurm-wlm and munge installed (``apt-get install slurm-wlm munge``);
with slurmdbd and mariadb-server there is accounting as well.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reliability.cluster.guard import end_all, guard
from support import wait_until

from treesyntax.study.run.process import FINETUNE, PROGRAMS

NODE = "node1"
DAEMONS = ("munged", "slurmctld", "slurmd")
ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb-install-db")
CONFIG = """
ClusterName=tests
SlurmctldHost=localhost
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=3
InactiveLimit=0
SlurmdTimeout=30
JobRequeue=1
{accounting}
NodeName={node} NodeAddr=127.0.0.1 NodeHostname={host} CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes={node} Default=YES MaxTime=INFINITE State=UP
"""
DATABASE = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StoragePort={database}
StorageUser=root
StorageLoc=slurm
"""
KEPT = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket
"""


def why_not(accounting: bool = False) -> str:
    """Why Slurm cannot be started here, "" if it can; with slurmdbd if asked."""
    if os.geteuid() or not Path("/etc/debian_version").exists():
        return "Slurm is started by root on Debian only"
    packages = "slurmdbd and mariadb-server" if accounting else "slurm-wlm and munge"
    wanted = ACCOUNTING if accounting else DAEMONS
    missing = [name for name in wanted if _program(name) is None]
    return f"install {packages}: there is no {', '.join(missing)}" if missing else ""


def _program(name: str) -> str | None:
    return shutil.which(name, path="/usr/sbin:/usr/bin")


class Slurm:
    """A cluster of one node.

    Attributes:
        environment: the variables by which Slurm's commands find it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *words: str, **environment: str) -> None:
        """Start a daemon in the foreground of a session of its own."""
        program = _program(name)
        assert program is not None
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", program, *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                start_new_session=True, env={**self.environment, **environment},
            )  # fmt: skip

    def ask(self, *words: str, check: bool = True) -> str:
        """The output of one of Slurm's commands."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def jobs(self, *states: str) -> dict[str, str]:
        """Ids of jobs and their names; of all that wait or run, by default."""
        wanted = ",".join(states) or "PENDING,RUNNING,COMPLETING,CONFIGURING,SUSPENDED"
        said = self.ask("squeue", "--noheader", "--array", f"--states={wanted}", "--format=%i %j")
        return dict(line.split(" ", 1) for line in said.splitlines())

    def start_controller(self) -> None:
        """Start slurmctld, and wait until it answers."""
        self.start("slurmctld", "-D")
        wait_until(lambda: "UP" in self.ask("scontrol", "ping", check=False), 60)

    def resume(self) -> None:
        """Wait until the node takes jobs."""

        def is_up() -> bool:
            said = self.ask("sinfo", "--noheader", "--format=%T", check=False)
            if "down" in said or "drain" in said or "unknown" in said:
                self.ask("scontrol", "update", f"nodename={NODE}", "state=resume", check=False)
            return said.strip() in ("idle", "mixed", "allocated")

        wait_until(is_up, 60)

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a daemon and what it left in its session."""
        daemon = self.daemons.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(daemon.pid, how)
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def started(folder: Path, accounting: bool = False) -> Iterator[Slurm]:
    """Slurm in a new folder; ended with all its jobs, also where this process is killed."""
    folder.mkdir(mode=0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    ports = _free_ports(4)
    kept = (
        KEPT.format(port=ports[2], folder=folder)
        if accounting
        else "AccountingStorageType=accounting_storage/none"
    )
    config = CONFIG.format(
        folder=folder, ports=ports, node=NODE, host=socket.gethostname().split(".")[0],
        accounting=kept,
    )  # fmt: skip
    (folder / "slurm.conf").write_text(config)
    slurm, watch = Slurm(folder), guard(folder)
    try:
        slurm.start(
            "munged", "--foreground", "--force", f"--socket={folder}/munge.socket",
            f"--key-file={key}", f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/seed",
            f"--log-file={folder}/munge.log",
        )  # fmt: skip
        wait_until((folder / "munge.socket").exists, 20)
        if accounting:
            _start_accounting(slurm, ports[2], ports[3])
        slurm.start_controller()
        slurm.start("slurmd", "-D", "-N", NODE)
        slurm.resume()
        yield slurm
    finally:
        with suppress(AssertionError, subprocess.TimeoutExpired, OSError):
            slurm.ask("scancel", "--user=root", check=False)
            wait_until(lambda: not slurm.jobs(), 20)
        for name in reversed(list(slurm.daemons)):
            slurm.end(name)
        end_all(folder)
        watch.kill()
        watch.wait()


def _start_accounting(slurm: Slurm, port: int, database: int) -> None:
    folder = slurm.folder
    data, socket_file = folder / "database", folder / "database.socket"
    install = [
        "mariadb-install-db",
        f"--datadir={data}",
        "--user=root",
        "--auth-root-authentication-method=normal",
    ]
    subprocess.run(install, check=True, capture_output=True)
    slurm.start(
        "mariadbd", f"--datadir={data}", f"--socket={socket_file}", f"--port={database}", "--user=root",
        "--bind-address=127.0.0.1", f"--pid-file={folder}/database.pid",
    )  # fmt: skip
    wait_until(socket_file.exists, 60)
    config = folder / "slurmdbd.conf"
    config.write_text(DATABASE.format(folder=folder, port=port, database=database))
    config.chmod(0o600)
    slurm.start("slurmdbd", "-D", MYSQL_UNIX_PORT=str(socket_file))

    def has_cluster() -> bool:
        slurm.ask("sacctmgr", "-i", "add", "cluster", "tests", check=False)
        return "tests" in slurm.ask("sacctmgr", "-n", "list", "cluster", check=False)

    wait_until(has_cluster, 60)


REAL = [PROGRAMS[name] for name in ("fairseq-train", FINETUNE)]
TRAINERS = {b"fairseq-train", *(words[-1].encode() for words in REAL)}
"""A word of each command that trains: that of the stand-ins, and the last ones of the real programs."""


def writers(folder: Path) -> list[str]:
    """The processes that train in a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            continue
        if {*words} & TRAINERS and any(str(folder).encode() in word for word in words):
            found.append(file.parent.name)
    return found

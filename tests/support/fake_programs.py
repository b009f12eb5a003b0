"""Stand-ins for treesyntax, fairseq-train and fairseq-generate that only leave traces.

Run as ``fake_programs.py study JOURNAL ARGUMENTS`` this file is ``treesyntax study`` over them. Each
stand-in appends a line to the journal when it starts, when it makes an update, and when it ends.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

THIS = str(Path(__file__).resolve())
UPDATES = 5
NAP = 0.02


def programs(journal: Path) -> dict[str, tuple[str, ...]]:
    names = ("treesyntax", "fairseq-train", "fairseq-generate", "python")
    return {name: (sys.executable, THIS, name, str(journal)) for name in names}


def note(journal: Path, *words: object) -> None:
    with journal.open("a") as stream:
        stream.write(" ".join(map(str, [*words, os.getpid()])) + "\n")


def option(arguments: list[str], name: str) -> Path:
    return Path(arguments[arguments.index(name) + 1])


def save(path: Path, update: int) -> None:
    staged = path.with_suffix(".new")
    with zipfile.ZipFile(staged, "w") as archive:
        archive.writestr("update", str(update))
    staged.replace(path)


def train(journal: Path, arguments: list[str]) -> None:
    folder = option(arguments, "--save-dir")
    if {"WORLD_SIZE", "RANK", "LOCAL_RANK"} & os.environ.keys():
        raise SystemExit("several processes were started, and each would train alone")
    if "--broken" in arguments:
        # As fairseq ends: what looks for the cause fails in its turn.
        raise SystemExit("FloatingPointError: gradients are Nan/Inf\n\nStopIteration")
    tried = folder.parent / "tried"
    if "--broken-once" in arguments and not tried.exists():
        tried.touch()
        raise SystemExit("RuntimeError: no luck")
    folder.mkdir(parents=True, exist_ok=True)
    last, done = folder / "checkpoint_last.pt", 0
    if last.exists():
        with zipfile.ZipFile(last) as archive:
            done = int(archive.read("update"))
    said = f"Loaded checkpoint {last} (epoch 1 @ {done} updates)"
    said = said if done else f"No existing checkpoint found {last}"
    print(f"t | INFO | fairseq.trainer | {said}", flush=True)
    go, warned = journal.with_name("go"), []
    if "--warned" in arguments:
        signal.signal(signal.SIGUSR2, lambda *_: warned.append(True))
    for update in range(done + 1, UPDATES + 1):
        time.sleep(NAP)
        while "--hold" in arguments and update == 3 and not go.exists() and not warned:
            time.sleep(NAP)
        if warned:
            print("t | INFO | Saved checkpoint x @ 2 updates", flush=True)
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # it comes from Slurm and from the job
            raise SystemExit(75)
        note(journal, "update", folder.parent.name, update)
        inner = {"epoch": 1, "update": update / UPDATES, "loss": "3", "num_updates": str(update)}
        loss = 3 - update / 10 + tuned(arguments)
        valid = {"valid_loss": str(round(loss, 3)), "valid_num_updates": str(update)}
        print("t | INFO | train_inner |", json.dumps({**inner, "wps": str(100 * update)}))
        print("t | INFO | valid |", json.dumps(valid), flush=True)
        for name in ("checkpoint_best.pt", "checkpoint_last.pt"):
            save(folder / name, update)
    print("t | INFO | fairseq_cli.train | done training in 1.0 seconds", flush=True)


def tuned(arguments: list[str]) -> float:
    """What settings add to the loss: a rate as high as can be is best, and no dropout."""
    found = dict(itertools.pairwise(arguments))
    return float(found.get("--dropout", 0)) - float(found.get("--lr", 0)) / 10


def generate(arguments: list[str]) -> None:
    folder = option(arguments, "--results-path")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "generate-test.txt").write_text("D-1\t-0.5\tb c\nH-0\t-1\tx\nD-0\t-0.1\t\n")


def treesyntax(arguments: list[str]) -> None:
    command = arguments[0]
    if command in ("generate", "data"):
        folder = option(arguments, "--out") if command == "generate" else Path(arguments[3])
        folder.mkdir(parents=True, exist_ok=True)
        for split in ("train", "valid", "test"):
            (folder / f"{split}.src").write_text("a\nb\n")
            (folder / f"{split}.tgt").write_text("\nunit\n")
    elif command == "binarize":
        Path(arguments[1]).mkdir(parents=True, exist_ok=True)
        Path(arguments[1], "train.bin").write_text(" ".join(arguments[2:]))
    elif command == "average":
        save(option(arguments, "--out"), UPDATES)
    elif command == "score":
        hypotheses = option(arguments, "--hypothesis").read_text()
        assert hypotheses == "\nb c\n"
        metrics = [b for a, b in itertools.pairwise(arguments) if a == "--metric"]
        if (option(arguments, "--hypothesis").resolve().parents[3] / "chatty").exists():
            print("careful")
        print(json.dumps([scored(metric, hypotheses, arguments) for metric in metrics]))
        option(arguments, "--lines").write_text("{}")  # reports then judge the lines
    elif command == "analyse":
        analyse(arguments[1:])


def scored(metric: str, hypotheses: str, arguments: list[str]) -> dict:
    """The true score, as reports compare it with the outputs."""
    from treesyntax.metrics import counted_lines, get_metric

    lines, counted = option(arguments, "--reference").read_text().splitlines(), None
    if "@" in metric:
        categories = option(arguments, "--counted-by").read_text().splitlines()
        counted = counted_lines(metric, None, categories)
    judge = get_metric(metric.removesuffix(":unseen"), counted)
    judged = judge(hypotheses.splitlines(), lines)[0]
    return {"metric": metric, "value": judged.value, "signature": "s", "n": judged.n}


def analyse(arguments: list[str]) -> None:
    if arguments[0] == "facts":
        facts = {
            "parameters": 1234, "valid_loss": 2.5, "best_update": 5, "updates": 5,
            "train_seconds": 1.0, "injection": "x",
        }  # fmt: skip
        print(json.dumps(facts))
    else:
        folder = option(arguments, "--out")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mask_strengths.svg").write_text(
            '<?xml version="1.0"?><svg width="9pt" height="9pt" '
            'xmlns="http://www.w3.org/2000/svg"><g id="g1"/><text>head</text></svg>'
        )
        entry = {"name": "mask_strengths", "side": "encoder", "numbers": []}
        found = {"drawn": [{**entry, "figures": ["mask_strengths.svg"]}], "absent": []}
        (folder / "analyses.json").write_text(json.dumps(found))


def python(arguments: list[str]) -> None:
    assert arguments[:3] == ["-P", "-m", "treesyntax.study.run.hypotheses"]
    os.execv(sys.executable, [sys.executable, *arguments])


def study(journal: Path, arguments: list[str]) -> int:
    from treesyntax.commands import study as command
    from treesyntax.errors import TreeSyntaxError
    from treesyntax.jobs.interrupts import stop_signals_interrupt

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    try:
        with stop_signals_interrupt():  # as the command line does
            return command.run(parser.parse_args(arguments), programs(journal))
    except TreeSyntaxError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def main() -> int:
    name, journal, arguments = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    if name == "study":
        return study(journal, arguments)
    act(name, journal, arguments)
    return 0


def act(name: str, journal: Path, arguments: list[str]) -> None:
    label = " ".join(arguments).replace(" ", "\x1f")
    note(journal, "start", f"{name}\x1f{label}")
    if gpus := os.environ.get("CUDA_VISIBLE_DEVICES"):
        note(journal, "gpus", name, gpus)
    if name == "fairseq-train":
        train(journal, arguments)
    elif name == "fairseq-generate":
        generate(arguments)
    elif name == "treesyntax":
        treesyntax(arguments)
    else:
        note(journal, "end", f"{name}\x1f{label}")
        python(arguments)
        return
    note(journal, "end", f"{name}\x1f{label}")


class Ended:
    """A process that has ended."""

    def __init__(self, returncode: int) -> None:
        self.pid, self.returncode = 0, returncode

    def poll(self) -> int:
        return self.returncode

    wait = poll


def start_here(
    start: Callable[..., subprocess.Popen],
    words: list[str],
    log: Path,
    stdout: Path | None,
    environment: dict[str, str],
) -> Ended | subprocess.Popen:
    """As ``treesyntax.jobs.processes.start``, but stand-ins act in this process, in no time.

    Args:
        start: that function, for all other programs.
    """
    if words[1:2] != [THIS]:
        return start(words, log, stdout, environment)
    with log.open("a") as stream, (stdout or log).open("w" if stdout else "a") as out, \
            redirect_stdout(out), redirect_stderr(stream):  # fmt: skip
        try:
            return Ended(act_here(words[2], Path(words[3]), words[4:]))
        except SystemExit as end:
            print(end, file=sys.stderr)
            return Ended(1)


def act_here(name: str, journal: Path, arguments: list[str]) -> int:
    """What a stand-in does, in this process."""
    from treesyntax.study.run import hypotheses

    if name == "python":
        note(journal, "start", "\x1f".join([name, *arguments]))
        return hypotheses.main(arguments[3:])
    act(name, journal, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Many short fairseq-train commands, each in a process of its own that starts in no time.

A server process loads fairseq and reads the options of one command, then forks for every command.
It has never computed a gradient and has one thread, so its forks are as good as fresh processes:
other seeds, other working memory, killable one by one.
"""

from __future__ import annotations

import functools
import gc
import json
import logging
import os
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import support.forked_programs as forked_programs
from support import PLUGINS, ROOT

SOAK = os.environ.get("TREESYNTAX_SOAK") == "1"
"""Whether the long versions run: ``make soak``."""


def environment() -> dict[str, str]:
    """One thread, no GPU, the package as it is in this repository."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path}


def causal_methods() -> list[str]:
    """Names of the methods that a decoder can have."""
    from treesyntax.methods import METHODS
    from treesyntax.nn.injection import Site

    site = Site(d_model=32, heads=2, layers=1)
    return [name for name, method in METHODS.items() if method(site).leaks_future() is None]


def flags_of(spec: str) -> list[str]:
    """A method on the encoder, and on the decoder where it can be; ``everything`` is all at once.

    All of them together also have an encoding of the next slot.
    """
    from treesyntax.methods import METHODS

    if spec == "everything":
        both = ["+".join(METHODS), "+".join(causal_methods())]
        return ["--encoder-injection", both[0], "--decoder-injection", both[1],
                "--decoder-next-slot"]  # fmt: skip
    on_decoder = spec if spec not in METHODS or spec in causal_methods() else "none"
    return ["--encoder-injection", spec, "--decoder-injection", on_decoder]


def training_words(data: Path, save: Path, *flags: object) -> list[str]:
    """What follows ``fairseq-train`` for a tiny model, plain descent and no dropout."""
    words = [
        data, "--user-dir", PLUGINS, "--task", "tree_translation", "--arch", "tree_sequence_tiny",
        "--encoder-layers", 1, "--decoder-layers", 1, "--dropout", 0, "--optimizer", "sgd",
        "--lr", 0.05, "--batch-size", 16, "--required-batch-size-multiple", 1, "--cpu",
        "--seed", 7, "--num-workers", 0, "--save-dir", save, "--no-epoch-checkpoints",
        "--save-interval", 1000, "--disable-validation", "--log-format", "json", "--log-interval", 1, *flags,
    ]  # fmt: skip
    return [str(word) for word in words]


@dataclass(frozen=True)
class Job:
    """A command that was started.

    Attributes:
        pid: its process.
        log: where its standard output and error go.
        save: the folder of its checkpoints.
    """

    pid: int
    log: Path
    save: Path

    def text(self) -> str:
        """What it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


class Server:
    """Starts fairseq-train commands; use it as a context."""

    def __enter__(self) -> Server:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment(),
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()

    def _ask(self, question: dict[str, Any]) -> int:
        print(json.dumps(question), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, "the server of fairseq jobs ended"
        return int(answer)

    def start(self, data: Path, save: Path, *flags: object) -> Job:
        """Start a training, see :func:`training_words`."""
        save.mkdir(parents=True, exist_ok=True)
        rank = flags[flags.index("--distributed-rank") + 1] if "--distributed-rank" in flags else 0
        log = save / f"log-{rank}.txt"
        log.touch()
        words = training_words(data, save, *flags)
        pid = self._ask({"start": words, "log": str(log)})
        return Job(pid, log, save)

    def wait(self, job: Job) -> int:
        """Its exit status; minus the signal that killed it."""
        return self._ask({"wait": job.pid})

    def start_two(self, data: Path, save: Path, *flags: object) -> list[Job]:
        """Start a training by two processes that talk over gloo; the first one saves."""
        save.mkdir(parents=True, exist_ok=True)
        together = [
            "--distributed-world-size", 2, "--distributed-no-spawn",
            "--distributed-init-method", f"file://{save}/rendezvous",
            "--distributed-backend", "gloo", *flags,
        ]  # fmt: skip
        return [self.start(data, save, *together, "--distributed-rank", rank) for rank in (0, 1)]

    def train_by_two(self, data: Path, save: Path, *flags: object) -> Job:
        """:meth:`start_two`, and see both end well; the first one."""
        jobs = self.start_two(data, save, *flags)
        for job, status in [(job, self.wait(job)) for job in jobs]:
            assert status == 0, job.text()[-4000:]
        return jobs[0]

    def train(self, data: Path, save: Path, *flags: object) -> Job:
        """Start a training and see it end well."""
        job = self.start(data, save, *flags)
        assert self.wait(job) == 0, job.text()[-4000:]
        return job


def serve() -> None:
    """Fork for each command on the standard input; answer with processes and exit statuses."""
    # What fairseq says while it is loaded must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    forked_programs.load("fairseq_cli.train", "torch._dynamo", "treesyntax.model.decoder")
    gc.freeze()
    jobs = {}
    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            print(jobs[question["wait"]].wait(), file=answers, flush=True)
            continue
        run = functools.partial(_train_on_a_cpu, question["start"])
        job = forked_programs.fork(run, Path(question["log"]))
        jobs[job.pid] = job
        print(job.pid, file=answers, flush=True)
    os._exit(0)


def _train_on_a_cpu(words: list[str]) -> int:
    """fairseq-train, with what keeps two of its options from a CPU undone.

    ``--bf16`` implies ``--tpu`` to fairseq 0.12.3. ``--ddp-backend pytorch_ddp`` hands PyTorch a
    device number, which it refuses for models on a CPU.
    """
    import fairseq_cli.train
    import torch
    from fairseq.models import distributed_fairseq_model

    logging.basicConfig(format="%(name)s | %(message)s", level="INFO", stream=sys.stdout)
    torch.set_num_threads(1)
    main, parallel = fairseq_cli.train.main, torch.nn.parallel.DistributedDataParallel
    in_bf16 = "--bf16" in words

    def on_a_cpu(cfg: Any) -> None:
        cfg.common.bf16 = in_bf16
        main(cfg)

    def without_devices(*, device_ids: object, output_device: object, **options: Any) -> Any:
        return parallel(**options)

    fairseq_cli.train.main = on_a_cpu
    distributed_fairseq_model.DistributedDataParallel = without_devices
    sys.argv = ["fairseq-train", *(word for word in words if word != "--bf16")]
    fairseq_cli.train.cli_main()
    return 0


def losses(job: Job) -> list[float]:
    """The training loss of each update, in bits a token, as fairseq logs it."""
    rows = re.findall(r"train_inner \| (\{.*\})", job.text())
    return [float(json.loads(row)["loss"]) for row in rows]


def parameters(save: Path, name: str = "checkpoint_last.pt") -> dict[str, Any]:
    """Everything learned in a checkpoint, by name."""
    from treesyntax.model.checkpoint import load_checkpoint

    return load_checkpoint(save / name)["model"]


def formula(generator: random.Random, levels: int) -> str:
    """A random logical form."""
    if not levels or generator.random() < 0.2:
        return generator.choice("pqr")
    children = [formula(generator, levels - 1) for _ in range(generator.choice([1, 2, 2, 3]))]
    return f"({generator.choice('fgh')} {' '.join(children)})"


def binarize(folder: Path, linearization: str, pairs: int = 32, seed: int = 1) -> Path:
    """Formulas to the same formulas as fairseq data, trees on both sides."""
    generator = random.Random(seed)
    text = "".join(f"{formula(generator, 3)}\n" for _ in range(pairs))
    return binarize_texts(folder, linearization, text, text)


def binarize_texts(folder: Path, linearization: str, given: str, wanted: str) -> Path:
    """Formulas as fairseq data, trees on both sides; all splits are the same."""
    from treesyntax.cli import main

    folder.mkdir(parents=True, exist_ok=True)
    files = [str(folder / "text.given"), str(folder / "text.wanted")]
    for file, text in zip(files, (given, wanted), strict=True):
        Path(file).write_text(text)
    splits = [word for split in ("train", "valid", "test") for word in (f"--{split}", *files)]
    command = [
        "binarize", str(folder / linearization), "--source-lang", "given", "--target-lang", "wanted",
        "--source-format", "sexpr", "--target-format", "sexpr",
        "--target-linearization", linearization, "--workers", "1", *splits,
    ]  # fmt: skip
    assert main(command) == 0
    return folder / linearization


if __name__ == "__main__":
    serve()

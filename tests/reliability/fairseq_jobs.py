"""Short fairseq-train commands, each in a fork of the process of the tests, see `forked_programs`."""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import support
import support.forked_programs as forked_programs
from support import PLUGINS, ROOT
from support.forked_programs import Fork

SOAK = os.environ.get("TREESYNTAX_SOAK") == "1"
"""Whether the long versions run: ``make soak``."""


def environment() -> dict[str, str]:
    """One thread, no GPU, the package as it is in this repository."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path}


def causal_methods() -> list[str]:
    """Names of the methods that a decoder can have."""
    from treesyntax.methods import METHODS
    from treesyntax.nn.injection import Site, methods_of

    site = Site(d_model=32, heads=2, layers=1)
    names = methods_of("decoder")
    return [name for name in names if METHODS[name](site).leaks_future() is None]


STILL = {
    "laplacian": "laplacian(signs='fixed')",  # drawn signs would differ from process to process
    # With so many methods at once, plain descent throws these about, and sums in another order then
    # give other numbers.
    "parent_head": "parent_head(weight=0.01)",
    "distance_head": "distance_head(weight=0.01)",
    "tree_reg": "tree_reg(weight=0.01)",
}
"""How methods are taken where the same numbers are asked of several ways to train."""


def flags_of(spec: str) -> list[str]:
    """A method on the encoder, and on the decoder where it can be; ``everything`` is all at once.

    All of them together also have an encoding of the next slot.
    """
    from treesyntax.methods import METHODS
    from treesyntax.nn.injection import methods_of

    if spec == "everything":
        both = [
            "+".join(STILL.get(name, name) for name in methods)
            for methods in (methods_of("encoder"), causal_methods())
        ]
        return ["--encoder-injection", both[0], "--decoder-injection", both[1],
                "--decoder-next-slot", "--lr", "0.001"]  # fmt: skip
    on_decoder = spec if spec not in METHODS or spec in causal_methods() else "none"
    on_encoder = spec if spec not in METHODS or spec in methods_of("encoder") else "none"
    on_encoder = STILL.get(on_encoder, on_encoder)
    return ["--encoder-injection", on_encoder, "--decoder-injection", on_decoder]


def training_words(data: Path, save: Path, *flags: object) -> list[str]:
    """What follows ``fairseq-train`` for a tiny model, plain descent and no dropout.

    Nothing is validated, unless the flags say how patient the training is.
    """
    validation = [] if "--patience" in flags else ["--disable-validation"]
    words = [
        data, "--user-dir", PLUGINS, "--task", "tree_translation", "--arch", "tree_sequence_tiny",
        "--encoder-layers", 1, "--decoder-layers", 1, "--dropout", 0, "--optimizer", "sgd",
        "--lr", 0.05, "--batch-size", 16, "--required-batch-size-multiple", 1, "--cpu",
        "--seed", 7, "--num-workers", 0, "--save-dir", save, "--no-epoch-checkpoints",
        "--save-interval", 1000, "--log-format", "json", "--log-interval", 1, *validation, *flags,
    ]  # fmt: skip
    return [str(word) for word in words]


def start(
    data: Path, save: Path, *flags: object, first: Callable[[], object] = lambda: None
) -> Fork:
    """Start a training, see :func:`training_words`, in a process that calls ``first`` before.

    Its output is beside its checkpoints.
    """
    forked_programs.load("fairseq_cli.train", "torch._dynamo", "treesyntax.model.decoder")
    save.mkdir(parents=True, exist_ok=True)
    rank = flags[flags.index("--distributed-rank") + 1] if "--distributed-rank" in flags else 0
    log = save / f"log-{rank}.txt"
    log.touch()
    words = training_words(data, save, *flags)

    def run() -> int:
        first()
        return _train_on_a_cpu(words)

    return forked_programs.fork(run, log)


def train(data: Path, save: Path, *flags: object) -> Fork:
    """A training that ended well."""
    job = start(data, save, *flags)
    assert job.wait() == 0, job.output()[-4000:]
    return job


def train_by_two(data: Path, save: Path, *flags: object) -> Fork:
    """A training by two processes that talk over gloo; the first one, which saves."""
    together = [
        "--distributed-world-size", 2, "--distributed-no-spawn", "--distributed-backend", "gloo",
        "--distributed-init-method", f"file://{save}/rendezvous", *flags,
    ]  # fmt: skip
    jobs = [start(data, save, *together, "--distributed-rank", rank) for rank in (0, 1)]
    for job, status in [(job, job.wait()) for job in jobs]:
        assert status == 0, job.output()[-4000:]
    return jobs[0]


def _train_on_a_cpu(words: list[str]) -> int:
    """fairseq-train, with what keeps three of its options from a CPU undone.

    ``--bf16`` implies ``--tpu`` to fairseq 0.12.3. ``--ddp-backend pytorch_ddp`` hands PyTorch a
    device number, which it refuses for models on a CPU. ``--fp16`` asks for a GPU where a gradient
    overflows.
    """
    import fairseq_cli.train
    import torch
    from fairseq.models import distributed_fairseq_model

    gc.freeze()
    logging.basicConfig(format="%(name)s | %(message)s", level="INFO", stream=sys.stdout)
    torch.set_num_threads(1)
    main, parallel = fairseq_cli.train.main, torch.nn.parallel.DistributedDataParallel
    in_bf16 = "--bf16" in words

    def on_a_cpu(cfg: Any) -> None:
        cfg.common.bf16 = in_bf16
        main(cfg)

    def without_devices(*, device_ids: object, output_device: object, **options: Any) -> Any:
        return parallel(**options)

    torch.Tensor.cuda = lambda self, *_, **__: self
    fairseq_cli.train.main = on_a_cpu
    distributed_fairseq_model.DistributedDataParallel = without_devices
    sys.argv = ["fairseq-train", *(word for word in words if word != "--bf16")]
    fairseq_cli.train.cli_main()
    return 0


def losses(job: Fork) -> list[float]:
    """The training loss of each update, in bits a token, as fairseq logs it."""
    rows = re.findall(r"train_inner \| (\{.*\})", job.output())
    return [float(json.loads(row)["loss"]) for row in rows]


def parameters(job: Fork) -> dict[str, Any]:
    """Everything that a training learned, by name."""
    from treesyntax.model.checkpoint import load_checkpoint

    return load_checkpoint(job.stdout.with_name("checkpoint_last.pt"))["model"]


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
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "text.given", folder / "text.wanted"]
    for file, text in zip(files, (given, wanted), strict=True):
        file.write_text(text)
    flags = ["--source-format", "sexpr", "--source-labels", "--target-format", "sexpr",
             "--target-linearization"]  # fmt: skip
    return support.binarize(folder / linearization, *files, *flags, linearization)

"""Memory of parse, binarize with --subword-vocab and an epoch as the pairs grow."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
import support.fake_parser as fake_parser
from reliability.fairseq_jobs import SOAK, training_words
from reliability.test_scale import run_and_watch

SIZES = (10_000, 100_000, 1_000_000) if SOAK else (300, 2_000)
VOCAB, BATCH = (4_000, 256) if SOAK else (300, 128)
MEBIBYTE = 1 << 20
FIXED = {"parse": 64, "binarize": 1600, "epoch": 64} if SOAK else dict.fromkeys(
    ("parse", "binarize", "epoch"), 64
)  # fmt: skip
"""MiB that each may hold more for many pairs than for few, whatever their number."""
A_PAIR = {"parse": 16, "binarize": 200, "epoch": 400}
"""Bytes that each may hold for every further pair: 5 million are 80, 1,000 and 2,000 MB."""


def write_pairs(folder: Path, count: int) -> list[Path]:
    """Lines of 6 to 18 words on both sides; rare words are seen a few times in a million lines."""
    draw = random.Random(3)
    spelled = [
        "".join(draw.choices("aeioubdgklmnprstv", k=draw.randint(2, 9))) for _ in range(40_000)
    ]
    files = [folder / name for name in ("source.txt", "target.txt")]
    for file in files:
        with file.open("w") as stream:
            for _ in range(count):
                numbers = (int(draw.paretovariate(0.35)) for _ in range(draw.randint(6, 18)))
                stream.write(" ".join(spelled[number % len(spelled)] for number in numbers) + "\n")
    return files


def parse(source: Path) -> tuple[int, float]:
    script = str(Path(fake_parser.__file__))
    words = fake_parser.words(source, source.with_suffix(".conllu"), "--shard-lines", 2000)
    return run_and_watch([sys.executable, script, *words])


def binarize(source: Path, target: Path) -> tuple[int, float]:
    words = [
        sys.executable, "-m", "treesyntax", "binarize", source.with_name("data"), "--workers", "2",
        "--source-lang", "en", "--target-lang", "sv", "--source-format", "conllu",
        "--train", source.with_suffix(".conllu"), target, "--subword-vocab", VOCAB,
    ]  # fmt: skip
    return run_and_watch([str(word) for word in words])


def epoch(data: Path) -> tuple[int, float]:
    words = [
        sys.executable,
        "-c",
        "import reliability.test_many_pairs as own; own.read_epoch()",
        data,
    ]
    return run_and_watch([str(word) for word in words])


def read_epoch() -> None:
    """Read all pairs as fairseq-train does in an epoch, without a model, whose memory they do not change."""
    from fairseq import options, tasks, utils
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    parser = options.get_training_parser()
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(parser, training_words(Path(sys.argv[1]), Path("none")))
    )
    utils.import_user_module(cfg.common)
    task = tasks.setup_task(cfg.task)
    task.load_dataset("train")
    batches = task.get_batch_iterator(
        task.dataset("train"), max_sentences=BATCH, max_positions=(1024, 1024), seed=1
    )
    assert sum(batch["nsentences"] for batch in batches.next_epoch_itr(shuffle=True)) in SIZES


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
def test_memory_stays_bounded_as_pairs_grow(tmp_path: Path):
    most: dict[str, list[int]] = {}
    for size in SIZES:
        folder = tmp_path / str(size)
        folder.mkdir()
        source, target = write_pairs(folder, size)
        steps = {"parse": lambda: parse(source), "binarize": lambda: binarize(source, target)}  # noqa: B023
        if SOAK or size == SIZES[-1]:
            steps["epoch"] = lambda: epoch(folder / "data")  # noqa: B023
        for step, run in steps.items():
            peak, seconds = run()
            most.setdefault(step, []).append(peak)
            print(
                f"{step} of {size:,} pairs: {peak / MEBIBYTE:.0f} MiB, {seconds:.0f} s", flush=True
            )
    for step, peaks in most.items():
        few = peaks[0] if len(peaks) > 1 else 400 * MEBIBYTE
        assert peaks[-1] - few < FIXED[step] * MEBIBYTE + A_PAIR[step] * (SIZES[-1] - SIZES[0]), (
            step
        )

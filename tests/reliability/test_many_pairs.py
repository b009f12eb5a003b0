"""Memory of parse, binarize with --subword-vocab and an epoch of training as the pairs grow."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pytest
import support.fake_parser as fake_parser
from reliability.fairseq_jobs import SOAK, start
from reliability.test_scale import held, run_and_watch

SIZES = (10_000, 100_000, 1_000_000) if SOAK else (300, 2_000)
VOCAB, BATCH = (4_000, 256) if SOAK else (300, 128)
MEBIBYTE = 1 << 20
FIXED = {"parse": 64, "binarize": 1600, "train": 400} if SOAK else dict.fromkeys(
    ("parse", "binarize", "train"), 64
)  # fmt: skip
"""MiB that each may hold more for many pairs than for few, whatever their number."""
A_PAIR = {"parse": 16, "binarize": 200, "train": 400}
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
        sys.executable, "-m", "treesyntax.cli", "binarize", source.with_name("data"), "--workers", "2",
        "--source-lang", "en", "--target-lang", "sv", "--source-format", "conllu",
        "--train", source.with_suffix(".conllu"), target, "--subword-vocab", VOCAB,
    ]  # fmt: skip
    return run_and_watch([str(word) for word in words])


def train(data: Path) -> tuple[int, float]:
    """One epoch; the most that the process holds."""
    begun, most = time.monotonic(), 0
    job = start(data, data.with_name("saved"), "--max-epoch", 1, "--batch-size", BATCH,
                "--log-interval", 1000, "--no-save", "--arch", "tree_relation_mask_tiny")  # fmt: skip
    while job.poll() is None:
        most = max(most, held(job.pid))
        time.sleep(0.05)
    assert job.returncode == 0, job.output()[-3000:]
    return most, time.monotonic() - begun


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
def test_memory_stays_bounded_as_pairs_grow(tmp_path: Path):
    most: dict[str, list[int]] = {"parse": [], "binarize": [], "train": []}
    for size in SIZES:
        folder = tmp_path / str(size)
        folder.mkdir()
        source, target = write_pairs(folder, size)
        for step, (peak, seconds) in {
            "parse": parse(source),
            "binarize": binarize(source, target),
            "train": train(folder / "data"),
        }.items():
            most[step].append(peak)
            print(
                f"{step} of {size:,} pairs: {peak / MEBIBYTE:.0f} MiB, {seconds:.0f} s", flush=True
            )
    for step, (few, *_, many) in most.items():
        pairs = SIZES[-1] - SIZES[0]
        assert many - few < FIXED[step] * MEBIBYTE + A_PAIR[step] * pairs, step

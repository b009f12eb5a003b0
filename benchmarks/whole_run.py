"""A whole small run, from binarized data to hypotheses, as a ratio to stock fairseq's.

A study trains hundreds of small models, so what is not arithmetic counts: start-up, the loop over
updates, validation, generation. Each row is the programs that a study starts, fairseq-train and
fairseq-generate, with equal flags and sizes; the first is fairseq's own ``transformer`` without this
project. Columns: processor seconds of a training of one update (start-up), of each update after that
(milliseconds, checkpoints and validation included), of generation, and of all; the ratio to stock; and the
sentences that generation writes a second, without its start-up. A row such as "sequence --amp" trains with more flags. ``nodes`` is
the plain model over the nodes that the rows with trees read, which are more than the words: what these rows are to be compared with.

    python benchmarks/whole_run.py                                # some 10 minutes of one core
    python benchmarks/whole_run.py --updates 100 --methods sequence "sequence --amp" --size mini --repeats 1
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"mini": (64, 256, 2, 4), "compact": (128, 512, 2, 4)}  # width, feed-forward, layers, heads
STOCK = "fairseq"
NODES = "nodes"
PAIRS = {"train": 600, "valid": 100, "test": 500}
COMMON = [
    "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--lr", "0.002", "--lr-scheduler",
    "inverse_sqrt", "--warmup-updates", "100", "--clip-norm", "1", "--dropout", "0.1", "--criterion",
    "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--share-decoder-input-output-embed",
    "--batch-size", "32", "--num-workers", "0", "--seed", "1", "--log-format", "json",
    "--no-epoch-checkpoints", "--keep-interval-updates", "1",
]  # fmt: skip
LANGUAGES = ["--source-lang", "src", "--target-lang", "tgt"]


def tree_text(nodes: int, choose: random.Random) -> str:
    """A bracketed tree of that many words."""
    if nodes == 1:
        return f"(X w{choose.randint(0, 300)})"
    left = choose.randint(1, nodes - 1)
    return f"(S {tree_text(left, choose)} {tree_text(nodes - left, choose)})"


def words(text: str) -> list[str]:
    """The leaves of a bracketed tree."""
    return [word.rstrip(")") for word in text.split() if not word.startswith("(")]


def write_data(folder: Path) -> None:
    """Random trees of 4 to 16 words; the target is the words backwards, half of them twice."""
    choose = random.Random(1)
    for split, pairs in PAIRS.items():
        trees = [tree_text(choose.randint(4, 16), choose) for _ in range(pairs)]
        targets = [
            [part for word in reversed(words(tree)) for part in [word] * (1 + (word < "w2"))]
            for tree in trees
        ]
        for suffix, lines in (
            ("ptb", trees),
            ("src", [" ".join(words(tree)) for tree in trees]),
            ("tgt", [" ".join(target) for target in targets]),
        ):
            (folder / f"{split}.{suffix}").write_text("\n".join(lines) + "\n")


def run(program: str, *arguments: object) -> tuple[float, str]:
    """Processor seconds of a program of fairseq's or ours, and what it printed."""
    command = [sys.executable, "-m", program, *map(str, arguments)]
    # Stock fairseq stores what PyTorch no longer loads; the checkpoint is one of this very run.
    own = {"OMP_NUM_THREADS": "1", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    environment = {**os.environ, **own}
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=ROOT)
        _, status, usage = os.wait4(child.pid, 0)
        log.seek(0)
        printed = log.read().decode()
        if status:
            raise SystemExit(printed[-2000:])
    return usage.ru_utime + usage.ru_stime, printed


def binarize(folder: Path, row: str) -> Path:
    """The data of a row, made once."""
    out = folder / ("text" if row.split()[0] in (STOCK, "sequence") else "trees")
    if row == STOCK:
        out = folder / STOCK
        files = [f"--{split}pref={folder / split}" for split in PAIRS]
        run("fairseq_cli.preprocess", *LANGUAGES, *files, "--destdir", out, "--workers", 1)
    elif not out.exists():
        trees = ["--source-format", "ptb", "--source-view", "preorder"]
        kind, extra = ("src", []) if out.name == "text" else ("ptb", trees)
        files = [
            word
            for split in PAIRS
            for word in (f"--{split}", folder / f"{split}.{kind}", folder / f"{split}.tgt")
        ]
        run("treesyntax", "binarize", out, *LANGUAGES, *files, *extra)
    return out


def own_flags(row: str, size: str) -> tuple[list[str], list[str]]:
    """What a row adds to the flags of both programs, and what it adds to those of training."""
    if row != STOCK:
        task = ["--user-dir", str(ROOT / "fairseq_plugins"), "--task", "tree_translation"]
        method, *more = row.split()
        method = "sequence" if method == NODES else method
        return task, ["--arch", f"tree_sequence_{size}", "--encoder-injection", method, *more]
    width, hidden, layers, heads = SIZES[size]
    flags = [
        f"--{side}-{name}={value}"
        for side in ("encoder", "decoder")
        for name, value in (
            ("embed-dim", width), ("ffn-embed-dim", hidden), ("layers", layers),
            ("attention-heads", heads),
        )
    ]  # fmt: skip
    return ["--task", "translation"], ["--arch", "transformer", *flags]


def measure(row: str, data: Path, size: str, updates: int) -> tuple[float, float, float, float]:
    """Processor seconds of one update's training, of all updates' and of generation, and its sentences a second."""
    task, model = own_flags(row, size)
    with tempfile.TemporaryDirectory() as place:

        def train(count: int, *more: object) -> float:
            return run(
                "fairseq_cli.train", data, *LANGUAGES, *task, *COMMON, *model, *more,
                "--max-update", count, "--save-dir", f"{place}/{count}",
            )[0]  # fmt: skip

        every = max(updates // 10, 1)
        start = train(1, "--no-save", "--disable-validation")
        whole = train(updates, "--save-interval-updates", every, "--save-interval", 1000,
                      "--validate-interval-updates", every, "--validate-interval", 1000)  # fmt: skip
        search = ["--beam", 1, "--max-len-a", 2, "--max-len-b", 5, "--batch-size", 100]
        generate, printed = run(
            "fairseq_cli.generate", data, *LANGUAGES, *task, *search, "--num-workers", 0,
            "--path", f"{place}/{updates}/checkpoint_last.pt", "--results-path", place,
        )  # fmt: skip
    (speed,) = re.findall(r"\(([\d.]+) sentences/s", printed)
    return start, whole, generate, float(speed)


def print_table(found: dict[str, list[tuple[float, float, float, float]]], updates: int) -> None:
    """A line for each row, of the medians of its repeats."""
    print(f"{'':22} start s   update ms   generate s   all s   ratio   sentences/s")
    stock = None
    for row, repeats in found.items():
        start, whole, generate, speed = (
            statistics.median(column) for column in zip(*repeats, strict=True)
        )
        stock = stock or whole + generate
        print(
            f"{row:22} {start:7.2f} {1000 * (whole - start) / (updates - 1):11.1f} {generate:12.2f} "
            f"{whole + generate:7.1f} {(whole + generate) / stock:7.2f} {speed:13.0f}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all rows in turn, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="compact")
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["sequence", NODES, "relation_mask", "stack_pe", "relative_depth"],
    )
    args = parser.parse_args(arguments)
    rows = [STOCK, *args.methods]
    found: dict[str, list[tuple[float, float, float, float]]] = {row: [] for row in rows}
    with tempfile.TemporaryDirectory() as place:
        write_data(Path(place))
        data = {row: binarize(Path(place), row) for row in rows}
        for _ in range(args.repeats):
            for row in rows:
                found[row].append(measure(row, data[row], args.size, args.updates))
    print_table(found, args.updates)


if __name__ == "__main__":
    main()

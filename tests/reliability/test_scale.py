"""Large inputs within stated memory and time.

Measured in processes of their own, as growth above what the same command holds for a small input.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from reliability.fairseq_jobs import SOAK, causal_methods, environment
from support import study_helpers
from support.forked_programs import fork, treesyntax
from support.helpers import SPECIALS
from support.study_helpers import make_study, recipe_content
from torch import nn

from treesyntax.data.dictionary import PAD
from treesyntax.data.tree_store import TreeStore
from treesyntax.files import sha256_of
from treesyntax.metrics import measured
from treesyntax.metrics.line_file import FILE, write_line_file
from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.injection import methods_of
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.study.recipe.identity import Identity, write_identity
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.results import read_results, write_results
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.plan import make_plan
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

GIB = 1 << 30
SENTENCES = 1_000_000 if SOAK else 20_000
NODES = {"encoder": 16_384, "decoder": 8_192} if SOAK else {"encoder": 2_048}
MOST_NODES = 8_192
"""Of methods that take more bytes a pair, so that a step stays below 6 GiB, beside other tests."""
BYTES_A_PAIR = 14
"""Most memory of a training step a pair of tokens, heads and layers together, with one method; two
heads of weights in fp32 would be 8 at once, all temporary copies of them 40 and more."""
BYTES = {
    "distance_head": 80, "random_walk_pairs": 48, "tree_reg": 48,
    "constrained_mask": 22, "hierarchical_accumulation": 22, "labelled_relation": 22,
    "transformer_grammar": 22,
}  # fmt: skip
"""The same of methods that take more: losses and pair features over all pairs, masks by head, labels."""
FIXED = 400 << 20


def held(pid: int) -> int:
    """Bytes that a process and its children hold now; shared pages count once (PSS)."""
    total, waiting = 0, [pid]
    while waiting:
        process = waiting.pop()
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in text.splitlines() if "Pss:" in line)
            children = Path(f"/proc/{process}/task/{process}/children").read_text()
            waiting += map(int, children.split())
        except (OSError, StopIteration):
            continue
    return total * 1024


def run_and_watch(words: list[str]) -> tuple[int, float]:
    """The most bytes that a command held, and its seconds."""
    begun, most = time.monotonic(), 0
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    ) as process:
        while process.poll() is None:
            most = max(most, held(process.pid))
            time.sleep(0.05)
        assert process.stdout is not None
        assert process.returncode == 0, process.stdout.read()[-3000:]
    return most, time.monotonic() - begun


def write_sentences(folder: Path, count: int) -> None:
    """Formulas of about 12 nodes and their text, over 2,000 words."""
    generator = random.Random(5)
    with (folder / "big.tree").open("w") as trees, (folder / "big.text").open("w") as texts:
        for _ in range(count):
            words = [f"w{min(int(generator.expovariate(0.005)), 1999)}" for _ in range(8)]
            trees.write("(f {} (g {} {}) (h {} (f {} {} {}) {}))\n".format(*words))
            texts.write(" ".join(words) + "\n")


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("workers", [1, 2] if SOAK else [2])
def test_binarize_of_many_sentences_stays_below_a_gibibyte(workers: int, tmp_path: Path):
    found = {}
    for count in (500, SENTENCES):
        folder = tmp_path / str(count)
        folder.mkdir()
        write_sentences(folder, count)
        words = [
            sys.executable, "-m", "treesyntax", "binarize", folder / "bin",
            "--source-lang", "tree", "--target-lang", "text", "--source-format", "sexpr",
            "--train", folder / "big.tree", folder / "big.text", "--workers", workers,
        ]  # fmt: skip
        found[count] = run_and_watch([str(word) for word in words])
    (small, _), (most, seconds) = found.values()
    print(f"binarize {SENTENCES:,} sentences, {workers} workers: {seconds:.1f} s, "
          f"{(most - small) / 2**20:.0f} MiB above {small / 2**20:.0f} MiB")  # fmt: skip
    assert most - small < GIB
    store = TreeStore(tmp_path / str(SENTENCES) / "bin/train.tree-text.tree.tree")
    assert len(store) == SENTENCES
    assert len(store[SENTENCES - 1].parents) == 12


def random_tree(size: int) -> Tree:
    """Any shape can come up; about sqrt(size) deep."""
    generator, parents, path = random.Random(1), [], []
    for node in range(size):
        parents.append(path[-1] if path else -1)
        path.append(node)
        del path[len(path) - generator.choice([0, 1, 1, 1, 2, 3][: len(path)]) :]
    return Tree(parents, ["a"] * size)


def peak_bytes() -> int:
    """Most memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def step(spec: str, tree: Tree, side: str) -> None:
    """Forward, backward and an update."""
    settings = TransformerConfig(
        d_model=16, d_ff=16, heads=2, layers=1, injection=spec, max_positions=len(tree) + 2
    )
    torch.manual_seed(0)
    if side == "encoder":
        model: nn.Module = Encoder(settings, nn.Embedding(8, 16, PAD))
        tokens = torch.full((1, len(tree) + 1), 4)
        nodes = torch.cat([torch.arange(len(tree)), torch.tensor([-1])])[None]
        batch = TreeBatch(
            torch.as_tensor(tree.parents.astype("int64"))[None],
            torch.as_tensor(tree.branches.astype("int64"))[None],
            nodes,
            torch.ones(1, len(tree), dtype=torch.long),
        )
        output = model.encode(tokens, batch).memory
    else:
        line = get_linearization("nary_dfs").tokens(tree)
        symbols = [*SPECIALS, *sorted(set(line))]
        tokens = torch.tensor([[2, *map(symbols.index, line)]])
        embedding = nn.Embedding(len(symbols), 16, PAD)
        model = Decoder(settings, embedding, True, GrowingTrees(symbols, "nary_dfs"))
        output = model.decode(tokens, EncoderOutput(torch.ones(1, 2, 16), None))
    loss = output.float().square().sum(-1).sqrt().mean()
    loss.backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


STEPS = [(spec, "encoder") for spec in methods_of("encoder") if spec != "laplacian"] + [
    (spec, "decoder") for spec in causal_methods()
]
SHORT = [("tree_distance", "encoder")]


@pytest.mark.parametrize(("spec", "side"), STEPS if SOAK else SHORT)
def test_a_step_over_a_large_tree(spec: str, side: str, tmp_path: Path):
    """In a fork, whose peak of memory is then that of the step."""
    nodes = min(NODES[side], MOST_NODES) if spec in BYTES else NODES[side]

    def run() -> int:
        tree = random_tree(nodes)
        step(spec, random_tree(64), side)
        before, begun = peak_bytes(), time.perf_counter()
        step(spec, tree, side)
        print(json.dumps([peak_bytes() - before, time.perf_counter() - begun]))
        return 0

    job = fork(run, tmp_path / "log", tmp_path / "out")
    assert job.wait() == 0, (tmp_path / "log").read_text()[-3000:]
    taken, seconds = json.loads(job.output())
    print(f"{spec} on the {side}, {nodes} nodes: {taken / 2**20:.0f} MiB, {seconds:.1f} s")
    assert taken < FIXED + BYTES.get(spec, BYTES_A_PAIR) * nodes**2


RUNS = 1000 if SOAK else 40
LINES = 500 if SOAK else 100


def study(path: Path, out: Path, *flags: str) -> tuple[str, float]:
    """What it says, and the seconds of a processor that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = treesyntax(path.parent, "study", path, "--out", out, *flags)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return said, used


def write_study(folder: Path) -> Path:
    """Everything that a finished study of 1,000 (short: 40) runs leaves; nothing is run."""
    methods = {f"m{number}": {"arch": "tree_sequence_mini", "train": {"lr": 0.001 + number / 1e6}}
               for number in range(RUNS // 5)}  # fmt: skip
    out = make_study(
        folder, methods=methods, seeds=[1, 2, 3, 4, 5], score=["exact", "bleu"][: 1 + SOAK],
        differences={"train.lr": "a search over learning rates"},
        train={**recipe_content()["train"], "batch-size": 4},
    )  # fmt: skip
    plan = make_plan(read_recipe(folder / "recipe.yaml"))
    ledger = Ledger(plan, out, {})
    for output in (out / name for step in plan.steps for name in step.outputs):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.touch()
    reference = out / "data/p/test.tgt"
    references, of_reference = reference.read_text().splitlines(), sha256_of(reference)
    for run in plan.runs:
        ledger.note_start(plan.steps_of(run)[0])
        hypothesis = out / run.folder / "hypotheses.txt"
        hypotheses = hypothesis.read_text().splitlines()
        write_line_file(
            out / run.folder / FILE,
            {"hypothesis": sha256_of(hypothesis), "reference": of_reference},
            {name: measured(name, hypotheses, references).lines for name in plan.recipe.score},
        )
    for step in plan.steps:
        ledger.mark(step, 1.0)
    keys = {run.name: ledger.keys.of[run.step("hypotheses")] for run in plan.runs}
    write_identity(out, plan.recipe, Identity("h", "0", {}, keys))
    found = read_results(out / "runs.jsonl")
    found = [replace(one, run=keys[f"{one.method}-{one.seed}"]) for one in found]
    write_results(out / "runs.jsonl", found)
    return out


def test_a_study_of_many_runs_is_planned_and_resumed_without_scoring_again(
    tmp_path: Path, monkeypatch
):
    """Reports add up what ``score`` kept of each line; to judge the lines anew took six times as long."""
    references = [f"the tree {number} has {number % 7} green leaves" for number in range(LINES)]
    monkeypatch.setattr(study_helpers, "REFERENCES", references)
    path, out = tmp_path / "recipe.yaml", write_study(tmp_path)
    monkeypatch.setattr("treesyntax.study.results.outputs.measured", None)
    printed, planned = study(path, out, "--dry-run")
    assert printed.count("fairseq-train") == RUNS
    _, first = study(path, out)
    said, resumed = study(path, out)
    assert f"{RUNS} runs, {RUNS} done before" in said
    print(f"dry run {planned:.1f} s, first report {first:.1f} s, resumed {resumed:.1f} s")
    assert max(planned, first, resumed) < 1 + RUNS / 5  # of a processor: ten times what it takes

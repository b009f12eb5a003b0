"""The benchmark of one layer of attention: it has every method that acts there, and it runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

from treesyntax.model.composition import PAIR_HOOKS, parse_spec
from treesyntax.nn.injection import METHODS, hooks_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(*arguments):
    """A process of its own, since it sets threads and how denormal numbers are rounded."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(BENCHMARKS)}
    done = subprocess.run(
        [sys.executable, *arguments], env=settings, capture_output=True, text=True, timeout=240
    )
    assert not done.returncode, done.stderr
    return done.stdout


def test_every_method_that_acts_in_attention_is_timed():
    specs = run("-c", "import attention; print(*attention.SPECS.values(), sep='\\n')").splitlines()
    timed = {name for spec in specs for name in parse_spec(spec)}
    hooks = {*PAIR_HOOKS, "value_map", "node_map"}
    assert timed == {name for name in METHODS if hooks & {*hooks_of(METHODS[name])}}


def test_it_prints_a_ratio_for_each_method():
    names = ["masks", "labels", "chosen relations", "grammar", "walks", "accumulation", "pushdown"]
    few = ["--lengths", "8", "--tokens", "16", "--repeats", "1", "--literal", "0"]
    found = run(str(BENCHMARKS / "attention.py"), *few, "--methods", *names)
    memory, times, causal = found.splitlines()
    for name in names:
        assert f"| {name} " in memory
    assert re.findall(r"\| ([a-z ]+) [\d.]+", times) == names[:-1]
    assert causal.lstrip().startswith("causal plain")
    assert re.findall(r"\| ([a-z ]+) [\d.]+", causal) == ["pushdown"]

"""Scores of a study's runs at several numbers of updates: how long to train, told by data that are no test set.

The study keeps its checkpoints (``train.keep-interval-updates=-1``). For each run, each number of updates and each
part of its data, the last checkpoints up to there are averaged, as the study averages them, and what they write is
scored by the first metric. Calibrations of ``recipes/map`` set the study's test set to data that the map never tests.

    python benchmarks/scores_at_updates.py runs/cal-listops --updates 1500 3000 6000 --average 5
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.plan import Plan, make_plan
from treesyntax.study.run.process import PROGRAMS, resolve
from treesyntax.study.run.steps import OUT, PLUGINS, Run, located

ROOT = Path(__file__).resolve().parents[1]
UPDATE = re.compile(r"checkpoint_\d+_(\d+)\.pt")
PARTS = ("valid", "test")


def changed(command: tuple[str, ...], **values: str) -> list[str]:
    """A command with other values of some flags."""
    words = list(command)
    for name, value in values.items():
        words[words.index("--" + name.replace("_", "-")) + 1] = value
    return words


def score(plan: Plan, run: Run, study: Path, updates: int, last: int, part: str) -> float | None:
    """The first metric's score in points; None if the run has no checkpoint at that update."""
    steps = {step.kind: step for step in plan.steps_of(run)}
    kept = {int(UPDATE.fullmatch(path.name)[1]): path  # type: ignore[index]
            for path in (study / run.checkpoints).glob("checkpoint_*_*.pt")}  # fmt: skip
    if updates not in kept:
        return None

    def do(command: list[str]) -> str:
        words = resolve(
            command, PROGRAMS, {OUT: str(study), PLUGINS: str(ROOT / "fairseq_plugins")}
        )
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}\n{done.stderr[-2000:]}")
        return done.stdout

    with tempfile.TemporaryDirectory(dir=study) as name:
        folder = Path(name)
        for update, path in kept.items():
            if update <= updates:
                os.link(path, folder / path.name)
        mean, written = folder / "mean.pt", folder / "hypotheses.txt"
        do(["treesyntax", "average", name, "--last", str(last), "--out", str(mean)])
        do(changed(steps["generate"].command, path=str(mean), gen_subset=part, results_path=name))
        reference = str(located(getattr(run.method.target, part), study))
        collect = changed(steps["hypotheses"].command, reference=reference)
        place = next(
            place for place, word in enumerate(collect) if word.endswith("generate-test.txt")
        )
        collect[place : place + 2] = [str(folder / f"generate-{part}.txt"), str(written)]
        do(collect)
        metric, counted = plan.recipe.score[0], []
        if "@" in metric:
            if part == "test":
                counted = ["--counted-by", str(located(run.method.categories, study))]
            else:
                metric = metric.split("@")[0]  # categories are those of the test set
        told = do(["treesyntax", "score", "--reference", reference, "--hypothesis", str(written),
                   "--metric", metric, *counted, "--json"])  # fmt: skip
        return float(json.loads(told)[0]["value"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", type=Path, nargs="+")
    parser.add_argument("--updates", type=int, nargs="+", required=True)
    parser.add_argument("--average", type=int, default=5)
    args = parser.parse_args()
    print("study,row,seed,updates,part,score")
    for study in args.studies:
        plan = make_plan(read_recipe(study / "recipe.yaml"))
        for run in plan.runs:
            for updates in args.updates:
                for part in PARTS:
                    value = score(plan, run, study, updates, args.average, part)
                    if value is not None:
                        print(
                            study.name,
                            run.method.name,
                            run.seed,
                            updates,
                            part,
                            f"{value:.2f}",
                            sep=",",
                        )


if __name__ == "__main__":
    main()

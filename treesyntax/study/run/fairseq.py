"""The steps of a study that trains with fairseq: each distinct data once, then train, outputs, scores and facts."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from treesyntax.data.encoding import TEXT, WORDS_LINEARIZATION
from treesyntax.errors import OptionError
from treesyntax.jobs.flags import DATA_TREES
from treesyntax.jobs.preloaded import LOADED
from treesyntax.study.recipe.backbone import target_text
from treesyntax.study.recipe.budget import TRAIN_ON
from treesyntax.study.recipe.checks import TRAIN_DEFAULTS
from treesyntax.study.recipe.recipe import SPLITS, Flags, Method, Recipe, Side, flag_words
from treesyntax.study.run.process import SAFE
from treesyntax.study.run.steps import (
    BINARIZE,
    BINARIZED,
    OUT,
    PLUGINS,
    RUN,
    Command,
    Run,
    Step,
    group_of,
    inside,
    languages,
    left_out_file,
    make_step,
    scoring_steps,
)

LONGEST_NAME = 120
"""Letters in the name of a folder; most file systems allow 255 bytes."""
DATA_FOLDER = "data"
"""Stands for the folder of any data, which is no fault of a command line."""

RECORDS = ("log-file", "tensorboard-logdir")
"""Flags for what fairseq writes of a training beside its checkpoints."""


class Fairseq:
    """fairseq with our plugins, see :class:`treesyntax.study.run.trainers.Trainer`."""

    loaded: tuple[str, ...] = LOADED
    checker: tuple[str, ...] = (sys.executable, SAFE, "-m", "fairseq_plugins.flags")
    needs_plugins = True
    drops_pairs = True
    examples = ""

    def steps(
        self, recipe: Recipe, runs: Sequence[Run], number: int, needs: tuple[str, ...]
    ) -> list[Step]:
        """Each distinct setting of binarize once, then the runs."""
        groups = _binarize_groups(recipe)
        binarize: list[Step] = []
        for methods in groups:
            step = _binarize_step(recipe, methods, needs)
            while step.name in [other.name for other in binarize]:  # labels of axes may have a plus
                step = replace(step, name=f"{step.name}+")
            binarize.append(step)
        folder_of = {
            method.name: step
            for methods, step in zip(groups, binarize, strict=True)
            for method in methods
        }
        lenders = _with_trees(recipe, folder_of)
        steps = [
            step
            for run in runs
            for step in _run_steps(
                recipe, run, folder_of[run.method.name], lenders.get(run.method.name, [])
            )
        ]
        return [*binarize, *steps]

    def commands(
        self, recipe: Recipe, run: Run, data: Step, steps: Sequence[Step]
    ) -> Iterator[Command]:
        """Those of its data, its training and its search, without the folders of the run."""
        yield data.command[1:]
        for step in steps:
            if step.kind not in ("train", "generate"):
                continue
            words = list(step.command)
            index = words.index("--user-dir")
            del words[index : index + 2]
            words[1] = DATA_FOLDER
            kept = [
                word for word in words if run.folder not in word
            ]  # values of --save-dir, --path
            known = [_data_trees(recipe, run.method)] if step.kind == "train" else []
            yield (*_without_folders(kept), *known)

    def longer(self, recipe: Recipe, factor: float) -> tuple[str, ...]:
        """On from the last checkpoints."""
        return f"--{TRAIN_ON}", f"{factor * recipe.train_on:g}"


def _with_trees(recipe: Recipe, folder_of: dict[str, Step]) -> dict[str, list[Step]]:
    """For each method that reads plain text, the steps that make trees of the same source."""
    trees: dict[Side, dict[str, Step]] = {}
    texts = []
    for method in recipe.methods:
        if recipe.flags(method, "binarize").get("source-format", TEXT) == TEXT:
            texts.append(method)
        else:
            step = folder_of[method.name]
            trees.setdefault(method.source, {})[step.name] = step
    return {method.name: list(trees.get(method.source, {}).values()) for method in texts}


def _binarize_groups(recipe: Recipe) -> list[list[Method]]:
    """The methods that share their data and all settings of binarize."""
    groups: dict[str, list[Method]] = {}
    for method in recipe.methods:
        setting = [recipe.flags(method, "binarize"), asdict(method.source), asdict(method.target)]
        groups.setdefault(json.dumps(setting, sort_keys=True), []).append(method)
    return list(groups.values())


def _binarize_step(recipe: Recipe, methods: Sequence[Method], needs: tuple[str, ...]) -> Step:
    first = methods[0]
    names = [method.name.replace("/", ".") for method in methods]
    # The step has the names of all rows, as the markers of older studies have; the folder that of the first.
    name, folder = _joined(names), f"{BINARIZED}/{_joined(names[:1])}"
    # The study may have been killed after the folder was complete, before it marked the step as done.
    words = ["treesyntax", "binarize", f"{OUT}/{folder}", "--overwrite", *languages(recipe)]
    for split in SPLITS:
        files = (getattr(side, split) for side in (first.source, first.target))
        words += [f"--{split}", *map(inside, files)]
    words += [inside(word) for word in flag_words(recipe.flags(first, "binarize"))]
    return Step(f"{BINARIZE}/{name}", tuple(words), needs, (folder,))


def _joined(names: Sequence[str]) -> str:
    """The names of methods as one; many are the first, their number and a hash of all."""
    name = "+".join(names)
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{names[0]}+{len(names) - 1}-more-{digest}"


def _run_steps(
    recipe: Recipe, run: Run, binarized: Step, with_trees: Sequence[Step] = ()
) -> list[Step]:
    """From training to the facts of its checkpoint, and its analyses.

    Args:
        recipe: the recipe.
        run: the run.
        binarized: the step that makes its data.
        with_trees: steps that make other data of the same source, which may have the trees that
            its own lacks.
    """
    data = f"{OUT}/{binarized.outputs[0]}"
    common = ["--user-dir", PLUGINS, "--task", "tree_translation", *languages(recipe)]
    checkpoints = run.checkpoints
    best, last = (f"{checkpoints}/checkpoint_{which}.pt" for which in ("best", "last"))
    mean = f"{run.folder}/checkpoint_average.pt"
    tested = mean if recipe.average else best
    train, average, generate, score, facts = map(
        run.step, ("train", "average", "generate", "score", "facts")
    )
    read = _reading(recipe, run.method)
    if recipe.flags(run.method, "binarize").get("copy-unknown"):
        pair = f"{recipe.source.lang}-{recipe.target.lang}"
        read += ["--unknown", f"{data}/test.{pair}.{recipe.source.lang}.unknown"]
    flags = {**TRAIN_DEFAULTS, **recipe.flags(run.method, "train")}
    _check_checkpoints(recipe, flags)
    _check_records(recipe, flags)
    kept = str(flags.pop("keep-interval-updates", 1))
    if kept.isdecimal():  # -1 keeps all
        kept = str(max(int(kept), recipe.average))
    train_words = [word.replace(RUN, f"{OUT}/{run.folder}") for word in flag_words(flags)]
    if recipe.skips:
        train_words += ["--leave-out", f"{OUT}/{left_out_file(group_of(recipe, run.method))}"]
    averaging = make_step(
        average, ["treesyntax", "average", f"{OUT}/{checkpoints}", "--last", recipe.average,
        "--out", f"{OUT}/{mean}"],
        train, mean,
    )  # fmt: skip
    analyses = _analyses(recipe, run, data, facts, with_trees)
    return [
        make_step(
            train, ["fairseq-train", data, *common, "--arch", run.method.arch, *train_words,
            "--seed", run.seed, "--save-dir", f"{OUT}/{checkpoints}",
            "--no-epoch-checkpoints", "--keep-interval-updates", kept, "--log-format", "json"],
            binarized.name, best,
        ),
        *([averaging] if recipe.average else []),
        make_step(
            generate, ["fairseq-generate", data, *common, "--path", f"{OUT}/{tested}",
            "--gen-subset", "test", "--results-path", f"{OUT}/{run.folder}/generated",
            *flag_words(recipe.flags(run.method, "generate"))],
            average if recipe.average else train, run.generated,
        ),
        *scoring_steps(recipe, run, read),
        make_step(
            facts, ["treesyntax", "analyse", "facts", f"{OUT}/{tested}", "--last", f"{OUT}/{last}"],
            score, stdout=f"{run.folder}/facts.json",
        ),
        *([analyses] if recipe.analyses else []),
    ]  # fmt: skip


def _check_checkpoints(recipe: Recipe, flags: Flags) -> None:
    """Refuse to average more checkpoints than training will write, as far as that is known."""
    known = {name.replace("_", "-"): str(value) for name, value in flags.items()}
    updates, interval = known.get("max-update", ""), known["save-interval-updates"]
    if not recipe.average or not interval.isdecimal():
        return
    limited = updates.isdecimal() and int(updates) > 0
    if int(interval) == 0 or (limited and recipe.average * int(interval) > int(updates)):
        raise OptionError(
            f"{recipe.path}: average is {recipe.average}, but {updates or 'these'} updates with a "
            f"checkpoint every {interval} have fewer; change train.save-interval-updates"
        )
    patience = known.get("patience", "")
    if not patience.isdecimal() or int(patience) == 0:
        return
    between = known.get("validate-interval-updates", "")
    steps = int(between) if between.isdecimal() and int(between) > 0 else int(interval)
    fewest = (int(patience) + 1) * min(steps, int(interval)) // int(interval)
    if recipe.average > fewest:
        raise OptionError(
            f"{recipe.path}: average is {recipe.average}, but a training with patience {patience} may end with "
            f"{fewest} checkpoints; raise train.patience or lower average"
        )


def _check_records(recipe: Recipe, flags: Flags) -> None:
    """Refuse a folder or file in which all runs would write what is shown of one."""
    for name, value in flags.items():
        if name.replace("_", "-") in RECORDS and value and RUN not in str(value):
            raise OptionError(
                f"{recipe.path}: train.{name} is {value}, where the figures of all runs would be mixed; write "
                f"{RUN}/{Path(str(value)).name}, in the folder of each run"
            )


def _analyses(recipe: Recipe, run: Run, data: str, need: str, with_trees: Sequence[Step]) -> Step:
    folder = f"{run.folder}/analyses"
    words = ["treesyntax", "analyse", "run", f"{OUT}/{run.folder}/checkpoints", data]
    if recipe.average:
        words += ["--tested", f"{OUT}/{run.folder}/checkpoint_average.pt"]
    if run.seed != recipe.seeds[0]:  # the report shows figures of the first
        words += ["--numbers-only"]
    if with_trees:
        words += ["--trees", *(f"{OUT}/{step.outputs[0]}" for step in with_trees)]
    step = make_step(run.step("analyses"), [*words, "--out", f"{OUT}/{folder}"], need, folder)
    return replace(step, needs=(*step.needs, *(other.name for other in with_trees)))


def _reading(recipe: Recipe, method: Method) -> list[str]:
    """How hypotheses become text again: of a tree's linearization, or of subwords with bytes."""
    flags = recipe.flags(method, "binarize")
    if (form := target_text(flags)) is None:
        return ["--bytes"] if flags.get("subword-byte-fallback") else []
    words = ["--linearization", form.linearization, "--notation", form.format_name]
    seed = form.shuffle_seed
    return words if seed is None else [*words, "--shuffle-seed", str(seed)]


def _without_folders(words: Sequence[str]) -> list[str]:
    """The words without the flags for folders of a run, which differ between seeds and rows."""
    return [word for word in words if word not in ("--save-dir", "--path", "--results-path")]


def _data_trees(recipe: Recipe, method: Method) -> str:
    """What the checker of a training must know of the row's data."""
    flags = recipe.flags(method, "binarize")
    source, target = (flags.get(key) for key in ("source-format", "target-view"))
    return f"{DATA_TREES}{source or TEXT}:{target or WORDS_LINEARIZATION}"

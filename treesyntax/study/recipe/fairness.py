"""Whether methods differ in settings that are not compared.

A row is the baseline plus a method. Methods may differ in `FREE` flags, which say how data present the tree,
and in the parts of their injections that need trees. Any other flag in which they differ would be compared
along with the methods, so it must be declared and explained::

    differences: {train.lr: "its own rate, tuned on the validation set as the others' was"}

That holds for relative positions and rotations too: a row with ``relative_position+stack_pe`` over a baseline
without them is declared as ``train.encoder-injection``, and so is a row that drops those of the baseline.

Rows of different sizes (``tree_sequence_mini`` and ``tree_relation_mask_small``) are declared as
``train.arch``. Where batches hold tokens and rows read different sequences, they see different numbers
of pairs in as many updates, which is declared as ``train.max-tokens``.

Options that an axis varies for all methods alike are the question itself and need no explanation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from treesyntax.data.encoding import TEXT, WORDS_LINEARIZATION, usual_linearization
from treesyntax.errors import OptionError
from treesyntax.study.recipe.axes import shared_point
from treesyntax.study.recipe.backbone import (
    SIDES,
    dropped_method,
    injection_of,
    positions_of,
    size_of_arch,
)
from treesyntax.study.recipe.checks import Flags
from treesyntax.study.recipe.recipe import SECTIONS, Method, Recipe, flag_words
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.names import GIVEN

TREE_TASK = ("target-view", "tree-constraints", "no-target-eos-loss")
NOT_IN_KEYS = (
    "keep-interval-updates", "lines", "log-file", "log-interval", "no-progress-bar", "num-workers",
    "tensorboard-logdir", "wandb-project", "workers",
)  # fmt: skip
"""Flags that change no number, which the keys of steps leave out."""
NO_EFFECT = (*NOT_IN_KEYS, "cpu", "dataloader-num-workers", "logging-steps", "use-cpu")
"""All flags that change no number. Were the last ones to leave the keys, the studies of users would train anew."""
FREE = {
    "binarize": (
        "source-format", "source-view", "source-control", "target-format", "target-view",
        "target-control", "control-seed", "subword-policy", *NO_EFFECT,
    ),
    "train": (
        "decoder-next-slot", *TREE_TASK, *NO_EFFECT,
    ),
    "generate": (*TREE_TASK, *NO_EFFECT),
}  # fmt: skip
"""The flags in which methods are meant to differ, and those that change no number."""
SIZE_KEY, BATCH_KEY = "train.arch", "train.max-tokens"

_KINDS = {
    "model below the method": r"train\.((en|de)coder-(injection|positions)|embedding-scaling|copy-.*)",
    "budget": r"train\.(max-update|max-epoch|max-tokens|batch-size|update-freq|patience|stop-.*|"
    r"max-steps|num-train-epochs|per-device-train-batch-size|gradient-accumulation-steps)",
    "choice of the checkpoint": r"train\.(valid.*|save-interval.*|.*best-checkpoint.*|keep-best.*)",
    "data": r"train\.(train-subset|combine-valid.*|skip-.*|max-(source|target)-positions)",
    "model size": r"train\.((en|de)coder-.*|share-.*|no-scale-embedding|activation-fn)",
    "optimiser": r"train\..*",
    "tokenisation": r"binarize\..*",
    "decoding": r"generate\..*",
}
"""The kind of any other flag: that of the first pattern that fits."""


class Difference(NamedTuple):
    """A flag in which methods differ that are compared.

    Attributes:
        key: ``SECTION.FLAG``.
        values: the flag's value, None for none, by the method's name in the recipe.
    """

    key: str
    values: dict[str, Any]

    @property
    def kind(self) -> str:
        """The kind of the flag."""
        return next(kind for kind, pattern in _KINDS.items() if re.fullmatch(pattern, self.key))


def find_differences(recipe: Recipe) -> list[Difference]:
    """The flags, other than `FREE` ones, that are not the same in all rows at a point of shared axes."""
    points = [shared_point(method.point, recipe.axes) for method in recipe.methods]
    differences = []
    for section in SECTIONS:
        flags = {method.name: _flags(recipe, method, section) for method in recipe.methods}
        names = dict.fromkeys(name for method_flags in flags.values() for name in method_flags)
        for name in names:
            key = f"{section}.{name}"
            values = {method: method_flags.get(name) for method, method_flags in flags.items()}
            pairs = {
                (point, _compared(value))
                for point, value in zip(points, values.values(), strict=True)
            }
            if len(pairs) > len(set(points)) and name not in FREE[section]:
                differences.append(Difference(key, values))
    return differences


def check_fairness(recipe: Recipe) -> None:
    """Refuse differences that the recipe does not explain."""
    for difference in find_differences(recipe):
        if difference.key in recipe.differences:
            continue
        holders: dict[str, str] = {}
        for name, value in difference.values.items():
            holders.setdefault(_compared(value), f"{name} has {'none' if value is None else value}")
        shown = ", ".join(holders.values())
        raise OptionError(
            f"{recipe.path}: methods differ in {difference.key} ({difference.kind}): {shown}; "
            f"set it under {difference.key.partition('.')[0]} for all, or declare and explain it: "
            f'differences: {{{difference.key}: "why"}}'
        )
    for method in recipe.methods:
        train = recipe.flags(method, "train")
        if dropped := dropped_method(method.arch, train):
            spec = injection_of(method.arch, train, SIDES[0])
            raise OptionError(
                f"{recipe.path}: methods.{method.base}: {method.arch} stands for {dropped}, but "
                f"train.encoder-injection puts {spec or 'nothing'} in its place; write {dropped} into it: "
                f"{'+'.join(filter(None, (spec, dropped)))}"
            )
        if (baseline := recipe.baseline_of(method)) is not None:
            _check_pair(recipe, method, baseline)


def _lengths(recipe: Recipe, method: Method) -> list[str]:
    """What decides how many tokens a row reads of a pair."""
    flags = recipe.flags(method, "binarize")
    shown = []
    for side in ("source", "target"):
        notation = str(flags.get(f"{side}-format", TEXT))
        shown.append(str(flags.get(f"{side}-view") or usual_linearization(notation)))
        if shown[-1] != WORDS_LINEARIZATION:
            shown.append(str(flags.get(f"{side}-control", GIVEN)))
    return shown


def _check_pair(recipe: Recipe, method: Method, baseline: Method) -> None:
    """Refuse a row of another size than its baseline's, or that would see other numbers of pairs."""
    flags = recipe.flags(method, "train")
    size, baseline_size = size_of_arch(method.arch), size_of_arch(baseline.arch)
    if size != baseline_size and SIZE_KEY not in recipe.differences:
        raise OptionError(
            f"{recipe.path}: methods differ in size: {method.name} has {method.arch}, "
            f"{baseline.name} has {baseline.arch}; take one size, or declare and explain it: "
            f'differences: {{{SIZE_KEY}: "why"}}'
        )
    by_tokens = flags.get("max-tokens") is not None and flags.get("batch-size") is None
    if (
        by_tokens
        and flags.get("max-update") is not None
        and _lengths(recipe, method) != _lengths(recipe, baseline)
        and BATCH_KEY not in recipe.differences
    ):
        raise OptionError(
            f"{recipe.path}: batches hold tokens (train.max-tokens), and {method.name} reads other "
            f"sequences than {baseline.name}, so they would see other numbers of pairs; set "
            "train.batch-size instead, or declare and explain it: "
            f'differences: {{{BATCH_KEY}: "why"}}'
        )


def repeated(recipe: Recipe) -> str:
    """Return a line on rows that differ in nothing but their names, whose trainings would be the same; else ""."""
    alike: dict[str, list[str]] = {}
    for row in recipe.methods:
        flags = [
            sorted(
                (_dashed(name), _compared(value))
                for name, value in _given(recipe.flags(row, section))
            )
            for section in SECTIONS
        ]
        alike.setdefault(repr((row.arch, row.source, row.target, flags)), []).append(row.name)
    pairs = [" and ".join(names) for names in alike.values() if len(names) > 1]
    if not pairs:
        return ""
    return f"rows that differ in nothing but their names: {'; '.join(pairs)}; leave out all but one, or check their settings"


def own_settings(recipe: Recipe, method: Method, differences: Sequence[Difference]) -> list[str]:
    """The settings in which a row differs from its baseline, one text a flag, with the reason."""
    baseline = recipe.baseline_of(method)
    if baseline is None:
        return []
    texts = []
    if size_of_arch(method.arch) != size_of_arch(baseline.arch):
        texts.append(
            f"size {size_of_arch(method.arch)}: {recipe.differences.get(SIZE_KEY, 'unexplained')}"
        )
    for difference in differences:
        value = difference.values[method.name]
        if _compared(value) == _compared(difference.values[baseline.name]):
            continue
        name = difference.key.partition(".")[2]
        words = " ".join(flag_words({name: value})) or f"no --{name}"
        why = recipe.differences.get(difference.key)
        texts.append(f"{words}: {why}" if why else words)
    return texts


def writes_whole_trees(recipe: Recipe, method: Method) -> bool:
    """Whether search is held to whole trees: each target token is a node that says which children it has."""
    linearization = recipe.flags(method, "binarize").get("target-view")
    free = recipe.flags(method, "generate").get("tree-constraints") == "none"
    return linearization is not None and not free and get_linearization(str(linearization)).slots


def _flags(recipe: Recipe, method: Method, section: str) -> dict[str, Any]:
    """The flags that have a value.

    Of the injections it is what needs no tree: relative positions and rotations that the baseline must have too.
    """
    flags = dict(recipe.flags(method, section))
    for side in SIDES if section == "train" else ():
        flags.pop(f"{side}_injection", None)
        flags[f"{side}-injection"] = (
            positions_of(method.arch, recipe.flags(method, section), side) or None
        )
    return {_dashed(name): item for name, item in _given(flags)}


def _given(flags: Flags) -> Iterator[tuple[str, Any]]:
    """The flags that have a value; False and null leave a flag out."""
    return ((name, item) for name, item in flags.items() if item is not None and item is not False)


def _compared(value: Any) -> str:
    """What a flag's value is compared by: 1, 1.0 and the texts 1e-3 and 0.001 are numbers, whoever wrote them.

    YAML takes ``1e-3`` for a text, since it has no point.
    """
    try:
        return str(float(str(value)))
    except ValueError:
        return str(value)


def _dashed(name: str) -> str:
    return name.replace("_", "-")

"""``controls:`` of a method: rows with its trees replaced by trees that hold no syntax.

A method that does as well over such trees gains from its mechanism, not from syntax::

    relation_mask:
      arch: tree_sequence_{size}
      binarize: {source-format: ptb, source-view: preorder}
      train: {encoder-injection: relative_position+relation_mask}
      controls: [random]

makes the row ``relation_mask/random``, the same but for its trees. ``random`` stands for random trees of the
same nodes and labels where the method reads trees, and for children in an order that means nothing where its
decoder grows them (``shuffled``), so that outputs print to the same text under the same constrained search.
``flat`` and ``right_branching`` are for sources alone, ``shuffled`` for targets alone. An item may also name
a method of the recipe that is spelled out: it must differ from the one that it controls in its trees only.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from treesyntax.study.recipe.axes import CONTROL as OF
from treesyntax.study.recipe.backbone import grows_trees, reads_trees
from treesyntax.study.recipe.checks import Check, Flags
from treesyntax.study.recipe.reading import laid_over
from treesyntax.study.recipe.rows import SECTIONS, Method
from treesyntax.trees.names import CONTROLS as TREES
from treesyntax.trees.names import GIVEN, SHUFFLED

CONTROLS = "controls"
RANDOM = "random"
SOURCES = tuple(name for name in TREES if name != GIVEN)
KINDS = (*SOURCES, SHUFFLED)
ABOUT = {
    RANDOM: "over random trees of the same nodes and labels",
    "flat": "over flat trees",
    "right_branching": "over trees that only branch to the right",
    SHUFFLED: "over trees with the children of each node in an order that means nothing",
}
TREE_FLAGS = ("source-control", "target-control", "control-seed")
"""What a control may have of its own."""


def kind_of(name: Any) -> str:
    """Return the kind of trees in the name ``NAME/KIND`` of a control, "" for other names."""
    kind = str(name).partition(OF)[2]
    return kind if kind in KINDS else ""


def with_controls(methods: Mapping[str, Any], check: Check) -> dict[str, Any]:
    """Return the methods of a recipe, each followed by the rows that its ``controls`` ask for.

    Entries such as ``NAME/random`` of the recipe itself, settings that a search found, are laid over them.
    """
    expanded: dict[str, Any] = {}
    made: set[str] = set()
    for name, content in methods.items():
        if kind_of(name):
            continue
        expanded[name] = content
        controls_key = f"methods.{name}.{CONTROLS}"
        items = content.get(CONTROLS, []) if isinstance(content, dict) else []
        for item in check.distinct(items, controls_key, str) if items != [] else ():
            if item in KINDS:
                control = {key: copy.deepcopy(content[key]) for key in content if key != CONTROLS}
                made.add(full := f"{name}{OF}{item}")
                expanded[full] = laid_over(control, methods.get(full, {}))
            elif item not in methods or item == name:
                known = ", ".join((*KINDS, *(other for other in methods if other != name)))
                raise check.error(controls_key, f"names {item!r}; name one of {known}")
    for name in methods:
        if (kind := kind_of(name)) and name not in made:
            base = name.partition(OF)[0]
            raise check.error(f"methods.{name}", f"is no row; write {CONTROLS}: [{kind}] in {base}")
    return expanded


def as_control(method: Method, shared: Mapping[str, Flags], check: Check) -> Method:
    """Return a row named ``NAME/KIND`` with such trees, and any other row as it is.

    Args:
        method: the row.
        shared: the flags of all rows by section.
        check: of the recipe.
    """
    name, kind = method.base.partition(OF)[0], kind_of(method.base)
    if not kind:
        return method
    controls_key = f"methods.{name}.{CONTROLS}"
    binarize = {**shared["binarize"], **method.binarize}
    control_flags = [flag for flag in TREE_FLAGS[:2] if binarize.get(flag, GIVEN) != GIVEN]
    if control_flags:
        raise check.error(
            controls_key, f"has {kind}, but {name} has {control_flags[0]} and is a control itself"
        )
    flags = {}
    if kind in SOURCES and reads_trees(method.arch, binarize, {**shared["train"], **method.train}):
        flags["source-control"] = kind
    if kind in (RANDOM, SHUFFLED) and grows_trees(binarize):
        flags["target-control"] = SHUFFLED
    if not flags:
        lack = "reads no trees of its source" if kind in SOURCES else "grows no trees"
        lack = "neither reads nor grows trees" if kind == RANDOM else lack
        raise check.error(controls_key, f"has {kind}, but {name} {lack}; take {kind} out")
    about = f"{name} {ABOUT[kind if 'source-control' in flags else SHUFFLED]}: its control"
    return replace(method, about=about, binarize={**method.binarize, **flags})


def uncontrolled(rows: Sequence[tuple[Method, Flags, Flags]]) -> str:
    """Return what to do for rows whose trees no control takes the place of; "" if there are none.

    Args:
        rows: those that have a baseline and control no other, each with its flags of binarize and of training.
    """
    names = [
        row.name
        for row, binarize, train in rows
        if not row.controls and (reads_trees(row.arch, binarize, train) or grows_trees(binarize))
    ]
    if not names:
        return ""
    more = " and others" if len(names) > 3 else ""
    return (
        f"no control: {', '.join(names[:3])}{more}; without one a row cannot show that syntax helps: add "
        f"{CONTROLS}: [{RANDOM}]"
    )


def linked(
    methods: Sequence[Method],
    entries: Mapping[str, Any],
    baseline: str,
    declared: Container[str],
    check: Check,
    is_of_report: bool = False,
) -> tuple[Method, ...]:
    """Return the rows of a recipe, each with the names of its controls, or of the row that it controls.

    Args:
        methods: the rows.
        entries: of the methods, see `with_controls`.
        baseline: the method or row that others are compared with.
        declared: ``SECTION.FLAG`` in which rows may differ, such as a rate that a search found for each.
        check: of the recipe.
        is_of_report: whether a report names another baseline than the recipe. The controls of that one then are rows
            like all others.
    """
    controls: dict[str, list[str]] = {}
    controlled: dict[str, str] = {}
    for row in methods:
        controls_key = f"methods.{row.base}.{CONTROLS}"
        items = entries[row.base].get(CONTROLS, [])
        if items and baseline in (row.name, row.base):
            if is_of_report:
                continue
            raise check.error(controls_key, "is of the baseline, which has no method to control")
        for item in items:
            base = f"{row.base}{OF}{item}" if item in KINDS else item
            labels = dict(row.point)
            for control in (control for control in methods if control.base == base):
                if all(labels.get(axis, label) == label for axis, label in control.point):
                    _check_control(row, control, controls_key, declared, check)
                    controls.setdefault(row.name, []).append(control.name)
                    controlled.setdefault(control.name, row.name)
    return tuple(
        replace(row, controls=tuple(controls.get(row.name, ())), control_of=controlled.get(row.name, ""))
        for row in methods
    )  # fmt: skip


def _check_control(
    row: Method, control: Method, controls_key: str, declared: Container[str], check: Check
) -> None:
    """A row and its control may differ in their trees alone."""
    differs = ["arch"] if row.arch != control.arch else []
    for section in SECTIONS:
        ours, others = getattr(row, section), getattr(control, section)
        differs += [
            f"{section}.{flag}"
            for flag in dict.fromkeys((*ours, *others))
            if flag not in TREE_FLAGS
            and f"{section}.{flag.replace('_', '-')}" not in declared
            and ours.get(flag) != others.get(flag)
        ]
    if differs:
        raise check.error(
            controls_key,
            f"names {control.name}, which differs from {row.name} in {differs[0]}; a control differs in "
            f"its trees only ({', '.join(TREE_FLAGS)}, or the files of its source)",
        )

"""What of a row is its method and what is the model below it, read from a recipe without torch.

An injection such as ``relative_position+stack_pe(depth=16)`` has parts: those that need trees are the
method, and the others (relative positions, rotations by place) belong to every row, see
:mod:`treesyntax.study.recipe.fairness`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from treesyntax.data.encoding import TEXT, WORDS_LINEARIZATION, usual_linearization
from treesyntax.study.recipe.checks import Flags, whole_number
from treesyntax.trees.linearizations import TreeText, get_linearization, tree_text

CATALOGUE = Path(__file__).parents[2] / "methods" / "catalogue.json"
"""What the shipped methods are, in a file, since reading them from their classes loads torch."""
OURS = "tree_"
SIZES = ("base", "iwslt", "small", "program", "compact", "mini", "tiny")
"""The sizes in the names of our architectures; names without one have the first."""
SIDES = ("encoder", "decoder")
NOTHING = ("", "none", "nothing")
PLAIN = ("none", "sequence", "linearized")
"""Methods that add nothing to a model."""


def size_of_arch(arch: str) -> str:
    """Return the size in the name of an architecture; others than ours are a size of their own."""
    if not arch.startswith(OURS):
        return arch
    size = arch.rpartition("_")[2]
    return size if size in SIZES else SIZES[0]


def method_of_arch(arch: str) -> str:
    """Return the method in the name of an architecture, "" for others than ours."""
    size = size_of_arch(arch)
    return arch.removeprefix(OURS).removesuffix(f"_{size}") if arch.startswith(OURS) else ""


def injection_of(arch: str, train: Flags, side: str) -> str:
    """Return the injection of one side of a model: that of its flags, else its architecture's."""
    flag = train.get(f"{side}-injection", train.get(f"{side}_injection"))
    if flag is not None:
        return "" if str(flag) in NOTHING else str(flag)
    method = method_of_arch(arch)
    known = _catalogue().get(method)
    spec = known["architecture"][side] if known else method if side == SIDES[0] else ""
    return "" if spec in NOTHING else spec


def dropped_method(arch: str, train: Flags) -> str:
    """Return the method in the name of an architecture if a row's flags put another one in its place, else ""."""
    method = method_of_arch(arch)
    known = method in _catalogue() and method not in PLAIN
    return method if known and method not in parts_of(injection_of(arch, train, SIDES[0])) else ""


def parts_of(spec: str) -> dict[str, str]:
    """Return the parts of an injection by their names, presets as what they stand for.

    The text of a part has the arguments that are not the default, in one order, so that equal texts are
    equal methods. What cannot be read is one part.
    """
    try:
        tree = ast.parse(spec.strip(), mode="eval").body if spec.strip() else None
    except (SyntaxError, ValueError):
        return {spec: spec}
    texts: dict[str, str] = {}
    while tree is not None:
        last = tree.right if isinstance(tree, ast.BinOp) else tree
        call = last.func if isinstance(last, ast.Call) else last
        keywords = last.keywords if isinstance(last, ast.Call) else []
        texts = {**_keywords_of(ast.unparse(call), keywords), **texts}
        tree = tree.left if isinstance(tree, ast.BinOp) else None
    return texts


def _keywords_of(name: str, keywords: list[ast.keyword]) -> dict[str, str]:
    if name in _presets():  # arguments override those of a preset that is one method
        tree = ast.parse(_presets()[name], mode="eval").body
        if not isinstance(tree, ast.Call):
            return parts_of(_presets()[name])
        name, keywords = ast.unparse(tree.func), [*tree.keywords, *keywords]
    given = {str(keyword.arg): ast.unparse(keyword.value) for keyword in keywords}
    defaults = _catalogue().get(name, {}).get("arguments", {})
    other = {key: value for key, value in given.items() if repr(defaults.get(key)) != value}
    arguments = ", ".join(f"{key}={value}" for key, value in sorted(other.items()))
    return {} if name in PLAIN else {name: f"{name}({arguments})" if arguments else name}


def papers_of(arch: str, train: Flags) -> dict[str, str]:
    """Return what each method of a row says of its paper, by its name; "" for one of the user's own."""
    specs = [injection_of(arch, train, side) for side in SIDES]
    names = [method_of_arch(arch), *(name for spec in specs for name in parts_of(spec))]
    return {name: _catalogue().get(name, {}).get("paper", "") for name in names if name}


def positions_of(arch: str, train: Flags, side: str) -> str:
    """Return the parts of an injection that need no tree, such as ``relative_position``; "" for none."""
    texts = parts_of(injection_of(arch, train, side))
    return "+".join(text for name, text in sorted(texts.items()) if not needs_tree(name))


def needs_tree(method: str) -> bool:
    """Whether a method needs trees; one of the user's own is taken for one that does."""
    return bool(_catalogue().get(method, {"needs_tree": True})["needs_tree"])


def reads_trees(arch: str, binarize: Mapping[str, Any], train: Flags) -> bool:
    """Whether a row reads the trees of its source: as more than words, or by a method that needs them."""
    notation = str(binarize.get("source-format", TEXT))
    if notation == TEXT:
        return False
    view = binarize.get("source-view", usual_linearization(notation))
    spec = injection_of(arch, train, SIDES[0])
    return view != WORDS_LINEARIZATION or any(map(needs_tree, parts_of(spec)))


def grows_trees(binarize: Mapping[str, Any]) -> bool:
    """Whether the targets of a row are tokens that determine a tree."""
    if str(binarize.get("target-format", TEXT)) == TEXT or "target-view" not in binarize:
        return False
    return get_linearization(str(binarize["target-view"])).tree is not None


def target_text(binarize: Mapping[str, Any]) -> TreeText | None:
    """How the targets of a row become text again, None where their tokens are text."""
    return tree_text(
        str(binarize.get("target-format") or TEXT), binarize.get("target-view"),
        str(binarize.get("target-control")), whole_number(binarize.get("control-seed")),
    )  # fmt: skip


@cache
def _entries(kind: str) -> list[dict[str, Any]]:
    return list(json.loads(CATALOGUE.read_text("utf-8"))[kind])


def _catalogue() -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in _entries("methods")}


def _presets() -> dict[str, str]:
    return {entry["name"]: entry["spec"] for entry in _entries("presets")}

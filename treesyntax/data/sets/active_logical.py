"""Active sentences and logical forms, trees on both sides (Soulos et al. 2023)."""

from __future__ import annotations

import json

from treesyntax.data.sets.base import DataSet, Input, Part, Texts
from treesyntax.data.sets.reading import lines_of
from treesyntax.errors import InputError, TreeError
from treesyntax.trees.formats import get_format

_ADDRESS = (
    "https://raw.githubusercontent.com/psoulos/sdtm/de132183849256d76a31c6e1af25208402de2c1c/"
    "data/active_logical/"
)
_FILES = {"train": "train.json", "valid": "validation.json", "test": "test.json",
          "ood_long": "ood_long.json", "ood_new": "ood_new.json"}  # fmt: skip
_SHA256 = {
    "train.json": "a84190ad425bc353bc529abf25539a95fb0ecd5d2db88c6f4ceacb42389af575",
    "validation.json": "824b568aab7b0f03a2523b741264df2d2c62e9585b70edeb51ed1b446cc99343",
    "test.json": "c01b29c208f0aeffa9a815f0db4cc27d62ea852839885eabad860f8daf674248",
    "ood_long.json": "81cee36d31737e2fce39c3a124c0090e509f0f9e51d7a6b798adc764e5d09b27",
    "ood_new.json": "2e572952d7ca19ce639439c723d322de0fe702585d5bd099e0cc0b6016c0dab5",
}


def _examples(content: bytes, name: str) -> Part:
    examples = Part()
    ptb, sexpr = get_format("ptb"), get_format("sexpr")
    for number, line in enumerate(lines_of(content, name), start=1):
        try:
            pair = json.loads(line)
            source, target = (str(pair[side]) for side in ("source", "target"))
            examples.add(sexpr.write(sexpr.parse(source)), sexpr.write(sexpr.parse(target)),
                     ptb.write(ptb.parse(source)))  # fmt: skip
        except (ValueError, KeyError, TypeError, TreeError) as error:
            cause = f"is no pair of trees ({error})"
            raise InputError(name, number, cause, "get the file again") from None
    return examples


def _make(texts: Texts, _: int) -> dict[str, Part]:
    splits = {split: _examples(texts[name], name) for split, name in _FILES.items()}
    both = Part()
    for name in ("ood_long", "ood_new"):
        examples = splits[name]
        for source, target, tree in zip(
            examples.sources, examples.targets, examples.trees, strict=True
        ):
            direction = "from_logical" if source.startswith("( LF") else "to_logical"
            both.add(source, target, tree, f"{name}_{direction}")
    return splits | {"gen": both}


ACTIVE_LOGICAL = DataSet(
    "active_logical", "trees of sentences to trees of logical forms and back", "none stated",
    "Soulos et al. 2023, Differentiable Tree Operations Promote Compositional Generalization",
    _make, tuple(Input((name,), _ADDRESS + name, sha256) for name, sha256 in _SHA256.items()),
    "ood_long has deeper trees, ood_new adjectives that train lacks; gen holds both",
)  # fmt: skip

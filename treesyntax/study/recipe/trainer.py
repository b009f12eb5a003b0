"""``trainer: huggingface`` in a recipe: rows are methods in a pretrained model.

    trainer: huggingface
    model: "{model}"
    task: sequence-classification
    data: {train: train.jsonl, valid: valid.jsonl, test: test.jsonl, format: ptb}
    train: {learning_rate: 3.0e-5, num_train_epochs: 10, patience: 3}
    methods:
      plain: {}
      masks: {injection: relation_mask, controls: [random]}

Such a recipe is read as what all recipes are: sides with files, flags of sections, rows with an
architecture, which is the model here. So fairness, controls, axes and results know one kind of recipe. ``binarize``
then says how data present the tree, ``train`` has TrainingArguments beside the injection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treesyntax.errors import unknown_name
from treesyntax.study.recipe.axes import AT
from treesyntax.study.recipe.checks import Check
from treesyntax.study.recipe.controls import CONTROLS

TRAINER, MODEL, TASK = "trainer", "model", "task"
FAIRSEQ, HUGGINGFACE = TRAINERS = ("fairseq", "huggingface")
KEYS = (TRAINER, MODEL, TASK)
TASKS = ("sequence-classification", "token-classification", "seq2seq", "causal")
SPLITS = ("train", "valid", "test")
INJECTION = "injection"
FLAG = "encoder-injection"
"""The flag that a row's injection stands for."""
COLUMNS, HEADER, EACH, HOLD_OUT = "columns", "header", "each", "hold-out"
FORMAT, TREES, TARGETS, PARSER = "format", "trees", "targets", "parser"
OPTIONAL = (COLUMNS, HEADER, EACH, HOLD_OUT, FORMAT, TREES, TARGETS, PARSER)
ROW_KEYS = (INJECTION, MODEL, "about", CONTROLS, "train", "generate", "vars", AT)
SIDES = ("source", "target")
"""The suffixes of the files of lines that a study writes of its data."""


def is_huggingface(content: Mapping[str, Any]) -> bool:
    """Whether a recipe is of this trainer."""
    return content.get(TRAINER) == HUGGINGFACE


def as_rows(raw: Mapping[str, Any], check: Check) -> dict[str, Any]:
    """Return a recipe as one of rows with an architecture and flags; others than of this trainer as they are.

    Raises:
        OptionError: for another trainer, and for keys that are missing or unknown.
    """
    trainer = raw.get(TRAINER, FAIRSEQ)
    if trainer not in TRAINERS:
        raise unknown_name("trainer", str(trainer), TRAINERS, f"{check.path}: {TRAINER}:")
    if trainer == FAIRSEQ:
        for key in KEYS[1:]:
            if key in raw:
                raise check.error(key, f"belongs to {TRAINER}: {HUGGINGFACE}")
        return dict(raw)
    for key in (MODEL, TASK):
        if key not in raw:
            raise check.error("", f"lacks the key {key!r}, which {TRAINER}: {HUGGINGFACE} needs")
    check.one_of(raw[TASK], TASK, TASKS)
    for key in ("average", "skip", "binarize"):
        if raw.get(key):
            raise check.error(key, f"does not belong to {TRAINER}: {HUGGINGFACE}; leave it out")
    check_data(raw["data"], check)
    methods = check.mapping(raw["methods"], "methods")
    return {
        **{key: value for key, value in raw.items() if key not in KEYS},
        "analyses": False,  # of checkpoints of fairseq
        "data": {
            side: {"lang": side, **{split: f"{{data}}/{split}.{side}" for split in SPLITS}}
            for side in SIDES
        },
        "binarize": {"source-format": "jsonl", "source-view": "words"},
        "methods": {name: _row(name, row, raw[MODEL], check) for name, row in methods.items()},
    }


def check_content(content: dict[str, Any], check: Check) -> dict[str, Any]:
    """Return the content of a recipe; of this trainer no variable may be left in its data."""
    for split in SPLITS if is_huggingface(content) else ():
        check.placeholders(content["data"].get(split, ""), f"data.{split}")
        for name in (TREES, TARGETS):
            if split in content["data"].get(name, {}):
                check.placeholders(content["data"][name][split], f"data.{name}.{split}")
    return content


def outside_files(content: Mapping[str, Any]) -> dict[str, str]:
    """The data files of such a recipe, by their key."""
    if not is_huggingface(content):
        return {}
    data = content["data"]
    files = {f"data.{split}": str(data[split]) for split in SPLITS if split in data}
    for name in (TREES, TARGETS):
        files |= {f"data.{name}.{split}": str(file) for split, file in data.get(name, {}).items()}
    return files


def check_data(data: Any, check: Check) -> None:
    """The entry ``data`` of such a recipe."""
    check.keys(data, "data", ("train", "test"), ("valid", *OPTIONAL))
    for split in SPLITS:
        check.text(data.get(split, ""), f"data.{split}")
    if ("valid" in data) == bool(check.count(data.get(HOLD_OUT, 0), f"data.{HOLD_OUT}")):
        raise check.error("data", f"needs valid, or {HOLD_OUT}: N examples of train, not both")
    if HOLD_OUT in data and (PARSER in data or TREES in data):
        raise check.error(
            f"data.{HOLD_OUT}",
            f"goes with trees in the data; with {TREES} or {PARSER} give valid in its place",
        )
    for name in (COLUMNS, TREES, TARGETS):
        for key, value in check.mapping(data.get(name, {}), f"data.{name}").items():
            check.text(value, f"data.{name}.{key}")
    for name in (TREES, TARGETS):
        check.keys(data.get(name, {}), f"data.{name}", (), SPLITS)
    if HEADER in data:
        check.distinct(data[HEADER], f"data.{HEADER}", str)
    for name in (EACH, FORMAT, PARSER):
        check.text(data.get(name, ""), f"data.{name}")
    if PARSER in data and TREES in data:
        raise check.error("data", f"has {PARSER} and {TREES}; keep one of them")
    if PARSER in data and FORMAT not in data:
        raise check.error(
            "data",
            f"lacks the key {FORMAT!r} of its trees: conllu of dependencies, ptb of constituents",
        )


def _row(name: str, row: Any, model: Any, check: Check) -> dict[str, Any]:
    row_key = f"methods.{name}"
    row = {} if row is None else row
    check.keys(row, row_key, (), ROW_KEYS)
    content = {key: value for key, value in row.items() if key not in (INJECTION, MODEL)}
    train = dict(check.mapping(row.get("train", {}), f"{row_key}.train"))
    if INJECTION in row:
        train[FLAG] = check.text(row[INJECTION], f"{row_key}.{INJECTION}")
    return {
        **content,
        "arch": check.text(row.get(MODEL, model), f"{row_key}.{MODEL}"),
        "train": train,
    }

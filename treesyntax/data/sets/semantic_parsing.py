"""ATIS, GeoQuery and Jobs640 as Dong & Lapata 2016 prepared them, and ATIS by the length of its FunQL forms."""

from __future__ import annotations

from functools import partial

from treesyntax.data.sets.base import DataSet, Input, Part, Texts, hold_out
from treesyntax.data.sets.reading import lines_of, rows_of
from treesyntax.data.sets.split import SPLITS
from treesyntax.errors import InputError
from treesyntax.trees.formats import get_format
from treesyntax.trees.formats.base import Record, parse_record

VALID = 50
_FUNQL = "https://raw.githubusercontent.com/namednil/multiset-perm/b50c52fa239be5a8e9a7f2260ea3b85d9701da84/data.zip"


_FUNQL_SHA256 = {
    "train": "b7e5bd4a06eb8a7e978d661f5480f4325aebb1c715964257d4a648d76f1f24c9",
    "dev": "d566a7d7ea1f4697f1a5a99688db8374abe1635fd8bb5ca8c03d82b63bb6dffd",
    "test": "ed623bfe3d6ea841a7315ac8e793782c79b3d933c68df13ebfe5a85f376bd3df",
}


def _questions(notation: str, names: dict[str, str], texts: Texts, seed: int) -> dict[str, Part]:
    splits = {split: _pairs(texts, name, notation) for split, name in names.items()}
    if "valid" not in splits:
        splits["train"], splits["valid"] = hold_out(splits["train"], VALID, seed)
    splits["unseen"] = _unseen(splits["train"], splits["test"])
    return splits


def _pairs(texts: Texts, name: str, notation: str) -> Part:
    examples, form_format = Part(), get_format(notation)
    sides = [lines_of(texts[f"{name}.{side}"], f"{name}.{side}") for side in ("src", "tgt")]
    if len(sides[0]) != len(sides[1]):
        cause = f"has {len(sides[1])} lines, but {name}.src has {len(sides[0])}"
        raise InputError(f"{name}.tgt", None, cause, "the files must be aligned line by line")
    for line, (question, form) in enumerate(zip(*sides, strict=True), start=1):
        tree = parse_record(form_format, f"{name}.tgt", Record(line, form))
        examples.add(" ".join(question.split()), form_format.write(tree))
    return examples


def _unseen(train: Part, test: Part) -> Part:
    """The test pairs that are not in train."""
    known = set(zip(train.sources, train.targets, strict=True))
    pairs = zip(test.sources, test.targets, strict=True)
    return test.chosen([line for line, pair in enumerate(pairs) if pair not in known])


def _funql(texts: Texts, _: int) -> dict[str, Part]:
    splits = {}
    for name, file in (("train", "train.tsv"), ("valid", "dev.tsv"), ("test", "test.tsv")):
        splits[name] = examples = Part()
        for question, form in rows_of(texts[file], file, 2):
            examples.add(question, form)
    return splits


def _set(name: str, title: str, notation: str, valid: bool, home: str) -> DataSet:
    names = {"train": "train", "test": "test", **({"valid": "valid"} if valid else {})}
    inputs = tuple(Input((f"{split}.{side}",)) for split in names for side in ("src", "tgt"))
    order: dict[str, str] = {split: names[split] for split in SPLITS if split in names}
    return DataSet(
        name, title, "none stated", "Dong & Lapata 2016, Language to Logical Form with Neural Attention",
        partial(_questions, notation, order), inputs,
        "unseen holds the test pairs that are not in train"
        + ("" if valid else f"; {VALID} pairs of train become valid, drawn by the seed"),
        home=home,
    )  # fmt: skip


PARSING = (
    _set("atis", "questions on flights to λ-calculus", "sexpr", valid=True, home="atis_lambda_dl"),
    _set("geo", "questions on geography to λ-calculus", "sexpr_bare", valid=False, home="geo_lambda_dl"),
    _set("jobs", "questions on jobs to Prolog", "prolog", valid=False, home="jobs_prolog_dl"),
    DataSet(
        "atis_funql_length", "questions on flights to FunQL, longer forms than in training",
        "none stated", "Lindemann, Koller & Titov 2023, Compositional Generalization without Trees",
        _funql,
        tuple(
            Input(
                (f"{name}.tsv",), _FUNQL, sha256, f"data/atis/atis_funql_length4_{name}_brackets.tsv"
            )
            for name, sha256 in _FUNQL_SHA256.items()
        ),
        "the split is by the length of the form",
    ),
)  # fmt: skip

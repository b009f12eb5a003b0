"""What a checkpoint remembers of its data, so that it never meets data that do not fit.

fairseq itself compares nothing but sizes: with another dictionary of the same size, or another
linearization
of the same trees, a model goes on, and every number after that is nonsense.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fairseq.data import Dictionary

from treesyntax.data.manifest import (
    check_dictionary,
    dictionary_file,
    labels_file,
    shuffle_seed_of,
    side_of,
)
from treesyntax.errors import InputError, OptionError
from treesyntax.trees.names import SHUFFLED

ROLES = ("source", "target")
AGAIN = "run treesyntax binarize again"

ESSENTIAL = ("view", "dictionary", "labels")
"""What ids of tokens and labels mean, and the order of tokens: it must be the same in fine-tuning, too."""

SAME_TREES = {"mrg": "ptb"}
"""Formats by the name of another one, which writes the same trees."""

DataRecord = Mapping[str, str]
"""Fields of a side of the data; those that nobody knows are left out."""


class Misfit(NamedTuple):
    """Why a model does not fit data, and what to do: one clause each."""

    cause: str
    remedy: str


class Origin(NamedTuple):
    """What data are compared with, in the words of a `Misfit`.

    Attributes:
        has: stands before the sources or targets of the other data.
        whose: stands after their dictionary.
    """

    has: str
    whose: str


TRAINING = Origin("the model was trained on", "that the model was trained with")

MISFITS = {
    "view": Misfit(
        "{has} {role}s in the linearization {then}, but those of {data} are in {now}",
        "binarize them with --{role}-linearization {then}",
    ),
    "control": Misfit(
        "{has} {role}s with {then} trees, but those of {data} have {now} ones",
        "binarize them with --{role}-control {then}",
    ),
    "format": Misfit(
        "{has} {role}s in the format {then}, but those of {data} are in {now}",
        "binarize them with --{role}-format {then}",
    ),
    "subword_policy": Misfit(
        "{has} {role}s with the subword policy {then}, but those of {data} have {now}",
        "binarize them with --subword-policy {then}",
    ),
    "subword_units": Misfit(
        "{has} {role}s with the subword units {then}, but those of {data} have {now}",
        "binarize them with --subword-units {then}",
    ),
    "subword_model": Misfit(
        "{has} {role}s in other subwords than those of {data}",
        "give the data of its training, or binarize with its subwords (--{role}-subword-model)",
    ),
    "dictionary": Misfit(
        "the {role} dictionary of {data} is not the one {whose}",
        "give the data of its training, or binarize with its dictionary (--{role}-dict)",
    ),
    "labels": Misfit(
        "the dictionary of {role} labels of {data} is not the one {whose}",
        "give the data of its training, or binarize with its labels (--{role}-label-dict)",
    ),
}
"""By field, in the order in which they are compared."""

FIELDS = tuple(MISFITS)

EVALUATED = tuple(field for field in FIELDS if field not in ("control", "format"))
"""What must be the same when a trained model is used: other trees may be shown to it on purpose, to
see whether it looks at them. Those of a target make its text, see :func:`find_misfit`."""


def read_dictionary(path: Path) -> Dictionary:
    """A dictionary as fairseq has it.

    Raises:
        InputError: if it is damaged, or not the one that ``treesyntax binarize`` wrote there.
    """
    try:
        dictionary = Dictionary.load(str(path))
    except Exception as error:  # fairseq's has no name of its own
        reason = str(error).partition("\n")[0] or type(error).__name__
        cause = f"is no dictionary ({reason})"
        raise InputError(path, None, cause, AGAIN) from None
    language = path.name.removeprefix("dict.").removesuffix(".txt")
    written = side_of(path.parent, language).get("dictionary_symbols", 0)
    if len(dictionary) < written:
        cause = f"has {len(dictionary)} symbols, but binarize wrote {written}"
        raise InputError(path, None, cause, AGAIN)
    check_dictionary(path)
    return dictionary


def describe(
    folder: Path, role: str, language: str, symbols: Sequence[str] | None
) -> dict[str, str]:
    """The :data:`DataRecord` of one side of the data.

    Args:
        folder: of the data.
        role: of the side.
        language: of the side.
        symbols: of its dictionary, in their order; None where they are not known. Their counts do not
            matter to a model.

    Raises:
        InputError: for a damaged record.
    """
    side = side_of(folder, language)
    record = {field: str(side[field]) for field in FIELDS if side.get(field)}
    seed = shuffle_seed_of(folder, language)
    if seed is not None:  # another seed is another order of children
        record["control"] = f"{SHUFFLED} --control-seed {seed}"
    notation = record.pop("format", "")
    if notation and role == "source":  # a target's trees are in its tokens
        record["format"] = SAME_TREES.get(notation, notation)
    model = folder / record.pop("subword_model", "")
    if model.is_file():
        record["subword_model"] = _digest(model.read_bytes())
    elif "subword_model" in side and model == folder:
        record["subword_model"] = "none"
    labels = folder / labels_file(language)
    if record.pop("labels", "") and labels.is_file():
        record["labels"] = _digest_symbols(read_dictionary(labels).symbols)
    if symbols is not None:
        record["dictionary"] = _digest_symbols(symbols)
    return record


def refuse_unlike(
    folders: Sequence[str], first: Mapping[str, DataRecord], languages: Sequence[str]
) -> None:
    """Refuse data folders of one training that do not fit the first one, of which all ids are taken.

    Args:
        folders: all of them.
        first: the records of the sides of the first.
        languages: of source and target.

    Raises:
        OptionError: if one does not fit.
        InputError: for a damaged record or dictionary.
    """
    for folder in dict.fromkeys(map(Path, folders[1:])):
        sides = {}
        for role, language in zip(ROLES, languages, strict=True):
            path = folder / dictionary_file(language)
            symbols = read_dictionary(path).symbols if path.is_file() else None
            sides[role] = describe(folder, role, language, symbols)
        origin = Origin(f"{folders[0]} has", f"of {folders[0]}")
        misfit = find_misfit(first, sides, str(folder), origin=origin)
        if misfit is not None:
            raise OptionError(f"{misfit.cause}; binarize the folders of a training alike")


def _digest_symbols(symbols: Sequence[str]) -> str:
    return _digest("\n".join(symbols).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def find_misfit(
    trained: Mapping[str, DataRecord],
    here: Mapping[str, DataRecord],
    data: str,
    fields: Sequence[str] = FIELDS,
    origin: Origin = TRAINING,
) -> Misfit | None:
    """The first field that differs; what either side does not know fits.

    Args:
        trained: records of the sides of the data that the model was trained on.
        here: those of the data that it meets now.
        data: their name.
        fields: what to compare. Where a target has ``shuffled`` trees, its control is compared too:
            other trees would be read as another text.
        origin: what ``trained`` are the records of, if of other data.
    """
    for role in ROLES:
        then, now = trained.get(role, {}), here.get(role, {})
        controls = {str(record.get("control")) for record in (then, now)}
        shuffles = role == "target" and any(name.startswith(SHUFFLED) for name in controls)
        for field in (*fields, *(["control"] if shuffles else [])):
            if field in then and field in now and then[field] != now[field]:
                words = {"role": role, "then": then[field], "now": now[field], "data": data}
                words |= origin._asdict()
                return Misfit(*(clause.format(**words) for clause in MISFITS[field]))
    return None

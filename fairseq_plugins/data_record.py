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

from treesyntax.data.manifest import check_dictionary, shuffle_seed_of, side_of
from treesyntax.errors import InputError
from treesyntax.trees.names import SHUFFLED

ROLES = ("source", "target")
AGAIN = "run treesyntax binarize again"

ESSENTIAL = ("view", "dictionary")
"""What ids of tokens mean, and in which order they come: it must be the same in fine-tuning, too."""

DataRecord = Mapping[str, str]
"""Fields of a side of the data; those that nobody knows are left out."""


class Misfit(NamedTuple):
    """Why a model does not fit data, and what to do: one clause each."""

    cause: str
    remedy: str


MISFITS = {
    "view": Misfit(
        "the model was trained on {role}s in the linearization {then}, but those of {data} are in "
        "{now}",
        "binarize them with --{role}-linearization {then}",
    ),
    "control": Misfit(
        "the model was trained on {role}s with {then} trees, but those of {data} have {now} ones",
        "binarize them with --{role}-control {then}",
    ),
    "subword_policy": Misfit(
        "the model was trained on {role}s with the subword policy {then}, but those of {data} "
        "have {now}",
        "binarize them with --subword-policy {then}",
    ),
    "subword_units": Misfit(
        "the model was trained on {role}s with the subword units {then}, but those of {data} "
        "have {now}",
        "binarize them with --subword-units {then}",
    ),
    "subword_model": Misfit(
        "the model was trained on {role}s in other subwords than those of {data}",
        "give the data of its training, or binarize with its subwords (--{role}-subword-model)",
    ),
    "dictionary": Misfit(
        "the {role} dictionary of {data} is not the one that the model was trained with",
        "give the data of its training, or binarize with its dictionary (--{role}-dict)",
    ),
}
"""By field, in the order in which they are compared."""

FIELDS = tuple(MISFITS)

EVALUATED = tuple(field for field in FIELDS if field != "control")
"""What must be the same when a trained model is used: other trees may be shown to it on purpose, to
see whether it looks at them. Those of a target make its text, see :func:`find_misfit`."""


def read_dictionary(path: Path) -> Dictionary:
    """A dictionary as fairseq has it.

    Raises:
        InputError: if it is damaged, or not the one that ``treesyntax binarize`` wrote there.
    """
    try:
        found = Dictionary.load(str(path))
    except Exception as error:  # fairseq's has no name of its own
        reason = str(error).partition("\n")[0] or type(error).__name__
        cause = f"is no dictionary ({reason})"
        raise InputError(path, None, cause, AGAIN) from None
    language = path.name.removeprefix("dict.").removesuffix(".txt")
    written = side_of(path.parent, language).get("dictionary_symbols", 0)
    if len(found) < written:
        cause = f"has {len(found)} symbols, but binarize wrote {written}"
        raise InputError(path, None, cause, AGAIN)
    check_dictionary(path)
    return found


def describe(folder: Path, language: str, symbols: Sequence[str]) -> dict[str, str]:
    """The :data:`DataRecord` of one side of the data.

    Args:
        folder: of the data.
        language: of the side.
        symbols: of its dictionary, in their order. Their counts do not matter to a model.

    Raises:
        InputError: for a damaged record.
    """
    side = side_of(folder, language)
    found = {field: str(side[field]) for field in FIELDS if side.get(field)}
    seed = shuffle_seed_of(folder, language)
    if seed is not None:  # another seed is another order of children
        found["control"] = f"{SHUFFLED} --control-seed {seed}"
    model = folder / found.pop("subword_model", "")
    if model.is_file():
        found["subword_model"] = _digest(model.read_bytes())
    elif "subword_model" in side and model == folder:
        found["subword_model"] = "none"
    found["dictionary"] = _digest("\n".join(symbols).encode())
    return found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def find_misfit(
    trained: Mapping[str, DataRecord],
    here: Mapping[str, DataRecord],
    data: str,
    fields: Sequence[str] = FIELDS,
) -> Misfit | None:
    """The first field that differs; what either side does not know fits.

    Args:
        trained: records of the sides of the data that the model was trained on.
        here: those of the data that it meets now.
        data: their name.
        fields: what to compare. Where a target has ``shuffled`` trees, its control is compared too:
            other trees would be read as another text.
    """
    for role in ROLES:
        then, now = trained.get(role, {}), here.get(role, {})
        controls = {str(record.get("control")) for record in (then, now)}
        shuffles = role == "target" and any(name.startswith(SHUFFLED) for name in controls)
        for field in (*fields, *(["control"] if shuffles else [])):
            if field in then and field in now and then[field] != now[field]:
                return _misfit(role, field, then[field], now[field], data)
    return None


def _misfit(role: str, field: str, then: str, now: str, data: str) -> Misfit:
    words = {"role": role, "then": then, "now": now, "data": data}
    return Misfit(*(part.format(**words) for part in MISFITS[field]))

"""``treesyntax data get``: the folder of a data set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treesyntax.data.sets import get_set
from treesyntax.data.sets.base import DataSet, Part, overlaps, part_files
from treesyntax.data.sets.folder import Files, write_data_set
from treesyntax.data.sets.reading import read_inputs
from treesyntax.errors import InputError, OptionError


def get(
    name: str,
    folder: Path,
    source: Path | None,
    number: int,
    seed: int,
    train: int = 0,
    small_train: Sequence[int] = (),
) -> None:
    """Make the folder of a data set, unless it is up to date; licence and citation are printed.

    Args:
        name: of the data set.
        folder: absent, empty, or made with the same options.
        source: where the user has the published files, there or in a subfolder of the set's name; None to fetch
            them. Generated sets need none.
        number: examples of each category in the samples of the test sets; 0 for no samples.
        seed: of what is drawn or generated.
        train: training examples, the first ones that the set has; 0 for as many as it has. A generated set may be
            asked for more. The other parts do not depend on it.
        small_train: sizes of smaller training sets to write as well, each part of the next.

    Raises:
        OptionError: for a name or an option that does not fit, or a file that cannot be fetched.
        InputError: for a folder that is taken, and files that are missing or damaged.
    """
    data = get_set(name)
    if number < 0 or seed < 0:
        raise OptionError("--sample and --seed must be 0 or more")
    if train < 0:
        raise OptionError(f"--train is {train}; it must be 0 or more")
    _check_apart(folder, source)
    print(f"{name}: {data.title}\nlicence: {data.licence}\ncitation: {data.citation}")
    texts = read_inputs(data, source)
    options: dict[str, Any] = {
        "data_set": name,
        "inputs": {key: hashlib.sha256(text).hexdigest() for key, text in texts.items()},
        "sample": number,
        "seed": seed,
    }
    # Folders that were made without these options stay up to date.
    options |= {"train": train} if train else {}
    options |= {"small_train": sorted(set(small_train))} if small_train else {}
    write_data_set(folder, options, lambda: _made(data, texts, number, seed, train, small_train))


def _made(
    data: DataSet,
    texts: dict[str, bytes],
    number: int,
    seed: int,
    train: int,
    small_train: Sequence[int],
) -> tuple[Files, dict[str, Any]]:
    splits = data.make(texts, seed)
    if empty := [split for split, examples in splits.items() if not len(examples)]:
        raise OptionError(
            f"the published files of {data.name} have no examples for {', '.join(empty)}; check the "
            "files of --from"
        )
    if train:
        _resize(splits, data, train, seed)
    notes = {"licence": data.licence, "citation": data.citation, **overlaps(splits)}
    return part_files(splits, number, small_train), notes


def _resize(splits: dict[str, Part], data: DataSet, number: int, seed: int) -> None:
    """Give the training set so many examples; the other parts stay as they are."""
    there = len(splits["train"])
    if number <= there:
        splits["train"] = splits["train"].chosen(range(number))
    elif data.extend is None:
        raise OptionError(
            f"--train {number}: {data.name} has {there} training examples; ask for as many or fewer"
        )
    else:
        data.extend(splits, number, seed)


def _check_apart(folder: Path, source: Path | None) -> None:
    if source is not None and folder.resolve() == source.resolve():
        raise InputError(folder, None, "is the folder of --from", "name another folder to write")

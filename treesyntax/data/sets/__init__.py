"""Data sets by name: those that test where structure matters, and the ones to compare them with.

`register_data_set` adds one of your own.
"""

from __future__ import annotations

from treesyntax.data.sets.active_logical import ACTIVE_LOGICAL
from treesyntax.data.sets.base import SETS, DataSet, Part, register_data_set
from treesyntax.data.sets.cogs import COGS_SET, COGS_VARFREE_SET, SLOG
from treesyntax.data.sets.listops import LISTOPS
from treesyntax.data.sets.programs import FOR2LAM
from treesyntax.data.sets.question_paths import QUESTION_PATHS
from treesyntax.data.sets.scan import SCAN
from treesyntax.data.sets.semantic_parsing import PARSING
from treesyntax.data.sets.string_edits import STRING_EDITS
from treesyntax.data.sets.transformations import QUESTIONS, TENSE
from treesyntax.errors import unknown_name

__all__ = ["SETS", "DataSet", "Part", "get_set", "register_data_set"]

for _data in (
    SLOG, COGS_SET, COGS_VARFREE_SET, *SCAN, ACTIVE_LOGICAL, *FOR2LAM, *PARSING, QUESTIONS, TENSE,
    QUESTION_PATHS, LISTOPS, STRING_EDITS,
):  # fmt: skip
    register_data_set(_data)


def get_set(name: str) -> DataSet:
    """The data set of that name.

    Raises:
        OptionError: if there is none.
    """
    if name not in SETS:
        raise unknown_name("data set", name, SETS)
    return SETS[name]

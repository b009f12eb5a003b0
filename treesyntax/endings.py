"""How a training ended, as its facts, the results of a study and messages name it."""

from __future__ import annotations

from typing import Final, Literal

RESTED: Final = "rested"
CAP: Final = "cap"
LAST: Final = "last"
Ending = Literal["rested", "cap", "last"]
"""See :attr:`treesyntax.study.results.results.Result.ended`."""
SAID: dict[Ending, str] = {
    RESTED: "it rested",
    CAP: "it ended by its number of updates",
    LAST: "its last update was its best, so it was still learning",
}
"""In messages."""

"""How much the tests of reliability did: inputs tried, faults injected, processes killed.

Tests add to a file that the environment names; run as a script, this file prints the sums.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

SOAK = os.environ.get("TREESYNTAX_SOAK") == "1"
"""Whether the long versions run: ``make soak``."""
FILE = "TREESYNTAX_FIGURES"


def amount(short: int, long: int) -> int:
    """The first in ``make test``, the second in ``make soak``."""
    return long if SOAK else short


def count(what: str, number: int = 1) -> None:
    """Add to a figure; several processes may do so at the same time."""
    name = os.environ.get(FILE)
    if name:
        with Path(name).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([what, number]) + "\n")


def sums(path: Path) -> Counter[str]:
    """Each figure of a file."""
    found: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        what, number = json.loads(line)
        found[what] += number
    return found


if __name__ == "__main__":
    for figure, total in sorted(sums(Path(sys.argv[1])).items()):
        print(f"{figure:<44} {total:>10,}")

"""The command lines in which the program that checks fairseq's flags found no fault, kept for the next time.

Asking it takes seconds, since it loads torch and fairseq. An answer is kept under a digest of all that it depends
on: the words, the program, versions, this package and the files of the user's own. The file lies in the user's
cache, ``~/.cache/treesyntax`` or the folder ``TREESYNTAX_CACHE``, and may be deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import read_object, sha256_of, sha256_of_value, write_json
from treesyntax.source import OURS, ROOT
from treesyntax.study.provenance import PACKAGES, version_of, versions
from treesyntax.study.run.code import code_of_users

FILE, SOUND = "flags.json", "sound"
VARIABLE = "TREESYNTAX_CACHE"
MOST = 5_000
"""Digests that are kept, the newest."""


class SoundCommands:
    """The command lines without a fault.

    Args:
        checker: the words of the program.
        user_files: files of the user's own, which it imports.
    """

    def __init__(self, checker: Sequence[str], user_files: Iterable[Path]) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.file = Path(os.environ.get(VARIABLE) or os.path.join(home, "treesyntax"), FILE)
        files = [file for package in OURS for file in sorted((ROOT / package).rglob("*.py"))]
        known = {**versions(), **{name: version_of(name) for name in PACKAGES}}
        state = [*checker, known, [*map(sha256_of, files)], code_of_users(user_files)]
        self.state = sha256_of_value(state)
        digests = read_object(self.file).get(SOUND)
        self.digests = dict.fromkeys(map(str, digests if isinstance(digests, list) else ()))

    def __contains__(self, command: Sequence[str]) -> bool:
        return self._key(command) in self.digests

    def add(self, commands: Iterable[Sequence[str]]) -> None:
        """Keep more; where that cannot be done, they are asked for again."""
        self.digests |= dict.fromkeys(map(self._key, commands))
        with suppress(InputError):
            write_json(self.file, {SOUND: [*self.digests][-MOST:]}, None)

    def _key(self, command: Sequence[str]) -> str:
        return sha256_of_value([self.state, *command, *map(_stamp, command)])[:32]


def _stamp(word: str) -> list[int]:
    """What tells whether the file or folder that a word names has changed."""
    try:
        state = os.stat(word)
    except (OSError, ValueError):
        return []
    return [state.st_size, state.st_mtime_ns]

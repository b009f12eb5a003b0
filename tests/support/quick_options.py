"""fairseq's options in no time.

fairseq hands each of its 276 options as text to hydra, whose parser takes longer over them than most
models here take to build. Imported, this module has every text parsed once a process.
"""

from __future__ import annotations

import copy
import functools

from hydra.core.override_parser.overrides_parser import OverridesParser

_parse = functools.cache(OverridesParser.create().parse_rule)


def _parse_rule(_: OverridesParser, text: str, rule: str) -> object:
    return copy.copy(_parse(text, rule))


OverridesParser.parse_rule = _parse_rule

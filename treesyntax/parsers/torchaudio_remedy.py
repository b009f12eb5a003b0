"""A torchaudio built for another torch breaks transformers, which imports it if it is installed.

fairseq depends on torchaudio, whose builds on PyPI need CUDA libraries: beside a torch for CPUs its
import fails. No parser uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAME = "torchaudio"


@contextmanager
def broken_torchaudio_hidden() -> Iterator[None]:
    """Inside, a torchaudio that cannot be imported counts as not installed."""
    before = NAME in sys.modules
    hide_broken_torchaudio()
    hidden = NAME in sys.modules and sys.modules[NAME] is None
    try:
        yield
    finally:
        if hidden and not before:
            del sys.modules[NAME]
            _look_again()


def hide_broken_torchaudio() -> None:
    """From now on, a torchaudio that cannot be imported counts as not installed."""
    try:
        __import__(NAME)
    except ImportError:
        return
    except OSError:
        sys.modules[NAME] = None  # type: ignore[assignment]
        _look_again()


def _look_again() -> None:
    """Clear what transformers has cached; fairseq may have imported it before."""
    utils = sys.modules.get("transformers.utils.import_utils")
    available: Any = getattr(utils, "is_torchaudio_available", None)
    if hasattr(available, "cache_clear"):
        available.cache_clear()

"""Memory that a training frees is kept for its next step.

glibc gives large blocks back to the system as soon as they are freed, and asks for them again at the next
update, page by page: a fifth to a quarter of the time of a training on a CPU.
"""

from __future__ import annotations

import ctypes
import os
import sys

TRIM_THRESHOLD, MAPS = -1, -4  # M_TRIM_THRESHOLD and M_MMAP_MAX of malloc.h
CHOSEN = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD")
"""Variables by which users choose for themselves how memory is allocated."""


def keep_memory() -> None:
    """Let glibc keep freed memory, unless the user has chosen otherwise; nothing elsewhere."""
    if sys.platform != "linux" or any(os.environ.get(name) for name in CHOSEN):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, -1)
        mallopt(MAPS, 0)

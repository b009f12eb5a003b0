"""Signals that end a command in order, none of which is lost.

A handler that raises is not enough: Python drops what is raised while an object is finalised or while a
callback of the garbage collector runs, and a study would go on as if nobody had asked it to end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_signals: list[int] = []


@contextmanager
def stop_signals_interrupt() -> Iterator[None]:
    """SIGTERM and a closed terminal raise KeyboardInterrupt as Ctrl-C does, and all three are remembered."""

    owner = os.getpid()

    def interrupt(number: int, _: object) -> None:
        if os.getpid() != owner and number != signal.SIGINT:  # a worker that its pool ends
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        _signals.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # nohup ignores the hang-up: leave it so.
    heeded = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        _signals.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


def raise_if_asked() -> None:
    """Raise the KeyboardInterrupt of a signal that Python dropped; to be called now and then."""
    if _signals:
        raise KeyboardInterrupt

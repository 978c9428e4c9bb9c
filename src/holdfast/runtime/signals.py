"""The signals of a worker's own process.

    SIGTERM, SIGINT, SIGHUP, SIGQUIT   stop; each further one hurries
    SIGUSR1                            say what the worker is doing

Owns the handlers, which only set flags. A signal that whoever started us has told to be ignored
stays so (`nohup`, a shell's background jobs), except for the two that always stop.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.runtime.supervisor.supervisor import Supervisor

_ALWAYS = (signal.SIGTERM, signal.SIGINT)
_UNLESS_IGNORED = (signal.SIGHUP, signal.SIGQUIT)


def on_stop(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, Any]:
    """Call this for every signal to stop; the handlers that were there before."""
    wanted = [n for n in _UNLESS_IGNORED if signal.getsignal(n) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in (*_ALWAYS, *wanted)}


def on_question(handler: Callable[[int, FrameType | None], None]) -> Any:
    """Call this when somebody asks what the worker is doing; the handler that was there before."""
    return signal.signal(signal.SIGUSR1, handler)


@contextmanager
def signals_to(worker: Supervisor) -> Iterator[None]:
    """A worker obeys signals while the block runs, where that can be arranged."""
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = on_stop(lambda number, frame: worker.stop())
        before[signal.SIGUSR1] = on_question(lambda number, frame: worker.tell())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

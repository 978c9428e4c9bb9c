"""The signals of a worker's own process.

    SIGTERM, SIGINT, SIGHUP, SIGQUIT   stop; each further one hurries
    SIGUSR1                            say what the worker is doing

Owns the handlers, which only set flags. A signal that whoever started us has told to be ignored
stays so (`nohup`, a shell's background jobs), but for the two that always stop.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

_ALWAYS = (signal.SIGTERM, signal.SIGINT)
_UNLESS_IGNORED = (signal.SIGHUP, signal.SIGQUIT)


class Signalled(Protocol):
    """Who obeys signals."""

    def stop(self) -> None: ...
    def tell(self) -> None: ...


def on_stop(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, Any]:
    """Call this for every signal to stop; the handlers that were there before."""
    wanted = [n for n in _UNLESS_IGNORED if signal.getsignal(n) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in (*_ALWAYS, *wanted)}


def on_question(handler: Callable[[int, FrameType | None], None]) -> Any:
    """Call this when somebody asks what the worker is doing; the handler that was there before."""
    return signal.signal(signal.SIGUSR1, handler)


class Signals:
    """A worker obeys signals while the block runs, where that can be arranged."""

    def __init__(self, worker: Signalled) -> None:
        self._worker = worker
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = on_stop(self._on_stop)
            self._before[signal.SIGUSR1] = on_question(self._on_question)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._worker.stop()

    def _on_question(self, number: int, frame: FrameType | None) -> None:
        self._worker.tell()

"""Signals to a template or a child that are the supervisor's business.

A terminal, a service manager or an operator may signal every process of a worker. What to do about
it, the supervisor decides. Owns the handler that does nothing: SIG_IGN would be inherited by what
user code executes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_ALWAYS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UNLESS_USED = (signal.SIGQUIT, signal.SIGUSR1)
"""These an application may use for its own purposes, such as `faulthandler`."""
ALL = (*_ALWAYS, *_UNLESS_USED)


def ignored(number: int, frame: FrameType | None) -> None:
    """Do nothing."""


def settle(set_handler: Callable[[int, Any], Any] = signal.signal) -> None:
    """Do nothing about them from now on."""
    for number in _ALWAYS:
        set_handler(number, ignored)
    for number in _UNLESS_USED:
        if signal.getsignal(number) is signal.SIG_DFL:
            set_handler(number, ignored)


def release() -> None:
    """In a process that a task forks, which is the task's own: it must be possible to end it."""
    if threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _UNLESS_USED:
        if signal.getsignal(number) is ignored:
            signal.signal(number, signal.SIG_DFL)

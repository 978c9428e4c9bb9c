"""What a process has only one of, and every task finds as the first one found it.

Owns the putting back, after each task, of what tasks are known to leave behind: replaced stream
objects, timers, signal handlers, the directory, the umask, environment variables, and a few
switches of the interpreter. Only what can be compared in a moment: this runs after every task, and
most tasks change nothing. What it does not know (locale, logging, warnings filters, limits of the
kernel) stays as a task left it; see `docs/reference/inside-a-task.md`.
"""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final

_OFTEN_SET: Final = tuple(map(int, (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)))
"""Signals whose handlers are looked at after each task; the others only in `tidy`."""
_LAST_PLAIN: Final = 32
_OTHER_TIMERS: Final = (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_REAL: Final = signal.ITIMER_REAL
_STOPPED: Final = (0.0, 0.0)
_HIGH: Final = 512
"""From which number on a child keeps its own descriptors, if it may have so many."""

_raw: Any = getattr(signal, "_signal", signal)
"""The module below `signal`, whose functions make no enumerations and take a tenth of the time."""
_handler: Callable[[int], object] = _raw.getsignal
_masked: Callable[[int, tuple[int, ...]], set[int]] = _raw.pthread_sigmask


class ProcessState:
    """This process as it is now; to be put back by the thread that made it, the main one."""

    def __init__(self) -> None:
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._handlers = [_handler(number) for number in _OFTEN_SET]
        self._rarely_set = tuple(
            int(n) for n in signal.valid_signals() if n < _LAST_PLAIN and n not in _OFTEN_SET
        )
        self._other_handlers = [_handler(number) for number in self._rarely_set]
        self._mask = _masked(signal.SIG_BLOCK, ())
        self._umask = os.umask(0o022)
        os.umask(self._umask)
        self._place = _place()
        self._directory = move_high(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self._identity = identity(self._directory)
        self._environ = os.environ
        self._variables: dict[bytes, bytes] = dict(os.environb)
        self._modules = len(sys.modules)
        self._recursion = sys.getrecursionlimit()
        self._collects = gc.isenabled()
        self._patience = socket.getdefaulttimeout()
        self._tracers = sys.gettrace(), sys.getprofile()

    def restore(self) -> bool:
        """A task has ended: put back what it changed. False: this process is of no more use."""
        streams = self._streams
        try:
            # One expression: nearly every task changes nothing, and this is all that it costs.
            if (
                signal.getitimer(_REAL) == _STOPPED
                and list(map(_handler, _OFTEN_SET)) == self._handlers
                and sys.stdout is streams[1]
                and sys.stderr is streams[2]
                and sys.stdin is streams[0]
                and os.environ is self._environ
                and os.environ._data == self._variables  # type: ignore[attr-defined]
                and os.umask(self._umask) == self._umask
                and _place() == self._place
                and sys.getrecursionlimit() == self._recursion
                and gc.isenabled() is self._collects
                and socket.getdefaulttimeout() == self._patience
                and sys.gettrace() is self._tracers[0]
                and sys.getprofile() is self._tracers[1]
            ):
                return True
        except Exception:  # noqa: BLE001 - a handler that the task left went off in here
            pass
        return self._restore()

    def _restore(self) -> bool:
        # First of all: they are called for every line, or every call, of what follows.
        sys.settrace(self._tracers[0])
        sys.setprofile(self._tracers[1])
        try:
            self._restore_timer()
        except Exception:  # noqa: BLE001 - the task's own handler went off; its timer has run out
            self._restore_timer()
        self.restore_streams()
        os.umask(self._umask)
        if os.environ is not self._environ or os.environ._data != self._variables:  # type: ignore[attr-defined]
            self._restore_environment()
        sys.setrecursionlimit(self._recursion)
        (gc.enable if self._collects else gc.disable)()
        socket.setdefaulttimeout(self._patience)
        return _place() == self._place or self._go_back()

    def restore_streams(self) -> None:
        """Put back the stream objects alone: all that may be touched while neighbours run."""
        sys.stdin, sys.stdout, sys.stderr = self._streams

    def tidy(self) -> None:
        """Put back what is seldom changed, and takes longer to look at."""
        for timer in _OTHER_TIMERS:
            if signal.getitimer(timer) != _STOPPED:
                signal.setitimer(timer, 0)
        _put_back(self._rarely_set, self._other_handlers)
        if _masked(signal.SIG_BLOCK, ()) != self._mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _restore_timer(self) -> None:
        # First of all: it may go off at any moment.
        if signal.getitimer(_REAL) != _STOPPED:
            signal.setitimer(signal.ITIMER_REAL, 0)
        _put_back(_OFTEN_SET, self._handlers)

    def _restore_environment(self) -> None:
        os.environ = self._environ  # noqa: B003 - it is the one that was there
        now = dict(os.environb)
        if len(sys.modules) > self._modules:
            # A library that is imported for the first time may set what it needs from then on.
            self._modules = len(sys.modules)
            self._variables = {**now, **self._variables}
        for name in now.keys() - self._variables.keys():
            del os.environb[name]
        for name, value in self._variables.items():
            if now.get(name) != value:
                os.environb[name] = value
        if now.get(b"TZ") != self._variables.get(b"TZ"):
            time.tzset()

    def _go_back(self) -> bool:
        try:
            if identity(self._directory) == self._identity:
                os.fchdir(self._directory)
            elif self._place is not None:
                # The descriptor was closed by the code, like any other it found.
                os.chdir(self._place)
        except OSError:
            return False
        # Renamed, it is still the same.
        return identity(".") == self._identity


def identity(descriptor: int | str) -> tuple[int, int] | None:
    """What stands behind a descriptor, or a path; None if nothing does."""
    try:
        found = os.stat(descriptor)  # noqa: PTH116 - nearly always a number
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _put_back(numbers: tuple[int, ...], handlers: list[object]) -> None:
    if list(map(_handler, numbers)) == handlers:
        return
    for number, handler in zip(numbers, handlers, strict=True):
        if handler is not None and _handler(number) != handler:
            signal.signal(number, handler)  # type: ignore[arg-type]


def _place() -> bytes | None:
    try:
        return os.getcwdb()  # noqa: PTH109 - in half the time
    except OSError:
        # It was removed.
        return None


def move_high(descriptor: int) -> int:
    """Put a descriptor of our own where code that closes low numbers does not reach."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = _HIGH if limit == resource.RLIM_INFINITY or limit > 2 * _HIGH else limit // 2
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(descriptor)
    return moved

"""One loop contract for every duty of the supervisor, and the table of all of them.

A duty has `tick()`, which does what is due and returns the seconds until it wants to be
called again; tests call it directly. A `Loop` is the thread that does so, and is named after its
duty. A `DutyTable` says of each when its thread starts, and when it stops.

A tick that raises has met something unforeseen, for example in a row that was written by hand. It
is logged, and the duty goes on after a pause that grows: one row must not end a worker, and with it
every worker that is started in its place. Only a duty that fails for a whole minute, or with
something that no retry cures, ends the worker. Then its leases expire and others take over; a
worker that goes on without one of its threads would be worse.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from enum import Enum
from time import monotonic
from typing import Protocol

from holdfast.core.errors import SchemaMismatch
from holdfast.core.pause import growing

log = logging.getLogger("holdfast.worker")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_PATIENCE = 60.0
"""Seconds for which a duty may fail, each time it is tried, before the worker ends."""
_SAY_EVERY = 10.0
_CURED_BY_NOTHING = (MemoryError, RecursionError)


class Duty(Protocol):
    """Something the supervisor does over and over."""

    @property
    def name(self) -> str: ...

    def tick(self) -> float:
        """Do what is due; seconds until the next call is wanted."""
        ...


class Start(Enum):
    """When the thread of a duty starts."""

    FIRST = "before there are children: it hears how they come up"
    CLAIMS = "once a child can be given tasks: it claims them"
    BESIDE = "after the first claim, so that a first task does not wait for it"


class Stop(Enum):
    """When the thread of a duty stops; in this order."""

    UNAWAITED = "at once, and nobody waits for it: a step of it may take long"
    AT_ONCE = "at once: no running task needs it"
    WRITTEN = "when what has ended is written"
    SETTLED = "when there is nothing left that it could do for a task"
    LAST = "when the children have left"


class NoThread(OSError):
    """The operating system gives this process no more threads."""


class Loop:
    """The thread of one duty."""

    def __init__(
        self,
        duty: Duty,
        failed: Callable[[str, BaseException], None],
        end_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """`failed` is told if the duty cannot go on; `end_wait` ends a wait inside its tick."""
        self._duty = duty
        self._failed = failed
        self._end_wait = end_wait
        self._wake = threading.Event()
        self._stopping = False
        self._failing_since: float | None = None
        self._failures = 0
        self._say_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"holdfast-{duty.name}", daemon=True)

    def start(self) -> None:
        """Start the thread; `NoThread` if there can be no more of them."""
        try:
            self._thread.start()
        except RuntimeError as error:
            raise NoThread(
                errno.EAGAIN,
                f"no thread for the worker's {self._duty.name} ({error}): give it more memory or "
                "threads (`ulimit -v`, `ulimit -u`, the limits of its container)",
            ) from error

    def wake(self) -> None:
        """Call the duty's tick soon, whatever it had asked for."""
        self._wake.set()

    def stop(self) -> None:
        """Let the tick that is running finish, and no other begin."""
        self._stopping = True
        self._wake.set()
        self._end_wait()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the thread; whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping:
                wait = self._tick()
                if wait > 0 and not self._stopping:
                    self._wake.wait(wait)
                self._wake.clear()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the worker must end
            self._failed(self._duty.name, error)

    def _tick(self) -> float:
        try:
            wait = self._duty.tick()
        except _CURED_BY_NOTHING:
            raise
        except Exception as error:  # noqa: BLE001 - what nobody thought of must not end the worker
            return self._survived(error)
        self._failing_since, self._failures = None, 0
        return wait

    def _survived(self, error: Exception) -> float:
        """A tick raised: how long to wait before the next one."""
        now = monotonic()
        if self._failing_since is None:
            self._failing_since = now
        self._failures += 1
        if now - self._failing_since > _PATIENCE:
            raise error
        if now >= self._say_at:
            self._say_at = now + _SAY_EVERY
            # Tables that are not there are no defect of ours, and the message says what to do.
            seen = None if isinstance(error, SchemaMismatch) else error
            log.error("%s failed and goes on: %s", self._duty.name, error, exc_info=seen)
        return growing(_FIRST_PAUSE, self._failures, _LONGEST_PAUSE)


class DutyTable:
    """The threads of a supervisor."""

    def __init__(self, *rows: tuple[Loop, Start, Stop]) -> None:
        self._rows = rows

    def start(self, when: Start) -> None:
        """Start the threads whose turn it is; `NoThread` if there can be no more of them."""
        for loop, start, _ in self._rows:
            if start is when:
                loop.start()

    def stop(self, *phases: Stop, deadline: float = 0.0) -> None:
        """Have these threads end after what they do now; wait for them up to this moment."""
        loops = [(loop, stop) for loop, _, stop in self._rows if stop in phases]
        for loop, _ in loops:
            loop.stop()
        for loop, stop in loops:
            if stop is not Stop.UNAWAITED:
                loop.join(max(0.1, deadline - monotonic()))

    def have_ended(self) -> bool:
        """Whether no thread is left."""
        return all(loop.join(0.1) for loop, _, _ in self._rows)

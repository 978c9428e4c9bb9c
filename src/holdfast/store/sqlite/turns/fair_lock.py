"""A line of threads: a lock that is granted strictly in the order of asking.

Owns fairness between the threads of one process. `threading.Lock` has none: a
thread that releases and asks again usually wins. Never waits without a limit, and
refuses a thread that already holds the lock instead of waiting for itself.
"""

from __future__ import annotations

import threading
from collections import deque
from threading import get_ident

from holdfast.core.errors import StoreError


class FairLock:
    """Hands itself to the thread that has waited longest."""

    __slots__ = ("_mutex", "_owner", "_waiting")

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._waiting: deque[tuple[int, threading.Lock]] = deque()

    def acquire(self, timeout: float) -> bool:
        me = get_ident()
        if self._owner == me:
            raise StoreError(
                "this thread is in the middle of another operation on the same database; "
                "a signal handler or a destructor that interrupted it must not use the store"
            )
        try:
            return self._acquire(me, timeout)
        except BaseException:
            # Interrupted, perhaps with the line already ours.
            self._step_out(me)
            raise

    def release(self) -> None:
        with self._mutex:
            self._next()

    def reset(self) -> None:
        """In a forked child: whoever held it or waited for it is not here."""
        self._mutex = threading.Lock()
        self._owner = None
        self._waiting.clear()

    def _acquire(self, me: int, timeout: float) -> bool:
        with self._mutex:
            if self._owner is None:
                self._owner = me
                return True
            ticket = threading.Lock()
            ticket.acquire()
            self._waiting.append((me, ticket))
        if ticket.acquire(timeout=max(0.0, timeout)):
            return True
        with self._mutex:
            if self._owner == me:
                # Called and out of time at once.
                return True
            self._waiting.remove((me, ticket))
            return False

    def _step_out(self, me: int) -> None:
        with self._mutex:
            self._waiting = deque(place for place in self._waiting if place[0] != me)
            if self._owner == me:
                self._next()

    def _next(self) -> None:
        if self._waiting:
            self._owner, ticket = self._waiting.popleft()
            ticket.release()
        else:
            self._owner = None

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


class Line:
    """Hands itself to the thread that has waited longest."""

    __slots__ = ("_mutex", "_owner", "_waiting")

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._waiting: deque[tuple[int, threading.Lock]] = deque()

    def acquire(self, timeout: float) -> bool:
        me = get_ident()
        with self._mutex:
            if self._owner is None:
                self._owner = me
                return True
            if self._owner == me:
                raise StoreError(
                    "this thread is in the middle of another operation on the same database; "
                    "a signal handler or a destructor that interrupted it must not use the store"
                )
            ticket = threading.Lock()
            ticket.acquire()
            self._waiting.append((me, ticket))
        try:
            called = ticket.acquire(timeout=max(0.0, timeout))
        except BaseException:
            if not self._step_out(me, ticket):
                self.release()
            raise
        # Called and out of time at once: the line is ours all the same.
        return called or not self._step_out(me, ticket)

    def release(self) -> None:
        with self._mutex:
            if self._waiting:
                self._owner, ticket = self._waiting.popleft()
                ticket.release()
            else:
                self._owner = None

    def reset(self) -> None:
        """In a forked child: whoever held it or waited for it is not here."""
        self._mutex = threading.Lock()
        self._owner = None
        self._waiting.clear()

    def _step_out(self, me: int, ticket: threading.Lock) -> bool:
        with self._mutex:
            try:
                self._waiting.remove((me, ticket))
            except ValueError:
                return False
            return True

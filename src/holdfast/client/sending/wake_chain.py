"""Waking many threads: one at a time, and each that is awake wakes the next.

Threads that are woken together all want the interpreter's lock, and only one can have it: each
time it changes hands some of the others are woken in vain, and on many machines waking a thread
takes longer than what it then has to do. In a chain the next one is on its way while one runs.

Invariant: while a settled pending send's thread sleeps, one thread has been woken and has not
passed that on. Whoever slept calls `awake`, whatever else becomes of it.

Failure: a thread that was woken may be interrupted before it can pass that on. Then whoever
sleeps finds out by itself, a little later (`PendingSend.sleep`), and the next to be woken begins a
new chain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Condition, Lock
from time import monotonic
from typing import Final

from holdfast.client.sending.pending_send import PendingSend

__all__ = ["WakeChain"]

LONGEST_REST: Final = 0.1
"""After so long, whoever was woken last is not expected to wake anybody."""


class WakeChain:
    """The threads of settled pending sends, waking one another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._all_awake = Condition(self._lock)
        self._asleep: deque[PendingSend] = deque()
        self._goes_on = False
        self._woken_at = 0.0

    def wake(self, pending_sends: Iterable[PendingSend]) -> None:
        """Have the threads of these pending sends woken soon; of one that is told twice, once."""
        with self._lock:
            for pending in pending_sends:
                if not pending.told:
                    pending.told = True
                    self._asleep.append(pending)
            if not self._goes_on or monotonic() - self._woken_at > LONGEST_REST:
                self._wake_next()

    def awake(self, pending: PendingSend) -> None:
        """The thread of this pending send is awake, or gone: it need not be woken, and if it was,
        the next is to be."""
        with self._lock:
            pending.told = True
            pending.is_up = True
            if pending.roused:
                pending.roused = False
                self._wake_next()

    def rest(self) -> None:
        """Wait until all are awake: what they send next can then leave together."""
        with self._lock:
            if self._goes_on:
                self._all_awake.wait_for(lambda: not self._goes_on, LONGEST_REST)

    def _wake_next(self) -> None:
        self._goes_on = False
        while self._asleep:
            pending = self._asleep.popleft()
            if not pending.is_up:
                self._goes_on = pending.roused = True
                self._woken_at = monotonic()
                pending.ring()
                return
        self._all_awake.notify_all()

"""Waking many threads: one at a time, and each that is awake wakes the next.

Threads that are woken together all want the interpreter's lock, and only one can have it: each
time it changes hands some of the others are woken in vain, and on many machines waking a thread
takes longer than what it then has to do. In a chain the next one is on its way while one runs.

Invariant: while a settled parcel's thread sleeps, one thread has been woken and has not passed
that on. Whoever was woken must call `pass_on`, whatever else becomes of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Condition, Lock
from typing import Final

from holdfast.client.parcel import Parcel

__all__ = ["Chain"]

LONGEST_REST: Final = 0.1


class Chain:
    """The threads of settled parcels, waking one another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._all_awake = Condition(self._lock)
        self._asleep: deque[Parcel] = deque()
        self._goes_on = False

    def wake(self, parcels: Iterable[Parcel]) -> None:
        """Have the threads of these parcels woken soon."""
        with self._lock:
            self._asleep.extend(parcels)
            if not self._goes_on:
                self._wake_next()

    def pass_on(self, parcel: Parcel) -> None:
        """The thread of this parcel is awake, or will never be: the next is to be woken."""
        with self._lock:
            if parcel.roused:
                parcel.roused = False
                self._wake_next()

    def rest(self) -> None:
        """Wait until all are awake: what they send next can then leave together."""
        with self._lock:
            if self._goes_on:
                self._all_awake.wait_for(lambda: not self._goes_on, LONGEST_REST)

    def _wake_next(self) -> None:
        self._goes_on = False
        while self._asleep:
            parcel = self._asleep.popleft()
            if not parcel.unwanted:
                self._goes_on = parcel.roused = True
                parcel.ring()
                return
        self._all_awake.notify_all()

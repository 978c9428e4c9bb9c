"""Waking many threads: a few at a time, and each that is awake wakes the next.

Threads that are woken together all want the interpreter's lock, and only one can have it: each
time it changes hands some of the others are woken in vain, and on many machines waking a thread
takes longer than what it then has to do. In a chain the next one is on its way while one runs.

Invariant: while a settled parcel's thread sleeps, at least one thread has been woken and has not
passed that on. Whoever was woken must call `pass_on`, whatever else becomes of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Final

from holdfast.client.parcel import Parcel

__all__ = ["Chain"]

WIDTH: Final = 2
"""How many are on their way at once: one would leave the interpreter idle while it wakes up."""


class Chain:
    """The threads of settled parcels, waking one another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asleep: deque[Parcel] = deque()
        self._on_their_way = 0

    def wake(self, parcels: Iterable[Parcel]) -> None:
        """Have the threads of these parcels woken soon."""
        with self._lock:
            self._asleep.extend(parcels)
            for _ in range(WIDTH - self._on_their_way):
                self._on_their_way += 1
                self._wake_next()

    def pass_on(self, parcel: Parcel) -> None:
        """The thread of this parcel is awake, or will never be: the next is to be woken."""
        with self._lock:
            if parcel.roused:
                parcel.roused = False
                self._wake_next()

    def _wake_next(self) -> None:
        while self._asleep:
            parcel = self._asleep.popleft()
            if not parcel.unwanted:
                parcel.roused = True
                parcel.ring()
                return
        self._on_their_way -= 1

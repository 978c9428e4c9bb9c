"""Waking many threads: one at a time, and each that is awake wakes the next.

Threads that are woken together all want the interpreter's lock, and only one can have it: each
time it changes hands some of the others are woken in vain, and on many machines waking a thread
takes longer than what it then has to do. In a chain the next one is on its way while one runs.

Invariant: while a thread that was named in `wake` sleeps, one thread has been woken and has not
passed that on. Whoever slept calls `awake`, whatever else becomes of it.

Failure: a thread that was woken may be interrupted before it can pass that on. Then whoever
sleeps finds out by itself, a little later (`Sleeper.sleep`), and the next to be woken begins a
new chain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Condition, Lock
from time import monotonic
from typing import Final

__all__ = ["Sleeper", "WakeChain"]

LONGEST_REST: Final = 0.1
"""After so long, whoever was woken last is not expected to wake anybody."""
LONGEST_SLEEP: Final = 1.0


class Sleeper:
    """A thread that is about to sleep, and is woken once."""

    __slots__ = ("_lock", "is_up", "roused", "told")

    def __init__(self) -> None:
        self.told = self.roused = self.is_up = False
        """What a `WakeChain` knows of it: it is to be woken, it was and has not woken the next,
        it is awake. Under the chain's lock."""
        # Taken: who sleeps takes it once more, which succeeds when it is released.
        self._lock = Lock()
        self._lock.acquire()

    def sleep(self, is_over: Callable[[], bool]) -> None:
        """Wait to be woken.

        Now and then it looks by itself: whoever should have woken it may have been interrupted.
        """
        while not self._lock.acquire(timeout=LONGEST_SLEEP):
            if is_over():
                return

    def wake(self) -> None:
        """Wake it."""
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it has been woken already


class WakeChain:
    """Sleeping threads, waking one another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._all_awake = Condition(self._lock)
        self._asleep: deque[Sleeper] = deque()
        self._goes_on = False
        self._woken_at = 0.0

    def wake(self, sleepers: Iterable[Sleeper]) -> None:
        """Have these woken soon; one that is named twice, once."""
        with self._lock:
            for sleeper in sleepers:
                if not sleeper.told:
                    sleeper.told = True
                    self._asleep.append(sleeper)
            if not self._goes_on or monotonic() - self._woken_at > LONGEST_REST:
                self._wake_next()

    def awake(self, sleeper: Sleeper) -> None:
        """It is awake, or gone: it need not be woken, and if it was, the next is to be."""
        with self._lock:
            sleeper.told = True
            sleeper.is_up = True
            if sleeper.roused:
                sleeper.roused = False
                self._wake_next()

    def rest(self) -> None:
        """Wait until all are awake: what they send next can then leave together."""
        with self._lock:
            if self._goes_on:
                self._all_awake.wait_for(lambda: not self._goes_on, LONGEST_REST)

    def _wake_next(self) -> None:
        self._goes_on = False
        while self._asleep:
            sleeper = self._asleep.popleft()
            if not sleeper.is_up:
                self._goes_on = sleeper.roused = True
                self._woken_at = monotonic()
                sleeper.wake()
                return
        self._all_awake.notify_all()

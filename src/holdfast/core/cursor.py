"""Where in a queue the next claim begins.

A claim examines a bounded number of entries from a position on. Usually that is the head.
But tasks this worker does not know, and on PostgreSQL index entries of claimed tasks under
somebody's open snapshot, make the head expensive and may hide everything behind it. So the
worker remembers a *front*: up to there it has taken, or examined and left, what there was.

Something may come up before the front: a higher priority, a retry, a task that was given
back. Therefore, when a hint came and once a second, a look *back* starts at the head and
goes on page by page until it meets the front. Invariant: nothing is passed over for ever,
and while the front yields tasks, vain looks back cost a tenth of the time at most.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.records import HEAD, Position

__all__ = ["Cursor"]

HEAD_EVERY: Final = 1.0
"""Seconds after which the head is looked at again, hint or not."""
PATIENCE: Final = 9.0
"""How many times its own duration a look back that found little waits for the next."""


class Cursor:
    """The place of one worker in one queue. Times are the caller's monotonic clock.

    start = cursor.start(now)
    ...                                        # claim from `start` on
    cursor.looked(start, end, full=..., now=..., seconds=...)
    """

    def __init__(self) -> None:
        self._front = HEAD
        self._front_spent = False
        self._back: Position | None = None
        self._rung = 1
        self._heard = 0
        self._rung_at_start = 0
        self._head_at = float("-inf")
        self._back_not_before = float("-inf")

    def rung(self) -> None:
        """Something came into the queue, behind the front or before it."""
        self._front_spent = False
        self._rung += 1

    def may_find(self, now: float) -> bool:
        """Whether a claim may find something; False once all has been examined."""
        return not self._front_spent or self._wants_back(now)

    def start(self, now: float) -> Position:
        """Where the next claim begins."""
        self._rung_at_start = self._rung
        if self._wants_back(now) and (self._front_spent or now >= self._back_not_before):
            return HEAD if self._back is None else self._back
        return self._front

    def looked(
        self, start: Position, end: Position | None, *, full: bool, now: float, seconds: float
    ) -> None:
        """Take note of a claim from `start` on, which took `seconds`.

        `full`: it found all it wanted, and `end` is its last task. Otherwise `end` is where
        it stopped looking; None if that was the end of the queue.
        """
        # A hint that came meanwhile is about something this claim may not have seen.
        if end is None and self._rung == self._rung_at_start:
            self._front_spent = True
        if start == HEAD:
            self._heard = self._rung_at_start
            self._head_at = now
        if start == self._front:
            self._front = end or self._front
            return
        met = end is None or end >= self._front
        if met or not full:
            self._back_not_before = now + PATIENCE * seconds
        self._back = None if met else end
        if met:
            self._front = end or self._front

    def _wants_back(self, now: float) -> bool:
        is_due = self._heard < self._rung or now - self._head_at >= HEAD_EVERY
        return self._back is not None or is_due

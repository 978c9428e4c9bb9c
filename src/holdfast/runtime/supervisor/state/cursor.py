"""The place of one worker in one queue: where the next claim begins to look.

A claim examines a bounded number of entries from a position on. Usually that is the head.
But tasks this worker does not know, and on PostgreSQL index entries of claimed tasks under
somebody's open snapshot, make the head expensive and may hide everything behind it. So the
worker remembers a *front*: up to there it has taken, or examined and left, what there was.

Something may come up before the front: a higher priority, a retry, a task that was given
back. Therefore, when a hint came and once a second, a look *back* starts at the head and
goes on page by page until it meets the front. Invariant: nothing is passed over forever,
and while the front yields tasks, vain looks back cost a tenth of the time at most.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.records import HEAD, Position

HEAD_EVERY: Final = 1.0
"""Seconds after which the head is looked at again, hint or not."""
PATIENCE: Final = 9.0
"""How many times its own duration a look back that found little waits for the next."""


class Cursor:
    """The place of one worker in one queue. Times are the caller's monotonic clock.

    start = cursor.start(now)
    ...                                        # claim from `start` on
    cursor.looked(end, full=..., now=...)
    """

    def __init__(self) -> None:
        self._front = self._start = HEAD
        self._started_at = 0.0
        self._front_spent = False
        self._back: Position | None = None
        self._hints = 1
        self._hints_heard = 0
        self._hints_at_start = 0
        self._head_at = float("-inf")
        self._back_not_before = float("-inf")

    def hinted(self) -> None:
        """Something came into the queue, behind the front or before it."""
        self._front_spent = False
        self._hints += 1

    @property
    def has_news(self) -> bool:
        """Whether a hint came since a claim last began at the head."""
        return self._hints_heard < self._hints

    def may_find(self, now: float) -> bool:
        """Whether a claim may find something; False once all has been examined."""
        return not self._front_spent or self._wants_back(now)

    def start(self, now: float, *, at_head: bool = False) -> Position:
        """Where the next claim begins; `at_head`: there is something to be found there."""
        self._hints_at_start = self._hints
        self._start, self._started_at = self._front, now
        if at_head:
            self._start, self._back = HEAD, None
        elif self._wants_back(now) and (self._front_spent or now >= self._back_not_before):
            self._start = HEAD if self._back is None else self._back
        return self._start

    def looked(self, end: Position | None, *, full: bool, now: float) -> None:
        """Take note of the claim that began at `start`, and is over now.

        `full`: it found all it wanted, and `end` is its last task. Otherwise `end` is where
        it stopped looking; None if that was the end of the queue.
        """
        # A hint that came meanwhile is about something this claim may not have seen.
        if end is None and self._hints == self._hints_at_start:
            self._front_spent = True
        if self._start == HEAD:
            self._hints_heard = self._hints_at_start
            self._head_at = now
        if self._start == self._front:
            self._front = end or self._front
            return
        met = end is None or end >= self._front
        if met or not full:
            self._back_not_before = now + PATIENCE * (now - self._started_at)
        self._back = None if met else end
        if met:
            self._front = end or self._front

    def _wants_back(self, now: float) -> bool:
        is_due = self._hints_heard < self._hints or now - self._head_at >= HEAD_EVERY
        return self._back is not None or is_due

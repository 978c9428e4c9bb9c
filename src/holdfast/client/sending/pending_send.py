"""A submission on its way: what is sent, and who waits for the answer.

Owns the two ways of waiting. A thread sleeps on a lock of its own and may be woken to lead
(see `group_commit`); a coroutine has a future on its loop and never leads. Whoever leads settles
pending sends; only the waiting side reads the outcome.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Final

from holdfast.core.records import Submission, Submitted

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

__all__ = ["PendingSend", "tell"]

LONGEST_SLEEP: Final = 1.0


class PendingSend:
    """One submission and, once it is settled, its outcome."""

    __slots__ = (
        "submission",
        "deadline",
        "tries",
        "outcome",
        "alone",
        "leads",
        "waits",
        "told",
        "roused",
        "is_up",
        "_given_up",
        "_bell",
        "_future",
    )

    def __init__(
        self, submission: Submission, patience: float, future: Future[None] | None = None
    ) -> None:
        self.submission = submission
        self.deadline = time.monotonic() + patience
        self.tries = 0
        self.outcome: Submitted | Exception | None = None
        self.alone = False
        """To be committed by itself, because it may be what held others up."""
        self.leads = False
        """Its thread leads the group, or has just been chosen to."""
        self.waits = False
        """It stands in its group. Under the group's lock."""
        self.told = self.roused = self.is_up = False
        """What a `WakeChain` knows of its thread: it is to be woken, it was and has not woken the
        next, it is awake. Under the chain's lock."""
        self._given_up = False
        self._bell: Lock | None = None
        self._future = future

    @property
    def weight(self) -> int:
        """Roughly its bytes on the wire."""
        return len(self.submission.args) + len(self.submission.kwargs)

    @property
    def is_thread(self) -> bool:
        """Whether a thread waits, and no coroutine."""
        return self._future is None

    @property
    def loop(self) -> AbstractEventLoop | None:
        """The loop of the coroutine that waits; None when a thread does."""
        return None if self._future is None else self._future.get_loop()

    @property
    def unwanted(self) -> bool:
        """Nobody waits any more; if it has not left yet, it need not."""
        return self._given_up or (self._future is not None and self._future.cancelled())

    def give_up(self) -> None:
        """Stop waiting."""
        self._given_up = True

    def lie_down(self) -> None:
        """Prepare to sleep. Under the group's lock, so that no ring is lost."""
        self._bell = Lock()
        self._bell.acquire()

    def sleep(self) -> None:
        """Wait until settled, or chosen to lead.

        Now and then it looks by itself: whoever should have woken it may have been interrupted.
        """
        assert self._bell is not None
        while not self._bell.acquire(timeout=LONGEST_SLEEP):
            if self.outcome is not None or self.leads:
                return

    def ring(self) -> None:
        """Wake the thread that sleeps on this pending send."""
        if self._bell is not None:
            try:
                self._bell.release()
            except RuntimeError:
                # It has been woken already.
                pass

    async def done(self) -> None:
        """Wait until settled, on the event loop."""
        assert self._future is not None
        await self._future

    def resolve(self) -> None:
        """Wake the coroutine that waits. Runs on its loop."""
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


def tell(pending_sends: Iterable[PendingSend]) -> None:
    """Wake the coroutines that wait for these: an event loop once, however many wait in it."""
    by_loop: dict[AbstractEventLoop, list[PendingSend]] = {}
    for pending in pending_sends:
        loop = pending.loop
        if loop is not None:
            by_loop.setdefault(loop, []).append(pending)
    for loop, waiting in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, waiting)
        except RuntimeError:
            # The loop was closed: nobody is left to be told.
            continue


def _resolve(waiting: list[PendingSend]) -> None:
    for pending in waiting:
        pending.resolve()

"""Group commit: concurrent sends share a transaction, and each waits for its own.

Invariant: at most `leaders` commits of one lane are under way, and while any parcel waits
at least one is. Whoever finds the lane free leads: it commits its own parcel at once, so a
lone send is delayed by nothing, and there is no timer. What arrives meanwhile gathers, and
is one transaction as soon as the commit ends.

A leader whose own parcel is settled owes nobody anything: it wakes the next waiting thread
to lead, or hands the lane to the executor when only coroutines wait, or so many threads that
each would lead only to wake the next. If it is interrupted, what it carried goes back to the
front; submitting again is safe, because a submission is recognised by its id.

Failure: `commit` settles every parcel it can. The rest (the database is away, patience is
left) return to the front, and nobody tries again before the pause has passed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, TypeAlias

from holdfast.client.sending.pending_send import Parcel, tell
from holdfast.client.sending.wake_chain import Chain

__all__ = ["Lane", "Pause"]

MOST_PARCELS: Final = 500
MOST_BYTES: Final = 8 * 1024 * 1024
MOST_BATCHES: Final = 50
CROWD: Final = 8
"""So many that wait are led by the executor: no leader has to be woken between two commits."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Parcels that could not be settled yet, and how long to wait before the next try."""

    parcels: Sequence[Parcel]
    seconds: float


Commit: TypeAlias = Callable[[Sequence[Parcel]], Pause | None]


class Lane:
    """Parcels that are committed together."""

    def __init__(
        self,
        commit: Commit,
        elsewhere: Callable[[Callable[[], None]], object],
        *,
        leaders: int,
    ) -> None:
        self._commit = commit
        self._elsewhere = elsewhere
        self._most_leaders = leaders
        self._lock = Lock()
        self._chain = Chain()
        self._waiting: deque[Parcel] = deque()
        self._leaders = 0
        self._not_before = 0.0

    def send(self, parcel: Parcel) -> None:
        """Carry a parcel; returns when it is settled."""
        with self._lock:
            parcel.leads = self._leaders < self._most_leaders
            if parcel.leads:
                self._leaders += 1
            else:
                parcel.lie_down()
                parcel.waits = True
                self._waiting.append(parcel)
        slept = not parcel.leads
        try:
            if slept:
                parcel.sleep()
            if parcel.outcome is None:
                self._lead(parcel)
        except BaseException:
            with self._lock:
                parcel.give_up()
            raise
        finally:
            if slept:
                self._chain.awake(parcel)
            # Chosen to lead, but interrupted before it could: another must.
            if parcel.leads:
                self._hand_over(parcel)

    def post(self, parcel: Parcel) -> None:
        """Take a coroutine's parcel; its future is resolved when it is settled."""
        with self._lock:
            parcel.waits = True
            self._waiting.append(parcel)
            if self._leaders >= self._most_leaders:
                return
            self._leaders += 1
        self._lead_elsewhere()

    def _lead_elsewhere(self) -> None:
        try:
            self._elsewhere(self._lead)
        except RuntimeError:
            # The executor takes no more work, because the interpreter is about to end.
            with self._lock:
                if self._wake_heir():
                    return
            self._lead()

    def _lead(self, own: Parcel | None = None) -> None:
        """Commit until our own parcel is settled; without one, until none waits.

        But not without end: the executor is waited for when the interpreter ends, and those who
        send may never stop.
        """
        batch: Sequence[Parcel] = ()
        left = MOST_BATCHES
        try:
            while left and (own is None or own.outcome is None):
                left -= own is None
                if self._not_before:
                    self._let_pause_pass()
                if own is None:
                    self._chain.rest()
                batch = self._take(own)
                if not batch:
                    break
                pause = self._commit(batch)
                # A lone send is the common case: nobody is to be told, nothing to be put back.
                if pause is not None or own is None or len(batch) > 1:
                    self._deliver(batch, own, 0.0 if pause is None else pause.seconds)
                batch = ()
        finally:
            if batch:
                # We were interrupted in the middle of a commit.
                self._deliver(batch, own, 0.0)
            self._hand_over(own)

    def _deliver(self, batch: Sequence[Parcel], own: Parcel | None, seconds: float) -> None:
        """Tell those who are settled; the others wait again."""
        settled = [parcel for parcel in batch if parcel.outcome is not None]
        if len(settled) < len(batch):
            # Looked at before: another leader may take and settle what is put back here.
            self._put_back([parcel for parcel in batch if parcel.outcome is None], own, seconds)
        self._chain.wake([parcel for parcel in settled if parcel.is_thread and parcel is not own])
        tell(settled)

    def _take(self, own: Parcel | None) -> list[Parcel]:
        batch = [] if own is None else [own]
        if not self._waiting:
            # Read without the lock: what arrives in this moment is the next leader's.
            return batch
        weight = 0 if own is None else own.weight
        with self._lock:
            while self._waiting and len(batch) < MOST_PARCELS and not (batch and batch[-1].alone):
                parcel = self._waiting[0]
                if batch and (parcel.alone or weight + parcel.weight > MOST_BYTES):
                    break
                self._waiting.popleft()
                parcel.waits = False
                if not parcel.unwanted:
                    batch.append(parcel)
                    weight += parcel.weight
        return batch

    def _put_back(self, parcels: Sequence[Parcel], own: Parcel | None, seconds: float) -> None:
        with self._lock:
            # One that waits was put back before: whoever did so was interrupted, and does it again.
            back = [parcel for parcel in parcels if parcel is not own and not parcel.waits]
            for parcel in back:
                parcel.waits = True
            self._waiting.extendleft(reversed(back))
            if seconds:
                self._not_before = max(self._not_before, time.monotonic() + seconds)
            # Those that go alone need not wait for each other.
            more = min(sum(p.alone for p in back), self._most_leaders - self._leaders)
            self._leaders += more
            heirs = sum(self._wake_heir() for _ in range(more))
        for _ in range(more - heirs):
            self._lead_elsewhere()

    def _wake_heir(self) -> bool:
        """Let the next thread that waits lead, if one does. Under the lock."""
        for heir in self._waiting:
            if heir.is_thread and not heir.unwanted:
                self._waiting.remove(heir)
                heir.waits = False
                heir.leads = True
                heir.ring()
                return True
        return False

    def _let_pause_pass(self) -> None:
        until = self._not_before
        rest = until - time.monotonic()
        if rest > 0:
            time.sleep(rest)
        with self._lock:
            if self._not_before == until:
                self._not_before = 0.0

    def _hand_over(self, own: Parcel | None) -> None:
        """Give up leading: to a thread that waits, to the executor, or to nobody."""
        with self._lock:
            if own is not None:
                own.leads = False
            if not self._waiting:
                self._leaders -= 1
                return
            if len(self._waiting) < CROWD and self._wake_heir():
                return
        self._lead_elsewhere()

"""Group commit: concurrent sends share a transaction, and each waits for its own.

Invariant: at most `leaders` commits of one group are under way, and while any pending send waits
at least one is. Whoever finds the group free leads: it commits its own pending send at once, so a
lone send is delayed by nothing, and there is no timer. What arrives meanwhile gathers, and
is one transaction as soon as the commit ends.

A leader whose own pending send is settled owes nobody anything: it wakes the next waiting thread
to lead, or hands the group to the executor when only coroutines wait, or so many threads that
each would lead only to wake the next. If it is interrupted, what it carried goes back to the
front; submitting again is safe, because a submission is recognised by its id.

Failure: `commit` settles every pending send it can. The rest (the database is away, patience is
left) return to the front, and nobody tries again before the pause has passed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, TypeAlias

from holdfast.client.sending.pending_send import PendingSend, tell
from holdfast.client.sending.wake_chain import WakeChain

__all__ = ["GroupCommit", "Pause"]

MOST_SENDS: Final = 500
MOST_BYTES: Final = 8 * 1024 * 1024
MOST_BATCHES: Final = 50
CROWD: Final = 8
"""So many that wait are led by the executor: no leader has to be woken between two commits."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Pending sends that could not be settled yet, and how long to wait before the next try."""

    pending_sends: Sequence[PendingSend]
    seconds: float


Commit: TypeAlias = Callable[[Sequence[PendingSend]], Pause | None]


class GroupCommit:
    """Pending sends that are committed together."""

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
        self._chain = WakeChain()
        self._waiting: deque[PendingSend] = deque()
        self._leaders = 0
        self._not_before = 0.0

    def send(self, pending: PendingSend) -> None:
        """Carry a pending send; returns when it is settled."""
        with self._lock:
            pending.leads = self._leaders < self._most_leaders
            if pending.leads:
                self._leaders += 1
            else:
                pending.lie_down()
                pending.waits = True
                self._waiting.append(pending)
        slept = not pending.leads
        try:
            if slept:
                pending.sleep()
            if pending.outcome is None:
                self._lead(pending)
        except BaseException:
            with self._lock:
                pending.give_up()
            raise
        finally:
            if slept:
                self._chain.awake(pending)
            # Chosen to lead, but interrupted before it could: another must.
            if pending.leads:
                self._hand_over(pending)

    def post(self, pending: PendingSend) -> None:
        """Take a coroutine's pending send; its future is resolved when it is settled."""
        with self._lock:
            pending.waits = True
            self._waiting.append(pending)
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

    def _lead(self, own: PendingSend | None = None) -> None:
        """Commit until our own pending send is settled; without one, until none waits.

        But not without end: the executor is waited for when the interpreter ends, and those who
        send may never stop.
        """
        batch: Sequence[PendingSend] = ()
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

    def _deliver(
        self, batch: Sequence[PendingSend], own: PendingSend | None, seconds: float
    ) -> None:
        """Tell those who are settled; the others wait again."""
        settled = [pending for pending in batch if pending.outcome is not None]
        if len(settled) < len(batch):
            # Looked at before: another leader may take and settle what is put back here.
            self._put_back([pending for pending in batch if pending.outcome is None], own, seconds)
        self._chain.wake(
            [pending for pending in settled if pending.is_thread and pending is not own]
        )
        tell(settled)

    def _take(self, own: PendingSend | None) -> list[PendingSend]:
        batch = [] if own is None else [own]
        if not self._waiting:
            # Read without the lock: what arrives in this moment is the next leader's.
            return batch
        weight = 0 if own is None else own.weight
        with self._lock:
            while self._waiting and len(batch) < MOST_SENDS and not (batch and batch[-1].alone):
                pending = self._waiting[0]
                if batch and (pending.alone or weight + pending.weight > MOST_BYTES):
                    break
                self._waiting.popleft()
                pending.waits = False
                if not pending.unwanted:
                    batch.append(pending)
                    weight += pending.weight
        return batch

    def _put_back(
        self, pending_sends: Sequence[PendingSend], own: PendingSend | None, seconds: float
    ) -> None:
        with self._lock:
            # One that waits was put back before: whoever did so was interrupted, and does it again.
            back = [
                pending for pending in pending_sends if pending is not own and not pending.waits
            ]
            for pending in back:
                pending.waits = True
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

    def _hand_over(self, own: PendingSend | None) -> None:
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

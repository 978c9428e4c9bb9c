"""Group commit: concurrent writes share a transaction, and each waits for its own.

Owns who commits when, with whom, and how often; what a commit does is given as a function. Its
two users are an app that sends (`client.sending`) and a worker that sends for its children
(`runtime.supervisor.relay`).

Invariant: at most `leaders` commits of one group are under way, and while any item waits at least
one is. Whoever finds the group free leads: it commits its own item at once, so a lone one is
delayed by nothing, and there is no timer. What arrives meanwhile gathers, and is one transaction
as soon as the commit ends.

A leader whose own item is settled stops leading: it wakes the next waiting thread to lead,
or hands the group to the executor when no thread waits, or so many that each would lead only to
wake the next. If it is interrupted, what it carried goes back to the front; so committing an item
twice must be safe, as it is for a submission, which is recognised by its id.

Failure: while the database is away what was to be committed returns to the front, and nobody
tries again before a growing, jittered pause has passed; when an item's patience has ended, it
fails. An item that the database refuses fails alone: the batch is halved until it stands by
itself. So does one that waits in vain for a lock: after a long wait each is tried by itself.
"""

from __future__ import annotations

import copy
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from holdfast.core.errors import StoreUnavailable
from holdfast.core.pause import growing
from holdfast.store.wake_chain import Sleeper, WakeChain

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

__all__ = ["GroupCommit", "Patience"]

I = TypeVar("I")  # noqa: E741 - an item
A = TypeVar("A")

_log = logging.getLogger("holdfast.client")

MOST_ITEMS: Final = 500
MOST_BATCHES: Final = 50
MOST_TRIES: Final = 20
"""How often an item is tried whose commit answers that it may be tried again."""
CROWD: Final = 8
"""So many that wait are led by the executor: no leader has to be woken between two commits."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
HELD_UP: Final = 0.5
"""A failure that took so long was a wait, perhaps for the lock of one row only: the next try
is made for each by itself."""


class Patience:
    """For how many seconds commits are tried again while the database is away."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_away = False
        """Whether the last that was heard of the database was that it is away."""

    def note(self, error: StoreUnavailable) -> None:
        """Say once, while it lasts, that commits are being repeated."""
        if not self.is_away and not error.conflict:
            self.is_away = True
            _log.warning("%s; sends are tried again for up to %g s", error, self.seconds)

    @staticmethod
    def pause(tries: int) -> float:
        """Seconds before the next of so many tries."""
        longest = growing(FIRST_PAUSE, tries - 1, LONGEST_PAUSE)
        return random.uniform(longest / 2, longest)


class _Pending(Generic[I, A]):
    """An item on its way: who waits for it, and once it is settled, its outcome.

    A thread sleeps and may be woken to lead; a coroutine has a future on its loop, and others a
    function to be called, and these never lead. Whoever leads settles items; only the waiting
    side reads the outcome.
    """

    __slots__ = (
        "item",
        "deadline",
        "tries",
        "outcome",
        "alone",
        "leads",
        "waits",
        "given_up",
        "sleeper",
        "future",
        "tell",
    )

    def __init__(
        self,
        item: I,
        patience: float,
        future: Future[None] | None = None,
        tell: Callable[[A | Exception], object] | None = None,
    ) -> None:
        self.item = item
        self.deadline = time.monotonic() + patience
        self.tries = 0
        self.outcome: A | Exception | None = None
        self.alone = False
        """To be committed by itself, because it may be what held others up."""
        self.leads = False
        """Its thread leads the group, or has just been chosen to."""
        self.waits = False
        """It stands in its group. Under the group's lock."""
        self.given_up = False
        self.sleeper: Sleeper | None = None
        """The thread that waits."""
        self.future = future
        self.tell = tell

    @property
    def unwanted(self) -> bool:
        """Nobody waits any more; if it has not left yet, it need not."""
        return self.given_up or (self.future is not None and self.future.cancelled())

    def is_called(self) -> bool:
        """Whether its thread need not sleep: it is settled, or chosen to lead."""
        return self.outcome is not None or self.leads

    def answer(self) -> A:
        """What became of it."""
        assert self.outcome is not None, "a send was returned unsettled"
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


Answers: TypeAlias = "Sequence[A | Exception]"


class GroupCommit(Generic[I, A]):
    """Items that are committed together.

    `commit` answers each of its items. An exception in an answer's place: that item may be tried
    again, and fails with it if that does not help. What it raises concerns all of them.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[I]], Answers[A]],
        elsewhere: Callable[[Callable[[], None]], object],
        *,
        patience: Patience,
        weight: Callable[[I], int],
        heaviest: int,
        leaders: int = 1,
    ) -> None:
        self._commit = commit
        self._elsewhere = elsewhere
        self._patience = patience
        self._weight = weight
        self._heaviest = heaviest
        """How much the items of one batch may weigh."""
        self._most_leaders = leaders
        self._lock = Lock()
        self._chain = WakeChain()
        self._waiting: deque[_Pending[I, A]] = deque()
        self._leaders = 0
        self._not_before = 0.0

    def send(self, item: I) -> A:
        """Commit an item; returns when that is done."""
        pending: _Pending[I, A] = _Pending(item, self._patience.seconds)
        with self._lock:
            pending.leads = self._leaders < self._most_leaders
            if pending.leads:
                self._leaders += 1
            else:
                # Under the lock, so that no wake-up is lost.
                pending.sleeper = Sleeper()
                pending.waits = True
                self._waiting.append(pending)
        sleeper = pending.sleeper
        try:
            if sleeper is not None:
                sleeper.sleep(pending.is_called)
            if pending.outcome is None:
                self._lead(pending)
        except BaseException:
            with self._lock:
                pending.given_up = True
            raise
        finally:
            if sleeper is not None:
                self._chain.awake(sleeper)
            # Chosen to lead, but interrupted before it could: another must.
            if pending.leads:
                self._hand_over(pending)
        return pending.answer()

    async def asend(self, item: I) -> A:
        """Commit an item; no thread waits with the caller."""
        import asyncio

        future = asyncio.get_running_loop().create_future()
        pending: _Pending[I, A] = _Pending(item, self._patience.seconds, future)
        self._post(pending)
        await future
        return pending.answer()

    def post(self, item: I, tell: Callable[[A | Exception], object]) -> None:
        """Have an item committed, and `tell` called with what became of it."""
        self._post(_Pending(item, self._patience.seconds, tell=tell))

    def _post(self, pending: _Pending[I, A]) -> None:
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
                if self._wake_next_leader():
                    return
            self._lead()

    def _lead(self, own: _Pending[I, A] | None = None) -> None:
        """Commit until our own item is settled; without one, until none waits.

        But not without end: the executor is waited for when the interpreter ends, and those who
        send may never stop.
        """
        batch: Sequence[_Pending[I, A]] = ()
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
                pause = self._settle(batch)
                # A lone item is the common case: nobody is to be told, nothing to be put back.
                if pause is not None or own is None or len(batch) > 1:
                    self._deliver(batch, own, pause or 0.0)
                batch = ()
        finally:
            if batch:
                # We were interrupted in the middle of a commit.
                self._deliver(batch, own, 0.0)
            self._hand_over(own)

    def _settle(self, batch: Sequence[_Pending[I, A]]) -> float | None:
        """Commit these; if some need another try, the seconds until then."""
        began = time.monotonic()
        try:
            answers = self._commit([pending.item for pending in batch])
        except StoreUnavailable as error:
            if len(batch) > 1 and time.monotonic() - began > HELD_UP:
                for pending in batch:
                    pending.alone = True
                return 0.0
            return self._retry(batch, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the sender's to see
            if len(batch) == 1:
                batch[0].outcome = error
                return None
            middle = len(batch) // 2
            pauses = self._settle(batch[:middle]), self._settle(batch[middle:])
            return max((pause for pause in pauses if pause is not None), default=None)
        self._patience.is_away = False
        pause = None
        for pending, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                pending.tries += 1
                if pending.tries < MOST_TRIES:
                    pause = 0.0
                    continue
            pending.outcome = answer
        return pause

    def _retry(self, batch: Sequence[_Pending[I, A]], error: StoreUnavailable) -> float | None:
        now = time.monotonic()
        most_tries = 0
        for pending in batch:
            pending.tries += 1
            if now < pending.deadline:
                most_tries = max(most_tries, pending.tries)
            else:
                # Each caller raises an error of its own, with its own traceback and call.
                pending.outcome = copy.copy(error)
                pending.outcome.__cause__ = error.__cause__
        if not most_tries:
            return None
        self._patience.note(error)
        return self._patience.pause(most_tries)

    def _deliver(
        self, batch: Sequence[_Pending[I, A]], own: _Pending[I, A] | None, seconds: float
    ) -> None:
        """Tell those who are settled; the others wait again."""
        settled = [pending for pending in batch if pending.outcome is not None]
        if len(settled) < len(batch):
            # Looked at before: another leader may take and settle what is put back here.
            self._put_back([pending for pending in batch if pending.outcome is None], own, seconds)
        self._chain.wake([p.sleeper for p in settled if p.sleeper is not None and p is not own])
        _tell(settled)

    def _take(self, own: _Pending[I, A] | None) -> list[_Pending[I, A]]:
        batch = [] if own is None else [own]
        if not self._waiting:
            # Read without the lock: what arrives in this moment is the next leader's.
            return batch
        weight = 0 if own is None else self._weight(own.item)
        with self._lock:
            while self._waiting and len(batch) < MOST_ITEMS and not (batch and batch[-1].alone):
                pending = self._waiting[0]
                more = self._weight(pending.item)
                if batch and (pending.alone or weight + more > self._heaviest):
                    break
                self._waiting.popleft()
                pending.waits = False
                if not pending.unwanted:
                    batch.append(pending)
                    weight += more
        return batch

    def _put_back(
        self, unsettled: Sequence[_Pending[I, A]], own: _Pending[I, A] | None, seconds: float
    ) -> None:
        with self._lock:
            # One that waits was put back before: whoever did so was interrupted, and does it again.
            back = [pending for pending in unsettled if pending is not own and not pending.waits]
            for pending in back:
                pending.waits = True
            self._waiting.extendleft(reversed(back))
            if seconds:
                self._not_before = max(self._not_before, time.monotonic() + seconds)
            # Those that go alone need not wait for each other.
            more = min(sum(p.alone for p in back), self._most_leaders - self._leaders)
            self._leaders += more
            woken = sum(self._wake_next_leader() for _ in range(more))
        for _ in range(more - woken):
            self._lead_elsewhere()

    def _wake_next_leader(self) -> bool:
        """Let the next thread that waits lead, if one does. Under the lock."""
        for leader in self._waiting:
            if leader.sleeper is not None and not leader.given_up:
                self._waiting.remove(leader)
                leader.waits = False
                leader.leads = True
                leader.sleeper.wake()
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

    def _hand_over(self, own: _Pending[I, A] | None) -> None:
        """Give up leading: to a thread that waits, to the executor, or to nobody."""
        with self._lock:
            if own is not None:
                own.leads = False
            if not self._waiting:
                self._leaders -= 1
                return
            if len(self._waiting) < CROWD and self._wake_next_leader():
                return
        self._lead_elsewhere()


def _tell(settled: Iterable[_Pending[I, A]]) -> None:
    """Tell those that no thread waits for: an event loop once, however many wait in it."""
    by_loop: dict[AbstractEventLoop, list[Future[None]]] = {}
    for pending in settled:
        if pending.future is not None:
            by_loop.setdefault(pending.future.get_loop(), []).append(pending.future)
        elif pending.tell is not None:
            assert pending.outcome is not None
            # Once: a leader that is interrupted here delivers its batch again.
            tell, pending.tell = pending.tell, None
            tell(pending.outcome)
    for loop, futures in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, futures)
        except RuntimeError:
            continue  # the loop was closed: nobody is left to be told


def _resolve(futures: Iterable[Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)

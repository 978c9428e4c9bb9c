"""Sending: submissions in, answers out, whatever the network does in between.

Owns the retries. A submission carries its id and the digest of its content, so the store
recognises a repeated one; therefore a send whose COMMIT was not answered is simply made
again, and lands once. While the database is away a send is repeated, with growing jittered
pauses, for `send_timeout` seconds; then the caller gets `StoreUnavailable` and may resend.

A row that the database refuses fails alone: the batch is split until it stands by itself.
So does a row that waits in vain for a lock: after a long wait each is tried by itself. Sends
that may meet such a lock (a unique key, an id of the caller's choosing, a call that was sent
before) travel in a group of their own, so that they hold up no others.
"""

from __future__ import annotations

import copy
import logging
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from holdfast.client.sending.group_commit import GroupCommit, Pause
from holdfast.client.sending.pending_send import PendingSend
from holdfast.core.errors import HoldfastError, PayloadMismatch, StoreUnavailable, UniqueConflict
from holdfast.core.pause import growing
from holdfast.core.records import Submission, SubmitAnswer, Submitted
from holdfast.store.op import Op, Steps, writes
from holdfast.store.verbs.submit import submit

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["Again", "Sender", "never_settled", "submit_all", "submit_one"]

_log = logging.getLogger("holdfast.client")

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
MOST_AGAIN: Final = 20
"""How often a unique send follows a holder that keeps ending under it."""
CHUNK: Final = 2_000
CONTENDED_LEADERS: Final = 3
_AGAIN: Final = SubmitAnswer.AGAIN
HELD_UP: Final = 0.5
"""A failure that took so long was a wait, perhaps for the lock of one row only: the next try
is made for each by itself."""


class Sender:
    """Carries submissions into the store, many callers at a time."""

    def __init__(
        self,
        run: Callable[[Callable[[], Op[list[Submitted]]]], list[Submitted]],
        elsewhere: Callable[[Callable[[], None]], object],
        patience: float,
    ) -> None:
        self._run = run
        self._patience = patience
        self._is_away = False
        """Whether the last that was heard of the database was that it is away."""
        self._plain = GroupCommit(partial(self._commit, fresh=True), elsewhere, leaders=1)
        self._contended = GroupCommit(
            partial(self._commit, fresh=False), elsewhere, leaders=CONTENDED_LEADERS
        )

    def send(self, submission: Submission, *, contended: bool) -> Submitted:
        """Submit one task; returns when it is committed."""
        pending = PendingSend(submission, self._patience)
        (self._contended if contended else self._plain).send(pending)
        return _outcome(pending)

    async def asend(self, submission: Submission, *, contended: bool) -> Submitted:
        """Submit one task; no thread waits with the caller."""
        pending = PendingSend(submission, self._patience, _running_loop().create_future())
        (self._contended if contended else self._plain).post(pending)
        await pending.done()
        return _outcome(pending)

    def send_all(self, submissions: Sequence[Submission]) -> list[Submitted]:
        """Submit many tasks in one transaction: all of them, or none."""
        deadline = time.monotonic() + self._patience
        tries = 0
        while True:
            try:
                answers = self._run(lambda: submit_all(submissions))
                self._is_away = False
                return answers
            except Again:
                tries += 1
                if tries >= MOST_AGAIN:
                    raise never_settled(submissions[0]) from None
            except StoreUnavailable as error:
                tries += 1
                if time.monotonic() >= deadline:
                    raise
                self._noted(error)
                time.sleep(_pause(tries))

    def _commit(self, pending_sends: Sequence[PendingSend], *, fresh: bool) -> Pause | None:
        """Settle these pending sends; those that need another try come back."""
        began = time.monotonic()
        submissions = [pending.submission for pending in pending_sends]
        try:
            answers = self._run(lambda: submit(submissions, fresh=fresh))
            self._is_away = False
        except StoreUnavailable as error:
            if len(pending_sends) > 1 and time.monotonic() - began > HELD_UP:
                return _each_alone(pending_sends)
            return self._away(pending_sends, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the sender's to see
            if len(pending_sends) == 1:
                pending_sends[0].outcome = error
                return None
            middle = len(pending_sends) // 2
            pauses = (
                self._commit(pending_sends[:middle], fresh=fresh),
                self._commit(pending_sends[middle:], fresh=fresh),
            )
            left = [pause for pause in pauses if pause is not None]
            if not left:
                return None
            return Pause([p for pause in left for p in pause.pending_sends], left[-1].seconds)
        again = []
        for pending, answer in zip(pending_sends, answers, strict=True):
            if answer.answer is not _AGAIN:
                pending.outcome = answer
                continue
            pending.tries += 1
            if pending.tries < MOST_AGAIN:
                again.append(pending)
            else:
                pending.outcome = never_settled(pending.submission)
        return Pause(again, 0.0) if again else None

    def _noted(self, error: StoreUnavailable) -> None:
        """Say once, while it lasts, that sends are being repeated."""
        if not self._is_away and not error.conflict:
            self._is_away = True
            _log.warning("%s; sends are tried again for up to %g s", error, self._patience)

    def _away(self, pending_sends: Sequence[PendingSend], error: StoreUnavailable) -> Pause | None:
        now = time.monotonic()
        again = []
        for pending in pending_sends:
            pending.tries += 1
            if now < pending.deadline:
                again.append(pending)
            else:
                # Each caller raises an error of its own, with its own traceback and call.
                pending.outcome = copy.copy(error)
                pending.outcome.__cause__ = error.__cause__
        if not again:
            return None
        self._noted(error)
        return Pause(again, _pause(max(pending.tries for pending in again)))


def _each_alone(pending_sends: Sequence[PendingSend]) -> Pause:
    for pending in pending_sends:
        pending.alone = True
    return Pause(pending_sends, 0.0)


def _pause(tries: int) -> float:
    longest = growing(FIRST_PAUSE, tries - 1, LONGEST_PAUSE)
    return random.uniform(longest / 2, longest)


def _outcome(pending: PendingSend) -> Submitted:
    outcome = pending.outcome
    if isinstance(outcome, Submitted):
        return outcome
    assert outcome is not None, "a pending send was returned unsettled"
    raise outcome


def never_settled(submission: Submission) -> HoldfastError:
    """What is raised when following the holder of a unique key has no end."""
    return StoreUnavailable(
        f"the holder of the unique key {submission.unique_key!r} of task "
        f"{submission.task_name!r} ended again and again while this was being sent: send again"
    )


class Again(Exception):
    """Rolls back a transaction that must be made anew."""


def submit_one(submission: Submission) -> Op[Submitted]:
    """Submit one task; `Again` if the holder of its unique key ended in between."""
    op = submit([submission])
    return Op(_one(op), op.mode, op.name)


def _one(op: Op[list[Submitted]]) -> Steps[Submitted]:
    (answer,) = yield from op
    if answer.answer is SubmitAnswer.AGAIN:
        raise Again
    return answer


@writes
def submit_all(submissions: Sequence[Submission]) -> Steps[list[Submitted]]:
    """Submit all or none: a refusal of one rolls back the transaction."""
    answers: list[Submitted] = []
    # A step is refused if one that it waits for is not there, so a graph is not cut.
    size = max(CHUNK, len(submissions)) if any(s.depends_on for s in submissions) else CHUNK
    for start in range(0, len(submissions), size):
        part = submissions[start : start + size]
        found = yield from submit(part)
        for submission, answer in zip(part, found, strict=True):
            if answer.answer is not SubmitAnswer.CREATED:
                if answer.answer is SubmitAnswer.AGAIN:
                    raise Again
                refuse(submission, answer)
        answers += found
    return answers


def refuse(submission: Submission, answer: Submitted) -> None:
    """Raise what the store answered, if that was a refusal."""
    if answer.answer is SubmitAnswer.MISMATCH:
        raise PayloadMismatch(answer.id)
    if answer.answer is SubmitAnswer.CONFLICT:
        raise UniqueConflict(answer.id, name=submission.task_name, key=submission.unique_key)


def _running_loop() -> AbstractEventLoop:
    import asyncio

    return asyncio.get_running_loop()

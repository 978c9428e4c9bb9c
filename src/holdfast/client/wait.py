"""Sleeping until tasks, or workflows, end, in a thread or in a coroutine.

Owns the caller's side of waiting: the order of arrival, the deadline, and the remark in the
log when nobody is there to run the task. The looking is done by `waiter`, for all at once.

Waiting never happens inside the transaction of a `using` block: a task whose transaction has
not been committed does not exist yet, so waiting for it is `TaskNotFound`.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, Self, TypeVar

from holdfast.client.access import Access
from holdfast.client.awaited import Awaited
from holdfast.client.explain import unattended
from holdfast.client.waiter import parts
from holdfast.core.errors import ConfigError, HoldfastError, WaitTimeout
from holdfast.core.identity import current, running
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.store.op import Steps, reads
from holdfast.store.verbs.inspect import Ending, endings, statuses

__all__ = ["TASKS", "Deadline", "adoze", "aended", "doze", "ended"]

E = TypeVar("E")

TASKS: Final[Awaited[Ending]] = Awaited("task", endings, statuses, unattended)
REMARK_AFTER: Final = 5.0
LEND_AFTER: Final = 0.1
"""Seconds that a task waits for others before its worker may use its place."""
_log = logging.getLogger("holdfast.client")


def ended(
    access: Access, ids: Collection[bytes], timeout: float | None, kind: Awaited[E]
) -> Iterator[tuple[bytes, E]]:
    """Each of these and how it ended, as they end; `WaitTimeout` when that takes too long."""
    patience = _Patience(timeout)
    left = set(ids)
    heard: SimpleQueue[tuple[bytes, E | Exception]] = SimpleQueue()
    with access.waiter.watch(left, lambda id, news: heard.put((id, news)), kind) as watch:
        for part in parts(sorted(left)):
            over = access.run_own(partial(_look, part, kind))
            watch.drop(over)
            for id, ending in over.items():
                left.discard(id)
                yield id, ending
        watch.begin()
        while left:
            with _Loan() as loan:
                while True:
                    try:
                        id, news = heard.get(timeout=patience.next_stop(loan))
                        break
                    except Empty:
                        first = min(left)
                        if patience.deadline.has_passed:
                            found = access.run_own(partial(_standing, first, kind))
                            raise patience.deadline.error(first, found, kind) from None
                        if not loan.begins() and patience.is_remarkable:
                            asked = partial(kind.unattended, first, _waiting_task())
                            _remark(access.run_own(asked))
            # Not if the look above has found it, too.
            if id in left:
                left.discard(id)
                yield id, _ending(news)


async def aended(
    access: Access, ids: Collection[bytes], timeout: float | None, kind: Awaited[E]
) -> AsyncIterator[tuple[bytes, E]]:
    """The same, on an event loop."""
    import asyncio

    patience = _Patience(timeout)
    left = set(ids)
    loop = asyncio.get_running_loop()
    heard: asyncio.Queue[tuple[bytes, E | Exception]] = asyncio.Queue()

    def hear(id: bytes, news: E | Exception) -> None:
        try:
            loop.call_soon_threadsafe(heard.put_nowait, (id, news))
        except RuntimeError:
            pass  # the loop was closed: nobody is left to be told

    with access.waiter.watch(left, hear, kind) as watch:
        for part in parts(sorted(left)):
            over = await access.arun_own(partial(_look, part, kind))
            watch.drop(over)
            for id, ending in over.items():
                left.discard(id)
                yield id, ending
        watch.begin()
        while left:
            with _Loan() as loan:
                while True:
                    try:
                        async with asyncio.timeout(patience.next_stop(loan)):
                            id, news = await heard.get()
                        break
                    except TimeoutError:
                        first = min(left)
                        if patience.deadline.has_passed:
                            found = await access.arun_own(partial(_standing, first, kind))
                            raise patience.deadline.error(first, found, kind) from None
                        if not loan.begins() and patience.is_remarkable:
                            asked = partial(kind.unattended, first, _waiting_task())
                            _remark(await access.arun_own(asked))
            # Not if the look above has found it, too.
            if id in left:
                left.discard(id)
                yield id, _ending(news)


def doze(access: Access, id: bytes, seconds: float, kind: Awaited[Any]) -> None:
    """Sleep for so long, or until it has ended."""
    try:
        for _ in ended(access, [id], max(0.0, seconds), kind):
            pass
    except WaitTimeout:
        pass


async def adoze(access: Access, id: bytes, seconds: float, kind: Awaited[Any]) -> None:
    """The same, on an event loop."""
    try:
        async for _ in aended(access, [id], max(0.0, seconds), kind):
            pass
    except WaitTimeout:
        pass


class Deadline:
    """When a caller gives up waiting; never, if `timeout` is None."""

    def __init__(self, timeout: float | None) -> None:
        if timeout is not None and not timeout >= 0:
            raise ConfigError(
                f"timeout={timeout!r} is not usable: give seconds, 0 or more, or None",
                option="timeout",
            )
        self.timeout = timeout
        self._at = None if timeout is None else time.monotonic() + timeout

    @property
    def has_passed(self) -> bool:
        """Whether it is time to give up."""
        return self._at is not None and time.monotonic() >= self._at

    @property
    def left(self) -> float | None:
        """Seconds until then; None: any number."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())

    def within(self, seconds: float) -> float:
        """So many seconds, or fewer if not so many are left."""
        return seconds if self._at is None else min(seconds, self._at - time.monotonic())

    def error(
        self, id: bytes, status: TaskStatus | WorkflowStatus | None, kind: Awaited[Any]
    ) -> HoldfastError:
        """What to raise when it has passed."""
        if status is None:
            return kind.missing(id)
        return WaitTimeout(id, self.timeout or 0.0, status, noun=kind.noun)


_NEVER: Final = Deadline(None)


class _Loan:
    """Lets the worker run an extra child while the task that this code belongs to waits.

    Not at once, because most waits are short, and a child takes a while to start.
    """

    def __init__(self) -> None:
        self._task = running.get()
        self.due = _NEVER if self._task is None else Deadline(LEND_AFTER)
        """When it begins; never again once it has."""
        self._lent = False

    def begins(self) -> bool:
        """Tell the worker that this task waits, if it is time to."""
        if self._task is None or not self.due.has_passed:
            return False
        self.due = _NEVER
        self._lent = True
        self._task.waits(True)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lent and self._task is not None:
            self._task.waits(False)


class _Patience:
    """A deadline, and before it one stop to look why nothing happens."""

    def __init__(self, timeout: float | None) -> None:
        self.deadline = Deadline(timeout)
        self._stop = Deadline(REMARK_AFTER)

    def next_stop(self, loan: _Loan) -> float | None:
        stops = (self.deadline.left, loan.due.left, self._stop.left)
        return min((stop for stop in stops if stop is not None), default=None)

    @property
    def is_remarkable(self) -> bool:
        """Whether it has been long enough to look why, and nobody has."""
        if not self._stop.has_passed:
            return False
        self._stop = _NEVER
        return True


def _waiting_task() -> bytes | None:
    """The task whose code this is, if it is one's."""
    found = current()
    return None if found is None else found.task_id


@reads
def _look(ids: Sequence[bytes], kind: Awaited[E]) -> Steps[dict[bytes, E]]:
    """Who has ended already; `TaskNotFound` for an id that does not exist."""
    others: set[bytes] = set()
    found = yield from kind.endings(ids, others)
    for id in ids:
        if id not in found and id not in others:
            raise kind.missing(id)
    return found


@reads
def _standing(id: bytes, kind: Awaited[Any]) -> Steps[TaskStatus | WorkflowStatus | None]:
    found: Mapping[bytes, TaskStatus | WorkflowStatus] = yield from kind.statuses([id])
    return found.get(id)


def _ending(news: E | Exception) -> E:
    if isinstance(news, HoldfastError):
        # Several may wait for the same; each raises a copy with a traceback of its own.
        raise copy.copy(news) from news.__cause__
    if isinstance(news, Exception):
        raise news
    return news


def _remark(why: object | None) -> None:
    if why is not None:
        _log.warning("still waiting: %s", why)

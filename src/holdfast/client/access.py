"""How an app reaches its store.

Owns the store's life: opened by the first use (decorating a function opens nothing), closed
once, refused afterwards, usable on both sides of a fork. Decides for each operation whether
it runs on a connection of ours or on the one the caller bound with `using`. What is asked
of the store, and what is made of the answer, is the business of others.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from holdfast.client.config import Config
from holdfast.client.offload import Offload
from holdfast.client.sending.sender import Again, Sender, never_settled, submit_all, submit_one
from holdfast.client.using import Using, bound
from holdfast.client.waiting.waiter import Waiter
from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.core.records import Submission, Submitted
from holdfast.store.op import Mode, Op
from holdfast.store.open import open_store
from holdfast.store.protocol import Store
from holdfast.store.settings import SqliteDriver, StoreSettings

if TYPE_CHECKING:
    from holdfast.store.callers.adoption import AdoptedConnection

__all__ = ["Access"]

T = TypeVar("T")

CLOSE_PATIENCE: Final = 10.0
MOST_JOINED: Final = 5
"""How often an operation is tried in the caller's transaction."""
_log = logging.getLogger("holdfast")
_living: WeakSet[Access] = WeakSet()


class Access:
    """The store of one app, and all that this process runs over it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._store: Store | None = None
        self._borrowed = False
        self._closed = False
        self.acquainted: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._begin()
        _living.add(self)

    def _begin(self) -> None:
        # Everything here belongs to one process: it has locks or threads.
        self._opening = threading.Lock()
        # The lock itself where nobody waits: a condition takes it in Python.
        self._door = threading.Lock()
        self._gate = threading.Condition(self._door)
        self._inside = 0
        self._offload = Offload(self.config.store.max_connections)
        self.waiter = Waiter(self._open)
        self._sender = Sender(self._attempt, self._offload.submit, self.config.send_timeout)

    def run(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation; `make` makes it, and makes it again if it has to be repeated."""
        theirs = bound(self)
        return self.run_own(make) if theirs is None else _run_on(theirs, make)

    async def arun(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation without blocking the event loop."""
        theirs = bound(self)
        return await (self.arun_own(make) if theirs is None else _arun_on(theirs, make))

    def run_own(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation on a connection of ours, whatever the caller has bound."""
        self._enter()
        try:
            return self._attempt(make)
        finally:
            self._leave()

    async def arun_own(self, make: Callable[[], Op[T]]) -> T:
        """The same without blocking the event loop."""
        self.check_open()
        return await self._offload.run(lambda: self._attempt(make))

    def send(self, submission: Submission, *, contended: bool) -> Submitted:
        """Submit one task, in a transaction shared with others who send now."""
        theirs = bound(self)
        if theirs is not None:
            with _settled(submission):
                return _run_on(theirs, lambda: submit_one(submission))
        self._enter()
        try:
            return self._sender.send(submission, contended=contended)
        finally:
            self._leave()

    async def asend(self, submission: Submission, *, contended: bool) -> Submitted:
        """Submit one task; waits on no thread."""
        theirs = bound(self)
        if theirs is not None:
            with _settled(submission):
                return await _arun_on(theirs, lambda: submit_one(submission))
        self.check_open()
        return await self._sender.asend(submission, contended=contended)

    def send_all(self, submissions: Sequence[Submission]) -> list[Submitted]:
        """Submit many tasks in one transaction of their own: all, or none."""
        theirs = bound(self)
        if theirs is not None:
            with _settled(submissions[0]):
                return _run_on(theirs, lambda: submit_all(submissions))
        self._enter()
        try:
            return self._sender.send_all(submissions)
        finally:
            self._leave()

    async def asend_all(self, submissions: Sequence[Submission]) -> list[Submitted]:
        """Submit many tasks in one transaction of their own: all, or none."""
        theirs = bound(self)
        if theirs is not None:
            with _settled(submissions[0]):
                return await _arun_on(theirs, lambda: submit_all(submissions))
        self.check_open()
        return await self._offload.run(lambda: self._sender.send_all(submissions))

    def using(self, connection: Any) -> Using:
        """Bind a caller's connection to the current context."""
        from holdfast.store.callers import adoption

        self.check_open()
        return Using(self, adoption.adopt(connection, self))

    def settings_beside(self, library: SqliteDriver | None) -> StoreSettings:
        """Our settings; if we have not chosen a SQLite library yet, it is the caller's."""
        with self._opening:
            if library is not None and self._store is None and self.config.store.driver is None:
                self.config = self.config.following(library)
            return self.config.store

    def borrow(self, store: Store) -> None:
        """Use a store that somebody else looks after: a worker's child has none of its own.

        A process forked from here borrows no more, and opens a store for itself.
        """
        # A store that was opened before is left as it is: it belongs to the parent.
        self._inherited = self._store
        self._store = store
        self._borrowed = True

    @property
    def has_store(self) -> bool:
        """Whether the store has been opened."""
        return self._store is not None

    def store(self) -> Store:
        """The store, opened (and its schema created) if this is the first use."""
        self.check_open()
        return self._open()

    def check_open(self) -> None:
        """Raise if the app has been closed."""
        if self._closed:
            raise StoreError(
                "this app is closed, so it can neither send nor read: keep it open for as "
                "long as it is used, or make a new Holdfast"
            )

    def close(self) -> None:
        """Let what is under way end, then close the store. Closing twice is no error."""
        deadline = time.monotonic() + CLOSE_PATIENCE
        with self._gate:
            if self._closed:
                return
            self._closed = True
            while self._inside and time.monotonic() < deadline:
                self._gate.wait(deadline - time.monotonic())
        self._offload.close()
        self.waiter.close()
        with self._opening:
            if self._store is not None and not self._borrowed:
                self._store.close()

    def _attempt(self, make: Callable[[], Op[T]]) -> T:
        return self._open().attempt(make)

    def _open(self) -> Store:
        store = self._store
        if store is not None:
            return store
        with self._opening:
            if self._store is None:
                settings = self.config.store
                self._store = open_store(settings)
                _log.info("tasks are in %s", settings.masked)
            return self._store

    def _enter(self) -> None:
        with self._door:
            if self._closed:
                self.check_open()
            self._inside += 1

    def _leave(self) -> None:
        with self._door:
            self._inside -= 1
            if self._closed and not self._inside:
                self._gate.notify_all()

    def _after_fork(self) -> None:
        # Threads and whoever they served stayed in the parent.
        if self._borrowed:
            self._store, self._borrowed = None, False
        self._begin()


def _run_on(theirs: AdoptedConnection, make: Callable[[], Op[T]]) -> T:
    """Run an operation on the caller's connection, anew if it only met another one."""
    for _ in range(MOST_JOINED - 1):
        op = make()
        try:
            return theirs.run(op)
        except (Again, StoreUnavailable) as error:
            _check_undone(op, error)
    return theirs.run(make())


async def _arun_on(theirs: AdoptedConnection, make: Callable[[], Op[T]]) -> T:
    """The same on the caller's async connection."""
    for _ in range(MOST_JOINED - 1):
        op = make()
        try:
            return await theirs.arun(op)
        except (Again, StoreUnavailable) as error:
            _check_undone(op, error)
    return await theirs.arun(make())


def _check_undone(op: Op[Any], error: Again | StoreUnavailable) -> None:
    """Raise what cannot be made good by trying once more in the same transaction.

    A write has a savepoint of its own there: that it met another one has undone it alone.
    """
    if isinstance(error, StoreUnavailable) and not (error.conflict and op.mode is Mode.WRITE):
        raise error


@contextmanager
def _settled(submission: Submission) -> Iterator[None]:
    try:
        yield
    except Again:
        raise never_settled(submission) from None


def _after_fork_in_child() -> None:
    for access in list(_living):
        access._after_fork()


def _at_exit() -> None:
    for access in list(_living):
        access.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)

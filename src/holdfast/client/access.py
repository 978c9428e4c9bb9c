"""How an app reaches its store.

Owns the store's life: opened by the first use (decorating a function opens nothing), closed
once, refused afterwards, usable on both sides of a fork. What is asked of the store, and what is
made of the answer, is the business of others.

Owns also the binding of a context (a thread, or an asyncio task and those it starts) to a
connection of the caller's: inside `with app.using(connection)` everything the app asks of its
store is asked on that connection, in the transaction the caller began. Nothing is committed here.
A binding ends with its block, also for asyncio tasks that were started inside and live on: they
go back to the app's own connections.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from holdfast.client.config import Config
from holdfast.client.offload import Offload
from holdfast.client.routing import Routing
from holdfast.client.waiter import Waiter
from holdfast.core.errors import ConfigError, StoreError, StoreUnavailable
from holdfast.store.op import Mode, Op
from holdfast.store.open import open_store
from holdfast.store.protocol import Store
from holdfast.store.settings import SqliteDriver, StoreSettings

if TYPE_CHECKING:
    # Most programs never bring a connection of their own.
    from holdfast.store.callers.home import AdoptedConnection

__all__ = ["Access", "Again", "Using"]

T = TypeVar("T")

CLOSE_PATIENCE: Final = 10.0
MOST_JOINED: Final = 5
"""How often an operation is tried in the caller's transaction."""
_log = logging.getLogger("holdfast")
_open_apps: WeakSet[Access] = WeakSet()


class Again(Exception):
    """Raised in an operation: roll it back, and make it anew."""


class Access:
    """The store of one app, and all that this process runs over it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._store: Store | None = None
        self._borrowed = False
        self._closed = False
        self.acquainted: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._beside: dict[tuple[int, float], Access] = {}
        self._beginnings: list[Callable[[], None]] = []
        self.in_each_process(self._begin)
        _open_apps.add(self)

    def in_each_process(self, begin: Callable[[], None]) -> None:
        """Call `begin`, now and in every process that is forked from this one: it makes what
        belongs to one process, such as locks and threads."""
        self._beginnings.append(begin)
        begin()

    def _begin(self) -> None:
        self._opening = threading.Lock()
        # The lock itself where nobody waits: a condition takes it in Python.
        self._counting = threading.Lock()
        self._all_left = threading.Condition(self._counting)
        self._inside = 0
        self.offload = Offload(self.config.store.max_connections)
        self.waiter = Waiter(self._open)
        self.routing = Routing()

    def run(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation; `make` makes it, and makes it again if it has to be repeated."""
        theirs = self.bound()
        return self.run_own(make) if theirs is None else _run_on(theirs, make)

    async def arun(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation without blocking the event loop."""
        theirs = self.bound()
        return await (self.arun_own(make) if theirs is None else _arun_on(theirs, make))

    def run_own(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation on a connection of ours, whatever the caller has bound."""
        self.enter()
        try:
            return self.attempt(make)
        finally:
            self.leave()

    async def arun_own(self, make: Callable[[], Op[T]]) -> T:
        """The same without blocking the event loop."""
        self.check_open()
        return await self.offload.run(lambda: self.attempt(make))

    def bound(self) -> AdoptedConnection | None:
        """The connection of the caller's that must be used here and now, if there is one."""
        binding = _bound.get()
        while binding is not None:
            if binding.owner is self and not binding.ended:
                return binding.connection
            binding = binding.outer
        return None

    def using(self, connection: Any) -> Using:
        """Bind a caller's connection to the current context."""
        self.check_open()
        return Using(self, self.adopt(connection))

    def adopt(self, connection: Any) -> AdoptedConnection:
        """Make ready to run operations on a caller's connection; runs nothing on it."""
        from holdfast.store.callers import adoption

        return adoption.adopt(connection, self)

    def settings_beside(self, library: SqliteDriver | None) -> StoreSettings:
        """Our settings; if we have not chosen a SQLite library yet, it is the caller's."""
        with self._opening:
            if library is not None and self._store is None and self.config.store.driver is None:
                self.config = replace(self.config, driver=library)
            return self.config.store

    def beside(self, *, max_connections: int, statement_timeout: float) -> Access:
        """The same database on connections of their own, with a bound for each statement: for what
        must never keep the app waiting. Closed with the app."""
        if self.config.store.in_memory or self._borrowed:
            # There is nothing to connect to a second time.
            return self
        bound = min(statement_timeout, self.config.statement_timeout)
        chosen = max_connections, bound
        with self._opening:
            if chosen not in self._beside:
                self.check_open()
                config = replace(
                    self.config, max_connections=max_connections, statement_timeout=bound
                )
                self._beside[chosen] = Access(config)
            return self._beside[chosen]

    def borrow(self, store: Store) -> None:
        """Use a store that the caller opens and closes: a worker's child has none of its own.

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
        with self._all_left:
            if self._closed:
                return
            self._closed = True
            while self._inside and time.monotonic() < deadline:
                self._all_left.wait(deadline - time.monotonic())
        for other in list(self._beside.values()):
            other.close()
        self.offload.close()
        self.waiter.close()
        with self._opening:
            if self._store is not None and not self._borrowed:
                self._store.close()

    def attempt(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation on a connection of ours, between `enter` and `leave`."""
        return self._open().attempt(make)

    def enter(self) -> None:
        """Begin something that closing the app waits for; refused once it is closed."""
        with self._counting:
            if self._closed:
                self.check_open()
            self._inside += 1

    def leave(self) -> None:
        """End it."""
        with self._counting:
            self._inside -= 1
            if self._closed and not self._inside:
                self._all_left.notify_all()

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

    def _after_fork(self) -> None:
        # Threads and whoever they served stayed in the parent.
        if self._borrowed:
            self._store, self._borrowed = None, False
        for begin in self._beginnings:
            begin()


@dataclass(slots=True, eq=False)
class _Binding:
    owner: Access
    connection: AdoptedConnection
    outer: _Binding | None
    ended: bool = False


# One variable for all apps: a context keeps every variable it has seen alive.
_bound: ContextVar[_Binding | None] = ContextVar("holdfast_using", default=None)


class Using:
    """What `app.using(connection)` returns: a context manager, sync and async.

    with engine.begin() as connection, app.using(connection):
        connection.execute(insert(orders).values(order))
        confirm.send(order.id)      # commits with the order, or not at all
    """

    def __init__(self, owner: Access, connection: AdoptedConnection) -> None:
        self._owner = owner
        self._connection = connection
        self._entered: list[tuple[_Binding, Token[_Binding | None]]] = []

    def __enter__(self) -> Self:
        binding = _Binding(self._owner, self._connection, _bound.get())
        self._entered.append((binding, _bound.set(binding)))
        return self

    def __exit__(self, *_: object) -> None:
        if not self._entered:
            raise ConfigError("using(…) was left without having been entered")
        binding, token = self._entered.pop()
        binding.ended = True
        _bound.reset(token)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


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


def _after_fork_in_child() -> None:
    for access in list(_open_apps):
        access._after_fork()


def _at_exit() -> None:
    for access in list(_open_apps):
        access.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)

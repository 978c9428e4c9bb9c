"""The store's connections: lent to one operation at a time, opened when first needed.

Owns how many there are and which may be lent again. Hand-made rather than psycopg_pool:
it has no threads of its own, survives a fork, and tells a caller at once why the server
let nobody in, instead of timing out.

Each call makes at most one attempt to connect, no sooner than the backoff allows. So a
loop that simply tries again is slowed to the backoff's pace, and a caller learns within
one attempt that the server is away.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import psycopg
from psycopg.pq import TransactionStatus

from holdfast.core.errors import HoldfastError, StoreError, StoreUnavailable
from holdfast.store import fork
from holdfast.store.postgres.backoff import Backoff
from holdfast.store.postgres.connection import Opener, OwnConnection, abandon

logger = logging.getLogger("holdfast.store")

IDLE_S = 300.0
"""A connection that nobody needed for so long is closed when the next one comes back."""


class Pool:
    """At most `size` connections, and one more for what is urgent.

    Whoever has waited longest is next: no loop that asks again at once may keep a connection
    from somebody who asks seldom.
    """

    def __init__(self, opener: Opener, size: int, patience: float) -> None:
        self._opener = opener
        self._size = size
        self._patience = patience
        self._closed = threading.Event()
        self._start()
        fork.inherit(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._all: set[OwnConnection] = set()
        self._idle: list[tuple[OwnConnection, float]] = []
        self._waiting: deque[_Waiter] = deque()
        self._opening = 0
        self._backoff = Backoff()

    def after_fork(self) -> None:
        """Leave the parent's connections to the parent."""
        for connection in self._all:
            abandon(connection)
        closed = self._closed.is_set()
        self._closed = threading.Event()
        if closed:
            self._closed.set()
        self._start()

    @contextmanager
    def connection(self, *, urgent: bool = False) -> Iterator[OwnConnection]:
        """Lend a connection for the block."""
        connection = self.acquire(urgent=urgent)
        try:
            yield connection
        finally:
            self.release(connection)

    def acquire(self, *, urgent: bool = False) -> OwnConnection:
        """A usable connection; `release` it whatever happens."""
        if fork.process != os.getpid():
            fork.settle()
        return self._take(urgent) or self._open()

    def _take(self, urgent: bool) -> OwnConnection | None:
        """An idle connection, or None with the right to open one."""
        with self._lock:
            self._check_open()
            if self._may_lend(urgent) and (urgent or not self._waiting):
                return self._lend()
            waiter = _Waiter(urgent)
            if urgent:
                self._waiting.appendleft(waiter)
            else:
                self._waiting.append(waiter)
        try:
            served = waiter.served.acquire(timeout=self._patience)
        except BaseException:
            # Interrupted: what has come meanwhile is not wanted any more.
            if not self._give_up(waiter):
                self._refuse(waiter)
            raise
        if not served and self._give_up(waiter):
            raise StoreUnavailable(
                f"all {self._size} connections to {self._opener.address} were busy for "
                f"{self._patience:g} s: raise max_connections"
            )
        self._check_open()
        return waiter.connection

    def _may_lend(self, urgent: bool) -> bool:
        lent = len(self._all) - len(self._idle) + self._opening
        return lent < self._size + urgent

    def _lend(self) -> OwnConnection | None:
        while self._idle:
            connection, _ = self._idle.pop()
            if _usable(connection):
                return connection
            self._drop(connection)
        self._opening += 1
        return None

    def _give_up(self, waiter: _Waiter) -> bool:
        """Leave the line; False if the turn has come in this very moment."""
        with self._lock:
            if waiter not in self._waiting:
                return False
            self._waiting.remove(waiter)
            return True

    def _refuse(self, waiter: _Waiter) -> None:
        if waiter.connection is not None:
            self.release(waiter.connection)
            return
        with self._lock:
            self._opening -= 1
            self._serve_next()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise StoreError("this store is closed")

    def _open(self) -> OwnConnection:
        opened: OwnConnection | None = None
        try:
            self._closed.wait(self._backoff.remaining())
            begun = self._backoff.begin()
            try:
                opened = self._opener.open()
            except HoldfastError as error:
                if self._opener.worked and not self._backoff.failing:
                    # One that never worked is the business of whoever opens the store.
                    logger.warning("%s", error)
                self._backoff.failed(begun)
                raise
            if self._backoff.failing:
                logger.info("connected to %s again", self._opener.address)
            self._backoff.succeeded()
            return opened
        finally:
            with self._lock:
                self._opening -= 1
                if opened is not None:
                    self._all.add(opened)
                else:
                    self._serve_next()

    def release(self, connection: OwnConnection) -> None:
        """Take a connection back; one in a doubtful state is closed."""
        with self._lock:
            if connection not in self._all:
                return
            if not self._closed.is_set() and _at_rest(connection):
                now = monotonic()
                self._idle.append((connection, now))
                while now - self._idle[0][1] > IDLE_S:
                    self._drop(self._idle.pop(0)[0])
            else:
                self._drop(connection)
            self._serve_next()

    def close(self) -> None:
        """Close what is idle; what is lent is closed on its return."""
        with self._lock:
            self._closed.set()
            while self._idle:
                self._drop(self._idle.pop()[0])
            for waiter in self._waiting:
                waiter.served.release()
            self._waiting.clear()

    def _serve_next(self) -> None:
        if self._waiting and self._may_lend(self._waiting[0].urgent):
            waiter = self._waiting.popleft()
            waiter.connection = self._lend()
            waiter.served.release()

    def _drop(self, connection: OwnConnection) -> None:
        self._all.discard(connection)
        connection.close()


class _Waiter:
    """Somebody in the line, and what it is given: a connection, or the right to open one."""

    __slots__ = ("connection", "served", "urgent")

    def __init__(self, urgent: bool) -> None:
        self.urgent = urgent
        self.connection: OwnConnection | None = None
        self.served = threading.Lock()
        self.served.acquire()


def _at_rest(connection: OwnConnection) -> bool:
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE


def _usable(connection: OwnConnection) -> bool:
    """Whether an idle connection still stands, without asking the server.

    A server that goes away says so, or at least closes the socket; nothing else arrives on
    a connection that is not in use, except for a reload of the server's settings. Noticing it
    here, before anything is sent, keeps a restart between two operations from looking like
    a commit whose outcome is not known.
    """
    try:
        return not connection.closed and not readable(connection.fileno())
    except (psycopg.Error, OSError):
        return False


def readable(descriptor: int, timeout: float = 0.0) -> bool:
    """Whether a read from this socket would not block."""
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], timeout)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout * 1000))

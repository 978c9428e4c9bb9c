"""Hearing hints: one connection that LISTENs, and the wait that ends when one arrives.

Owns that connection. `wait` never raises and never waits for the network: while there is
no connection a thread works on one, and `wait` is a plain sleep. A listener that has just
come back reports the empty name, "something may have happened": hints sent meanwhile are
lost.

A listener may be dead without a sign (a firewall that forgot the connection, a pooler that
gave the session to somebody else). So an idle one asks the server now and then which
channels it listens to, without waiting for the answer, and one that is not told its own is
replaced.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import Self

import psycopg

from holdfast.core.errors import HoldfastError
from holdfast.store import fork
from holdfast.store.postgres.backoff import Backoff
from holdfast.store.postgres.connection import OwnConnection, abandon
from holdfast.store.postgres.listen_route import ListenRoute

logger = logging.getLogger("holdfast.store")

PROBE_S = 30.0
ANSWER_S = 10.0
SOMETHING = ""
"""Heard when it is not known what: look at everything."""


class PollListener:
    """The listener behind a transaction pooler: hears nothing, sleeps well."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        fork.inherit(self)

    def after_fork(self) -> None:
        """The lock inside the event may have been held."""
        self._woken = threading.Event()

    def wait(self, timeout: float) -> frozenset[str]:
        """Sleep; always nothing heard."""
        self._woken.wait(max(0.0, timeout))
        self._woken.clear()
        return frozenset()

    def wake(self) -> None:
        """End a `wait` of another thread now."""
        self._woken.set()

    def fileno(self) -> int | None:
        """Nothing to select on."""
        return None

    def close(self) -> None:
        self._woken.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class PostgresListener:
    """One subscription; `wait` belongs to one thread, `wake` and `close` to any."""

    def __init__(
        self,
        route: ListenRoute,
        channels: Sequence[str],
        *,
        probe_s: float = PROBE_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._route = route
        self._channels = frozenset(channels)
        self._probe_s = probe_s
        self._answer_s = answer_s
        self._closed = threading.Event()
        self._start()
        fork.inherit(self)
        self._reconnect()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._connection: OwnConnection | None = None
        self._connecting = False
        self._waiting = False
        self._probed_at: float | None = None
        self._answer: set[str] = set()
        self._quiet_since = monotonic()
        self._heard: set[str] = set()
        # A byte in this pair ends the sleep, whoever writes it.
        self._ear, self._mouth = socket.socketpair()
        self._ear.setblocking(False)
        self._mouth.setblocking(False)

    def after_fork(self) -> None:
        """The child listens on its own; its wake-ups must not reach the parent."""
        if self._connection is not None:
            abandon(self._connection)
        self._ear.close()
        self._mouth.close()
        closed = self._closed.is_set()
        self._closed = threading.Event()
        self._start()
        if closed:
            self.close()

    def wait(self, timeout: float) -> frozenset[str]:
        """Sleep until a hint, a `wake` or the timeout; the payloads heard, each once."""
        if fork.process != os.getpid():
            fork.settle()
        with self._lock:
            self._waiting = True
        try:
            return self._wait(monotonic() + timeout)
        finally:
            with self._lock:
                self._waiting = False
                if self._closed.is_set():
                    self._ear.close()

    def _wait(self, deadline: float) -> frozenset[str]:
        while not self._closed.is_set():
            self._collect()
            woken = self._swallow()
            now = monotonic()
            if self._heard or woken or now >= deadline:
                break
            self._sleep(min(deadline, self._next_probe()) - now)
        with self._lock:
            heard, self._heard = frozenset(self._heard), set()
        return heard

    def wake(self) -> None:
        """End a `wait` of another thread, or the next one, now."""
        try:
            self._mouth.send(b"\0")
        except (BlockingIOError, OSError):
            # Full: it is awake already. Closed: nobody waits.
            pass

    def fileno(self) -> int | None:
        """The socket on which hints arrive, while there is one."""
        with self._lock:
            return None if self._connection is None else self._connection.fileno()

    def close(self) -> None:
        """Stop listening; a `wait` under way returns."""
        self._closed.set()
        self.wake()
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
            self._mouth.close()
            if not self._waiting:
                self._ear.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _sleep(self, seconds: float) -> None:
        sockets: list[int] = [self._ear.fileno()]
        with self._lock:
            if self._connection is not None:
                sockets.append(self._connection.fileno())
        wait_readable(sockets, max(0.0, seconds))

    def _swallow(self) -> bool:
        try:
            return bool(self._ear.recv(4096))
        except (BlockingIOError, OSError):
            return False

    def _collect(self) -> None:
        """Take in what has arrived, without waiting for anything."""
        with self._lock:
            connection = self._connection
            if connection is not None:
                try:
                    self._read(connection)
                    self._probe(connection)
                except (psycopg.Error, OSError) as error:
                    logger.info("the listener lost its connection: %s", error)
                    connection.close()
                    self._connection = None
        if self._connection is None:
            self._reconnect()

    def _read(self, connection: OwnConnection) -> None:
        wire = connection.pgconn
        wire.consume_input()
        while (note := wire.notifies()) is not None:
            self._quiet_since = monotonic()
            self._heard.add(note.extra.decode())
        while self._probed_at is not None and not wire.is_busy():
            result = wire.get_result()
            if result is not None:
                names = [result.get_value(row, 0) for row in range(result.ntuples)]
                self._answer.update(name.decode() for name in names if name is not None)
                continue
            self._probed_at = None
            self._quiet_since = monotonic()
            if not self._channels <= self._answer:
                raise psycopg.OperationalError(
                    "the session listens to nothing any more: does a pooler stand in between?"
                )

    def _probe(self, connection: OwnConnection) -> None:
        now = monotonic()
        if self._probed_at is not None:
            if now - self._probed_at >= self._answer_s:
                raise psycopg.OperationalError(f"no answer within {self._answer_s:g} s")
        elif now - self._quiet_since >= self._probe_s:
            connection.pgconn.send_query(b"SELECT pg_listening_channels()")
            connection.pgconn.flush()
            self._probed_at = now
            self._answer.clear()

    def _next_probe(self) -> float:
        if self._probed_at is not None:
            return self._probed_at + self._answer_s
        return self._quiet_since + self._probe_s if self._connection else float("inf")

    def _reconnect(self) -> None:
        with self._lock:
            if self._connecting or self._closed.is_set():
                return
            self._connecting = True
        threading.Thread(target=self._connect, name="holdfast-listen", daemon=True).start()

    def _connect(self) -> None:
        backoff = Backoff()
        connection: OwnConnection | None = None
        while connection is None and not self._closed.is_set():
            begun = backoff.begin()
            try:
                connection = self._route.open(sorted(self._channels))
            except (HoldfastError, psycopg.Error):
                # Whoever runs operations reports the outage; here it would be noise.
                backoff.failed(begun)
                self._closed.wait(backoff.remaining())
            else:
                self._closed.wait(self._route.rest())
        with self._lock:
            self._connecting = False
            if connection is None:
                return
            if self._closed.is_set():
                connection.close()
                return
            self._probed_at = None
            self._quiet_since = monotonic()
            self._heard.add(SOMETHING)
            self._connection = connection
        self.wake()


def wait_readable(descriptors: Sequence[int], timeout: float) -> None:
    """Sleep until one of these sockets has something to read."""
    if not hasattr(select, "poll"):
        select.select(descriptors, [], [], timeout)
        return
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    # Rounded up, or the last part of a millisecond would be spent spinning.
    poll.poll(int(timeout * 1000) + 1)

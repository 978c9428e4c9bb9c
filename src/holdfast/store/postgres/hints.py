"""Hints by NOTIFY and LISTEN: how often one is worth its price, and hearing them.

Owns the rate. A commit that notifies takes a lock of the whole database, so sixteen
concurrent committers that all notify fall to less than half their speed. Therefore the
first hint for a queue leaves at once, inside the commit it is about, and what follows
within a short window is answered by one more at its end (`Limiter`).

    carried = limiter.due(channel, queues)      # before: these go with the commit
    ...                                         # the commit
    limiter.owe(channel, the_others)            # after: these are sent when the window ends

Owns the connection that LISTENs. `wait` never raises and never waits for the network: while
there is none, a thread works on one (`listen_route`), and `wait` is a plain sleep. A listener
that has just come back reports the empty name, "something may have happened": hints sent
meanwhile are lost. It may be dead without a sign (a firewall that forgot the connection, a pooler
that gave the session to somebody else). So an idle one asks the server now and then which
channels it listens to, without waiting for the answer, and one that is not told its own is
replaced.

A hint may be lost at every step; listeners poll.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TypeAlias

import psycopg

from holdfast.core.digest import hex_digest
from holdfast.core.errors import HoldfastError
from holdfast.store import fork
from holdfast.store.op import Channel
from holdfast.store.postgres.backoff import Backoff
from holdfast.store.postgres.connection import OwnConnection, abandon
from holdfast.store.postgres.listen_route import ListenRoute
from holdfast.store.protocol import Listener

logger = logging.getLogger("holdfast.store")

WINDOW_S = 0.010
LINGER_S = 1.0
"""How long the sending thread waits for more before it ends."""
PARTING_S = 2.0
"""How long closing waits for the last hints."""
_LONGEST_NAME = 63
_LONGEST_PAYLOAD = 1_999
"""Characters, of up to four bytes each."""
_REMEMBERED = 1024
PROBE_S = 30.0
ANSWER_S = 10.0
SOMETHING = ""
"""Heard when it is not known what: look at everything."""

Note: TypeAlias = tuple[str, str]
"""A channel's name in the database, and the payload."""


def channel_name(channel: Channel, schema: str | None) -> str:
    """The channel's name in the database; stores in two schemas do not wake each other."""
    if schema is None:
        return channel.value
    name = f"{schema}.{channel.value}"
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hex_digest(schema)[:16]
    return f"{schema[:30]}_{digest}.{channel.value}"


def short(payloads: Sequence[str]) -> Sequence[str]:
    """Payloads that NOTIFY takes: one that is too long becomes "look everywhere".

    The server refuses 8,000 bytes and more, and with them the transaction. No queue that we
    made has so long a name.
    """
    if all(len(payload) <= _LONGEST_PAYLOAD for payload in payloads):
        return payloads
    return [payload if len(payload) <= _LONGEST_PAYLOAD else "" for payload in payloads]


class Limiter:
    """Says which hints may leave now, and sends the others when they may."""

    def __init__(self, send: Callable[[Sequence[Note]], None], schema: str | None) -> None:
        self._send = send
        self._names = {channel: channel_name(channel, schema) for channel in Channel}
        self._closed = False
        self._start()
        fork.inherit(self)

    def _start(self) -> None:
        # The lock itself where nobody waits: a condition takes it in Python.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._sent: dict[Note, float] = {}
        self._owed: dict[Note, float] = {}
        self._thread: threading.Thread | None = None

    def after_fork(self) -> None:
        """The parent still owes what it owes; its thread is not here."""
        self._start()

    def name(self, channel: Channel) -> str:
        """The channel's name in the database."""
        return self._names[channel]

    def due(self, channel: Channel, payloads: Sequence[str]) -> list[str]:
        """Those payloads that the coming commit should carry."""
        payloads = short(payloads)
        name = self._names[channel]
        now = monotonic()
        with self._lock:
            due = [p for p in dict.fromkeys(payloads) if now >= self._opens((name, p))]
            for payload in due:
                self._note((name, payload), now)
                self._owed.pop((name, payload), None)
            return due

    def owe(self, channel: Channel, payloads: Sequence[str]) -> None:
        """Send these when their window has ended, which may be now."""
        payloads = short(payloads)
        name = self._names[channel]
        with self._lock:
            if self._closed:
                return
            new = [hint for p in payloads if (hint := (name, p)) not in self._owed]
            for hint in new:
                self._owed[hint] = self._opens(hint)
            if self._owed and self._thread is None:
                self._thread = threading.Thread(
                    target=self._pay, name="holdfast-hints", daemon=True
                )
                self._thread.start()
            elif new:
                # Not for what is owed already: in a burst each wake-up would be for nothing.
                self._changed.notify()

    def close(self) -> None:
        """Send what is owed if that is quickly done, and end."""
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(PARTING_S)

    def _pay(self) -> None:
        while hints := self._collect():
            self._send(hints)

    def _collect(self) -> list[Note]:
        """Wait for hints that may leave; none when the thread should end."""
        with self._changed:
            while True:
                now = monotonic()
                hints = [hint for hint, opens in self._owed.items() if opens <= now or self._closed]
                if hints:
                    for hint in hints:
                        del self._owed[hint]
                        self._note(hint, now)
                    return hints
                if self._owed:
                    self._changed.wait(min(self._owed.values()) - now)
                elif self._closed or not self._changed.wait(LINGER_S):
                    self._thread = None
                    return []

    def _opens(self, hint: Note) -> float:
        return self._sent.get(hint, float("-inf")) + WINDOW_S

    def _note(self, hint: Note, now: float) -> None:
        if len(self._sent) >= _REMEMBERED:
            self._sent = {h: at for h, at in self._sent.items() if now - at < WINDOW_S}
        self._sent[hint] = now


class PollListener(Listener):
    """The listener behind a transaction pooler: hears nothing and only sleeps."""

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


class PostgresListener(Listener):
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
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)

    def after_fork(self) -> None:
        """The child listens on its own; its wake-ups must not reach the parent."""
        if self._connection is not None:
            abandon(self._connection)
        self._wake_reader.close()
        self._wake_writer.close()
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
                    self._wake_reader.close()

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
            self._wake_writer.send(b"\0")
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
            self._wake_writer.close()
            if not self._waiting:
                self._wake_reader.close()

    def _sleep(self, seconds: float) -> None:
        sockets: list[int] = [self._wake_reader.fileno()]
        with self._lock:
            if self._connection is not None:
                sockets.append(self._connection.fileno())
        wait_readable(sockets, max(0.0, seconds))

    def _swallow(self) -> bool:
        try:
            return bool(self._wake_reader.recv(4096))
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

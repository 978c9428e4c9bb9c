"""`PostgresStore`: the engine's face.

Owns the composition: binder, pool, hints, listeners. What a transaction is lives in
`transaction`, what a failure means in `faults`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import psycopg

from holdfast.core.errors import HoldfastError
from holdfast.store.migrate import SchemaConnection
from holdfast.store.op import Channel, Mode, Op, repeat
from holdfast.store.postgres import arrays
from holdfast.store.postgres.binding import Binder
from holdfast.store.postgres.connection import Opener, OwnConnection
from holdfast.store.postgres.hints import Limiter, Note
from holdfast.store.postgres.listen_route import ListenRoute
from holdfast.store.postgres.listener import PollListener, PostgresListener
from holdfast.store.postgres.pool import Pool
from holdfast.store.postgres.schema import on_schema
from holdfast.store.postgres.transaction import Transaction
from holdfast.store.settings import Engine, StoreSettings

T = TypeVar("T")

logger = logging.getLogger("holdfast.store")

_NOTIFY = b"SELECT pg_notify(channel, payload) FROM unnest($1, $2) AS hint (channel, payload)"
_PROBE = b"""
SELECT current_setting('server_version'), current_setting('server_encoding'),
       current_setting('fsync')::boolean, current_setting('synchronous_commit'),
       current_setting('transaction_read_only')::boolean OR pg_is_in_recovery()
"""
_URGENT = frozenset({"renew"})
"""Leases are renewed whatever all others wait for."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What `holdfast db status` and `doctor` tell about the server."""

    version: str
    encoding: str
    fsync: bool
    synchronous_commit: str
    read_only: bool


class PostgresStore:
    """Tasks in one schema of one PostgreSQL database."""

    def __init__(
        self, settings: StoreSettings, *, text: Callable[[str], str] | None = None
    ) -> None:
        self._settings = settings
        self._binder = Binder(settings.schema, text)
        self._opener = Opener(settings)
        # One of the connections is the listener's.
        size = settings.max_connections - (0 if self._never_listens else 1)
        self._pool = Pool(self._opener, max(1, size), settings.statement_timeout)
        self._limiter = Limiter(self._notify, settings.schema)
        self._route = self._listen_route()
        self._told = False

    @property
    def engine(self) -> Engine:
        """Which engine this is."""
        return "postgresql"

    @property
    def settings(self) -> StoreSettings:
        """What it was opened with."""
        return self._settings

    def run(self, op: Op[T]) -> T:
        """Run one operation in one transaction of its own."""
        with self._pool.connection(urgent=op.name in _URGENT) as connection:
            return self._transaction(connection, op.mode, op.waits).run(op)

    def attempt(self, make: Callable[[], Op[T]], *, tries: int = 5) -> T:
        """Run an operation, made anew after a deadlock or serialisation conflict."""
        return repeat(self.run, make, tries)

    def hint(self, channel: Channel, queues: Sequence[str] = ()) -> None:
        """Wake listeners soon, from a thread of the store; never raises."""
        self._limiter.owe(channel, queues or ("",))

    def listen(self, *channels: Channel) -> PostgresListener | PollListener:
        """Hear hints on these channels; where none arrive, only sleep."""
        if self._never_listens:
            if not self._told:
                self._told = True
                logger.info(
                    "behind a pooler tasks and results are found by looking every second or so; "
                    "give listen_url (HOLDFAST_LISTEN_URL) the address of the server itself to "
                    "hear of them at once"
                )
            return PollListener()
        return PostgresListener(self._route, [self._limiter.name(c) for c in channels])

    def with_schema(self, work: Callable[[SchemaConnection], T], *, lock: bool) -> T:
        """Run `work` on the schema, in one transaction; with `lock`, alone in the fleet."""
        with self._pool.connection() as connection:
            return self._transaction(connection, Mode.WRITE).run_plain(
                "migrate", lambda: on_schema(connection, self._settings.schema, work, lock=lock)
            )

    @property
    def _never_listens(self) -> bool:
        return self._settings.pooler is True and self._settings.listen_url is None

    def _listen_route(self) -> ListenRoute:
        url = self._settings.listen_url
        if url is None:
            return ListenRoute(self._opener, self._say)
        apart = replace(self._settings, address=url, pooler=None)
        return ListenRoute(Opener(apart), self._say, is_apart=True)

    def _say(self, channel: str) -> None:
        """Notify a channel by an ordinary connection."""
        self._send_hints([channel], [""])

    def tend(self) -> None:
        """Nothing: the server looks after itself."""

    def probe(self) -> ServerInfo:
        """Ask the server about itself."""
        with self._pool.connection() as connection:
            rows = self._transaction(connection, Mode.READ).run_plain(
                "probe", lambda: connection.main.execute(_PROBE, binary=True).rows()
            )
        return ServerInfo(*rows[0])

    def close(self) -> None:
        """Send what hints are owed and close the connections."""
        self._limiter.close()
        self._pool.close()

    def _transaction(
        self, connection: OwnConnection, mode: Mode, waits: bool = True
    ) -> Transaction:
        return Transaction(
            connection, self._binder, self._limiter, self._opener.begin(connection), mode, waits
        )

    def _notify(self, hints: Sequence[Note]) -> None:
        channels, payloads = zip(*hints, strict=True)
        try:
            self._send_hints(channels, payloads)
        except (HoldfastError, psycopg.Error):
            # A hint; whoever polls will find the task.
            pass

    def _send_hints(self, channels: Sequence[str], payloads: Sequence[str]) -> None:
        with self._pool.connection() as connection:
            connection.main.execute(
                _NOTIFY, [arrays.texts(channels), arrays.texts(payloads)], binary=True
            )

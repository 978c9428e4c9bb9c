"""`PostgresStore`: one schema of one database, and the transaction of an operation.

Owns the composition (binder, pool, hints, listeners), when an operation is begun and committed,
the knowledge whether its commit was under way, and the hints that it did not carry because one
had just left. What a failure means is said in `faults`.

    READ     no transaction: at READ COMMITTED every statement has its own snapshot anyway
    ALONE    the first step commits by itself, one statement in one round trip; the rest only
             read
    WRITE    BEGIN, the statements, COMMIT

Statements that need not wait for each other (and BEGIN before the first) leave together
when the server is far; near by, psycopg's pipeline mode costs more than the round trips
it saves. Behind a pooler the plan settings live in the transaction, so every write gets one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import psycopg

from holdfast.core.errors import HoldfastError
from holdfast.store.migrate import SchemaConnection
from holdfast.store.op import Channel, Mode, Op, Rows, Statement, repeat
from holdfast.store.postgres import faults, values
from holdfast.store.postgres.binding import PostgresBinder, Query
from holdfast.store.postgres.connection import Opener, OwnConnection
from holdfast.store.postgres.hints import Limiter, Note, PollListener, PostgresListener
from holdfast.store.postgres.listen_route import ListenRoute
from holdfast.store.postgres.pool import Pool
from holdfast.store.postgres.schema import on_schema
from holdfast.store.postgres.values import NeutralCursor
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
    """What `holdfast db status` tells about the server."""

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
        self._binder = PostgresBinder(settings.schema, text)
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
        """Run an operation, created again after a deadlock or serialisation conflict."""
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
                _NOTIFY, [values.texts(channels), values.texts(payloads)], binary=True
            )


_AT_ONCE = b"; SET LOCAL lock_timeout = 1"
"""Milliseconds, the shortest timeout there is (0 means none)."""


class Transaction:
    """The run of one operation."""

    def __init__(
        self,
        connection: OwnConnection,
        binder: PostgresBinder,
        limiter: Limiter,
        begin: bytes,
        mode: Mode,
        waits: bool = True,
    ) -> None:
        self._connection = connection
        self._binder = binder
        self._limiter = limiter
        self._begin = begin if waits else begin + _AT_ONCE
        self._waits = waits
        self._alone = mode is Mode.ALONE
        self._must_begin = mode is Mode.WRITE or (self._alone and connection.pooled)
        self._begun = False
        self._committing = False
        self._owed: list[tuple[Channel, list[str]]] = []

    def run(self, op: Op[T]) -> T:
        """Drive the operation to its end and commit it, or undo it and raise."""
        value = self._perform(op.name, partial(self._drive, op))
        for channel, payloads in self._owed:
            self._limiter.owe(channel, payloads)
        return value

    def run_plain(self, name: str, work: Callable[[], T]) -> T:
        """The same for work that uses the connection itself."""

        def begin_and_work() -> T:
            self._begun = True
            self._connection.main.execute(self._begin, prepare=False)
            return work()

        return self._perform(name, begin_and_work)

    def _perform(self, name: str, work: Callable[[], T]) -> T:
        try:
            value = work()
            if self._begun:
                self._committing = True
                self._connection.commit()
            return value
        except psycopg.Error as error:
            raise self._failed(name, error) from (error if faults.may_show(error) else None)
        except BaseException:
            self._undo()
            raise

    def _drive(self, op: Op[T]) -> T:
        steps = iter(op)
        answer: Any = None
        try:
            while True:
                asked = steps.send(answer)
                if not isinstance(asked, Statement):
                    answer = self._ask(asked)
                elif self._must_begin and not self._begun:
                    answer = self._ask((asked,))[0]
                else:
                    answer = self._ask_one(asked)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            steps.close()

    def _ask_one(self, statement: Statement) -> Rows:
        """What `_ask` does, where there is nothing to send together."""
        query = self._bind(statement)
        self._committing, self._alone = self._alone and not self._begun, False
        rows = self._connection.main.execute(query.sql, query.params, binary=True).rows()
        self._committing = False
        return rows

    def _ask(self, statements: Sequence[Statement]) -> Sequence[Rows]:
        queries = [self._bind(statement) for statement in statements]
        must_begin = self._must_begin or (self._alone and len(queries) > 1)
        begin = must_begin and not self._begun
        self._begun = self._begun or begin
        self._committing, self._alone = self._alone and not self._begun, False
        connection = self._connection
        # In a pipeline, what opens the transaction must be a single command.
        if connection.far and self._waits and len(queries) + begin > 1:
            answers: Sequence[Rows] = self._ask_together(queries, begin)
        else:
            cursor = connection.main
            if begin:
                cursor.execute(self._begin, prepare=False)
            answers = [cursor.execute(q.sql, q.params, binary=True).rows() for q in queries]
        self._committing = False
        return answers

    def _ask_together(self, queries: Sequence[Query], begin: bool) -> Sequence[Rows]:
        cursors = [NeutralCursor(self._connection) for _ in queries]
        with self._connection.pipeline():
            if begin:
                self._connection.main.execute(self._begin, prepare=False)
            for cursor, query in zip(cursors, queries, strict=True):
                cursor.execute(query.sql, query.params, binary=True)
        return [cursor.rows() for cursor in cursors]

    def _bind(self, statement: Statement) -> Query:
        hint = statement.hint
        if hint is None:
            return self._binder.bind(statement)
        due = self._limiter.due(hint.channel, hint.queues)
        if len(due) < len(hint.queues):
            owed = [queue for queue in hint.queues if queue not in due]
            self._owed.append((hint.channel, owed))
        return self._binder.bind(statement, due)

    def _failed(self, name: str, error: psycopg.Error) -> HoldfastError:
        connection = self._connection
        fatal = error.diag.severity_nonlocalized in ("FATAL", "PANIC")
        translated = faults.translate(
            error,
            doing=f"running {name}",
            lost=fatal or connection.closed,
            committing=self._committing,
        )
        if fatal or faults.spoils(error):
            connection.close()
        else:
            self._undo()
        return translated

    def _undo(self) -> None:
        connection = self._connection
        try:
            # Nothing to do outside a transaction; fails on a statement that an interrupt left
            # half read.
            connection.rollback()
        except psycopg.Error:
            connection.close()

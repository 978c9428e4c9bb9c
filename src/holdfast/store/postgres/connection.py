"""Our own connections: how one is opened, what its session is told, how long it waits.

Owns conninfo, time limits and session settings. Connections are always in autocommit
mode; `transaction` says BEGIN where one is needed.

Two limits guard every wait. The server ends a statement after `statement_timeout` and a
wait for a lock after `lock_timeout`. A server that has stopped answering cannot do that,
and while its kernel acknowledges our packets TCP sees nothing wrong, so we stop waiting
ourselves a little later.

Behind a transaction pooler the session is not ours: nothing is set on it, nothing is
prepared, and every transaction brings its settings along (SET LOCAL). A pooler is recognised
before anything is done to a session: the process number that it gives its clients is not the one
of the server's process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from math import ceil
from time import monotonic, perf_counter
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from holdfast.core.errors import ConfigError
from holdfast.store.postgres.faults import ServerSilent, malformed, translate, translate_connect
from holdfast.store.postgres.values import NeutralCursor
from holdfast.store.settings import StoreSettings

logger = logging.getLogger("holdfast.store")

OLDEST_SERVER = 130_000
SLACK_S = 5.0
"""How much longer than the server we wait before we call it silent."""
FAR_S = 0.0003
"""A round trip from here on makes psycopg's pipeline mode (60 µs and more) worth its price."""

# The planner guesses from statistics that an empty or fast-changing table does not have, and
# then reads whole tables to find five hundred ids. The statements are written for the plan
# they need; these settings leave it as the only one.
_PLAN = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}


class OwnConnection(psycopg.Connection[TupleRow]):
    """A connection that belongs to the store."""

    patience: float | None = None
    far = False
    pooled = False

    _main: NeutralCursor | None = None

    @property
    def main(self) -> NeutralCursor:
        """The cursor for one statement at a time; making one costs half a round trip."""
        if self._main is None:
            self._main = NeutralCursor(self)
        return self._main

    def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """Drive one exchange with the server, for no longer than our patience."""
        if self.patience is not None:
            gen = _bounded(gen, self.patience)
        return super().wait(gen, *args, **kwargs)


def _bounded(gen: PQGen[RV], patience: float) -> Generator[Any, Any, RV]:
    deadline = monotonic() + patience
    try:
        wanted = next(gen)
        while True:
            # psycopg comes back empty-handed ten times a second, to look for signals.
            ready = yield wanted
            if not ready and monotonic() > deadline:
                raise ServerSilent(f"no answer within {patience:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        answer: RV = end.value
        return answer


# Never deallocated: psycopg would complain that nobody closed them.
_abandoned: list[psycopg.Connection[Any]] = []


def abandon(connection: OwnConnection) -> None:
    """Give up a connection inherited from the parent without sending anything on it.

    Its bare descriptor is closed, or the server would keep the dead parent's session open for
    as long as the child lives.
    """
    _abandoned.append(connection)
    try:
        descriptor = connection.fileno()
    except psycopg.Error:
        return
    os.close(descriptor)


class Opener:
    """Opens connections to one database."""

    def __init__(self, settings: StoreSettings) -> None:
        self._address = settings.masked
        self._pooled = settings.pooler
        self._told = False
        self._patience = settings.statement_timeout + SLACK_S
        self._params = _conninfo(settings)
        self._session = _assignments(settings, pooled=False)
        in_transaction = _assignments(settings, pooled=True)
        self._begin_pooled = b"BEGIN ISOLATION LEVEL READ COMMITTED; " + in_transaction
        self._worked = False

    @property
    def address(self) -> str:
        """Where to, without the password."""
        return self._address

    @property
    def worked(self) -> bool:
        """Whether a connection has ever been opened."""
        return self._worked

    def begin(self, connection: OwnConnection) -> bytes:
        """What opens a transaction on this connection."""
        return self._begin_pooled if connection.pooled else b"BEGIN"

    def open(self) -> OwnConnection:
        """One more connection, its session set up; raises Holdfast's errors only."""
        try:
            connection = OwnConnection.connect(
                **self._params,
                autocommit=True,
                # At once: a statement counted first and prepared later inside a pipeline that
                # fails would stay in psycopg's books as prepared.
                prepare_threshold=None if self._pooled else 0,
            )
        except psycopg.Error as error:
            raise translate_connect(
                error, address=self._address, worked_before=self._worked
            ) from error
        try:
            self._set_up(connection)
        except psycopg.Error as error:
            lost = connection.closed
            connection.close()
            raise translate(error, doing="opening a session", lost=lost) from error
        except BaseException:
            connection.close()
            raise
        self._worked = True
        return connection

    def _set_up(self, connection: OwnConnection) -> None:
        version = connection.info.server_version
        if version < OLDEST_SERVER:
            raise ConfigError(
                f"{self._address} is PostgreSQL {version // 10000}; Holdfast needs "
                f"{OLDEST_SERVER // 10000} or newer"
            )
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in (None, "UTF8"):
            raise ConfigError(
                f"the database {self._address} has the encoding {encoding}, which cannot hold "
                "every text that a task may be sent with: Holdfast needs UTF8 (CREATE DATABASE "
                "tasks ENCODING 'UTF8' TEMPLATE template0)"
            )
        connection.patience = self._patience
        connection.pooled = self._is_pooled(connection)
        if connection.pooled:
            connection.prepare_threshold = None
            return
        connection.prepared_max = 1000
        connection.execute(self._session, prepare=False)
        connection.far = psycopg.Pipeline.is_supported() and _round_trip(connection) > FAR_S

    def _is_pooled(self, connection: OwnConnection) -> bool:
        if self._pooled is not None:
            return self._pooled
        found = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
        pooled = found is not None and found[0] != connection.info.backend_pid
        if pooled and not self._told:
            self._told = True
            logger.info(
                "a connection pooler stands before %s: nothing is kept on its sessions, as with "
                "pooler=True. If it pools whole sessions, pooler=False is quicker",
                self._address,
            )
        return pooled


def _round_trip(connection: OwnConnection) -> float:
    """Seconds to the server and back, the best of three."""
    times = []
    for _ in range(3):
        begun = perf_counter()
        connection.execute("", prepare=False)
        times.append(perf_counter() - begun)
    return min(times)


def _conninfo(settings: StoreSettings) -> dict[str, Any]:
    try:
        params = conninfo_to_dict(settings.address)
    except psycopg.Error as error:
        raise malformed(error, address=settings.address) from None
    defaults: dict[str, str | int] = {
        "application_name": "holdfast",
        "connect_timeout": max(2, ceil(settings.connect_timeout)),
        # An idle connection whose peer has vanished is noticed within 25 s, a busy one in 10.
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
    }
    params = {**defaults, **params}
    if "," in str(params.get("host", "")):
        params.setdefault("target_session_attrs", "read-write")
    # Arrays are encoded before the connection is known.
    params["client_encoding"] = "utf8"
    return params


def _assignments(settings: StoreSettings, *, pooled: bool) -> bytes:
    """The settings of a session, or behind a pooler those of a transaction."""
    limit = str(ceil(settings.statement_timeout * 1000))
    values = {
        "statement_timeout": limit,
        "lock_timeout": str(ceil(settings.lock_timeout * 1000)),
        # A process that was stopped inside a transaction must not hold its locks forever.
        "idle_in_transaction_session_timeout": limit,
        **_PLAN,
    }
    if not pooled:
        values["default_transaction_isolation"] = "'read committed'"
    if not settings.durable:
        values["synchronous_commit"] = "off"
    scope = "LOCAL" if pooled else "SESSION"
    commands = [f"SET {scope} {name} = {value}" for name, value in values.items()]
    if settings.durable:
        # A server that is faster than durable is slowed down; one that waits for its replicas
        # goes on waiting.
        commands.append(
            f"SELECT set_config('synchronous_commit', 'on', {pooled})"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
    return "; ".join(commands).encode()

"""Operations on a caller's own psycopg connection, inside the caller's transaction.

Owns nothing of that connection. It is never committed, rolled back or configured, no
statement is prepared on it, and its row factory and adapters stay its own: we bring our
cursor. The caller's commit makes our writes durable together with theirs.

An operation of several statements that fails undoes its own writes only (a savepoint), and
the caller decides about the rest. In autocommit mode, outside of any transaction, there is
nothing to join; then such an operation gets a transaction of its own, as the mode implies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus

from holdfast.core.errors import ConfigError, HoldfastError
from holdfast.store.op import Mode, Op, Rows, Statement, adrive, drive
from holdfast.store.postgres import faults
from holdfast.store.postgres.binding import Binder
from holdfast.store.postgres.value_adapters import AsyncNeutralCursor, NeutralCursor

T = TypeVar("T")

Execute: TypeAlias = Callable[[Statement], Rows]
AsyncExecute: TypeAlias = Callable[[Statement], Awaitable[Rows]]
AnyConnection: TypeAlias = "psycopg.Connection[Any] | psycopg.AsyncConnection[Any]"

_binder = cache(Binder)


def for_connection(
    connection: psycopg.Connection[Any], schema: str | None = None, *, bind: Binder | None = None
) -> Execute:
    """What `drive` needs to run operations on this connection."""
    _check(connection)
    bind = bind or _binder(schema)
    cursor = NeutralCursor(connection)

    def execute(statement: Statement) -> Rows:
        query = bind.bind(statement)
        try:
            cursor.execute(query.sql, query.params, binary=True, prepare=False)
            return cursor.rows()
        except psycopg.Error as error:
            raise _translated(error, query.name, connection) from _shown(error)

    return execute


def for_async_connection(
    connection: psycopg.AsyncConnection[Any],
    schema: str | None = None,
    *,
    bind: Binder | None = None,
) -> AsyncExecute:
    """What `adrive` needs to run operations on this connection."""
    _check(connection)
    bind = bind or _binder(schema)
    cursor = AsyncNeutralCursor(connection)

    async def execute(statement: Statement) -> Rows:
        query = bind.bind(statement)
        try:
            await cursor.execute(query.sql, query.params, binary=True, prepare=False)
            return await cursor.rows()
        except psycopg.Error as error:
            raise _translated(error, query.name, connection) from _shown(error)

    return execute


def run_on(
    connection: psycopg.Connection[Any],
    op: Op[T],
    schema: str | None = None,
    *,
    bind: Binder | None = None,
) -> T:
    """Run one operation on the caller's connection."""
    execute = for_connection(connection, schema, bind=bind)
    if op.mode is not Mode.WRITE:
        return drive(op, execute)
    if _begins_by_itself(connection):
        connection.execute(b"")
    with connection.transaction():
        return drive(op, execute)


async def arun_on(
    connection: psycopg.AsyncConnection[Any],
    op: Op[T],
    schema: str | None = None,
    *,
    bind: Binder | None = None,
) -> T:
    """Run one operation on the caller's async connection."""
    execute = for_async_connection(connection, schema, bind=bind)
    if op.mode is not Mode.WRITE:
        return await adrive(op, execute)
    if _begins_by_itself(connection):
        await connection.execute(b"")
    async with connection.transaction():
        return await adrive(op, execute)


def _begins_by_itself(connection: AnyConnection) -> bool:
    """Whether any statement begins the transaction that the caller will commit.

    It must have begun before `connection.transaction()`, which then is a savepoint; otherwise
    that would be the transaction, and would commit.
    """
    return (
        not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE
    )


def _check(connection: AnyConnection) -> None:
    if connection.closed:
        raise ConfigError("the connection given to `using` is closed")
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise ConfigError(
            "the connection given to `using` is in pipeline mode, where a send could not see "
            "its answer: leave the pipeline first"
        )
    if connection.info.encoding != "utf-8":
        raise ConfigError(
            f"the connection given to `using` has the client encoding "
            f"{connection.info.encoding}: open it with client_encoding=utf8"
        )


def _translated(error: psycopg.Error, name: str, connection: AnyConnection) -> HoldfastError:
    return faults.translate(
        error, doing=f"running {name} on the caller's connection", lost=connection.closed
    )


def _shown(error: psycopg.Error) -> psycopg.Error | None:
    return error if faults.may_show(error) else None

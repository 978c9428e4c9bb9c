"""Operations on a caller's own psycopg connection, inside the caller's transaction.

Owns nothing of that connection. It is never committed, rolled back or configured, no
statement is prepared on it, and its row factory and adapters stay its own: we bring our
cursor. The caller's commit makes our writes durable together with theirs.

An operation of several statements that fails undoes its own writes only (a savepoint), and
the caller decides about the rest. What happens outside of any transaction is the driver's rule
for every statement: without autocommit it begins one, which the caller commits; with autocommit
there is nothing to join, and an operation commits by itself, as a whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus

from holdfast.core.errors import ConfigError, HoldfastError, StoreError, StoreUnavailable
from holdfast.store.op import Mode, Op, Rows, Statement, adrive, drive
from holdfast.store.postgres import faults
from holdfast.store.postgres.binding import PostgresBinder
from holdfast.store.postgres.values import AsyncNeutralCursor, NeutralCursor

T = TypeVar("T")

Execute: TypeAlias = Callable[[Statement], Rows]
AsyncExecute: TypeAlias = Callable[[Statement], Awaitable[Rows]]
AnyConnection: TypeAlias = "psycopg.Connection[Any] | psycopg.AsyncConnection[Any]"


@cache
def binder(schema: str | None, tables_in: str | None = None) -> PostgresBinder:
    """Binds the statements of a store with this `schema=`, whose tables are in `tables_in`."""
    return PostgresBinder(schema, tables_in=tables_in)


def for_connection(
    connection: psycopg.Connection[Any],
    schema: str | None = None,
    *,
    bind: PostgresBinder | None = None,
) -> Execute:
    """What `drive` needs to run operations on this connection."""
    _check_now(connection)
    bind = bind or binder(schema)
    cursor = NeutralCursor(connection)

    def execute(statement: Statement) -> Rows:
        query = bind.bind(statement, _hinted(connection))
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
    bind: PostgresBinder | None = None,
) -> AsyncExecute:
    """What `adrive` needs to run operations on this connection."""
    _check_now(connection)
    bind = bind or binder(schema)
    cursor = AsyncNeutralCursor(connection)

    async def execute(statement: Statement) -> Rows:
        query = bind.bind(statement, _hinted(connection))
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
    bind: PostgresBinder | None = None,
) -> T:
    """Run one operation on the caller's connection."""
    execute = for_connection(connection, schema, bind=bind)
    if op.mode is not Mode.WRITE:
        return drive(op, execute)
    with _savepoint(connection):
        return drive(op, execute)


async def arun_on(
    connection: psycopg.AsyncConnection[Any],
    op: Op[T],
    schema: str | None = None,
    *,
    bind: PostgresBinder | None = None,
) -> T:
    """Run one operation on the caller's async connection."""
    execute = for_async_connection(connection, schema, bind=bind)
    if op.mode is not Mode.WRITE:
        return await adrive(op, execute)
    async with _asavepoint(connection):
        return await adrive(op, execute)


@contextmanager
def _savepoint(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """A block that undoes its own writes if it fails; alone in autocommit, it commits."""
    try:
        if _begins_by_itself(connection):
            connection.execute(b"")
        with connection.transaction():
            yield
    except psycopg.Error as error:
        raise _translated(error, "a savepoint", connection) from _shown(error)


@asynccontextmanager
async def _asavepoint(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[None]:
    """The same on an async connection."""
    try:
        if _begins_by_itself(connection):
            await connection.execute(b"")
        async with connection.transaction():
            yield
    except psycopg.Error as error:
        raise _translated(error, "a savepoint", connection) from _shown(error)


def _hinted(connection: AnyConnection) -> Sequence[str] | None:
    """The hints that a statement may carry: None for all of them.

    PostgreSQL prepares no transaction that has notified anybody, so in a two-phase one it must be
    done without; workers look by themselves, about once a second. psycopg shows only in this
    attribute that one has begun.
    """
    return None if getattr(connection, "_tpc", None) is None else ()


def _begins_by_itself(connection: AnyConnection) -> bool:
    """Whether any statement begins the transaction that the caller will commit.

    It must have begun before `connection.transaction()`, which then is a savepoint; otherwise
    that would be the transaction, and would commit.
    """
    return (
        not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE
    )


def check(connection: AnyConnection) -> None:
    """Refuse a connection that could never be used; asks the server nothing."""
    if connection.closed:
        raise ConfigError("the connection given to `using` is closed")
    if connection.info.encoding != "utf-8":
        raise ConfigError(
            f"the connection given to `using` has the client encoding "
            f"{connection.info.encoding}: open it with client_encoding=utf8"
        )


def _check_now(connection: AnyConnection) -> None:
    """Refuse a connection that cannot be used as it is at this moment."""
    check(connection)
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise ConfigError(
            "the connection given to `using` is in pipeline mode, where a send could not see "
            "its answer: leave the pipeline first"
        )
    if connection.info.transaction_status == TransactionStatus.INERROR:
        raise StoreError(
            "the transaction of the connection given to `using` has failed already, so nothing "
            "can be written in it: roll it back, and send in the next one"
        )


def _translated(error: psycopg.Error, name: str, connection: AnyConnection) -> HoldfastError:
    translated = faults.translate(
        error, doing=f"running {name} on the caller's connection", lost=connection.closed
    )
    if error.sqlstate == "40001":
        return StoreUnavailable(
            f"{translated}; others have written since your transaction began, and its isolation "
            "level does not let it see that: roll it back and repeat it from its first statement",
            conflict=True,
        )
    return translated


def _shown(error: psycopg.Error) -> psycopg.Error | None:
    return error if faults.may_show(error) else None

"""Rows held by another transaction, as by a worker that is just committing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import LiteralString
from uuid import UUID

import psycopg
from psycopg import sql

from holdfast.store.postgres.store import PostgresStore
from tests.support.stores import Lab


@contextmanager
def locked_rows(
    lab: Lab, keys: Sequence[bytes], *, table: str = "tasks", key: str = "id"
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Hold these rows of a PostgreSQL lab in a transaction that is open meanwhile."""
    settings = lab.store.settings
    with psycopg.connect(settings.address) as connection:
        connection.execute(
            sql.SQL("SELECT FROM {} WHERE {} = ANY (%s) FOR UPDATE").format(
                sql.Identifier(settings.schema or "public", f"holdfast_{table}"),
                sql.Identifier(key),
            ),
            [[UUID(bytes=key) for key in keys]],
        )
        yield connection
        connection.rollback()


@contextmanager
def locked_table(
    lab: Lab, table: str, mode: LiteralString
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Hold a whole table of a PostgreSQL lab in this mode."""
    settings = lab.store.settings
    with psycopg.connect(settings.address) as connection:
        connection.execute(
            sql.SQL("LOCK TABLE {} IN {} MODE").format(
                sql.Identifier(settings.schema or "public", f"holdfast_{table}"),
                sql.SQL(mode),
            )
        )
        yield connection
        connection.rollback()


@contextmanager
def impatient(lab: Lab, lock_timeout: float = 0.2) -> Iterator[PostgresStore]:
    """The store of a PostgreSQL lab as a worker has it: it does not wait long for rows."""
    settings = replace(lab.store.settings, lock_timeout=lock_timeout)
    with closing(PostgresStore(settings)) as store:
        yield store

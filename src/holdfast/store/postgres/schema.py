"""The schema in a PostgreSQL database, as migrations see it: one transaction under a lock.

The lock is advisory and of the transaction, so it works behind a pooler and is gone with
the connection. Eight processes that start at once wait for the first and then find the
work done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from holdfast.core.errors import SchemaMismatch
from holdfast.store.migrate import Applied, Migration, SchemaConnection
from holdfast.store.postgres.connection import OwnConnection

T = TypeVar("T")

# Others may take their time under the lock, and so may we: creating an index does. But a table
# that somebody uses is not waited for, because everybody else would then wait behind us.
_UNHURRIED = b"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"
_POLITE = b"SET LOCAL lock_timeout = '10s'"
_LOCK = b"SELECT pg_advisory_xact_lock(hashtextextended('holdfast:' || $1, 0))"
_SCHEMA = b"SELECT 1 FROM pg_namespace WHERE nspname = $1"
_TABLES = b"""
SELECT relname FROM pg_class
WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p')
    AND starts_with(relname, 'holdfast_')
ORDER BY relname
"""


class PostgresSchema:
    """Keeps the contract of `migrate.SchemaConnection`."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str | None) -> None:
        self._connection = connection
        found = connection.execute("SELECT current_schema()").fetchone()
        current = found[0] if found is not None else None
        self._named = schema is not None
        self._schema = schema or current
        if self._schema is None:
            raise SchemaMismatch(
                "the connection has no current schema (its search_path names none that exists): "
                'give one, for example Holdfast(url, schema="queue")'
            )

    def lock(self) -> None:
        """Keep every other migration of this schema out until the transaction ends."""
        self._ask(_LOCK, self._schema)

    def applied(self) -> list[Applied] | None:
        """The rows of `schema_version`; None when the table is not there."""
        if "holdfast_schema_version" not in self.foreign_tables():
            return None
        rows = self._ask(f"SELECT version, min_code FROM {self._versions}".encode())
        return [Applied(*row) for row in rows]

    def foreign_tables(self) -> list[str]:
        """Tables with our prefix although `schema_version` is missing."""
        return [row[0] for row in self._ask(_TABLES, f'"{self._schema}"')]

    def script(self, text: str) -> None:
        """Run the statements of one migration."""
        if self._named and not self._ask(_SCHEMA, self._schema):
            # Asked for first: IF NOT EXISTS needs the right to create one even where it exists.
            self._connection.execute(f'CREATE SCHEMA "{self._schema}"'.encode())
        self._connection.execute(text.encode(), prepare=False)

    def record(self, migration: Migration) -> None:
        """Note that a migration has been run."""
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._versions} (version integer PRIMARY KEY, "
            "min_code integer NOT NULL, applied_at timestamptz NOT NULL)".encode()
        )
        self._ask(
            f"INSERT INTO {self._versions} VALUES ($1, $2, clock_timestamp()) "
            "RETURNING version".encode(),
            migration.version,
            migration.min_code,
        )

    @property
    def _versions(self) -> str:
        return f'"{self._schema}".holdfast_schema_version'

    def _ask(self, sql: bytes, *params: object) -> list[tuple[Any, ...]]:
        cursor = psycopg.RawCursor(self._connection)
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def on_schema(
    connection: OwnConnection,
    schema: str | None,
    work: Callable[[SchemaConnection], T],
    *,
    lock: bool,
) -> T:
    """Do `work` in the transaction of this connection; with `lock`, after all others."""
    if not lock:
        return work(PostgresSchema(connection, schema))
    patience, connection.patience = connection.patience, None
    try:
        connection.execute(_UNHURRIED, prepare=False)
        found = PostgresSchema(connection, schema)
        found.lock()
        connection.execute(_POLITE, prepare=False)
        return work(found)
    finally:
        connection.patience = patience

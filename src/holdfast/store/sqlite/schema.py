"""The schema of a SQLite file, as migrations see it: one transaction of the writer."""

from __future__ import annotations

from holdfast.store.migrate import Applied, Migration
from holdfast.store.sqlite.drivers.driver import Connection

_TABLES = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' "
    "AND substr(name, 1, 9) = 'holdfast_' ORDER BY name"
)
_VERSIONS = """
CREATE TABLE IF NOT EXISTS holdfast_schema_version (
    version    INTEGER PRIMARY KEY,
    min_code   INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
"""


class SqliteSchema:
    """Keeps the contract of `migrate.SchemaConnection`."""

    def __init__(self, connection: Connection, now: int) -> None:
        self._connection = connection
        self._now = now

    def applied(self) -> list[Applied] | None:
        """The rows of `schema_version`; None when the table is not there."""
        if "holdfast_schema_version" not in self.foreign_tables():
            return None
        rows = self._connection.execute("SELECT version, min_code FROM holdfast_schema_version")
        return [Applied(*row) for row in rows]

    def foreign_tables(self) -> list[str]:
        """Tables with our prefix although `schema_version` is missing."""
        return [row[0] for row in self._connection.execute(_TABLES)]

    def script(self, text: str) -> None:
        """Run the statements of one migration."""
        self._connection.script(text)

    def record(self, migration: Migration) -> None:
        """Note that a migration has been run."""
        self._connection.execute(_VERSIONS)
        self._connection.execute(
            "INSERT INTO holdfast_schema_version (version, min_code, applied_at) VALUES (?, ?, ?)",
            (migration.version, migration.min_code, self._now),
        )

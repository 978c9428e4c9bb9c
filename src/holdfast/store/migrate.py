"""The schema: creating it, upgrading it, refusing one that is not ours to touch.

Owns `schema_version`. A version row says which code may run on it: code runs on any
schema whose `min_code` is at most its own version, so old and new workers share a
database during a deploy. Nothing is ever dropped or recreated.

An empty database is set up on first use, under a lock that makes eight processes
starting at once safe. An older schema is upgraded by itself on SQLite; on PostgreSQL by
`holdfast db migrate`, or with `auto_migrate=True`, because there an operator may want to
choose the moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from holdfast.core.errors import SchemaMismatch
from holdfast.store.settings import StoreSettings
from holdfast.store.statement import script


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    min_code: int
    """The oldest code that can run on the schema after this step."""
    summary: str


MIGRATIONS = (
    Migration(1, 1, "every table of Holdfast"),
    Migration(3, 3, "workflows"),
    Migration(4, 4, "limits, concurrency keys, turns between keys"),
    Migration(5, 5, "unique until started or deleted"),
    Migration(6, 6, "counters and depths over time, and the record of what operators do"),
    Migration(7, 7, "schedules, and what became of their ticks"),
    Migration(8, 8, "routes"),
    Migration(10, 10, "long pauses and resubmits of workflows, a part at a time"),
    Migration(11, 10, "the tasks that a task has sent"),
    Migration(12, 10, "limits that two versions of the code declare"),
    Migration(13, 10, "what each child of a worker uses"),
    Migration(14, 10, "a quicker compression of arguments and results"),
)
CODE = MIGRATIONS[-1].version


@dataclass(frozen=True, slots=True)
class Applied:
    """What `schema_version` says of one step."""

    version: int
    min_code: int


class SchemaConnection(Protocol):
    """What an engine gives to a migration: one transaction under the schema's lock."""

    def applied(self) -> list[Applied] | None:
        """The rows of `schema_version`; None when the table is not there."""
        ...

    def foreign_tables(self) -> list[str]:
        """Tables with our prefix although `schema_version` is missing."""
        ...

    def script(self, text: str) -> None: ...

    def record(self, migration: Migration) -> None: ...


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """Where the schema stands against this code."""

    version: int | None
    min_code: int | None
    code: int
    pending: tuple[Migration, ...]

    @property
    def is_current(self) -> bool:
        return not self.pending and self.version is not None

    @property
    def is_usable(self) -> bool:
        return self.version is not None and (self.min_code or 0) <= self.code


def read_status(connection: SchemaConnection) -> SchemaStatus:
    """Where the schema stands; refuses tables of ours without a version."""
    applied, strays = connection.applied(), list[str]()
    if not applied:
        strays = connection.foreign_tables()
        # Between two looks somebody else may have made the schema, and then all of it is there.
        applied = connection.applied() if strays else None
    if not applied:
        if strays:
            raise SchemaMismatch(
                f"the database has {', '.join(strays[:3])} but no holdfast_schema_version: it was "
                "not made by Holdfast, or a restore is incomplete. Restore it whole, or use "
                "another database or schema; nothing was changed",
                expected=CODE,
            )
        return SchemaStatus(None, None, CODE, MIGRATIONS)
    newest = max(applied, key=lambda row: row.version)
    there = {row.version for row in applied}
    pending = tuple(m for m in MIGRATIONS if m.version not in there)
    return SchemaStatus(newest.version, newest.min_code, CODE, pending)


def refuse_newer(status: SchemaStatus) -> None:
    """Raise if the schema asks for newer code than this."""
    if status.version is not None and not status.is_usable:
        raise SchemaMismatch(
            f"the database has schema version {status.version}, which needs Holdfast code of "
            f"schema version {status.min_code} or newer; this is {CODE}. Upgrade Holdfast here "
            "(nothing was changed)",
            found=status.version,
            expected=CODE,
        )


def wants_upgrade(status: SchemaStatus, settings: StoreSettings) -> bool:
    """Whether opening the store should run the pending migrations."""
    if not status.pending:
        return False
    if status.version is None:
        return settings.auto_migrate is not False
    if settings.auto_migrate is None:
        return settings.engine == "sqlite"
    return settings.auto_migrate


def check_usable(status: SchemaStatus, schema: str | None = None) -> None:
    """Raise if this code cannot run on the schema as it is; `schema`: which one was asked for."""
    refuse_newer(status)
    if status.version is None:
        where = "" if schema is None else f" in its schema {schema!r}"
        raise SchemaMismatch(
            f"the database has no tables of Holdfast{where}: is it the right one? The first send "
            "or worker makes them (unless auto_migrate is off), or `holdfast db migrate` does",
            expected=CODE,
        )
    if status.pending:
        raise SchemaMismatch(
            f"the database has schema version {status.version} and this code needs {CODE}: run "
            "`holdfast db migrate` (see what it does first with --plan), or set auto_migrate=True",
            found=status.version,
            expected=CODE,
        )


def upgrade(connection: SchemaConnection, settings: StoreSettings) -> list[Migration]:
    """Run what is pending, in the connection's one transaction; what was run."""
    status = read_status(connection)
    refuse_newer(status)
    for migration in status.pending:
        connection.script(migration_text(migration, settings))
        connection.record(migration)
    return list(status.pending)


def migration_text(migration: Migration, settings: StoreSettings) -> str:
    """The SQL of one step, as it will be run."""
    return script(f"{migration.version:04d}", settings.engine, settings.schema)

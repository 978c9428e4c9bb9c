"""Opening a store: the engine its settings name, with a schema this code can use."""

from __future__ import annotations

from holdfast.core.errors import ConfigError
from holdfast.store import migrate
from holdfast.store.protocol import Store
from holdfast.store.settings import StoreSettings


def open_store(settings: StoreSettings) -> Store:
    """A store whose schema is there and usable; creates or upgrades it where that is allowed."""
    store = connect(settings)
    try:
        ensure_schema(store)
    except BaseException:
        store.close()
        raise
    return store


def connect(settings: StoreSettings) -> Store:
    """A store as it is, whatever its schema: for `holdfast db`."""
    if settings.engine == "sqlite":
        from holdfast.store.sqlite.store import SqliteStore

        return SqliteStore(settings)
    try:
        from holdfast.store.postgres.store import PostgresStore
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs psycopg, which cannot be imported ({error}): "
            "pip install 'holdfast[postgres]'"
        ) from error
    return PostgresStore(settings)


def ensure_schema(store: Store) -> None:
    """Create or upgrade the schema if the settings allow it; raise if it is not usable then."""
    status = schema_status(store)
    migrate.refuse_newer(status)
    if migrate.wants_upgrade(status, store.settings):
        # Another process may do it first; under the lock there is nothing left to do then.
        upgrade_schema(store)
        status = schema_status(store)
    migrate.check_usable(status, store.settings.schema)


def schema_status(store: Store) -> migrate.SchemaStatus:
    """Where the schema stands against this code."""
    return store.with_schema(migrate.read_status, lock=False)


def upgrade_schema(store: Store) -> list[migrate.Migration]:
    """Run what is pending, now; what was run."""
    return store.with_schema(lambda schema: migrate.upgrade(schema, store.settings), lock=True)

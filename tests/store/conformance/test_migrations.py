"""The schema: made once however many start at once, upgraded, and refused where it is not ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from holdfast.core.errors import SchemaMismatch, StoreError
from holdfast.core.identity import new_id
from holdfast.store import migrate
from holdfast.store.migrate import Applied, Migration, SchemaConnection
from holdfast.store.open import connect, open_store, schema_status, upgrade_schema
from holdfast.store.protocol import Store
from holdfast.store.settings import StoreSettings, parse_url
from holdfast.store.statement import TABLES
from holdfast.store.verbs import inspect, submit
from tests.support.postgres import PostgresServer
from tests.support.verbs import submission

PROCESSES = 8
STARTER = """
import os, sys, traceback
from holdfast.store.verbs import submit
from holdfast.store.open import open_store
from holdfast.store.settings import parse_url
from tests.support.verbs import submission

def start():
    store = open_store(settings)
    store.run(submit.submit([submission()]))
    store.close()

# Patient: eight processes at once may keep a small machine busy for a while.
settings = parse_url(sys.argv[1], connect_timeout=60, lock_timeout=60, statement_timeout=60)
ready, go = os.pipe()
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        os.close(go)
        os.read(ready, 1)
        try:
            start()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
os.close(go)
sys.exit(max(os.wait()[1] for _ in range(int(sys.argv[2]))))
"""
VERSIONS = [step.version for step in migrate.MIGRATIONS]
SECOND = Migration(VERSIONS[-1] + 1, 1, "one more table")


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere a store can be opened, and how to look at it without one."""

    url: str
    settings: StoreSettings

    @contextmanager
    def opened(self, **fields: Any) -> Iterator[Store]:
        store = open_store(replace(self.settings, **fields))
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def connected(self) -> Iterator[Store]:
        """A store whose schema is left as it is."""
        store = connect(self.settings)
        try:
            yield store
        finally:
            store.close()

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        if self.settings.engine == "sqlite":
            connection = apsw.Connection(self.settings.address)
            try:
                return list(connection.execute(text))
            finally:
                connection.close()
        with psycopg.connect(self.settings.address, autocommit=True) as session:
            cursor = session.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def versions(self) -> list[int]:
        found = self.sql("SELECT version FROM holdfast_schema_version ORDER BY version")
        return [version for (version,) in found]

    def tables(self) -> set[str]:
        if self.settings.engine == "sqlite":
            found = self.sql("SELECT name FROM sqlite_schema WHERE type = 'table'")
        else:
            found = self.sql(
                "SELECT relname FROM pg_class "
                "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
            )
        return {name for (name,) in found if not name.startswith("sqlite_")}


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty file, or an empty schema that is the connection's current one."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'tasks.db'}"
        yield Place(url, parse_url(url))
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    schema = f"place_{new_id().hex()}"
    url = f"{server.url}?options=-csearch_path%3D{schema}"
    place = Place(url, parse_url(url))
    place.sql(f"CREATE SCHEMA {schema}")
    yield place
    place.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def newer_code(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Pretend that this code has a second migration with this text."""
    original = migrate.migration_text

    def pretend(text: str = "CREATE TABLE holdfast_more (x integer);") -> None:
        monkeypatch.setattr(migrate, "MIGRATIONS", (*migrate.MIGRATIONS, SECOND))
        monkeypatch.setattr(migrate, "CODE", SECOND.version)
        monkeypatch.setattr(
            migrate,
            "migration_text",
            lambda step, settings: text if step is SECOND else original(step, settings),
        )

    return pretend


def test_the_schema_is_made_on_first_use_and_found_afterwards(place: Place) -> None:
    sent = submission()
    with place.opened() as store:
        store.run(submit.submit([sent]))
    made = place.tables()
    assert {"holdfast_tasks", "holdfast_leases", "holdfast_schema_version"} <= made
    with place.opened() as store:
        assert sent.id in store.run(inspect.statuses([sent.id]))
    assert place.tables() == made
    found = place.sql("SELECT version, min_code FROM holdfast_schema_version ORDER BY 1")
    assert found == [(step.version, step.min_code) for step in migrate.MIGRATIONS]


def test_both_engines_have_the_same_tables(place: Place) -> None:
    with place.opened():
        assert place.tables() == {f"holdfast_{table}" for table in TABLES}


def test_eight_processes_that_start_at_once_make_it_once(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTER, place.url, str(PROCESSES)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert place.versions() == VERSIONS
    assert place.sql("SELECT count(*) FROM holdfast_tasks") == [(PROCESSES,)]


def test_an_empty_database_is_left_empty_when_migrating_is_off(place: Place) -> None:
    with (
        pytest.raises(SchemaMismatch, match="holdfast db migrate"),
        place.opened(auto_migrate=False),
    ):
        pass
    assert place.tables() == set()


class Slow:
    """A look at the schema in the middle of which somebody else makes it."""

    def __init__(self, schema: SchemaConnection, place: Place) -> None:
        self._schema = schema
        self._place = place
        self._made = False

    def applied(self) -> list[Applied] | None:
        found = self._schema.applied()
        if not self._made:
            self._made = True
            with self._place.opened():
                pass
        return found

    def foreign_tables(self) -> list[str]:
        return self._schema.foreign_tables()

    def script(self, text: str) -> None: ...

    def record(self, migration: Migration) -> None: ...


def test_who_looks_while_the_schema_is_being_made_sees_nothing_or_all(place: Place) -> None:
    with place.connected() as reader:
        status = reader.with_schema(lambda s: migrate.read_status(Slow(s, place)), lock=False)
        assert status.version in (None, VERSIONS[-1])
        assert schema_status(reader).version == VERSIONS[-1]


def test_other_peoples_tables_are_no_hindrance(place: Place) -> None:
    place.sql("CREATE TABLE shop_orders (x integer)")
    with place.opened():
        assert "shop_orders" in place.tables()


def test_tables_of_our_name_without_a_version_are_refused_and_not_touched(place: Place) -> None:
    place.sql("CREATE TABLE holdfast_tasks (x integer)")
    with pytest.raises(SchemaMismatch, match="holdfast_tasks"), place.opened():
        pass
    assert place.tables() == {"holdfast_tasks"}
    assert place.sql("SELECT * FROM holdfast_tasks") == []


# Newer schemas.


def add_version(place: Place, version: int, min_code: int) -> None:
    with place.opened():
        now = "0" if place.settings.engine == "sqlite" else "now()"
        place.sql(f"INSERT INTO holdfast_schema_version VALUES ({version}, {min_code}, {now})")


def test_a_schema_that_needs_newer_code_is_refused(place: Place) -> None:
    add_version(place, 99, min_code=99)
    before = place.tables()
    with pytest.raises(SchemaMismatch, match="version 99") as caught, place.opened():
        pass
    assert (caught.value.found, caught.value.expected) == (99, migrate.CODE)
    with place.connected() as store, pytest.raises(SchemaMismatch):
        upgrade_schema(store)
    assert place.tables() == before


def test_a_newer_schema_that_allows_older_code_is_used(place: Place) -> None:
    """Old and new workers share a database during a deploy."""
    add_version(place, 99, min_code=1)
    with place.opened() as store:
        assert schema_status(store).version == 99
        store.run(submit.submit([submission()]))


# Older schemas.


def test_an_older_schema_is_upgraded_where_nobody_needs_to_be_asked(
    place: Place, newer_code: Callable[..., None]
) -> None:
    with place.opened():
        pass
    newer_code()
    if place.settings.engine == "sqlite":
        with place.opened() as store:
            assert schema_status(store).is_current
    else:
        with pytest.raises(SchemaMismatch, match="holdfast db migrate"), place.opened():
            pass
        assert "holdfast_more" not in place.tables()
        with place.opened(auto_migrate=True) as store:
            assert schema_status(store).is_current
    assert "holdfast_more" in place.tables()
    assert place.versions() == [*VERSIONS, SECOND.version]


def test_an_operator_sees_what_is_pending_and_runs_it(
    place: Place, newer_code: Callable[..., None]
) -> None:
    with place.opened():
        pass
    newer_code()
    with place.connected() as store:
        status = schema_status(store)
        assert (status.version, status.pending) == (VERSIONS[-1], (SECOND,))
        assert upgrade_schema(store) == [SECOND]
        assert upgrade_schema(store) == []
        assert schema_status(store).is_current


def test_a_migration_that_fails_changes_nothing(
    place: Place, newer_code: Callable[..., None]
) -> None:
    with place.opened() as store:
        store.run(submit.submit([submission()]))
    newer_code("CREATE TABLE holdfast_more (x integer); SELECT * FROM nowhere;")
    with pytest.raises(StoreError), place.opened(auto_migrate=True):
        pass
    assert "holdfast_more" not in place.tables()
    assert place.versions() == VERSIONS
    assert place.sql("SELECT count(*) FROM holdfast_tasks") == [(1,)]


# Places that are no store.


def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"these are my notes, not a database\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"notes\.txt"):
        open_store(parse_url(f"sqlite:///{path}"))
    assert path.read_bytes() == before


def test_two_schemas_of_one_database_are_two_stores(postgres_url: str) -> None:
    ids = {}
    for schema in ("one", "two"):
        store = open_store(parse_url(postgres_url, schema=schema))
        sent = submission()
        store.run(submit.submit([sent]))
        ids[schema] = sent.id
        assert list(store.run(inspect.statuses([*ids.values()])).keys()) == [sent.id]
        store.close()


def test_postgresql_compresses_with_lz4_where_it_can(postgres_url: str) -> None:
    place = Place(postgres_url, parse_url(postgres_url))
    with place.opened():
        pass
    ((has_lz4,),) = place.sql(
        "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
    )
    found = place.sql(
        "SELECT attcompression FROM pg_attribute WHERE attrelid = 'holdfast_tasks'::regclass "
        "AND attname IN ('args', 'kwargs', 'result')"
    )
    assert found == [("l" if has_lz4 else "",)] * 3

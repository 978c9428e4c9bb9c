"""Stores for tests: four ways to reach one, each empty, each with a clock that the test moves.

    def test_a_task_is_promoted(lab: Lab) -> None:          # runs on all four
        id = lab.send(delay_us=60 * SECOND)
        lab.clock.advance(60)
        assert lab.run(timing.promote()) == [id]

Owns opening, emptying and closing. A PostgreSQL schema is made once a session and emptied
for each test, because making one takes longer than most tests.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql

from holdfast.store import statement
from holdfast.store.callers import postgres_connection
from holdfast.store.migrate import SchemaConnection
from holdfast.store.op import Channel, Mode, Op, Row, Rows, Statement, Steps
from holdfast.store.open import ensure_schema
from holdfast.store.postgres.binding import PostgresBinder
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.protocol import Listener, Store
from holdfast.store.settings import Engine, SqliteDriver, StoreSettings, parse_url
from holdfast.store.sqlite.store import SqliteStore
from tests.support.postgres import PostgresServer
from tests.support.verbs import MovableClock, Verbs

T = TypeVar("T")

SECOND = 1_000_000
"""In microseconds, like all times of the store."""
MORNING = 1_900_000_000 * SECOND
"""When every frozen clock begins: in 2030, so that nobody's own clock passes for it."""
TASK_TABLES = (
    "tasks",
    "leases",
    "task_attempts",
    "task_notes",
    "task_logs",
    "checkpoints",
    "task_dependencies",
)
"""Where a verb of the lifecycle may leave a trace."""
_RAW = "raw: "


class Kind(StrEnum):
    """A way to reach a store."""

    SQLITE_FILE = "sqlite-file"
    SQLITE_MEMORY = "sqlite-memory"
    SQLITE3_FILE = "sqlite3-file"
    """With the standard library's driver, as in a program that has the file open with it."""
    POSTGRES = "postgres"
    POSTGRES_ASYNC = "postgres-async"

    @property
    def engine(self) -> Engine:
        return "sqlite" if self.startswith("sqlite") else "postgresql"


KINDS = tuple(Kind)
ENGINES = (Kind.SQLITE_MEMORY, Kind.POSTGRES)
"""One kind for each engine: enough where only the SQL is in question."""


class Clock:
    """The database's clock, standing still until the test moves it."""

    def __init__(self, set_to: Callable[[int], object] | None = None) -> None:
        self._set_to = set_to
        self.now = MORNING

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> int:
        """Let time pass; what it is then."""
        return self.move_to(self.now + round(seconds * SECOND))

    def move_to(self, at: int) -> int:
        """Set the clock, also back; what it is then."""
        self.now = at
        if self._set_to is not None:
            self._set_to(at)
        return at


class Lab(Verbs):
    """One empty store, its clock, and the verbs as a test likes to call them."""

    def __init__(
        self, kind: Kind, store: Store, clock: MovableClock, path: Path | None = None
    ) -> None:
        self.kind = kind
        self.engine: Engine = kind.engine
        self.store = store
        self.clock = clock
        self.path = path
        """The file of a SQLITE_FILE or SQLITE3_FILE."""

    def run(self, op: Op[T]) -> T:
        return self.store.run(op)

    def sql(self, text: str, **params: Any) -> list[Row]:
        """Run one statement that no verb would: in the notation of `store/sql`."""

        def steps() -> Steps[list[Row]]:
            rows: Rows = yield Statement(_RAW + text, params)
            return list(rows)

        return self.run(Op(steps(), Mode.WRITE, "sql"))

    def contents(self, *tables: str) -> dict[str, list[Row]]:
        """Every column of every row of these tables (those of tasks), to compare with later."""
        tables = tables or TASK_TABLES

        def steps() -> Steps[dict[str, list[Row]]]:
            found = yield tuple(
                Statement(f"{_RAW}SELECT * FROM holdfast_{table}") for table in tables
            )
            return {
                table: sorted(rows, key=repr) for table, rows in zip(tables, found, strict=True)
            }

        return self.run(Op(steps(), Mode.READ, "contents"))


class CallersStore:
    """PostgreSQL as an application with an async connection of its own meets it.

    Every operation is driven by `adrive` on that one connection, in a transaction which the
    application has begun and which it commits.
    """

    def __init__(
        self, inner: PostgresStore, connection: psycopg.AsyncConnection[Any], runner: asyncio.Runner
    ) -> None:
        self._inner = inner
        self._connection = connection
        self._runner = runner
        self._binder = _binder(inner.settings.schema)

    @property
    def engine(self) -> Engine:
        return "postgresql"

    @property
    def settings(self) -> StoreSettings:
        return self._inner.settings

    def run(self, op: Op[T]) -> T:
        return self._runner.run(self._run(op))

    async def _run(self, op: Op[T]) -> T:
        async with self._connection.transaction():
            return await postgres_connection.arun_on(
                self._connection, op, self.settings.schema, bind=self._binder
            )

    def attempt(self, make: Callable[[], Op[T]], *, tries: int = 5) -> T:
        del tries
        return self.run(make())

    def hint(self, channel: Channel, queues: Sequence[str] = ()) -> None:
        self._inner.hint(channel, queues)

    def listen(self, *channels: Channel) -> Listener:
        return self._inner.listen(*channels)

    def tend(self) -> None:
        self._inner.tend()

    def with_schema(self, work: Callable[[SchemaConnection], T], *, lock: bool) -> T:
        return self._inner.with_schema(work, lock=lock)

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()
        self._inner.close()


_schemas = count(1)
"""Shared by all labs of a test process: they share its server, too."""


class Labs:
    """Opens labs; one that is closed and can be emptied is used again."""

    def __init__(self, server: Callable[[], PostgresServer], directory: Path) -> None:
        self._server = server
        self._directory = directory
        self._template: Path | None = None
        self._numbers = count(1)
        self._free: dict[Kind, list[tuple[Lab, psycopg.Connection[Any]]]] = {}
        self._closing = ExitStack()

    @contextmanager
    def open(self, kind: Kind) -> Iterator[Lab]:
        """A lab that nobody else has until the block ends."""
        if kind.engine == "sqlite":
            lab = self._open_sqlite(kind)
            try:
                yield lab
            finally:
                lab.store.close()
            return
        free = self._free.setdefault(kind, [])
        lab, admin = free.pop() if free else self._open_postgres(kind)
        self._empty(lab, admin)
        yield lab
        # After a test that failed it may be in any state, so it is left.
        free.append((lab, admin))

    def close(self) -> None:
        self._closing.close()

    def _open_sqlite(self, kind: Kind) -> Lab:
        path: Path | None = None
        if kind is not Kind.SQLITE_MEMORY:
            path = self._directory / f"lab-{next(self._numbers)}.db"
            shutil.copy(self._sqlite_template(), path)
        return _sqlite_lab(kind, path)

    def _sqlite_template(self) -> Path:
        """A file with the schema; copying it is quicker than migrating another."""
        if self._template is None:
            self._template = self._directory / "template.db"
            _sqlite_lab(Kind.SQLITE_FILE, self._template).store.close()
        return self._template

    def _open_postgres(self, kind: Kind) -> tuple[Lab, psycopg.Connection[Any]]:
        url, schema = self._server().url, f"lab_{next(_schemas)}"
        inner = PostgresStore(parse_url(url, schema=schema), text=_text(schema))
        self._closing.callback(inner.close)
        ensure_schema(inner)
        admin = psycopg.connect(url, autocommit=True)
        self._closing.callback(admin.close)
        # Asked from a table, the time can be set by anybody and is the same for everybody.
        admin.execute(
            sql.SQL(
                "SET search_path = {schema};"
                "CREATE TABLE wall_clock (now timestamptz NOT NULL);"
                "INSERT INTO wall_clock VALUES (now());"
                "CREATE OR REPLACE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql"
                " VOLATILE PARALLEL SAFE AS 'SELECT now FROM {schema}.wall_clock'"
            ).format(schema=sql.Identifier(schema))
        )

        def set_to(at: int) -> None:
            admin.execute(
                "UPDATE wall_clock SET now = to_timestamp(0) + %s * '1 us'::interval", [at]
            )

        store: Store = inner
        if kind is Kind.POSTGRES_ASYNC:
            runner = asyncio.Runner()
            connection = runner.run(psycopg.AsyncConnection.connect(url))
            store = CallersStore(inner, connection, runner)
            self._closing.callback(store.close)
        return Lab(kind, store, Clock(set_to)), admin

    @staticmethod
    def _empty(lab: Lab, admin: psycopg.Connection[Any]) -> None:
        admin.execute(_EMPTY)
        lab.clock.move_to(MORNING)


def _sqlite_lab(kind: Kind, path: Path | None) -> Lab:
    clock = Clock()
    driver: SqliteDriver = "sqlite3" if kind is Kind.SQLITE3_FILE else "apsw"
    settings = parse_url(
        f"sqlite:///{path or ':memory:'}", clock=clock, durable=False, driver=driver
    )
    store = SqliteStore(settings, texts=_texts)
    ensure_schema(store)
    return Lab(kind, store, clock, path)


_EMPTY = ";".join(
    f"DELETE FROM holdfast_{table}" for table in statement.TABLES if table != "schema_version"
).encode()


def _texts(name: str) -> Sequence[str]:
    return (name.removeprefix(_RAW),) if name.startswith(_RAW) else statement.texts(name)


def _text(schema: str | None) -> Callable[[str], str]:
    def text(name: str) -> str:
        if name.startswith(_RAW):
            return statement.for_postgres(name.removeprefix(_RAW), schema)
        return statement.text(name, "postgresql", schema)

    return text


def _binder(schema: str | None) -> PostgresBinder:
    return PostgresBinder(schema, _text(schema))


@pytest.fixture(scope="session")
def labs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Labs]:
    """Opens labs. The PostgreSQL server is started by the first test that needs it."""
    found = Labs(
        lambda: request.getfixturevalue("postgres_server"), tmp_path_factory.mktemp("labs")
    )
    yield found
    found.close()


@pytest.fixture(params=KINDS)
def lab(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Lab]:
    """An empty store of each kind in turn."""
    with labs.open(request.param) as found:
        yield found


on_each_engine = pytest.mark.parametrize("lab", ENGINES, indirect=True)
"""For tests that go through many states: two of the kinds, one of each engine."""

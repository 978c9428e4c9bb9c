"""Apps for tests of the client: on a SQLite file and on PostgreSQL, each empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from holdfast import Holdfast, TaskHandle
from holdfast.core.records import ClaimedTask
from holdfast.store import statement
from holdfast.store.op import Op
from holdfast.store.verbs import claims
from tests.support.postgres import PostgresServer
from tests.support.verbs import Verbs

T = TypeVar("T")

ENGINES = ("sqlite", "postgresql")

_EMPTY = ";".join(
    f"DELETE FROM holdfast_{table}" for table in statement.TABLES if table != "schema_version"
)


class Hands(Verbs):
    """Does to the tasks of an app what a worker would."""

    def __init__(self, app: Holdfast) -> None:
        self._app = app

    def run(self, op: Op[T]) -> T:
        return self._app._access.store().run(op)

    def sql(self, text: str, **params: Any) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def hold(self, handle: TaskHandle[Any]) -> ClaimedTask:
        """Claim this task, which must be the first in its queue."""
        record = self.task(handle.id.bytes)
        known = claims.known_name(record.task_name, record.version)
        (task,) = self.claim(1, queue=record.queue_name, known=[known]).tasks
        assert task.id == record.id, "another task stands before it in the queue"
        return task

    def take(self, handle: TaskHandle[Any]) -> ClaimedTask:
        """Claim and start this task, which must be the first in its queue."""
        return self.started(self.hold(handle))

    def finish(self, handle: TaskHandle[Any], result: str = "null") -> None:
        """Run this task to COMPLETED."""
        self.complete(self.take(handle), result)


@pytest.fixture(scope="session")
def shared_database(postgres_server: PostgresServer) -> Iterator[str]:
    """A database that the tests of a session share, one after the other."""
    url = postgres_server.create_database()
    with Holdfast(url) as app:
        app.control.queues.list()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def postgres(shared_database: str) -> str:
    """The URL of a PostgreSQL database without tasks."""
    with psycopg.connect(shared_database, autocommit=True) as connection:
        connection.execute(_EMPTY.encode())
    return shared_database


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The URL of a new SQLite file."""
    return f"sqlite:///{tmp_path / 'tasks.db'}"


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest) -> str:
    """An empty store of each engine in turn."""
    name = "sqlite" if request.param == "sqlite" else "postgres"
    found: str = request.getfixturevalue(name)
    return found


@pytest.fixture
def open_app() -> Iterator[Callable[..., Holdfast]]:
    """Opens apps, and closes them after the test."""
    opened: list[Holdfast] = []

    def make(*args: Any, **settings: Any) -> Holdfast:
        opened.append(Holdfast(*args, **settings))
        return opened[-1]

    yield make
    for app in opened:
        app.close()


@pytest.fixture
def app(url: str, open_app: Callable[..., Holdfast]) -> Holdfast:
    """An app on each engine in turn."""
    return open_app(url)


@pytest.fixture
def hands(app: Holdfast) -> Hands:
    """What a worker would do, by hand."""
    return Hands(app)

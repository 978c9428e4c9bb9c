"""Places: a database with our schema in it, ours through the store and raw beside it.

Owns their making and unmaking. PostgreSQL is a private server with fsync on; SQLite a file
in a temporary directory. Both are as durable as Holdfast is by default.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import psycopg

from holdfast.store.open import open_store
from holdfast.store.protocol import Store
from holdfast.store.settings import Engine, parse_url
from tests.support.postgres import PostgresServer

ENGINES: tuple[Engine, ...] = ("postgresql", "sqlite")

PgConnection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

# No checkpoint may fall into a comparison; everything else is as PostgreSQL comes.
_SERVER = {"max_wal_size": "16GB", "checkpoint_timeout": "1h", "shared_buffers": "512MB"}


@dataclass(frozen=True, slots=True)
class Place:
    """One database: our store on it, and how a plain connection gets there."""

    engine: Engine
    store: Store
    address: str
    """A PostgreSQL URL, or the path of a file."""

    @property
    def url(self) -> str:
        return self.address if self.engine == "postgresql" else f"sqlite:///{self.address}"


class Places:
    """Makes databases until it is closed."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self._count = 0

    @property
    def version(self) -> str:
        """The PostgreSQL server's."""
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            return str(connection.info.server_version // 10_000)

    @contextmanager
    def sqlite(self) -> Iterator[Place]:
        """A new SQLite file."""
        self._count += 1
        path = str(self.folder / f"bench_{self._count}.db")
        with closing(open_store(parse_url(f"sqlite:///{path}"))) as store:
            yield Place("sqlite", store, path)
        for left in self.folder.glob(f"bench_{self._count}.db*"):
            if left.is_file():
                left.unlink()

    @contextmanager
    def postgres(self) -> Iterator[Place]:
        """A new PostgreSQL database."""
        name = self.server.create_database().rpartition("/")[2]
        url = self.server.url_of(name, unix=True)
        with closing(open_store(parse_url(url))) as store:
            yield Place("postgresql", store, url)
        self.server.drop_database(f"/{name}")

    @contextmanager
    def of(self, engine: Engine) -> Iterator[Place]:
        """A new database of this engine."""
        with self.sqlite() if engine == "sqlite" else self.postgres() as place:
            yield place


@contextmanager
def open_places(*, durable: bool = True) -> Iterator[Places]:
    """A server and a directory, for as long as the benchmarks run."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        PostgresServer(fsync=durable, settings=_SERVER) as server,
    ):
        yield Places(server, Path(folder))


def connect_postgres(place: Place) -> PgConnection:
    """A plain connection, as psycopg opens it, in autocommit mode."""
    return psycopg.connect(place.address, autocommit=True)


def connect_sqlite(place: Place) -> apsw.Connection:
    """A plain connection of the same library with the same durability."""
    connection = apsw.Connection(place.address)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -16384")
    connection.set_busy_timeout(10_000)
    return connection

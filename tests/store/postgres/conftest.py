"""Stores over a real server, with a few statements of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import psycopg
import pytest

from holdfast.store.postgres.store import PostgresStore
from holdfast.store.settings import StoreSettings, parse_url
from holdfast.store.statement import for_postgres

TEXTS = {
    "put": """
        INSERT INTO notes (id, body) SELECT * FROM unnest(:id::uuid[], :body::text[])
        RETURNING id
    """,
    "put_and_tell": """
        INSERT INTO notes (id, body) VALUES (:id, :body)
        RETURNING (SELECT count(pg_notify(:hint_channel, p))
                   FROM unnest(:hint_payloads::text[]) AS p)
    """,
    "put_silently": "INSERT INTO notes (id, body) VALUES (:id, :body)",
    "bodies": "SELECT body FROM notes ORDER BY body",
    "lock": "SELECT body FROM notes WHERE id = :id FOR UPDATE",
    "setting": "SELECT current_setting(:name)",
    "backend": "SELECT pg_backend_pid()",
    "transaction": "SELECT txid_current()",
    "sleep": "SELECT pg_sleep(:seconds)",
    "fail": "SELECT 1 / :divisor",
    "absent": "SELECT * FROM holdfast_nowhere",
}


def text(name: str) -> str:
    return for_postgres(TEXTS[name], None)


class MakeStore(Protocol):
    def __call__(self, url: str | None = None, **settings: Any) -> PostgresStore: ...


@pytest.fixture
def url(postgres_url: str) -> str:
    """A database with the table `notes`."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE notes (id uuid PRIMARY KEY, body text CHECK (body <> ''))")
    return postgres_url


@pytest.fixture
def make_store(postgres_url: str) -> Iterator[MakeStore]:
    """Make stores; they are closed after the test."""
    made: list[PostgresStore] = []

    def make(url: str | None = None, **settings: Any) -> PostgresStore:
        made.append(PostgresStore(parse_url(url or postgres_url, **settings), text=text))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(url: str, make_store: MakeStore) -> PostgresStore:
    return make_store(url)


@pytest.fixture
def settings(url: str) -> StoreSettings:
    return parse_url(url)


@pytest.fixture
def admin(url: str) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    """Run plain SQL on a connection of the test's own."""
    with psycopg.connect(url, autocommit=True) as connection:

        def execute(command: str) -> list[tuple[Any, ...]]:
            cursor = connection.execute(command.encode())
            return cursor.fetchall() if cursor.description else []

        yield execute

"""Databases as administrators make them: a role with few rights, and other encodings."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast import ConfigError, Holdfast, StoreError
from tests.support.postgres import USER, PostgresServer

ROLE = "lowly"


@pytest.fixture
def lowly_url(postgres_server: PostgresServer, postgres_url: str) -> Iterator[str]:
    """The URL of a new database for a role that may connect, and nothing else."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {ROLE} LOGIN")
        admin.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        yield postgres_url.replace(f"//{USER}@", f"//{ROLE}@")
        admin.execute(f"DROP OWNED BY {ROLE} CASCADE")
        admin.execute(f"DROP ROLE {ROLE}")


def work(app: Holdfast) -> None:
    @app.task("add")
    def add(a: int, b: int) -> int:
        return a + b

    handle = add.send(1, 2)
    assert app.worker().run_until_idle() == 1
    assert handle.get(timeout=10) == 3


@pytest.mark.parametrize(
    "rights", ["AUTHORIZATION lowly", "; GRANT USAGE, CREATE ON SCHEMA q TO lowly"]
)
def test_a_schema_that_an_administrator_made(
    postgres_url: str, lowly_url: str, rights: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA q {rights}".encode())
    with Holdfast(lowly_url, schema="q") as app:
        work(app)
    with Holdfast(f"{lowly_url}?options=-csearch_path%3Dq") as app:
        work(app)


def test_tables_that_an_administrator_made(postgres_url: str, lowly_url: str) -> None:
    with Holdfast(postgres_url, schema="q") as app:
        app.control.queues.list()
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("GRANT USAGE ON SCHEMA q TO lowly")
        admin.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA q TO lowly")
    with Holdfast(lowly_url, schema="q") as app:
        work(app)


@pytest.mark.parametrize("schema", [None, "q"])
def test_a_missing_right_is_refused_with_the_remedy(lowly_url: str, schema: str | None) -> None:
    with (
        Holdfast(lowly_url, schema=schema) as app,
        pytest.raises(StoreError, match=r"CREATE SCHEMA queue AUTHORIZATION|schema="),
    ):
        app.send("any")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_an_encoding_that_cannot_hold_every_text_is_refused(
    postgres_server: PostgresServer, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    with psycopg.connect(postgres_server.url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0".encode())
    with (
        Holdfast(postgres_server.url_of(name)) as app,
        pytest.raises(ConfigError, match=f"encoding {encoding}.*UTF8"),
    ):
        app.send("any", "žluťoučký kůň")
    postgres_server.drop_database(postgres_server.url_of(name))

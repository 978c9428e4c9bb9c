"""Stores over real files, with a few statements of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from holdfast.store.settings import SqliteDriver, parse_url
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.child import Child


class MakeStore(Protocol):
    def __call__(self, where: Path | str | None = None, **settings: Any) -> SqliteStore: ...


class Start(Protocol):
    def __call__(self, program: str, *arguments: object) -> Child: ...


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a database may come to be."""
    return tmp_path / "tasks.db"


@pytest.fixture
def make_store(path: Path) -> Iterator[MakeStore]:
    """Make stores; they are closed after the test."""
    made: list[SqliteStore] = []

    def make(where: Path | str | None = None, **settings: Any) -> SqliteStore:
        url = f"sqlite:///{where or path}"
        made.append(SqliteStore(parse_url(url, **settings), texts=verbs.texts))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture(params=["apsw", "sqlite3"])
def driver(request: pytest.FixtureRequest) -> SqliteDriver:
    """Each of the two libraries."""
    name: SqliteDriver = request.param
    return name


@pytest.fixture
def store(make_store: MakeStore) -> SqliteStore:
    """A store with a table of notes."""
    made = make_store()
    made.run(verbs.make())
    return made


@pytest.fixture
def start() -> Iterator[Start]:
    """Start programs of `programs.py`; they are killed after the test if they still run."""
    started: list[Child] = []

    def begin(program: str, *arguments: object) -> Child:
        started.append(Child(program, *arguments))
        return started[-1]

    yield begin
    for child in started:
        child.kill()

"""Fixtures that make sites, for the tests that run workers.

Imported by the `conftest.py` of the directories that want them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer
from tests.support.site import Engine, Site

MakeSite = Callable[[str], Site]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """The database that the module's sites are on: each test runs once on each."""
    found: Engine = request.param
    return found


@pytest.fixture(scope="module")
def make_site(
    engine: Engine, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeSite]:
    """Call it with the name of a program for a site that lives as long as the module."""
    yield from _sites(engine, request, lambda: tmp_path_factory.mktemp("site"))


@pytest.fixture
def fresh_site(
    engine: Engine, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeSite]:
    """The same for a single test."""
    yield from _sites(engine, request, lambda: tmp_path_factory.mktemp("site"))


def _sites(
    engine: Engine, request: pytest.FixtureRequest, place: Callable[[], Path]
) -> Iterator[MakeSite]:
    server: PostgresServer | None = None
    if engine == "postgresql":
        server = request.getfixturevalue("postgres_server")
    made: list[Site] = []

    def make(program: str) -> Site:
        directory = place()
        url = f"sqlite:///{directory}/tasks.db" if server is None else server.create_database()
        made.append(Site(program, url, directory))
        return made[-1]

    yield make
    for site in made:
        site.close()
        if server is not None:
            server.drop_database(site.url)

"""Apps and clients for tests of the web app, on each engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.web.access import Role, Visitor
from holdfast.web.dashboard import Dashboard, dashboard
from tests.client.conftest import (
    app,
    hands,
    open_app,
    postgres,
    shared_database,
    sqlite,
    url,
)
from tests.web.client import WebClient

__all__ = ["app", "hands", "open_app", "postgres", "shared_database", "sqlite", "url"]

ADMIN = Visitor("anna", Role.ADMIN, payloads=True)


@pytest.fixture
def web() -> Iterator[Callable[..., WebClient]]:
    """Opens clients of a web app, for a visitor or with headers, and closes them."""
    opened: list[WebClient] = []

    def open_(target: Holdfast | Dashboard, visitor: Any = ADMIN, **given: Any) -> WebClient:
        served = target
        if isinstance(target, Holdfast):
            served = dashboard(target, access=lambda _: visitor)
        assert isinstance(served, Dashboard)
        opened.append(WebClient(served, **given))
        return opened[-1]

    yield open_
    for client in opened:
        client.close()


@pytest.fixture
def admin(app: Holdfast, web: Callable[..., WebClient]) -> WebClient:
    """A visitor who may do everything, on each engine in turn."""
    return web(app)


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebClient]:
    """An admin on one SQLite file for a whole module: for requests that are refused before
    anything is asked of the store."""
    path = tmp_path_factory.mktemp("refused") / "tasks.db"
    with Holdfast(f"sqlite:///{path}") as app:

        @app.task("add")
        def add(a: int, b: int = 0) -> int:
            return a + b

        with WebClient(dashboard(app, access=lambda _: ADMIN)) as client:
            yield client

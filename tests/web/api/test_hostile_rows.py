"""Rows that somebody wrote by hand: the API shows what can be read, and fails at none of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.web.api.routes import ROUTES
from tests.support.hostile_rows import always, corpus, open_rows
from tests.web.client import WebClient

SAMPLE = 150
MOST_SHOWN = 40


@pytest.fixture(params=["sqlite", "postgresql"])
def besieged(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    postgres_database: Callable[[], str],
) -> Iterator[Holdfast]:
    """An app on a database of its own, full of rows that Holdfast would never write."""
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'tasks.db'}" if is_sqlite else postgres_database()
    with Holdfast(url) as app:
        app.send("good", 1)
        with closing(open_rows(url)) as database:
            rows = list(corpus(database))
            random.Random(7).shuffle(rows)
            assert database.write([*always(), *rows[:SAMPLE]]) > SAMPLE // 2
        yield app


def test_every_look_is_answered(besieged: Holdfast, web: Callable[..., WebClient]) -> None:
    client = web(besieged)
    ids, unreadable = walk(client)
    assert ids
    assert unreadable
    wrong = []
    for route in ROUTES:
        if route.methods != ("GET",) or route.path.endswith("/docs"):
            continue
        paths = [route.path]
        if "/tasks/{id}" in route.path:
            paths = [route.path.replace("{id}", id) for id in ids[:MOST_SHOWN]]
        for path in paths:
            answer = client.get(path, params={"when": "@daily"} if "preview" in path else None)
            if answer.status_code >= 500:
                wrong.append(f"{path}: {answer.text[:300]}")
    assert wrong == []


def walk(client: WebClient) -> tuple[list[str], list[Any]]:
    """The ids that are listed, page by page, and the rows that cannot be read."""
    ids: list[str] = []
    unreadable: list[Any] = []
    query: dict[str, Any] = {"limit": 100}
    while True:
        answer = client.get("/api/v1/tasks", params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        ids += [task["id"] for task in page["tasks"]]
        unreadable += page["unreadable"]
        if page["next"] is None:
            return ids, unreadable
        query["before"] = page["next"]

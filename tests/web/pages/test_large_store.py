"""Pages of a store with 200,000 tasks cost what those of a small one do."""

from __future__ import annotations

import re

import pytest

from holdfast import Holdfast
from tests.web.client import WebClient
from tests.web.pages.budget import asked

_NUMBER = 200_000
_ROWS = 1_000
"""Of any page but those that count what a verb would be applied to."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_thousand_tasks(app: Holdfast, admin: WebClient) -> None:
    many = app.named("large.task")
    for start in range(0, _NUMBER, 10_000):
        many.send_many([(start + n,) for n in range(10_000)])
    paths = ("/", "/tasks", "/tasks?name=large.task", "/queues", "/queues/default", "/workers",
             "/dead-letters", "/workflows", "/schedules")  # fmt: skip
    for path in paths:
        with asked() as seen:
            assert admin.get(path).status_code == 200
        assert seen.rows <= _ROWS, (path, seen.rows)
    for path in ("/tasks?text=nowhere", "/tasks?name=nobody"):
        with asked() as seen:
            assert "No task fits" in admin.get(path).text
        assert len(seen.names) <= 60, (path, len(seen.names))
    ask = admin.get("/tasks/bulk/cancel?name=large.task").text
    assert re.search(r"Cancel at least 10,000 tasks\?", ask)

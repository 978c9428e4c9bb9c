"""Tasks over HTTP: lists, one task, why, and what is said of a request that is wrong."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest

from holdfast import Holdfast, TaskStatus
from tests.client.conftest import Hands
from tests.web.client import WebClient

NOBODY: Final = UUID(int=0)


def test_a_list_is_walked_in_pages(app: Holdfast, admin: WebClient) -> None:
    sent = [str(app.options(queue="a" if n % 2 else "b").send("any", n).id) for n in range(7)]
    found: list[str] = []
    before: str | None = None
    while True:
        query = {"limit": "3"} | ({} if before is None else {"before": before})
        page = admin.get("/api/v1/tasks", params=query).json()
        found += [task["id"] for task in page["tasks"]]
        before = page["next"]
        if before is None:
            break
    assert found == sent[::-1]
    some = admin.get("/api/v1/tasks?queue=a&status=PENDING&status=FAILED").json()["tasks"]
    assert [task["id"] for task in some] == sent[1::2][::-1]
    assert some[0]["allowed"] == ["cancel", "reschedule"]
    counted = admin.get("/api/v1/tasks/count?queue=a").json()
    assert counted == {"by_status": {"PENDING": 3}, "at_least": []}


def test_one_task_with_its_attempts_and_why(app: Holdfast, hands: Hands, admin: WebClient) -> None:
    task = app.send("any", 1, two=[2])
    hands.finish(task, '{"a": 1}')
    shown = admin.get(f"/api/v1/tasks/{task.id}").json()
    assert (shown["status"], shown["args"], shown["kwargs"], shown["result"]) == (
        "COMPLETED",
        [1],
        {"two": [2]},
        {"a": 1},
    )
    (attempt,) = admin.get(f"/api/v1/tasks/{task.id}/attempts").json()["attempts"]
    assert (attempt["number"], attempt["outcome"]) == (1, "COMPLETED")
    why = admin.get(f"/api/v1/tasks/{task.id}/why").json()
    assert (why["status"], len(why["reasons"])) == ("COMPLETED", 1)
    assert admin.get(f"/api/v1/tasks/{task.id}/dependencies").json() == {"dependencies": []}


def test_a_request_may_wait_for_the_end(app: Holdfast, hands: Hands, admin: WebClient) -> None:
    task = app.send("any")
    waiting = admin.get(f"/api/v1/tasks/{task.id}", params={"wait": "0.01"}).json()
    assert waiting["status"] == "PENDING"
    hands.finish(task)
    ended = admin.get(f"/api/v1/tasks/{task.id}", params={"wait": "20"}).json()
    assert ended["status"] == "COMPLETED"


@pytest.mark.parametrize("what", ["", "/attempts", "/why", "/dependencies", "/log", "/output"])
@pytest.mark.parametrize("id", ["01a00000-0000-7000-8000-000000000000", "no-uuid", "%00"])
def test_an_unknown_id_is_404(what: str, id: str, refused: WebClient) -> None:
    answer = refused.get(f"/api/v1/tasks/{id}{what}")
    assert answer.status_code == 404, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("limit=x", "limit"),
        ("limit=5&limit=6", "limit"),
        ("status=DONE", "status[0]"),
        ("queue=%00", "queue"),
        ("submitted_from=2026-01-01T00:00:00", "submitted_from"),
        ("submitted_from=0001-01-01T00:00:00%2B23:59", "submitted_from"),
        ("submitted_until=9999-12-31T23:59:59-23:59", "submitted_until"),
        ("submitted_until=yesterday", "submitted_until"),
        ("workflow_id=7", "workflow_id"),
        ("before=7", "before"),
        ("submitted_from=2026", "submitted_from"),
        ("submitted_until=0.5", "submitted_until"),
        ("before=null", "before"),
        ("colour=red", "colour"),
    ],
)
def test_a_query_that_is_wrong_says_where(query: str, path: str, refused: WebClient) -> None:
    answer = refused.get(f"/api/v1/tasks?{query}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["path"] == path


def test_words_that_it_may_be_are_told(refused: WebClient) -> None:
    """Wherever the word stands: in a query, in a body, in a part of it."""
    listed = refused.get("/api/v1/tasks?status=failed").json()
    assert listed["detail"].endswith(f"'failed'; there are {', '.join(TaskStatus)}")
    body = {"verb": "cancel", "filter": {"status": ["PENDING", "pending"]}}
    chosen = refused.post("/api/v1/tasks/select", json=body).json()
    assert chosen["path"] == "filter.status[1]"
    assert "there are WAITING" in chosen["detail"]
    verb = refused.post("/api/v1/tasks/select", json={"verb": "stop"}).json()
    assert verb["detail"].endswith("there are cancel, resubmit, reschedule, delete")
    until = {"name": "any", "options": {"unique": {"until": "never"}}}
    sent = refused.post("/api/v1/tasks", json=until).json()
    assert sent["path"] == "options.unique.until"
    assert sent["detail"].endswith("there are started, ended, deleted")


def test_null_is_no_attempt(refused: WebClient) -> None:
    answer = refused.get(f"/api/v1/tasks/{NOBODY}/log?attempt=null")
    assert (answer.status_code, answer.json()["path"]) == (422, "attempt")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/api/v1/tasks/cancel", "POST"),
        ("DELETE", "/api/v1/tasks/count", "GET, HEAD"),
        ("OPTIONS", "/api/v1/tasks", "GET, HEAD, POST"),
        ("POST", "/metrics", "GET, HEAD"),
        ("PUT", f"/api/v1/tasks/{NOBODY}", "DELETE, GET, HEAD"),
    ],
)
def test_another_method_is_405_and_says_which(
    method: str, path: str, allow: str, refused: WebClient
) -> None:
    answer = refused.send(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == f"there is no {method} '{path}' here, but {allow}"


def test_a_task_that_does_not_run_has_no_stack(app: Holdfast, admin: WebClient) -> None:
    answer = admin.post(f"/api/v1/tasks/{app.send('any').id}/stack")
    assert answer.status_code == 409
    assert answer.json()["task_status"] == "PENDING"


def test_a_route_that_takes_no_query_says_so(app: Holdfast, admin: WebClient) -> None:
    assert admin.get(f"/api/v1/tasks/{app.send('any').id}/why?x=1").status_code == 422

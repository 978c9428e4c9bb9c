"""Verbs over HTTP: one task with an error, many with what became of each, and the record of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from holdfast import Holdfast, TaskHandle, Unique
from holdfast.web.access import Role, Visitor
from tests.client.conftest import Hands
from tests.web.client import WebClient


def status_of(task: TaskHandle[Any]) -> str:
    return task.status().value


def test_one_task_through_its_verbs(app: Holdfast, hands: Hands, admin: WebClient) -> None:
    task = app.send("any")
    at = f"/api/v1/tasks/{task.id}"
    moved = admin.post(f"{at}/reschedule", json={"delay": 60, "queue": "later", "priority": 3})
    assert moved.json() == {"id": str(task.id), "status": "SCHEDULED"}
    assert (task.info().queue, task.info().priority) == ("later", 3)
    assert admin.post(f"{at}/cancel").json()["status"] == "CANCELLED"
    assert admin.post(f"{at}/resubmit").json()["status"] == "PENDING"
    hands.take(task)
    assert admin.post(f"{at}/cancel").json()["status"] == "RUNNING"
    assert task.info().cancel_requested_at is not None


@pytest.mark.parametrize(
    ("method", "verb", "path", "body"),
    [
        ("POST", "resubmit", "/resubmit", {}),
        ("DELETE", "delete", "", None),
    ],
)
def test_an_illegal_verb_is_409_and_says_what_is_allowed(
    method: str, verb: str, path: str, body: Any, app: Holdfast, admin: WebClient
) -> None:
    task = app.send("any")
    answer = admin.send(method, f"/api/v1/tasks/{task.id}{path}", json=body)
    said = answer.json()
    assert answer.status_code == 409
    assert (said["kind"], said["verb"], said["task_status"], said["allowed"]) == (
        "illegal_transition",
        verb,
        "PENDING",
        ["cancel", "reschedule"],
    )


def test_a_verb_for_a_task_that_is_not_there_is_404(admin: WebClient) -> None:
    at = f"/api/v1/tasks/{uuid4()}"
    answers = [
        admin.post(f"{at}/cancel"),
        admin.post(f"{at}/resubmit"),
        admin.post(f"{at}/reschedule", json={"priority": 1}),
        admin.send("DELETE", at),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4


def test_deleting_and_the_second_time(app: Holdfast, admin: WebClient) -> None:
    task = app.send("any")
    task.cancel()
    assert admin.send("DELETE", f"/api/v1/tasks/{task.id}").json()["status"] == "CANCELLED"
    assert admin.send("DELETE", f"/api/v1/tasks/{task.id}").status_code == 404


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, ""),
        ({"delay": 1, "run_at": "2030-01-01T00:00:00Z"}, "delay"),
        ({"delay": -1}, "delay"),
        ({"delay": 1e300}, "delay"),
        ({"run_at": "9999-12-31T23:59:59-23:59"}, "run_at"),
        ({"priority": 0}, "priority"),
        ({"priority": 10**30}, "priority"),
        ({"priority": True}, "priority"),
        ({"queue": ""}, "queue"),
        ({"queue": "a\x00b"}, "queue"),
        ({"queue": "a b"}, "queue"),
        ({"queue": "x" * 101}, "queue"),
        ({"colour": 1}, "colour"),
        ([], ""),
    ],
)
def test_a_body_that_is_wrong_says_where(
    body: Any, path: str, app: Holdfast, admin: WebClient
) -> None:
    task = app.send("any")
    answer = admin.post(f"/api/v1/tasks/{task.id}/reschedule", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["path"] == path
    assert task.info().priority == 50


def test_by_filter_it_is_counted_first_and_never_more(app: Holdfast, admin: WebClient) -> None:
    tasks = [app.options(queue="mail").send("any", n) for n in range(6)]
    other = app.send("any")
    chosen = {"queue": "mail"}
    counted = admin.post("/api/v1/tasks/select", json={"verb": "cancel", "filter": chosen}).json()
    assert counted == {"count": 6, "is_all": True, "by_status": {"PENDING": 6}}
    unsaid = admin.post("/api/v1/tasks/cancel", json={"filter": chosen})
    assert (unsaid.status_code, unsaid.json()["path"]) == (422, "at_most")
    first = admin.post("/api/v1/tasks/cancel", json={"filter": chosen, "at_most": 4}).json()
    assert (first["done"], first["refused"]) == (4, 0)
    assert [status_of(task) for task in tasks] == ["PENDING"] * 2 + ["CANCELLED"] * 4
    again = {"filter": chosen, "at_most": 6, "before": first["next"]}
    rest = admin.post("/api/v1/tasks/cancel", json=again).json()
    assert (rest["done"], rest["is_all"], rest["next"]) == (2, True, None)
    assert status_of(other) == "PENDING"


def test_tasks_with_ids_of_their_senders_are_deleted_page_by_page(
    app: Holdfast, admin: WebClient
) -> None:
    tasks = [app.options(id=uuid4()).send("any", n) for n in range(5)]
    for task in tasks:
        task.cancel()
    body: dict[str, Any] = {"filter": {"name": "any"}, "at_most": 2}
    done: list[Any] = []
    while not done or not done[-1]["is_all"]:
        done.append(admin.post("/api/v1/tasks/delete", json=body).json())
        body["before"] = done[-1]["next"]
    assert [each["done"] for each in done] == [2, 2, 1]


def test_of_many_ids_each_is_answered_for(app: Holdfast, hands: Hands, admin: WebClient) -> None:
    ended, live, gone = app.send("any", 1), app.send("any", 2), uuid4()
    ended.cancel()
    ids = [str(ended.id), str(live.id), str(gone), str(ended.id)]
    answer = admin.post("/api/v1/tasks/resubmit", json={"ids": ids}).json()
    assert (answer["done"], answer["refused"]) == (1, 2)
    assert {each["id"]: each["reason"] for each in answer["reasons"]} == {
        str(live.id): "cannot resubmit it: it is PENDING",
        str(gone): "no such task",
    }


def test_a_unique_key_that_is_held_stops_no_other_task(app: Holdfast, admin: WebClient) -> None:
    one = app.options(unique=Unique("k")).send("any", 1)
    one.cancel()
    holder = app.options(unique=Unique("k")).send("any", 2)
    free = app.send("any", 3)
    free.cancel()
    ids = [str(one.id), str(free.id)]
    answer = admin.post("/api/v1/tasks/resubmit", json={"ids": ids}).json()
    assert (answer["done"], answer["refused"]) == (1, 1)
    assert "is unique" in answer["reasons"][0]["reason"]
    assert status_of(free) == "PENDING"
    alone = admin.post(f"/api/v1/tasks/{one.id}/resubmit")
    assert (alone.status_code, alone.json()["kind"]) == (409, "unique_conflict")
    assert alone.json()["task_id"] == str(holder.id)


def test_what_was_done_is_recorded_with_who_and_by_which_filter(
    app: Holdfast, web: Callable[..., WebClient]
) -> None:
    client = web(app, Visitor("bob", Role.ADMIN))
    task = app.options(queue="mail").send("any")
    client.post("/api/v1/tasks/cancel", json={"filter": {"queue": "mail"}, "at_most": 1})
    client.post(f"/api/v1/tasks/{task.id}/resubmit")
    client.post("/api/v1/queues/mail/pause")
    client.send("PUT", "/api/v1/queues/mail/limits", json={"limits": [{"concurrency": 2}]})
    client.post("/api/v1/tasks", json={"name": "any"})
    entries = client.get("/api/v1/audit").json()["entries"][::-1]
    who = ("bob", "web from 127.0.0.1")
    assert [(e["by"], e["origin"]) for e in entries] == [who] * 5
    assert [(e["verb"], e["filter"], e["count"]) for e in entries] == [
        ("cancel", "queue=mail", 1),
        ("resubmit", None, 1),
        ("pause", None, 1),
        ("limit", None, 1),
        ("send", None, 1),
    ]
    assert entries[0]["subject"] == f"task {task.id}"


def test_dead_letters_are_resubmitted_and_others_left(
    app: Holdfast, hands: Hands, admin: WebClient
) -> None:
    dead, ended = app.send("any", 1), app.send("any", 2)
    hands.fail(hands.take(dead))
    ended.cancel()
    listed = admin.get("/api/v1/dead-letters").json()["tasks"]
    assert [task["id"] for task in listed] == [str(dead.id)]
    body = {"ids": [str(dead.id), str(ended.id)]}
    answer = admin.post("/api/v1/dead-letters/resubmit", json=body).json()
    assert (answer["done"], answer["refused"]) == (1, 1)
    assert (status_of(dead), status_of(ended)) == ("PENDING", "CANCELLED")
    hands.fail(hands.take(dead))
    by_filter = {"filter": {"name": "any"}, "at_most": 10}
    assert admin.post("/api/v1/dead-letters/delete", json=by_filter).json()["done"] == 1
    assert status_of(ended) == "CANCELLED"


def test_dead_letters_by_cause_and_all_at_a_rate(
    app: Holdfast, hands: Hands, admin: WebClient
) -> None:
    tasks = [app.send("any", n) for n in range(3)]
    for task in tasks:
        hands.fail(hands.take(task))
    (cause,) = admin.get("/api/v1/dead-letters/causes?name=any").json()["causes"]
    assert (cause["name"], cause["count"]) == ("any", 3)
    (day,) = admin.get("/api/v1/dead-letters/over-time?step=day").json()["counts"]
    assert day["count"] == 3
    assert admin.get("/api/v1/dead-letters/count").json() == {"count": 3}
    body: dict[str, Any] = {"filter": {"name": "any"}, "at_most": 2, "rate": "60/minute"}
    more = admin.post("/api/v1/dead-letters/resubmit-all", json=body)
    assert (more.status_code, more.json()["count"]) == (409, 3)
    done = admin.post("/api/v1/dead-letters/resubmit-all", json={**body, "at_most": 3})
    assert done.json() == {"done": 3, "refused": 0, "reasons": []}
    assert sorted(status_of(task) for task in tasks) == ["PENDING", "SCHEDULED", "SCHEDULED"]
    wrong = admin.post("/api/v1/dead-letters/resubmit-all", json={"at_most": 1, "rate": "x"})
    assert wrong.status_code == 422

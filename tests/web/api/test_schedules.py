"""Schedules, routes and metrics over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from holdfast import Holdfast, Workflow
from tests.web.client import WebClient

AT = "/api/v1/schedules/nightly"
BODY: dict[str, Any] = {"cron": "30 2 * * *", "task": "any", "kwargs": {"n": 1}, "tz": "Asia/Tokyo"}


def test_a_schedule_from_its_beginning_to_its_end(app: Holdfast, admin: WebClient) -> None:
    options = {"queue": "mail", "priority": 3}
    added = admin.send("PUT", AT, json={**BODY, "options": options, "overlap": "allow"})
    assert added.status_code == 200, added.text
    shown = admin.get(AT).json()
    assert (shown["state"], shown["tz"], shown["overlap"]) == ("active", "Asia/Tokyo", "allow")
    assert (shown["task"], shown["queue"], shown["kwargs"]) == ("any", "mail", {"n": 1})
    assert [each["name"] for each in admin.get("/api/v1/schedules").json()["schedules"]] == [
        "nightly"
    ]
    times = admin.get(f"{AT}/next?n=3").json()["times"]
    assert [time[10:] for time in times] == ["T17:30:00Z"] * 3
    assert admin.post(f"{AT}/pause").json() == {"changed": True}
    assert admin.post(f"{AT}/pause").json() == {"changed": False}
    assert admin.get(AT).json()["paused_by"] == "anna"
    run = admin.post(f"{AT}/run").json()
    assert run["is_workflow"] is False
    info = app.handle(run["id"]).info()
    assert (info.queue, info.kwargs, info.schedule_name) == ("mail", {"n": 1}, "nightly")
    (tick,) = admin.get(f"{AT}/ticks").json()["ticks"]
    assert (tick["cause"], tick["task_id"]) == ("run_now", run["id"])
    assert admin.post(f"{AT}/resume").json() == {"changed": True}
    assert admin.send("DELETE", AT).json() == {"changed": True}
    assert admin.send("DELETE", AT).status_code == 404
    verbs = [entry["verb"] for entry in admin.get("/api/v1/audit").json()["entries"]]
    assert verbs[::-1] == ["schedule", "pause", "run", "resume", "delete"]


def test_ticks_that_were_missed_are_fired_later(app: Holdfast, admin: WebClient) -> None:
    start = "2026-01-01T00:00:00Z"
    body = {"every": 86_400, "task": "any", "start": start, "missed": "skip"}
    assert admin.send("PUT", AT, json=body).status_code == 200
    stretch = {"start": "2026-01-02T00:00:00Z", "end": "2026-01-05T00:00:00Z"}
    answer = admin.post(f"{AT}/backfill", json=stretch)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["count"], len(answer.json()["runs"])) == (3, 3)
    assert admin.post(f"{AT}/backfill", json=stretch).json()["count"] == 0


def test_every_missed_tick_is_fired_one_after_the_other(admin: WebClient) -> None:
    assert admin.send("PUT", AT, json={**BODY, "missed": "all"}).json()["overlap"] == "wait"
    assert admin.send("PUT", AT, json=BODY).json()["overlap"] == "skip"
    answer = admin.send("PUT", AT, json={**BODY, "missed": "all", "overlap": "skip"})
    assert (answer.status_code, answer.json()["path"]) == (422, "overlap")


def test_a_workflow_is_scheduled_like_a_task(app: Holdfast, web: Callable[..., WebClient]) -> None:
    @app.task("note")
    def note(day: date) -> str:
        return day.isoformat()

    @app.workflow("dated")
    def dated(wf: Workflow, day: date) -> Any:
        return wf.step(note, day).result

    admin = web(app)
    body = {"cron": "@daily", "task": "dated", "args": ["2026-11-15"], "options": {"tags": ["x"]}}
    added = admin.send("PUT", AT, json=body)
    assert (added.status_code, added.json().get("is_workflow")) == (200, True), added.text
    run = admin.post(f"{AT}/run").json()
    assert run["is_workflow"] is True
    app.worker().run_until_idle()
    handle = app.workflow_handle(run["id"])
    assert (handle.get(5), handle.info().tags) == ("2026-11-15", ("x",))
    for change, path in (
        ({"args": ["soon"]}, "args[0]"),
        ({"options": {"queue": "q"}}, "options.queue"),
    ):
        answer = admin.send("PUT", AT, json={**body, **change})
        assert (answer.status_code, answer.json()["path"]) == (422, path), answer.text


def test_a_pattern_is_tried_without_adding_it(refused: WebClient) -> None:
    answer = refused.get("/api/v1/schedules/preview", params={"when": "0 0 1 1 *", "n": "2"})
    assert [time[4:] for time in answer.json()["times"]] == ["-01-01T00:00:00Z"] * 2


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({**BODY, "cron": "61 * * * *"}, "cron"),
        ({**BODY, "tz": "Nowhere/Land"}, "tz"),
        ({**BODY, "every": 60}, "cron"),
        ({"task": "any"}, "cron"),
        ({**BODY, "task": "a b"}, "task"),
        ({"at": "2020-01-01T00:00:00Z", "task": "any"}, "at"),
        ({**BODY, "overlap": "never"}, "overlap"),
        ({**BODY, "start": "2030-01-02T00:00:00Z", "end": "2030-01-01T00:00:00Z"}, "end"),
        ({**BODY, "task": "add", "kwargs": {"a": "x"}}, "kwargs.a"),
        ({**BODY, "options": {"queue": "a b"}}, "options.queue"),
        ({"every": 0.1, "task": "any"}, "every"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_422(body: Any, path: str, refused: WebClient) -> None:
    answer = refused.send("PUT", AT, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["path"] == path
    assert refused.get("/api/v1/schedules").json()["schedules"] == []


@pytest.mark.parametrize("path", ["", "/next", "/ticks", "/pause", "/resume", "/run", "/backfill"])
def test_an_unknown_schedule_is_404(path: str, refused: WebClient) -> None:
    method = "GET" if path in ("", "/next", "/ticks") else "POST"
    body = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
    json = body if path == "/backfill" else None
    assert refused.send(method, f"/api/v1/schedules/none{path}", json=json).status_code == 404


def test_routes_are_set_followed_and_deleted(app: Holdfast, admin: WebClient) -> None:
    body = {"queues": {"mail": 1}}
    assert admin.send("PUT", "/api/v1/routes/mail.*", json=body).json() == {"changed": True}
    (rule,) = admin.get("/api/v1/routes").json()["routes"]
    assert (rule["pattern"], rule["queues"], rule["set_by"]) == ("mail.*", {"mail": 1}, "anna")
    assert admin.send("DELETE", "/api/v1/routes/mail.*").json() == {"changed": True}
    assert admin.send("DELETE", "/api/v1/routes/mail.*").status_code == 404
    for wrong in ({}, {"a b": 1}, {"a": 0}, {"a": 10**30}):
        answer = admin.send("PUT", "/api/v1/routes/x", json={"queues": wrong})
        assert answer.status_code == 422, answer.text


def test_metrics_are_served(app: Holdfast, admin: WebClient) -> None:
    app.send("any")
    answer = admin.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE holdfast_" in answer.text

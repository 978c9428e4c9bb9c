"""Queues, workers and statistics over HTTP."""

from __future__ import annotations

from typing import Any, Final

import pytest

from holdfast import Holdfast, Limit
from holdfast.core.records import WorkerState
from holdfast.store.verbs import workers
from tests.client.conftest import Hands
from tests.web.client import WebClient

WORKER: Final[dict[str, Any]] = {
    "hostname": "host",
    "pid": 7,
    "version": "1",
    "lease_us": 30_000_000,
    "queues": '["default"]',
    "known": '["any@1"]',
    "settings": "{}",
}


def test_a_queue_is_paused_limited_and_resumed(app: Holdfast, admin: WebClient) -> None:
    app.options(queue="mail").send("any")
    at = "/api/v1/queues/mail"
    assert admin.post(f"{at}/pause").json() == {"changed": True}
    limits = [{"concurrency": 5, "per_key": {"rate": "2/s"}}]
    assert admin.send("PUT", f"{at}/limits", json={"limits": limits}).status_code == 200
    assert admin.send("PUT", f"{at}/fair", json={"fair": False}).status_code == 200
    shown = admin.get(at).json()
    assert (shown["pending"], shown["paused_by"], shown["fair"]) == (1, "anna", False)
    (queue,) = app.control.queues.list()
    assert queue.limits == (Limit(concurrency=5, per_key=Limit(rate="2/s")),)
    assert shown["limits"][0]["per_key"]["rate"] == "2/s"
    assert admin.post(f"{at}/resume").json() == {"changed": True}
    assert admin.post(f"{at}/resume").json() == {"changed": False}
    admin.send("PUT", f"{at}/limits", json={"limits": []})
    listed = admin.get("/api/v1/queues").json()
    assert [(q["name"], q["limits"]) for q in listed["queues"]] == [("mail", [])]
    assert listed["unreadable"] == []


@pytest.mark.parametrize(
    "limit", [{"rate": "3/x"}, {"concurrency": 0}, {"concurrency": 10**30}, {}, {"burst": 7}]
)
def test_a_limit_that_makes_no_sense_is_422(limit: Any, refused: WebClient) -> None:
    for path in ("/api/v1/queues/mail/limits", "/api/v1/task-limits/any"):
        assert refused.send("PUT", path, json={"limits": [limit]}).status_code == 422


def test_a_queue_without_a_sign_of_it_is_404(admin: WebClient) -> None:
    assert admin.get("/api/v1/queues/nothing").status_code == 404
    assert admin.get("/api/v1/queues/a%20b").status_code == 422
    assert admin.post("/api/v1/queues/a%00b/pause").status_code == 404


def test_workers_their_states_and_orders(app: Holdfast, hands: Hands, admin: WebClient) -> None:
    assert admin.get("/api/v1/workers").json() == {"workers": [], "unreadable": []}
    hands.run(workers.register("w1", **WORKER))
    (worker,) = admin.get("/api/v1/workers").json()["workers"]
    assert (worker["id"], worker["state"]) == ("w1", "alive")
    assert admin.get("/api/v1/workers/w1").json()["id"] == "w1"
    assert admin.get("/api/v1/workers/w1/states").json() == {"states": []}
    assert admin.get("/api/v1/workers/w1/states?limit=5").json() == {"states": []}
    hands.run(workers.snapshot(WorkerState("w1", "host", 7, 1, "[]", 3, 4, 0)))
    chart = admin.get("/api/v1/workers/w1/history?last=7200&step=60").json()
    assert (chart["step"], [p["most_running"] for p in chart["points"]]) == (60.0, [3])
    refused = admin.get("/api/v1/workers/w1/history?step=1500ms")
    assert (refused.status_code, refused.json()["path"]) == (422, "step")
    told = admin.post("/api/v1/workers/w1/stop", json={"interrupt": True})
    assert told.json() == {"worker": "w1", "order": "interrupt", "silent": False}
    assert admin.post("/api/v1/workers/w1/drain").status_code == 200
    for path in ("", "/states", "/states?limit=5", "/history?last=1h"):
        assert admin.get(f"/api/v1/workers/w2{path}").status_code == 404
    assert admin.post("/api/v1/workers/w2/stop").status_code == 404
    hands.run(workers.register("gone", **{**WORKER, "lease_us": 0}))
    assert admin.post("/api/v1/workers/gone/stop").json()["silent"] is True


def test_statistics(app: Holdfast, hands: Hands, admin: WebClient) -> None:
    app.options(queue="mail").send("any")
    (depth,) = admin.get("/api/v1/stats/depths").json()["queues"]
    assert (depth["queue"], depth["pending"]) == ("mail", 1)
    series = admin.get("/api/v1/stats/series?last=2h&step=60&queue=mail").json()
    assert series["step"] == 60
    assert admin.get("/api/v1/stats/summary?by=task&last=3600").status_code == 200


@pytest.mark.parametrize(
    "query",
    ["last=x", "last=1e99d", "step=1s", "until=x", "by=colour", "step=1m&last=30d"],
)
def test_a_series_that_makes_no_sense_is_422(query: str, refused: WebClient) -> None:
    assert refused.get(f"/api/v1/stats/series?{query}").status_code == 422


def test_the_record_is_read_in_pages(app: Holdfast, admin: WebClient) -> None:
    for queue in "abc":
        admin.post(f"/api/v1/queues/{queue}/pause")
    first = admin.get("/api/v1/audit?limit=2&verb=pause").json()
    assert [entry["subject"] for entry in first["entries"]] == ["queue c", "queue b"]
    rest = admin.get(f"/api/v1/audit?limit=2&before={first['next']}").json()
    assert [entry["subject"] for entry in rest["entries"]] == ["queue a"]
    assert admin.get("/api/v1/audit?before=-1").status_code == 422


def test_the_record_shows_no_secret(app: Holdfast, admin: WebClient) -> None:
    app.control.audit.record("import", "a file", detail={"password": "hunter2", "rows": 7})
    (entry,) = admin.get("/api/v1/audit?verb=import").json()["entries"]
    assert entry["detail"] == {"password": "***", "rows": 7}

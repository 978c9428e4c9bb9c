"""Workflows over HTTP: lists, one with its steps, verbs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import uuid4

import pytest

from holdfast import Holdfast, Secret, Workflow, WorkflowHandle
from tests.client.conftest import Hands
from tests.web.client import WebClient

ALL = "/api/v1/workflows"


@pytest.fixture
def sent(app: Holdfast) -> WorkflowHandle[Any]:
    """Two steps, one behind the other."""

    @app.task("first")
    def first(password: str) -> int:
        return 1

    @app.task("second")
    def second(n: int) -> int:
        return n

    @app.workflow("nightly")
    def nightly(wf: Workflow, password: str) -> Any:
        return wf.step(second, wf.step(first, password).result).result

    return nightly.send("hunter2")


def test_one_with_its_steps(sent: WorkflowHandle[Any], admin: WebClient) -> None:
    (listed,) = admin.get(f"{ALL}?status=RUNNING&name=nightly").json()["workflows"]
    assert (listed["id"], listed["steps"]) == (str(sent.id), 2)
    assert listed["allowed"] == ["pause", "cancel", "resubmit"]
    assert admin.get(f"{ALL}/count").json()["by_status"]["RUNNING"] == 1
    shown = admin.get(f"{ALL}/{sent.id}").json()
    above, below = shown["steps"]
    assert [(step["name"], step["status"]) for step in (above, below)] == [
        ("first", "PENDING"),
        ("second", "WAITING"),
    ]
    assert below["waits_for"] == [{"id": above["id"], "on": "success"}]
    assert admin.get(f"{ALL}/{sent.id}/why").json()["status"] == "RUNNING"
    assert admin.get(f"{ALL}/{sent.id}/mermaid").text.startswith("flowchart")


def test_through_its_verbs(sent: WorkflowHandle[Any], admin: WebClient) -> None:
    at = f"{ALL}/{sent.id}"
    assert admin.post(f"{at}/pause").json() == {"id": str(sent.id), "status": "PAUSED"}
    assert admin.get(at).json()["workflow"]["paused_by"] == "anna"
    assert admin.post(f"{at}/resume").json()["status"] == "RUNNING"
    again = admin.post(f"{at}/resume")
    assert again.status_code == 409
    assert (again.json()["workflow_status"], again.json()["verb"]) == ("RUNNING", "resume")
    assert again.json()["allowed"] == ["pause", "cancel", "resubmit"]
    assert admin.send("DELETE", at).status_code == 409
    assert admin.post(f"{at}/cancel", json={"cleanup": False}).json()["status"] == "CANCELLED"
    assert admin.post(f"{at}/resubmit").json()["status"] == "RUNNING"
    admin.post(f"{at}/cancel")
    assert admin.send("DELETE", at).json()["status"] == "CANCELLED"
    assert admin.get(at).status_code == 404


@pytest.mark.parametrize("path", ["", "/why", "/mermaid", "/pause", "/resume", "/resubmit"])
def test_an_unknown_workflow_is_404(path: str, refused: WebClient) -> None:
    method = "GET" if path in ("", "/why", "/mermaid") else "POST"
    assert refused.send(method, f"{ALL}/{uuid4()}{path}").status_code == 404


def test_one_is_started_by_its_name(app: Holdfast, web: Callable[..., WebClient]) -> None:
    @app.task("note")
    def note(day: date) -> str:
        return day.isoformat()

    @app.workflow("dated")
    def dated(wf: Workflow, day: date, token: Secret[str]) -> Any:
        if day.year < 2000:
            raise ValueError(f"no such day, {token.reveal()}")
        return wf.step(note, day).result

    client = web(app)
    body: dict[str, Any] = {
        "name": "dated",
        "args": ["2026-11-15"],
        "kwargs": {"token": {"$secret": "hunter2-hunter2"}},
        "id": str(uuid4()),
        "options": {"tags": ["x"], "deadline": 60},
    }
    started = client.post(ALL, json=body)
    assert (started.status_code, started.json()) == (201, {"id": body["id"], "created": True})
    again = client.post(ALL, json=body)
    assert (again.status_code, again.json()) == (200, {"id": body["id"], "created": False})
    other = client.post(ALL, json={**body, "args": ["2026-11-16"]})
    assert (other.status_code, other.json()["kind"]) == (409, "payload_mismatch")
    shown = client.get(f"{ALL}/{body['id']}")
    assert (shown.json()["workflow"]["name"], shown.json()["workflow"]["deadline"]) == ("dated", 60)
    assert "hunter2" not in shown.text
    app.worker().run_until_idle()
    assert app.workflow_handle(body["id"]).get(5) == "2026-11-15"
    (sent,) = client.get("/api/v1/audit?verb=send").json()["entries"]
    assert sent["subject"] == f"workflow {body['id']}"
    failed = client.post(ALL, json={**body, "id": str(uuid4()), "args": ["1999-01-01"]})
    assert (failed.status_code, failed.json()["kind"]) == (422, "not_built")
    assert "ValueError" in failed.json()["detail"]
    assert "hunter2" not in failed.text
    assert client.get(f"{ALL}/count").json()["by_status"]["COMPLETED"] == 1


@pytest.mark.parametrize(
    ("change", "status", "path"),
    [
        ({"name": "nobody-has-it"}, 404, None),
        ({"name": "nightly", "version": 7}, 404, None),
        ({"args": [1]}, 422, "args[0]"),
        ({"args": []}, 422, "kwargs.password"),
        ({"options": {"unique": {"on_conflict": "debounce"}}}, 422, "options.unique"),
        ({"options": {"deadline": 0}}, 422, "options.deadline"),
        ({"options": {"queue": "q"}}, 422, "options.queue"),
    ],
)
def test_a_start_that_makes_no_sense_is_refused(
    change: Any, status: int, path: str, sent: WorkflowHandle[Any], admin: WebClient
) -> None:
    answer = admin.post(ALL, json={"name": "nightly", "args": ["x"], **change})
    assert answer.status_code == status, answer.text
    assert answer.json().get("path") == path
    assert admin.get(f"{ALL}/count").json()["by_status"]["RUNNING"] == 1


def test_a_task_is_no_workflow(sent: WorkflowHandle[Any], admin: WebClient) -> None:
    answer = admin.post(ALL, json={"name": "first", "args": ["x"]})
    assert (answer.status_code, answer.json()["kind"]) == (404, "unknown_workflow")
    assert "known workflows: nightly" in answer.json()["detail"]


def test_arguments_are_payload(
    app: Holdfast, sent: WorkflowHandle[Any], web: Callable[..., WebClient], hands: Hands
) -> None:
    answer = web(app, "read").get(f"{ALL}/{sent.id}")
    assert answer.json()["workflow"]["arguments"] is None
    assert "hunter2" not in answer.text

"""Workflows over HTTP: lists, one with its steps, verbs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from holdfast import Holdfast, Workflow, WorkflowHandle
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


def test_arguments_are_payload(
    app: Holdfast, sent: WorkflowHandle[Any], web: Callable[..., WebClient], hands: Hands
) -> None:
    answer = web(app, "read").get(f"{ALL}/{sent.id}")
    assert answer.json()["workflow"]["arguments"] is None
    assert "hunter2" not in answer.text

"""Every operation that changes something is recorded: who, from where, which, by what, how many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from holdfast import Holdfast, Workflow
from holdfast.client.audit_control import AuditInfo
from holdfast.store.verbs import workers
from holdfast.web.access import Role, Visitor
from holdfast.web.api.routes import ROUTES
from tests.client.conftest import Hands
from tests.web.client import WebClient

BOB: Final = Visitor("bob", Role.ADMIN, payloads=True)
CHANGE_NOTHING: Final = {"api-select-tasks", "api-show-stack"}
WORKER: Final[dict[str, Any]] = {
    "hostname": "host",
    "pid": 7,
    "version": "0",
    "lease_us": 30_000_000,
    "queues": "[]",
    "known": "[]",
    "settings": "{}",
}
SPAN: Final = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T00:00:00Z"}


class Walk:
    """Does one thing after another, and notes which routes were asked."""

    def __init__(self, app: Holdfast, hands: Hands, client: WebClient) -> None:
        self._app = app
        self._hands = hands
        self._client = client
        self._seen = 0
        self.asked: set[str] = set()

    def does(self, route: str, body: Any = None, **params: Any) -> list[AuditInfo]:
        """What was recorded of it, the first first: all of it by the visitor, from there."""
        (found,) = [each for each in ROUTES if each.name == route]
        path = found.path
        for name, value in params.items():
            path = path.replace(f"{{{name}}}", str(value))
        given = {} if body is None else {"json": body}
        answer = self._client.send(found.methods[0], path, **given)
        assert answer.status_code in (200, 201), f"{route}: {answer.text}"
        self.asked.add(route)
        entries = self._app.control.audit.list(limit=500).entries
        new = [each for each in reversed(entries) if each.id > self._seen]
        self._seen = entries[0].id
        assert new, f"{route} was not recorded"
        for entry in new:
            assert (entry.by, entry.origin) == ("bob", "web from 127.0.0.1"), route
            assert entry.count >= 1
        return new

    def forget(self) -> None:
        """What is recorded now was no visitor's."""
        entries = self._app.control.audit.list(limit=1).entries
        self._seen = entries[0].id if entries else 0


@pytest.fixture
def walk(app: Holdfast, hands: Hands, web: Callable[..., WebClient]) -> Walk:
    return Walk(app, hands, web(app, BOB))


def test_each_leaves_an_entry(app: Holdfast, hands: Hands, walk: Walk) -> None:
    @app.task("add")
    def add(a: int, b: int = 0) -> int:
        return a + b

    @app.workflow("whole")
    def whole(wf: Workflow, a: int) -> Any:
        return wf.step(add, a).result

    def dead(number: int) -> list[str]:
        sent = [add.options(queue="q").send(n) for n in range(number)]
        for task in sent:
            hands.fail(hands.take(task))
        return [str(task.id) for task in sent]

    (sent,) = walk.does("api-send-task", {"name": "add", "args": [1]})
    assert sent.verb == "send"
    assert sent.detail == {"name": "add"}
    calls = [{"args": [n]} for n in range(3)]
    (many,) = walk.does("api-send-many-tasks", {"name": "add", "calls": calls})
    assert (many.verb, many.count) == ("send", 3)

    for route, verb in (
        ("api-reschedule-tasks", "reschedule"),
        ("api-cancel-tasks", "cancel"),
        ("api-resubmit-tasks", "resubmit"),
    ):
        chosen: dict[str, Any] = {"filter": {"queue": "default"}, "at_most": 9}
        if verb == "reschedule":
            chosen["options"] = {"priority": 9}
        (entry,) = walk.does(route, chosen)
        assert (entry.verb, entry.filter, entry.count) == (verb, "queue=default", 4)
    app.control.tasks.cancel(*app.control.tasks.ids(queue="default").ids)
    walk.forget()
    (entry,) = walk.does("api-delete-tasks", {"filter": {"status": ["CANCELLED"]}, "at_most": 9})
    assert (entry.filter, entry.count) == ("status=CANCELLED", 4)

    one = add.send(1).id
    for route, verb in (
        ("api-reschedule-task", "reschedule"),
        ("api-cancel-task", "cancel"),
        ("api-resubmit-task", "resubmit"),
    ):
        (entry,) = walk.does(route, {"priority": 9} if verb == "reschedule" else {}, id=one)
        assert (entry.verb, entry.filter, entry.count) == (verb, None, 1)
        assert str(one) in entry.subject
    app.control.tasks.cancel(one)
    walk.forget()
    assert walk.does("api-delete-task", id=one)[0].verb == "delete"

    letters = dead(4)
    walk.does("api-resubmit-dead-letters", {"ids": letters[:1]})
    walk.does("api-delete-dead-letters", {"ids": letters[1:2]})
    entries = walk.does("api-resubmit-all-dead-letters", {"filter": {"queue": "q"}, "at_most": 9})
    assert sum(entry.count for entry in entries) == 2

    queue = {"queue": "mail"}
    of_queues: tuple[tuple[str, Any], ...] = (
        ("api-pause-queue", None),
        ("api-resume-queue", None),
        ("api-limit-queue", {"limits": [{"concurrency": 3}]}),
        ("api-order-queue", {"fair": False}),
    )
    for route, body in of_queues:
        assert "mail" in walk.does(route, body, **queue)[0].subject
    walk.does("api-limit-task", {"limits": [{"rate": "5/s"}]}, name="add")
    walk.does("api-set-route", {"queues": {"mail": 1}}, pattern="add")
    walk.does("api-delete-route", pattern="add")

    hands.run(workers.register("w1", **WORKER))
    assert "w1" in walk.does("api-drain-worker", worker="w1")[0].subject
    assert "w1" in walk.does("api-stop-worker", {"interrupt": True}, worker="w1")[0].subject

    walk.does("api-start-workflow", {"name": "whole", "args": [1]})
    of_one = {"id": app.control.workflows.list().workflows[0].id}
    for route in (
        "api-pause-workflow",
        "api-resume-workflow",
        "api-cancel-workflow",
        "api-resubmit-workflow",
    ):
        assert str(of_one["id"]) in walk.does(route, **of_one)[0].subject
    app.control.workflows.cancel(of_one["id"])
    walk.forget()
    walk.does("api-delete-workflow", **of_one)

    daily = {"cron": "0 3 * * *", "task": "add", "args": [1]}
    walk.does("api-add-schedule", daily, schedule="s")
    of_schedules: tuple[tuple[str, Any], ...] = (
        ("api-pause-schedule", None),
        ("api-resume-schedule", None),
        ("api-run-schedule", None),
        ("api-backfill-schedule", SPAN),
        ("api-delete-schedule", None),
    )
    for route, body in of_schedules:
        assert "s" in walk.does(route, body, schedule="s")[0].subject

    writing = {route.name for route in ROUTES if route.methods[0] != "GET"}
    assert walk.asked == writing - CHANGE_NOTHING

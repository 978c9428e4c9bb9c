"""What pages do: to one task, to many, to queues and workers; and who is recorded."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl
from uuid import UUID

import httpx
import pytest

from holdfast import Holdfast, TaskStatus, Workflow
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Failed
from holdfast.core.result import TaskError
from holdfast.store.verbs import evidence, workers
from tests.client.conftest import Hands
from tests.web.client import WebClient
from tests.web.pages.zoo import SCHEDULE, WORKER, Zoo

S = TaskStatus


def test_cancel_resubmit_delete(app: Holdfast, zoo: Zoo, admin: WebClient) -> None:
    path = f"/tasks/{zoo.pending.id}"
    answer = admin.post(f"{path}/cancel")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?done=cancel")
    assert zoo.pending.status() is S.CANCELLED
    assert admin.post(f"{path}/resubmit", data={"fresh": "1"}).status_code == 303
    assert zoo.pending.status() is S.PENDING
    assert "Resubmitted." in admin.get(f"{path}?done=resubmit").text
    assert admin.post(f"/tasks/{zoo.done.id}/delete").status_code == 303
    assert admin.get(f"/tasks/{zoo.done.id}").status_code == 404
    assert admin.post(f"/tasks/{zoo.running.id}/cancel").status_code == 303
    assert zoo.running.info().cancel_requested_at is not None
    verbs = [(each.by, each.verb) for each in app.control.audit.list().entries]
    assert [verb for by, verb in verbs if by == "anna"] == [
        "cancel", "delete", "resubmit", "cancel",
    ]  # fmt: skip


@pytest.mark.parametrize("verb", ["cancel", "resubmit", "delete", "reschedule"])
def test_what_the_lifecycle_does_not_allow_is_refused(
    verb: str, zoo: Zoo, admin: WebClient
) -> None:
    handle = zoo.running if verb == "delete" else zoo.done
    answer = admin.post(f"/tasks/{handle.id}/{verb}", data={"when": "60"})
    if verb == "delete":
        assert answer.status_code == 409
    elif verb == "resubmit":
        assert answer.status_code == 409
        assert "COMPLETED" in answer.text
    else:
        assert answer.status_code == 409
        assert "Possible now: delete." in answer.text


def test_an_order_that_nobody_hears_says_so(
    app: Holdfast, hands: Hands, zoo: Zoo, admin: WebClient
) -> None:
    heard = admin.post(f"/workers/{WORKER}/stop").headers["location"]
    assert "It obeys within a second" in admin.get(heard).text
    hands.run(
        workers.register(
            "gone",
            hostname="host-2",
            pid=8,
            version="1",
            lease_us=1,
            queues="[]",
            known="[]",
            settings="{}",
        )
    )
    unheard = admin.post("/workers/gone/drain").headers["location"]
    text = admin.get(unheard).text
    assert "nobody hears it" in text
    assert "It obeys" not in text


def test_reschedule(zoo: Zoo, admin: WebClient) -> None:
    path = f"/tasks/{zoo.pending.id}/reschedule"
    given = {"when": "2h", "queue": "slow", "priority": "9"}
    assert admin.post(path, data=given).status_code == 303
    info = zoo.pending.info()
    assert (info.status, info.queue, info.priority) == (S.SCHEDULED, "slow", 9)
    assert admin.post(path, data={"when": "soon"}).status_code == 422
    assert admin.post(path, data={"priority": "x"}).status_code == 422


def test_send_again_with_changed_arguments(app: Holdfast, zoo: Zoo, admin: WebClient) -> None:
    form = admin.get(f"/send?again={zoo.done.id}")
    assert "hunter2" not in form.text
    assert "type them again" in form.text
    given = {"name": "shop.done", "version": "1", "args": '[{"password": "***"}]', "kwargs": "{}"}
    refused = admin.post("/send", data=given)
    assert (refused.status_code, "stands for a secret" in refused.text) == (422, True)
    given |= {"args": '[{"password": "new"}]', "kwargs": '{"width": 7}', "queue": "slow"}
    answer = admin.post("/send", data=given)
    assert answer.status_code == 303
    made = app.control.tasks.list(queue="slow").tasks[0]
    assert answer.headers["location"] == f"/tasks/{made.id}?done=send"
    assert (made.name, made.args, made.kwargs) == (
        "shop.done", [{"password": "new"}], {"width": 7},
    )  # fmt: skip
    assert zoo.done.status() is S.COMPLETED
    entry = app.control.audit.list(verb="send").entries[0]
    assert (entry.by, entry.subject) == ("anna", f"task {made.id}")
    assert entry.detail == {"name": "shop.done"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("args", "{}"),
        ("args", "[1,"),
        ("args", "[" * 5000),
        ("kwargs", "[]"),
        ("version", "x"),
        ("name", "<b>"),
        ("queue", "a b"),
        ("priority", "101"),
        ("delay", "soon"),
    ],
)
def test_what_cannot_be_sent_is_shown_again(field: str, value: str, admin: WebClient) -> None:
    given = {"name": "any", "version": "1", "args": "[]", "kwargs": "{}"}
    answer = admin.post("/send", data=given | {field: value})
    assert answer.status_code == 422
    assert f'id="wrong-{field}"' in answer.text


def hidden(text: str, action: str) -> list[tuple[str, str]]:
    """The hidden fields of the form with this action."""
    form = re.search(rf'<form[^>]*action="{action}"[^>]*>(.*?)</form>', text, re.DOTALL)
    assert form is not None
    tags = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form[1])
    return [(name, value.replace("&amp;", "&")) for name, value in tags]


def post(client: WebClient, path: str, fields: list[tuple[str, str]]) -> httpx.Response:
    given: dict[str, list[str]] = {}
    for name, value in fields:
        given.setdefault(name, []).append(value)
    return client.post(path, data=given)


def test_a_verb_for_all_that_fit(
    app: Holdfast, admin: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.web.pages.bulk.BATCH", 20)
    app.named("many").send_many([(n,) for n in range(50)])
    other = app.send("other")
    path = "/tasks/bulk/cancel"
    ask = admin.get(f"{path}?name=many").text
    assert "Cancel 50 tasks?" in ask
    app.send("many")
    answer = post(admin, path, [*hidden(ask, path), ("rate", "0")])
    assert "20 done" in answer.text
    assert app.control.tasks.count()[S.CANCELLED] == 20
    answer = post(admin, path, hidden(answer.text, path))
    answer = post(admin, path, hidden(answer.text, path))
    assert "Cancelled 50 tasks" in answer.text or "Cancelled 51 tasks" in answer.text
    assert other.status() is S.PENDING
    entries = app.control.audit.list(verb="cancel").entries
    assert [each.filter for each in entries] == ["name many"] * 3
    assert "Nothing to cancel" in admin.get(f"{path}?status=completed").text
    assert "Nothing to cancel" in admin.get(f"{path}?name=nobody").text


def test_a_verb_for_those_that_are_selected(zoo: Zoo, admin: WebClient) -> None:
    path = "/tasks/bulk/resubmit"
    ids = [str(each.id) for each in (zoo.failed, zoo.cancelled, zoo.done)]
    ask = admin.get(path, params={"id": ids}).text
    assert "Resubmit 2 tasks?" in ask
    assert "1 other cannot be resubmitted" in ask
    answer = post(admin, path, hidden(ask, path))
    assert "Resubmitted 2 tasks" in answer.text
    assert "1 could not be resubmitted" in answer.text
    assert zoo.failed.status() is S.PENDING
    assert zoo.done.status() is S.COMPLETED


@pytest.mark.parametrize(
    "fields", [{"rate": "7"}, {"done": "x"}, {"before": "x"}, {"id": "x"}, {"status": "kaputt"}]
)
def test_fields_that_make_no_sense(fields: dict[str, str], zoo: Zoo, admin: WebClient) -> None:
    assert admin.post("/tasks/bulk/delete", data=fields).status_code == 422
    assert admin.get(f"/tasks/{zoo.done.id}").status_code == 200


def test_queues(app: Holdfast, zoo: Zoo, admin: WebClient) -> None:
    assert admin.post("/queues/default/pause").status_code == 303
    (queue,) = [each for each in app.control.queues.list() if each.name == "default"]
    assert queue.paused_by == "anna"
    assert "Paused" in admin.get("/queues").text
    assert admin.post("/queues/default/resume").status_code == 303
    given = {"concurrency": "5", "rate": "100/minute"}
    assert admin.post("/queues/default/limit", data=given).status_code == 303
    (queue,) = [each for each in app.control.queues.list() if each.name == "default"]
    assert (queue.paused_at, queue.limits[0].concurrency) == (None, 5)
    assert "100/minute" in admin.get("/queues/default").text
    assert admin.post("/queues/default/limit", data={"rate": "fast"}).status_code == 422
    assert admin.post("/queues/default/limit", data={}).status_code == 303
    (queue,) = [each for each in app.control.queues.list() if each.name == "default"]
    assert not queue.limits


def test_schedules(app: Holdfast, zoo: Zoo, admin: WebClient) -> None:
    path = f"/schedules/{SCHEDULE}"
    assert admin.post(f"{path}/pause").status_code == 303
    assert app.control.schedules.show(SCHEDULE).paused_by == "anna"
    assert "Paused" in admin.get(path).text
    assert admin.post(f"{path}/resume").status_code == 303
    answer = admin.post(f"{path}/run-now")
    (made,) = app.control.tasks.list(name="shop.done", status="PENDING").tasks
    assert answer.headers["location"] == f"/tasks/{made.id}?done=send"
    assert "run now" in admin.get(path).text
    given = {"start": "2026-01-01", "end": "soon"}
    assert admin.post(f"{path}/backfill", data=given).status_code == 422
    given = {"start": "2026-01-01T00:00", "end": "2026-01-03T00:00"}
    assert admin.post(f"{path}/backfill", data=given).status_code in (303, 422)
    assert admin.post(f"{path}/delete").status_code == 303
    assert admin.get(path).status_code == 404
    assert admin.post("/schedules/none/pause").status_code == 404


def test_workflows(zoo: Zoo, admin: WebClient) -> None:
    path = f"/workflows/{zoo.workflow.id}"
    assert admin.post(f"{path}/pause").status_code == 303
    assert zoo.workflow.info().paused_by == "anna"
    assert "Paused" in admin.get(path).text
    assert admin.post(f"{path}/resume").status_code == 303
    assert admin.post(f"{path}/cancel").status_code == 303
    assert zoo.workflow.status().value == "CANCELLED"
    assert admin.post(f"{path}/pause").status_code == 409
    assert admin.post(f"{path}/resubmit").status_code == 303
    assert zoo.workflow.status().value == "RUNNING"
    assert admin.post("/workflows/none/cancel").status_code in (404, 422)


def test_the_reason_of_a_step_is_shown_without_passwords(
    app: Holdfast, hands: Hands, admin: WebClient
) -> None:
    wf = Workflow("import")
    wf.step(app.named("wf.connect"))
    workflow = wf.send()
    step = app.handle(app.control.workflows.show(workflow.id).steps[0].id)
    place = "postgresql://u:hunter2@host/x"
    trace = f'Traceback (most recent call last):\n  File "a.py", line 7, in f\n    open({place})\n'
    error = TaskError.stored("DOWN", f"no {place}", None, "OSError", trace, ())
    hands.end(hands.take(step), Failed(error), Policy())
    for path in (f"/tasks/{step.id}", f"/workflows/{workflow.id}"):
        text = admin.get(path).text
        assert "postgresql://u:***@host/x" in text
        assert "hunter2" not in text
    assert "open(postgresql://u:***@host/x)" in admin.get(f"/tasks/{step.id}").text


def test_workers(app: Holdfast, zoo: Zoo, admin: WebClient) -> None:
    assert admin.post(f"/workers/{WORKER}/drain").status_code == 303
    assert "Stopping" in admin.get(f"/workers/{WORKER}").text
    assert admin.post("/workers/nobody/stop").status_code == 409


def test_checkpoints_are_shown_without_secrets(
    app: Holdfast, hands: Hands, admin: WebClient
) -> None:
    task = hands.take(app.options(queue="points").send("shop.points"))
    values = {
        "plain": '{"rows": 5412}',
        "keyed": '{"password": "hunter2"}',
        "large": '["' + "hunter2" * 2_000 + '"]',
        "broken": '{"hunter2',
    }
    for name, value in values.items():
        assert hands.run(evidence.write_checkpoint(task.key, task.token, name, value))
    id = UUID(bytes=task.id)
    text = admin.get(f"/tasks/{id}").text
    assert "5412" in text
    assert "hunter2" not in text
    assert "14,004 characters, not shown" in text
    assert [each.name for each in app.control.tasks.checkpoints(id)] == sorted(values)


def test_the_log_is_followed(app: Holdfast, zoo: Zoo, hands: Hands, admin: WebClient) -> None:
    task = hands.take(app.options(queue="logs").send("shop.log"))

    def printed(part: int, text: bytes) -> None:
        piece = evidence.LogPart(task.key, task.token, 1, part, text)
        hands.run(evidence.append_logs([piece]))

    id = UUID(bytes=task.id)
    printed(0, b"INFO first <b>\nWARNING second\nha")
    text = admin.get(f"/tasks/{id}").text
    assert "first &lt;b&gt;" in text
    follow = re.search(r'data-follow="([^"]+)"', text)
    assert follow is not None
    assert dict(parse_qsl(follow[1].partition("?")[2])) == {"after": "1.0"}
    printed(1, b"lf\nERROR third\n")
    more = admin.get(follow[1]).text
    assert "third" in more
    assert "first &lt;" not in more
    assert admin.get(f"/tasks/{id}/log").text == (
        "INFO first <b>\nWARNING second\nhalf\nERROR third\n"
    )
    errors = admin.get(f"/tasks/{id}?level=error").text
    assert "third" in errors
    assert "first &lt;" not in errors

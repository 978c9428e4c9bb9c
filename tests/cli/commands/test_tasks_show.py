"""`tasks show` and `tasks why`: everything about one task, whatever its state."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import Failed, RetryAsked, SnoozeAsked
from holdfast.core.payload.failure import describe
from holdfast.core.records import Edge
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import evidence, queues, timing
from tests.cli.conftest import Operator
from tests.support.stores import Lab
from tests.support.verbs import step

NEXT = {
    TaskStatus.WAITING: "becomes claimable once one more dependency is satisfied",
    TaskStatus.SCHEDULED: "becomes claimable in 1 h",
    TaskStatus.PENDING: "and knows it takes it",
    TaskStatus.CLAIMED: "worker worker-1 starts it",
    TaskStatus.RUNNING: "or is ended in 1 h by its timeout; if it fails, it fails for good",
    TaskStatus.COMPLETED: "nothing; it is deleted when its retention has passed",
    TaskStatus.FAILED: "it stays a dead letter until",
    TaskStatus.CANCELLED: "nothing by itself; `holdfast tasks resubmit",
    TaskStatus.EXPIRED: "nothing by itself; `holdfast tasks resubmit",
    TaskStatus.STALLED: "it stays a dead letter until",
    TaskStatus.DROPPED: "it stays a dead letter until",
}


def text(id: bytes) -> str:
    return str(UUID(bytes=id))


def facts(out: str) -> dict[str, str]:
    """The values behind the names at the beginning of a line."""
    pairs = (line.split("  ", 1) for line in out.splitlines() if "  " in line)
    return {name.strip(): value.strip() for name, value in pairs}


@pytest.mark.parametrize("status", list(TaskStatus))
def test_every_status(operator: Operator, lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status)
    said = operator("tasks", "show", text(case.id))
    found = facts(said.out)
    assert found["id"] == text(case.id)
    assert found["status"].startswith(f"{status.value} – ")
    assert NEXT[status] in found["next"]
    assert found["submitted"] == "2030-03-17 17:46:40 UTC (now)" or status is TaskStatus.EXPIRED
    assert ("attempts:" in said.lines) is bool(lab.task(case.id).attempt)
    shown = operator("tasks", "show", text(case.id), "--json").json
    assert shown["status"] == status.value
    assert shown["next_step"] == found["next"]
    assert shown["why"]


def test_a_failure_in_full(operator: Operator, lab: Lab) -> None:
    try:
        raise ValueError("bad \x1b[2J input")
    except ValueError as error:
        described = describe(error)
    options = Policy(retry=Retry(2, delay=60), timeout=5)
    task = lab.running(
        args='["a.png"]', kwargs='{"width":10}', max_retries=2, task_options=options.encode()
    )
    lab.clock.advance(1.5)
    lab.end(task, Failed(described, listed=True), options)
    said = operator("tasks", "show", text(task.id))
    found = facts(said.out)
    assert found["retries"] == "1 of 2 used, 1 left"
    assert found["next"] == "retry 1 of 2, in 1 min"
    assert found["timeout"] == "5.0 s"
    assert "\x1b" not in said.out
    (row,) = [line for line in said.lines if "FAILED+retried" in line]
    assert row.split()[:5] == ["1", "FAILED+retried", "2030-03-17T17:46:40Z", "1.500s", "worker-1"]
    assert "host-1:4711" in row
    assert row.endswith("ValueError: bad \\x1b[2J input")
    assert 'arguments:\n  "a.png"\n  width = 10\n' in said.out
    # It goes on, but what went wrong is asked for now.
    assert "error of attempt 1:\n" in said.out
    assert "exception  builtins.ValueError" in said.out
    assert "traceback:\n  Traceback (most recent call last):" in said.out
    why = operator("tasks", "why", text(task.id))
    assert why.lines[1].strip().startswith("attempt 1 failed: ValueError: bad")

    lab.clock.advance(60)
    lab.run(timing.promote())
    lab.fail(lab.run_again(task.id), described)
    said = operator("tasks", "show", text(task.id))
    assert "exception  builtins.ValueError" in said.out
    assert "traceback:\n  Traceback (most recent call last):" in said.out
    shown = operator("tasks", "show", text(task.id), "--json").json
    assert shown["error"]["message"] == "bad \x1b[2J input"
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["FAILED", "FAILED"]
    assert shown["attempts"][0]["will_retry"] is True


def test_a_retry_that_was_asked_for_without_a_policy(operator: Operator, lab: Lab) -> None:
    task = lab.running()
    lab.end(task, RetryAsked(describe(KeyError("x")), 3_600_000_000))
    found = facts(operator("tasks", "show", text(task.id)).out)
    assert found["next"] == "retry 1 of 3, in 1 h"
    assert found["retries"] == "1 of 3 RetryLater used; none after a failure"
    assert "in 1 h (retry 1 of 3)" in operator("tasks", "why", text(task.id)).out


def test_a_task_that_runs(operator: Operator, lab: Lab) -> None:
    task = lab.running()
    note = evidence.TaskNote(
        task.key,
        task.token,
        progress='{"done":3,"total":10,"message":"resizing"}',
        stage="UPLOADING",
        meta='{"file":"a"}',
        output="one\ntwo\n",
    )
    lab.run(evidence.write_notes([note]))
    lab.clock.advance(75)
    lab.cancel(task.id)
    said = operator("tasks", "show", text(task.id))
    found = facts(said.out)
    assert found["progress"] == "3 of 10 (30 %), resizing"
    assert found["stage"] == "UPLOADING"
    assert found["next"] == "its worker ends it, because a cancel was requested"
    assert found["process"] == "4711 on host-1 (child-1)"
    assert "output:\n  one\n  two\n" in said.out
    place = said.lines.index("attempts:")
    assert said.lines[place + 2].split()[:3] == ["1", "RUNNING", "2030-03-17T17:46:40Z"]


def test_long_values_are_cut(operator: Operator, lab: Lab) -> None:
    value = "x" * 5_000
    task = lab.running(args=f'["{value}"]')
    lab.complete(task, f'"{value}"')
    assert "shortened from" in operator("tasks", "show", text(task.id)).out
    full = operator("tasks", "show", text(task.id), "--full").out
    assert full.count(value) == 2


def test_an_error_of_the_author(operator: Operator, lab: Lab) -> None:
    task = lab.running()
    lab.fail(task, TaskError("NO_STOCK", "none left", data={"sku": 7}))
    found = facts(operator("tasks", "show", text(task.id)).out)
    assert found["code"] == "NO_STOCK"
    assert found["message"] == "none left"
    assert found["data"] == '{"sku": 7}'


def test_dependencies(operator: Operator, lab: Lab) -> None:
    workflow = b"w" * 16
    first, second = step(workflow), step(workflow, task_name="other")
    last = step(workflow, first.id, Edge(second.id, "failure"))
    lab.submit(first, second, last)
    lab.complete(lab.run_again(first.id))
    said = operator("tasks", "show", text(last.id))
    assert facts(said.out)["waits for"] == "1 more to be satisfied"
    place = said.lines.index("dependencies:")
    assert [line.split() for line in said.lines[place + 2 : place + 4]] == [
        [text(first.id), "COMPLETED", "t", "success", "yes"],
        [text(second.id), "PENDING", "other", "failure", "open"],
    ]
    found = operator("tasks", "show", text(last.id), "--json").json["dependencies"]
    assert found[1] == {
        "parent_id": text(second.id),
        "task_name": "other",
        "status": "PENDING",
        "on": "failure",
        "satisfied": None,
    }
    operator("tasks", "cancel", text(second.id))
    shown = operator("tasks", "show", text(last.id), "--json").json
    assert (shown["status"], shown["dependencies"][1]["satisfied"]) == ("CANCELLED", False)


def test_a_prefix_names_a_task(operator: Operator, lab: Lab) -> None:
    task = UUID("01020304-0506-7000-8000-000000000001")
    near = UUID("01020304-0506-7000-8000-0000000000ff")
    far = UUID("01020304-05ff-7000-8000-000000000001")
    for each in (task, near, far):
        lab.send(id=each.bytes)
    shown = operator("tasks", "show", "01020304-05FF", "--json").json
    assert shown["id"] == str(far)
    said = operator("tasks", "show", "010203040506", code=2)
    assert "010203040506 may be any of these 2 tasks" in said.err
    assert str(task) in said.err
    said = operator("tasks", "show", "02020304", code=1)
    assert "no task has an id that begins or ends with 02020304 in this database" in said.err
    for number in range(10, 20):
        lab.send(id=UUID(f"01020304-0506-7000-8000-0000000000{number}").bytes)
    said = operator("tasks", "show", "010203040506", code=2)
    assert "010203040506 may be any of more than 10 tasks" in said.err
    assert said.err.count("PENDING") == 10
    for typed in ("01020304-0000ff", "0000ff", "0000000000FF"):
        assert operator("tasks", "show", typed, "--json").json["id"] == str(near)


def test_why(operator: Operator, lab: Lab) -> None:
    task = lab.send()
    lab.run(queues.pause("q", by="ada"))
    said = operator("tasks", "why", text(task))
    assert said.lines[0] == f"task {text(task)} is PENDING:"
    assert "queue 'q' was paused by ada" in said.lines[1]
    found = operator("tasks", "why", text(task), "--json").json
    assert found["status"] == "PENDING"
    assert len(found["reasons"]) == len(said.lines) - 1


@pytest.mark.parametrize("command", ["show", "why", "log", "stack"])
def test_an_unknown_task(operator: Operator, command: str) -> None:
    task = "01020304-0506-7000-8000-000000000001"
    said = operator("tasks", command, task, code=1)
    assert said.out == ""
    assert said.err.startswith(f"holdfast tasks {command}: no task has the id {task}: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("command", ["show", "why", "log", "stack"])
@pytest.mark.parametrize("typed", ["", "42", "0102030z", "01020304-0506-7000-8000-00000000000100"])
def test_a_malformed_id(operator: Operator, command: str, typed: str) -> None:
    said = operator("tasks", command, typed, code=2)
    assert f"{typed!r} is not a task id" in said.err
    assert said.err.count("\n") == 1


def test_many_attempts_are_not_all_shown(
    operator: Operator, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.render.task_detail._MOST_ATTEMPTS", 1)
    task = lab.running()
    lab.end(task, SnoozeAsked(1_000_000))
    lab.clock.advance(2)
    lab.run(timing.promote())
    lab.complete(lab.run_again(task.id))
    said = operator("tasks", "show", text(task.id))
    assert "1 earlier attempt(s) not shown: --full shows all" in said.err
    assert "SNOOZED" not in said.out
    assert "SNOOZED" in operator("tasks", "show", text(task.id), "--full").out


def test_secrets_are_not_shown(
    operator: Operator, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_REDACT_KEYS", "iban")
    id = lab.send(
        args='["ada",{"$secret":"hunter2"},{"x":{"password":"hunter2"}}]',
        kwargs='{"token":{"a":"hunter2"},"iban":"hunter2","city":"Rome"}',
    )
    for command in (["show", text(id)], ["list"]):
        for form in ([], ["--json"]):
            out = operator("tasks", *command, *form).out
            assert "hunter2" not in out
    assert '"city": "Rome"' in out
    assert out.count('"***"') == 4

"""cancel, resubmit, reschedule, delete: by id, by filter, and what each answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from holdfast.cli import bulk_action
from holdfast.core.identity import new_id
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import cancel
from tests.cli.conftest import Operator
from tests.support.stores import Lab
from tests.support.verbs import step

UNKNOWN = "01020304-0506-7000-8000-000000000001"
WAITING, SCHEDULED, PENDING = TaskStatus.WAITING, TaskStatus.SCHEDULED, TaskStatus.PENDING
RUNNING, FAILED, CANCELLED = TaskStatus.RUNNING, TaskStatus.FAILED, TaskStatus.CANCELLED


def text(id: bytes) -> str:
    return str(UUID(bytes=id))


def texts(ids: Sequence[bytes]) -> list[str]:
    return [text(id) for id in ids]


@pytest.mark.parametrize("status", list(TaskStatus))
def test_cancel(operator: Operator, lab: Lab, status: TaskStatus) -> None:
    task = text(lab.reach(status).id)
    done = status in bulk_action.CANCELLABLE or status is CANCELLED
    said = operator("tasks", "cancel", task, code=0 if done else 1)
    if status is RUNNING:
        assert said.lines == [f"{task}  running; its worker has been asked to end it"]
    elif done:
        assert said.lines == [f"{task}  cancelled"]
    else:
        assert said.lines == [f"{task}  not cancelled: it is {status.value}"]


@pytest.mark.parametrize("status", list(TaskStatus))
def test_resubmit(operator: Operator, lab: Lab, status: TaskStatus) -> None:
    id = lab.reach(status).id
    done = status in bulk_action.RESUBMITTABLE
    said = operator("tasks", "resubmit", text(id), code=0 if done else 1)
    assert lab.status(id) is (PENDING if done else status)
    answer = "resubmitted; it is PENDING" if done else f"not resubmitted: it is {status.value}"
    assert said.lines == [f"{text(id)}  {answer}"]


@pytest.mark.parametrize("status", list(TaskStatus))
def test_delete(operator: Operator, lab: Lab, status: TaskStatus) -> None:
    id = lab.reach(status).id
    said = operator("tasks", "delete", text(id), code=0 if status.is_terminal else 1)
    assert lab.status(id) is (None if status.is_terminal else status)
    assert said.lines[0].startswith(
        f"{text(id)}  {'deleted' if status.is_terminal else f'not deleted: it is {status.value}'}"
    )


@pytest.mark.parametrize("status", list(TaskStatus))
def test_reschedule(operator: Operator, lab: Lab, status: TaskStatus) -> None:
    id = lab.reach(status).id
    done = status in (PENDING, SCHEDULED)
    said = operator("tasks", "reschedule", text(id), "--delay", "2h", code=0 if done else 1)
    answer = "rescheduled; it is SCHEDULED" if done else f"not rescheduled: it is {status.value}"
    assert said.lines == [f"{text(id)}  {answer}"]


def test_reschedule_to_now_elsewhere(operator: Operator, lab: Lab) -> None:
    id = lab.send(delay_us=3_600_000_000)
    operator("tasks", "reschedule", text(id), "--now", "--queue", "fast", "--priority", "1")
    record = lab.task(id)
    assert (record.status, record.queue_name, record.priority) == (PENDING, "fast", 1)


def test_reschedule_says_what_is_wrong(operator: Operator, lab: Lab) -> None:
    task = text(lab.send())
    both = operator("tasks", "reschedule", task, "--now", "--delay", "5", code=2)
    assert "give --delay or --now, not both" in both.err
    nothing = operator("tasks", "reschedule", task, code=2)
    assert "nothing to change: give --delay, --now, --queue or --priority" in nothing.err
    wrong = operator("tasks", "reschedule", task, "--priority", "0", code=2)
    assert "priority=0 is not usable" in wrong.err


def test_several_ids_are_answered_one_by_one(operator: Operator, lab: Lab) -> None:
    waits, ended = lab.send(), lab.reach(TaskStatus.COMPLETED).id
    said = operator("tasks", "cancel", text(ended), UNKNOWN, text(waits), code=1)
    assert sorted(said.lines) == sorted(
        [
            f"{text(ended)}  not cancelled: it is COMPLETED",
            f"{UNKNOWN}  no such task",
            f"{text(waits)}  cancelled",
        ]
    )
    assert said.err == "1 done, 2 not\n"
    found = operator("tasks", "delete", text(ended), UNKNOWN, "--json", code=1).json
    assert found == {
        "tasks": [
            {"id": text(ended), "done": True, "status": None, "message": "deleted"},
            {"id": UNKNOWN, "done": False, "status": None, "message": "no such task"},
        ]
    }


def test_who_is_interrupted_is_told_how_far_it_came(
    operator: Operator, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_action, "_BATCH", 2)
    real, batches = cancel.cancel, list[object]()

    def interrupted(*args: Any, **options: Any) -> Any:
        batches.append(args)
        if len(batches) == 3:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(cancel, "cancel", interrupted)
    lab.send_many(7)
    said = operator("tasks", "cancel", "--all", "--yes", code=130)
    assert len(said.lines) == 4
    assert "interrupted: 4 of 7 done, perhaps those after them, too; the same command" in said.err


def test_a_malformed_id_stops_everything(operator: Operator, lab: Lab) -> None:
    id = lab.send()
    said = operator("tasks", "cancel", text(id), "oops", code=2)
    assert "'oops' is not a task id" in said.err
    assert lab.status(id) is PENDING


def test_a_filter_asks_first(operator: Operator, lab: Lab) -> None:
    ids = lab.send_many(2, task_name="welcome")
    other = lab.send()
    runs = lab.running(queue_name="x", task_name="welcome")
    lab.reach(TaskStatus.COMPLETED, task_name="welcome")
    arguments = ("tasks", "cancel", "--name", "welcome")
    said = operator(*arguments, answer="n\n", code=1)
    assert "cancel 3 tasks (2 PENDING, 1 RUNNING)? [y/N]" in said.err
    assert said.err.endswith("holdfast tasks cancel: nothing was done\n")
    said = operator(*arguments, answer="", code=2)
    assert "give --yes" in said.err
    assert lab.statuses(ids) == [PENDING, PENDING]
    said = operator(*arguments, answer="y\n")
    assert {line.split()[0] for line in said.lines} == {*texts(ids), text(runs.id)}
    assert lab.statuses([*ids, other, runs.id]) == [CANCELLED, CANCELLED, PENDING, RUNNING]


def test_yes_goes_ahead(operator: Operator, lab: Lab) -> None:
    ids = lab.send_many(1100)
    said = operator("tasks", "cancel", "--queue", "q", "--yes")
    assert len(said.lines) == 1100
    assert said.err == "1,100 done, 0 not\n"
    assert set(lab.statuses(ids)) == {CANCELLED}
    assert operator("tasks", "cancel", "--queue", "q", "--yes").err == "no task fits\n"
    operator("tasks", "resubmit", "--all", "-y")
    assert set(lab.statuses(ids)) == {PENDING}


def test_a_filter_leaves_alone_what_the_verb_does_not_apply_to(
    operator: Operator, lab: Lab
) -> None:
    failed, completed = (lab.reach(s, task_name="a").id for s in (FAILED, TaskStatus.COMPLETED))
    found = operator("tasks", "resubmit", "--name", "a", "-y", "--json").json
    assert [task["id"] for task in found["tasks"]] == [text(failed)]
    said = operator("tasks", "delete", "--name", "a", "-y")
    assert said.lines == [f"{text(completed)}  deleted"]
    said = operator("tasks", "delete", "--status", "pending", code=2)
    assert "delete does not apply to a task that is PENDING" in said.err


@pytest.mark.parametrize("verb", ["cancel", "resubmit", "delete"])
def test_which_tasks(operator: Operator, verb: str) -> None:
    assert "which tasks?" in operator("tasks", verb, code=2).err
    assert "not both" in operator("tasks", verb, UNKNOWN, "--queue", "q", code=2).err


def test_a_unique_key_that_is_held(operator: Operator, lab: Lab) -> None:
    unique = {"unique_key": "k" * 64, "unique_slot": "k" * 64}
    first = lab.send(**unique)
    lab.cancel(first)
    second = lab.send(**unique)
    free = lab.reach(FAILED).id
    said = operator("tasks", "resubmit", text(first), text(free), code=1)
    assert said.lines[0].startswith(f"{text(first)}  not resubmitted: task {text(second)} (t) is ")
    assert said.lines[1] == f"{text(free)}  resubmitted; it is PENDING"


def test_a_step_that_waits_for_what_cannot_happen(operator: Operator, lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child, grandchild = step(workflow, parent.id), step(workflow, parent.id)
    lab.submit(child, grandchild)
    lab.fail(parent)
    free = lab.reach(FAILED).id
    ids = [text(id) for id in (child.id, free, grandchild.id)]
    said = operator("tasks", "resubmit", *ids, code=1)
    assert said.lines[0] == f"{text(free)}  resubmitted; it is PENDING"
    for line, id in zip(said.lines[1:], (child.id, grandchild.id), strict=True):
        assert line.startswith(f"{text(id)}  not resubmitted: cannot resubmit task {text(id)}")
        assert f"success of task {text(parent.id)} (t), which is FAILED: resubmit that" in line
    operator("tasks", "resubmit", text(child.id), text(parent.id))
    assert lab.statuses([parent.id, child.id]) == [TaskStatus.PENDING, TaskStatus.WAITING]


def test_resubmit_later(operator: Operator, lab: Lab) -> None:
    id = lab.reach(FAILED).id
    operator("tasks", "resubmit", text(id), "--delay", "1h", "--fresh", "--keep-retries")
    assert lab.status(id) is SCHEDULED


def test_a_step_of_a_live_workflow_is_not_deleted(operator: Operator, lab: Lab) -> None:
    first, second = step(b"w" * 16), step(b"w" * 16)
    lab.submit(first, second)
    lab.sql(
        "INSERT INTO holdfast_workflows (workflow_id, workflow_name, version, status, on_failure,"
        " digest, steps, sent_at, created_at, updated_at)"
        " VALUES (:id, 'w', 1, 'RUNNING', 'continue', '', 1, :now, :now, :now)",
        id=b"w" * 16,
    )
    lab.cancel(first.id)
    said = operator("tasks", "delete", text(first.id), code=1)
    assert said.lines == [f"{text(first.id)}  not deleted: its workflow has not ended"]


def test_dead_letters(operator: Operator, lab: Lab) -> None:
    dead, other = lab.reach(FAILED).id, lab.reach(CANCELLED).id
    said = operator("dead-letters", "delete", text(other), UNKNOWN, code=1)
    assert sorted(said.lines) == sorted(
        [f"{text(other)}  not a dead letter: it is CANCELLED", f"{UNKNOWN}  no such task"]
    )
    said = operator("dead", "resubmit", "--all", answer="y\n")
    assert "resubmit 1 dead letter (1 BOOM)?" in said.err
    assert said.lines == ["1 dead letter resubmitted"]
    assert lab.statuses([dead]) == [TaskStatus.PENDING]
    again = lab.reach(TaskStatus.STALLED).id
    assert operator("dead", "delete", text(again)).lines == [f"{text(again)}  deleted"]
    assert lab.statuses([again, other]) == [None, CANCELLED]

"""Rows that no verb of ours writes: they fail alone, are named, and can be deleted."""

from __future__ import annotations

import pytest

from holdfast.core.decide import Change, decide
from holdfast.core.errors import StoreError, UnreadableRow
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Crashed
from holdfast.core.records import TaskFilter
from holdfast.core.status import AttemptOutcome, TaskStatus
from holdfast.store import rows
from holdfast.store.verbs import finish, inspect, leases, refusal, unreadable
from holdfast.store.verbs.leases import Abandoned
from tests.support.stores import Kind, Lab
from tests.support.verbs import HOST, LEASE_US, WORKER, step

NONSENSE = "nonsense"


def spoil(lab: Lab, id: bytes, column: str, value: object) -> None:
    """Write into a row by hand."""
    lab.sql(f"UPDATE holdfast_tasks SET {column} = :value WHERE id = :id", id=id, value=value)


def crashed(task: Abandoned) -> Change:
    return decide(task, Crashed(), Policy.decode(task.task_options), lambda: 0.5)


def test_a_task_whose_options_cannot_be_read_fails_at_the_claim(lab: Lab) -> None:
    bad, good = lab.send(), lab.send()
    spoil(lab, bad, "task_options", NONSENSE)

    claimed = lab.claim()
    assert [task.id for task in claimed.tasks] == [good]
    (refused,) = claimed.refused
    lab.run(refusal.refuse([refused], token=claimed.token, hostname=HOST, worker_id=WORKER))

    assert lab.status(bad) is TaskStatus.FAILED
    (ending,) = lab.run(inspect.endings([bad])).values()
    assert ending.error_code == "INVALID_ROW"
    assert "task_options" in (ending.failed_reason or "")
    (attempt,) = lab.run(inspect.attempts(bad))
    assert attempt.outcome is AttemptOutcome.FAILED


def test_a_task_whose_options_cannot_be_read_fails_when_it_is_recovered(lab: Lab) -> None:
    bad, good = lab.running(), lab.running()
    spoil(lab, bad.id, "task_options", NONSENSE)
    lab.clock.advance(LEASE_US / 1_000_000 + 1)

    for _ in range(2):
        assert lab.run(leases.recover(crashed)) is not None
    assert lab.status(good.id) is TaskStatus.PENDING
    assert lab.status(bad.id) is TaskStatus.FAILED
    assert lab.run(leases.recover(crashed)) is None
    assert lab.run(inspect.endings([bad.id]))[bad.id].error_code == "INVALID_ROW"


def test_arguments_that_are_too_long_are_not_handed_out(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LONGEST_PAYLOAD", 1_000)
    long, short = lab.send(args=f'["{"x" * 2_000}"]'), lab.send()

    claimed = lab.claim()
    assert [task.id for task in claimed.tasks] == [short]
    (refused,) = claimed.refused
    assert "args" in refused.reason
    lab.run(refusal.refuse([refused], token=claimed.token, hostname=HOST, worker_id=WORKER))
    assert lab.status(long) is TaskStatus.FAILED


def test_a_counter_that_cannot_be_counted_up_is_never_claimed(lab: Lab) -> None:
    bad, good = lab.send(), lab.send()
    spoil(lab, bad, "attempt", 2**31 - 1)
    assert [task.id for task in lab.claim().tasks] == [good]


def test_an_attempt_row_that_is_there_already_keeps_no_task_from_ending(lab: Lab) -> None:
    completed, failed = lab.running(), lab.running()
    for task in (completed, failed):
        lab.run(
            finish.end(
                [finish.RunChange(task.key, task.token, refusal.invalid("an older story"), pid=7)]
            )
        )
        spoil_status = (
            "UPDATE holdfast_tasks SET status = 'RUNNING', claim_token = :token, "
            "finished_at = NULL, failed_at = NULL, error_code = NULL, dead = NULL WHERE id = :id"
        )
        lab.sql(spoil_status, token=task.token, id=task.id)

    lab.complete(completed, "1")
    lab.run(finish.end([finish.RunChange(failed.key, failed.token, refusal.invalid("anew"))]))

    assert lab.status(completed.id) is TaskStatus.COMPLETED
    assert lab.status(failed.id) is TaskStatus.FAILED
    (first,) = lab.run(inspect.attempts(completed.id))
    assert first.outcome is AttemptOutcome.COMPLETED
    assert first.error_code is None
    (second,) = lab.run(inspect.attempts(failed.id))
    assert "anew" in (second.failed_reason or "")


def test_a_run_without_its_start_is_recovered(lab: Lab) -> None:
    task = lab.running()
    spoil(lab, task.id, "started_at", None)
    lab.clock.advance(LEASE_US / 1_000_000 + 1)

    done = lab.run(leases.recover(crashed))
    assert done is not None
    assert done.recovered == 1
    assert lab.status(task.id) is TaskStatus.PENDING


def test_a_run_without_its_start_is_completed(lab: Lab) -> None:
    task = lab.running()
    spoil(lab, task.id, "started_at", None)
    lab.complete(task, "1")
    assert lab.status(task.id) is TaskStatus.COMPLETED


@pytest.mark.parametrize("lab", [Kind.SQLITE_FILE], indirect=True)
def test_an_edge_to_no_task_keeps_no_parent_from_ending(lab: Lab) -> None:
    """PostgreSQL takes nothing but an id there."""
    workflow = new_id()
    parent = step(workflow)
    child = step(workflow, parent.id)
    lab.submit(parent, child)
    lab.sql(
        "INSERT INTO holdfast_task_dependencies (parent_id, child_id, on_status) "
        "VALUES (:id, 'zz', 'always')",
        id=parent.id,
    )

    lab.fail_and_resubmit(lab.started(lab.claim_of(parent.id)))
    assert lab.status(child.id) is TaskStatus.WAITING
    run = lab.started(lab.claim_of(parent.id))
    lab.run(finish.complete([finish.Completion(run.key, run.token, "1", in_workflow=True)]))
    assert lab.status(parent.id) is TaskStatus.COMPLETED
    assert lab.status(child.id) is TaskStatus.PENDING


def test_a_list_names_what_it_cannot_read(lab: Lab) -> None:
    bad, good = lab.send(), lab.send()
    spoil(lab, bad, "args", "{")

    page = lab.run(inspect.list_tasks(TaskFilter()))
    assert [task.id for task in page.tasks] == [good]
    (row,) = page.unreadable
    assert isinstance(row, UnreadableRow)
    assert (row.table, row.column) == ("holdfast_tasks", "args")
    assert lab.run(inspect.list_tasks(TaskFilter(tag="x"))).tasks == []


def test_what_cannot_be_read_is_deleted_by_its_key(lab: Lab) -> None:
    bad, good = lab.send(), lab.send()
    spoil(lab, bad, "kwargs", "[]")
    (row,) = lab.run(inspect.list_tasks(TaskFilter())).unreadable
    readable = lab.run(inspect.list_tasks(TaskFilter())).tasks[0]

    others = [rows.named(readable.id), "none", "9" * 5_000]
    done = lab.run(unreadable.delete_unreadable([row.key, *others]))
    assert done == {row.key: True, **dict.fromkeys(others, False)}
    page = lab.run(inspect.list_tasks(TaskFilter()))
    assert [task.id for task in page.tasks] == [good]
    assert page.unreadable == ()


@pytest.mark.parametrize(
    ("column", "value"), [("queue_name", "q" * 8_000), ("task_name", ""), ("task_name", "n" * 256)]
)
def test_the_schema_refuses_names_that_no_task_and_no_queue_has(
    lab: Lab, column: str, value: str
) -> None:
    id = lab.send()
    with pytest.raises(StoreError):
        spoil(lab, id, column, value)


def test_an_attempt_that_cannot_be_read_hides_no_other(lab: Lab) -> None:
    tasks = [lab.running(), lab.running()]
    for task in tasks:
        lab.fail(task)
    of_task = "task_id = :key" if isinstance(tasks[0].key, bytes) else "task_seq = :key"
    far = "'infinity'" if isinstance(tasks[0].key, bytes) else "9000000000000000000"
    lab.sql(
        f"UPDATE holdfast_task_attempts SET finished_at = {far} WHERE {of_task}", key=tasks[0].key
    )
    found = lab.run(inspect.last_errors([task.id for task in tasks]))
    assert list(found) == [tasks[1].id]

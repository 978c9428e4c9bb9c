"""resubmit, delete, reschedule: what an operator does to tasks that are not running."""

from __future__ import annotations

import pytest

from holdfast.core.errors import UpstreamEnded
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import CancelAcknowledged, Crashed, Failed
from holdfast.core.records import Edge
from holdfast.core.status import TaskStatus
from holdfast.store.op import At
from holdfast.store.verbs import leases, operate
from tests.support.stores import MORNING, SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM, ENDED, Case, step

S = TaskStatus
HOUR = 3600 * SECOND


def keep_records(lab: Lab, case: Case) -> None:
    """A log line and a checkpoint, such as a run of the task would leave."""
    at = At(lab.clock.now)
    key = "task_seq" if lab.engine == "sqlite" else "task_id"
    lab.sql(
        f"INSERT INTO holdfast_checkpoints ({key}, name, value, attempt, created_at) "
        "VALUES (:key, 'step', '1', 1, :at)",
        key=case.key,
        at=at,
    )
    data = "x'41'" if lab.engine == "sqlite" else "'A'"
    lab.sql(
        f"INSERT INTO holdfast_task_logs ({key}, attempt, part, written_at, data) "
        f"VALUES (:key, 1, 1, :at, {data})",
        key=case.key,
        at=at,
    )


def live_workflow(lab: Lab, id: bytes, *, finished_at: int | None = None) -> None:
    lab.sql(
        "INSERT INTO holdfast_workflows "
        "(workflow_id, workflow_name, version, status, on_failure, digest, steps, sent_at, "
        "created_at, updated_at, finished_at) "
        "VALUES (:id, 'w', 1, :status, 'continue', '', 1, :at, :at, :at, :finished_at)",
        id=id,
        status="RUNNING" if finished_at is None else "COMPLETED",
        at=At(MORNING),
        finished_at=None if finished_at is None else At(finished_at),
    )


# resubmit


def test_resubmit_clears_the_ending_and_keeps_the_history(lab: Lab) -> None:
    task = lab.running(max_retries=1, good_until=MORNING + HOUR)
    lab.end(task, Failed(BOOM, listed=True), Policy(retry=Retry(1)))
    lab.end(lab.run_again(task.id), Crashed(), Policy(max_crashes=1))
    before = lab.task(task.id)
    assert (before.retry_count, before.crash_count, before.dead) == (1, 1, True)
    now = lab.clock.advance(60)
    assert lab.run(operate.resubmit([task.id])) == {task.id: True}
    after = lab.task(task.id)
    assert (after.status, after.enqueued_at) == (S.PENDING, now)
    assert (after.retry_count, after.crash_count, after.attempt) == (0, 0, 2)
    assert (after.finished_at, after.failed_at, after.completed_at) == (None, None, None)
    assert (after.error_code, after.failed_reason, after.result) == (None, None, None)
    assert (after.dead, after.good_until, after.next_retry_at) == (False, None, None)
    assert (after.first_started_at, after.created_at) == (before.first_started_at, MORNING)
    assert len(lab.attempts(task.id)) == 2


def test_resubmit_can_keep_the_retries_that_were_spent(lab: Lab) -> None:
    task = lab.running(max_retries=1)
    lab.end(task, Failed(BOOM, listed=True), Policy(retry=Retry(1)))
    lab.end(lab.run_again(task.id), Crashed(), Policy(max_crashes=1))
    lab.run(operate.resubmit([task.id], keep_retries=True))
    after = lab.task(task.id)
    assert (after.retry_count, after.crash_count) == (1, 1)


def test_resubmit_can_give_a_new_deadline_and_time(lab: Lab) -> None:
    case = lab.reach(S.EXPIRED)
    lab.run(operate.resubmit([case.id], good_until=MORNING + 2 * HOUR, run_at=MORNING + HOUR))
    after = lab.task(case.id)
    assert (after.status, after.due_at) == (S.SCHEDULED, MORNING + HOUR)
    assert after.good_until == after.expire_at == MORNING + 2 * HOUR


@pytest.mark.parametrize(("fresh", "left"), [(False, 1), (True, 0)])
def test_resubmit_keeps_log_and_checkpoints_unless_it_is_to_start_afresh(
    lab: Lab, fresh: bool, left: int
) -> None:
    case, other = lab.reach(S.FAILED), lab.reach(S.FAILED)
    keep_records(lab, case)
    keep_records(lab, other)
    lab.run(operate.resubmit([case.id], fresh=fresh))
    found = lab.contents("checkpoints", "task_logs")
    assert len(found["checkpoints"]) == left + 1
    assert len(found["task_logs"]) == 2


def test_nothing_leaves_completed_and_each_id_is_answered(lab: Lab) -> None:
    done, failed, running = lab.reach(S.COMPLETED), lab.reach(S.FAILED), lab.reach(S.RUNNING)
    unknown = new_id()
    assert lab.run(operate.resubmit([done.id, failed.id, running.id, unknown])) == {
        done.id: False,
        failed.id: True,
        running.id: False,
        unknown: False,
    }
    assert lab.statuses([done.id, failed.id, running.id]) == [S.COMPLETED, S.PENDING, S.RUNNING]


def test_a_cancelled_run_can_be_resubmitted_and_cancelled_again(lab: Lab) -> None:
    task = lab.running()
    for attempt in (1, 2):
        lab.cancel(task.id)
        lab.end(task, CancelAcknowledged())
        assert lab.task(task.id).attempt == attempt
        lab.run(operate.resubmit([task.id]))
        task = lab.run_again(task.id)
    assert [row.outcome for row in lab.attempts(task.id)] == ["CANCELLED"] * 2


# resubmit in a workflow


def test_steps_that_were_skipped_are_resubmitted_with_the_one_they_wait_for(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = step(workflow, parent.id)
    grandchild = step(workflow, child.id)
    on_failure = step(workflow, Edge(parent.id, "failure"))
    lab.submit(child, grandchild, on_failure)
    lab.fail(parent)
    assert lab.statuses([child.id, grandchild.id, on_failure.id]) == [
        S.CANCELLED,
        S.CANCELLED,
        S.PENDING,
    ]
    lab.complete(lab.run_again(on_failure.id))
    lab.run(operate.resubmit([parent.id]))
    assert lab.statuses([parent.id, child.id, grandchild.id, on_failure.id]) == [
        S.PENDING,
        S.WAITING,
        S.WAITING,
        S.COMPLETED,
    ]
    task = lab.task(child.id)
    assert (task.deps_needed, task.deps_open, task.error_code) == (1, 1, None)
    for id in (parent.id, child.id, grandchild.id):
        lab.complete(lab.run_again(id))
    assert lab.statuses([child.id, grandchild.id]) == [S.COMPLETED] * 2


def test_no_child_is_counted_down_twice(lab: Lab) -> None:
    """A parent ends, is resubmitted and ends again, while its child waits for another."""
    workflow = new_id()
    flaky = lab.running(workflow_id=workflow)
    steady = lab.running(workflow_id=workflow)
    child = step(workflow, Edge(flaky.id, "always"), steady.id)
    lab.submit(child)
    lab.fail(flaky)
    assert (lab.task(child.id).deps_needed, lab.task(child.id).deps_open) == (1, 1)
    lab.run(operate.resubmit([flaky.id]))
    assert (lab.task(child.id).deps_needed, lab.task(child.id).deps_open) == (2, 2)
    lab.complete(lab.run_again(flaky.id))
    assert lab.status(child.id) is S.WAITING
    lab.complete(steady)
    assert lab.status(child.id) is S.PENDING


def test_a_step_that_has_run_stays_as_it_is(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = step(workflow, Edge(parent.id, "always"))
    lab.submit(child)
    lab.fail(parent)
    lab.fail(lab.run_again(child.id))
    before = lab.task(child.id)
    lab.run(operate.resubmit([parent.id]))
    assert lab.task(child.id) == before
    lab.complete(lab.run_again(parent.id))
    assert lab.task(child.id) == before


def refused(lab: Lab, *ids: bytes) -> UpstreamEnded:
    """A resubmit of these steps is refused, and writes nothing, whatever else is in it."""
    other = lab.reach(S.FAILED, queue_name="aside").id
    before = lab.contents()
    with pytest.raises(UpstreamEnded) as caught:
        lab.run(operate.resubmit([other, *ids]))
    assert lab.contents() == before
    return caught.value


@on_each_engine
def test_a_skipped_step_is_not_resubmitted_without_the_parent_it_waits_for(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = step(workflow, parent.id)
    grandchild = step(workflow, child.id)
    lab.submit(child, grandchild)
    lab.fail(parent)
    error = refused(lab, child.id)
    assert (error.task_id.bytes, error.status, error.verb) == (child.id, S.CANCELLED, "resubmit")
    assert error.parent_id is not None
    assert error.parent_id.bytes == parent.id
    assert f"success of task {error.parent_id} (t), which is FAILED: resubmit" in str(error)
    error = refused(lab, grandchild.id, child.id)
    assert (error.task_id.bytes, len(error.refused)) == (child.id, 2)
    lab.run(operate.resubmit([parent.id]))
    lab.complete(lab.run_again(parent.id))
    assert lab.statuses([child.id, grandchild.id]) == [S.PENDING, S.WAITING]


@on_each_engine
def test_steps_are_resubmitted_together_with_what_they_wait_for_in_any_order(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = step(workflow, parent.id)
    grandchild = step(workflow, child.id)
    lab.submit(child, grandchild)
    lab.fail(parent)
    # The one between them comes along by itself.
    ids = [grandchild.id, parent.id]
    assert lab.run(operate.resubmit(ids)) == dict.fromkeys(ids, True)
    assert lab.statuses([parent.id, child.id, grandchild.id]) == [S.PENDING, S.WAITING, S.WAITING]
    for id in (parent.id, child.id, grandchild.id):
        lab.complete(lab.run_again(id))
    assert lab.run(leases.audit()).stuck == 0


@on_each_engine
def test_a_step_is_resubmitted_by_how_its_parents_stand_now(lab: Lab) -> None:
    """It had ended by itself when its parent failed, so the parent's second run was not for it."""
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = step(workflow, parent.id)
    on_failure = step(workflow, Edge(parent.id, "failure"))
    late = step(workflow, parent.id)
    lab.submit(child, on_failure, late)
    lab.cancel(child.id)
    lab.cancel(on_failure.id)
    lab.cancel(late.id)
    lab.fail(parent)
    assert lab.task(child.id).deps_needed == 1
    lab.run(operate.resubmit([parent.id]))
    assert lab.status(child.id) is S.CANCELLED
    # It runs again: there is something to wait for.
    assert lab.run(operate.resubmit([late.id])) == {late.id: True}
    task = lab.task(late.id)
    assert (task.status, task.deps_needed, task.deps_open) == (S.WAITING, 1, 1)
    lab.complete(lab.run_again(parent.id))
    assert lab.status(late.id) is S.PENDING
    # It has completed: there is nothing to wait for.
    assert lab.run(operate.resubmit([child.id])) == {child.id: True}
    task = lab.task(child.id)
    assert (task.status, task.deps_needed, task.deps_open) == (S.PENDING, 0, 0)


@on_each_engine
def test_a_step_for_a_failure_is_not_needed_after_a_success(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = step(workflow, Edge(parent.id, "failure"))
    lab.submit(child)
    lab.complete(parent)
    assert "which has completed: it is not needed" in str(refused(lab, child.id))
    lab.run(operate.delete([parent.id]))
    assert "has been deleted: send it anew" in str(refused(lab, child.id))


@on_each_engine
def test_a_step_that_still_cannot_run_is_not_resubmitted_with_one_of_its_parents(lab: Lab) -> None:
    workflow = new_id()
    parents = [lab.running(workflow_id=workflow) for _ in range(2)]
    child = step(workflow, *(parent.id for parent in parents))
    lab.submit(child)
    for parent in parents:
        lab.fail(parent)
    lab.run(operate.resubmit([parents[0].id]))
    assert lab.status(child.id) is S.CANCELLED
    lab.complete(lab.run_again(parents[0].id))
    assert lab.status(child.id) is S.CANCELLED
    lab.run(operate.resubmit([parents[1].id]))
    assert lab.status(child.id) is S.WAITING
    lab.complete(lab.run_again(parents[1].id))
    assert lab.status(child.id) is S.PENDING


# delete


@on_each_engine
@pytest.mark.parametrize("status", ENDED)
def test_delete_removes_an_ended_task_with_all_that_belongs_to_it(
    lab: Lab, status: TaskStatus
) -> None:
    workflow = new_id()
    case, other = lab.reach(status, workflow_id=workflow), lab.reach(S.FAILED)
    child = step(workflow, Edge(case.id, "always"))
    lab.submit(child)
    keep_records(lab, case)
    keep_records(lab, other)
    assert lab.run(operate.delete([case.id])) == {case.id: True}
    found = lab.contents()
    assert (len(found["tasks"]), len(found["task_attempts"])) == (2, 1)
    assert (len(found["task_logs"]), len(found["checkpoints"])) == (1, 1)
    assert found["task_dependencies"] == []
    assert lab.status(child.id) is S.PENDING
    assert lab.run(operate.delete([case.id])) == {case.id: False}


def test_a_step_of_a_live_workflow_stays(lab: Lab) -> None:
    live, over = new_id(), new_id()
    live_workflow(lab, live)
    live_workflow(lab, over, finished_at=MORNING)
    kept, gone = lab.reach(S.COMPLETED, workflow_id=live), lab.reach(S.FAILED, workflow_id=over)
    pending = lab.send()
    assert lab.run(operate.delete([kept.id, gone.id, pending])) == {
        kept.id: False,
        gone.id: True,
        pending: False,
    }


# reschedule


def test_reschedule_changes_only_what_is_said(lab: Lab) -> None:
    id = lab.send(delay_us=HOUR)
    before = lab.task(id)
    assert lab.run(operate.reschedule([id], priority=3)) == {id: True}
    after = lab.task(id)
    assert (after.priority, after.queue_name) == (3, "q")
    assert (after.status, after.due_at, after.run_at) == (S.SCHEDULED, before.due_at, before.run_at)
    lab.run(operate.reschedule([id], queue="other"))
    after = lab.task(id)
    assert (after.priority, after.queue_name, after.due_at) == (3, "other", before.due_at)


def test_reschedule_moves_a_pending_task_without_costing_it_its_place(lab: Lab) -> None:
    id = lab.send()
    lab.clock.advance(9)
    lab.run(operate.reschedule([id], queue="other"))
    task = lab.task(id)
    assert (task.status, task.enqueued_at) == (S.PENDING, MORNING)
    assert lab.claim(queue="other").tasks[0].id == id


def test_reschedule_to_a_time_and_back_to_now(lab: Lab) -> None:
    id = lab.send()
    lab.run(operate.reschedule([id], move=True, run_at=MORNING + HOUR))
    assert (lab.status(id), lab.task(id).due_at) == (S.SCHEDULED, MORNING + HOUR)
    now = lab.clock.advance(3)
    lab.run(operate.reschedule([id], move=True))
    task = lab.task(id)
    assert (task.status, task.due_at, task.enqueued_at) == (S.PENDING, None, now)


def test_reschedule_answers_for_each_id(lab: Lab) -> None:
    pending, claimed, unknown = lab.send(queue_name="x"), lab.reach(S.CLAIMED).id, new_id()
    assert lab.run(operate.reschedule([pending, claimed, unknown], priority=1)) == {
        pending: True,
        claimed: False,
        unknown: False,
    }
    assert lab.task(claimed).priority == 50


def test_an_empty_batch_is_no_work(lab: Lab) -> None:
    assert lab.run(operate.resubmit([])) == {}
    assert lab.run(operate.delete([])) == {}
    assert lab.run(operate.reschedule([], priority=1)) == {}

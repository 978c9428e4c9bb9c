"""Dependents: what the end of a task does to those that wait for it."""

from __future__ import annotations

from typing import get_args
from uuid import UUID

import pytest

from holdfast.core.decide import decide
from holdfast.core.errors import HoldfastError, TaskNotFound
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Crashed
from holdfast.core.payload.failure import decode_error
from holdfast.core.records import Edge, On, Submission, SubmitAnswer
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import dependents, finish, leases, operate, timing
from tests.support.stores import MORNING, SECOND, Lab, on_each_engine
from tests.support.verbs import ENDED, LEASE_US, PID, Case, step, submission

S = TaskStatus
SATISFIES: dict[TaskStatus, set[On]] = {
    S.COMPLETED: {"success", "always"},
    S.FAILED: {"failure", "always"},
    S.STALLED: {"failure", "always"},
    S.DROPPED: {"failure", "always"},
    S.EXPIRED: {"failure", "always"},
    S.CANCELLED: {"always"},
}
SAYS = {
    S.COMPLETED: "UPSTREAM_SUCCEEDED",
    S.CANCELLED: "UPSTREAM_CANCELLED",
    **dict.fromkeys((S.FAILED, S.STALLED, S.DROPPED, S.EXPIRED), "UPSTREAM_FAILED"),
}
"""Why a step is skipped whose edge such an ending does not satisfy."""
HOUR = 3600 * SECOND


def send(lab: Lab, workflow: bytes, *parents: bytes | Edge, **fields: object) -> bytes:
    sent = step(workflow, *parents, **fields)
    lab.submit(sent)
    return sent.id


def to_end(lab: Lab, workflow: bytes, ending: TaskStatus) -> Case:
    """A step that can be brought to this end."""
    until = lab.clock.now + SECOND if ending is S.EXPIRED else None
    return lab.reach(S.PENDING, workflow_id=workflow, good_until=until)


def complete(lab: Lab, *ids: bytes) -> None:
    """Run these steps, which are the first in the queue, to a good end, in one batch."""
    tasks = [task for task in lab.claim().tasks if task.id in ids]
    assert {task.id for task in tasks} == set(ids)
    lab.start(*tasks)
    lab.run(
        finish.complete(
            [finish.Completion(t.key, t.token, "1", PID, in_workflow=True) for t in tasks]
        )
    )


def counts(lab: Lab, id: bytes) -> tuple[int, int]:
    task = lab.task(id)
    return task.deps_needed, task.deps_open


# One edge.


@on_each_engine
@pytest.mark.parametrize("on", get_args(On))
@pytest.mark.parametrize("ending", ENDED)
def test_an_edge_is_satisfied_by_the_endings_it_is_for(
    lab: Lab, ending: TaskStatus, on: On
) -> None:
    workflow = new_id()
    parent = to_end(lab, workflow, ending)
    child = send(lab, workflow, Edge(parent.id, on))
    assert lab.status(child) is S.WAITING
    lab.bring(parent, ending)
    task = lab.task(child)
    assert task.deps_open == 0
    if on in SATISFIES[ending]:
        assert (task.status, task.deps_needed) == (S.PENDING, 0)
        assert task.enqueued_at == lab.clock.now
    else:
        assert (task.status, task.deps_needed) == (S.CANCELLED, 1)
        assert task.error_code == SAYS[ending]
        assert task.finished_at == lab.clock.now
        assert task.result is not None
        assert decode_error(task.result).error_code == task.error_code


@on_each_engine
@pytest.mark.parametrize("ending", ENDED)
def test_a_step_that_is_sent_after_its_parent_ended_does_not_wait_for_ever(
    lab: Lab, ending: TaskStatus
) -> None:
    workflow = new_id()
    parent = lab.reach(ending, workflow_id=workflow).id
    child = send(lab, workflow, parent)
    assert lab.status(child) is (S.PENDING if ending is S.COMPLETED else S.CANCELLED)


@on_each_engine
@pytest.mark.parametrize("ending", ENDED)
def test_a_skipped_step_says_why_all_the_way_down(lab: Lab, ending: TaskStatus) -> None:
    workflow = new_id()
    parent = to_end(lab, workflow, ending)
    child = send(lab, workflow, Edge(parent.id, "failure" if ending is S.COMPLETED else "success"))
    grandchild = send(lab, workflow, child)
    rescue = send(lab, workflow, Edge(child, "always"))
    on_failure = send(lab, workflow, Edge(child, "failure"))
    lab.bring(parent, ending)
    for skipped in (child, grandchild, on_failure):
        task = lab.task(skipped)
        assert (task.status, task.error_code) == (S.CANCELLED, SAYS[ending])
        assert task.failed_reason
        assert lab.attempts(skipped) == []
    assert lab.status(rescue) is S.PENDING


@on_each_engine
@pytest.mark.parametrize("first", [S.COMPLETED, S.FAILED, S.CANCELLED])
@pytest.mark.parametrize("last", [S.COMPLETED, S.FAILED, S.CANCELLED])
def test_of_several_reasons_the_gravest_is_said_in_any_order(
    lab: Lab, first: TaskStatus, last: TaskStatus
) -> None:
    workflow = new_id()
    parents = [to_end(lab, workflow, ending) for ending in (first, last)]
    edges = [
        Edge(parent.id, "failure" if ending is S.COMPLETED else "success")
        for parent, ending in zip(parents, (first, last), strict=True)
    ]
    child = send(lab, workflow, *edges, deps_needed=1)
    lab.bring(parents[0], first)
    assert lab.status(child) is S.WAITING
    lab.bring(parents[1], last)
    gravest = next(s for s in (S.FAILED, S.CANCELLED, S.COMPLETED) if s in (first, last))
    assert lab.task(child).error_code == SAYS[gravest]


def test_recovery_resolves_dependents_too(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = send(lab, workflow, Edge(parent.id, "failure"))
    lab.clock.advance(LEASE_US / SECOND + 1)
    lab.run(
        leases.recover(lambda task: decide(task, Crashed(), Policy(max_crashes=1), lambda: 0.5))
    )
    assert lab.status(child) is S.PENDING


def test_another_run_of_the_parent_resolves_nothing(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = send(lab, workflow, parent.id)
    lab.end(parent, Crashed())
    assert lab.status(parent.id) is S.PENDING
    assert (lab.status(child), counts(lab, child)) == (S.WAITING, (1, 1))


# Several parents.


def test_all_waits_for_the_last_parent(lab: Lab) -> None:
    workflow = new_id()
    a, b = send(lab, workflow), send(lab, workflow)
    child = send(lab, workflow, a, b)
    assert counts(lab, child) == (2, 2)
    complete_one(lab, a)
    assert (lab.status(child), counts(lab, child)) == (S.WAITING, (1, 1))
    complete_one(lab, b)
    assert (lab.status(child), counts(lab, child)) == (S.PENDING, (0, 0))


def complete_one(lab: Lab, id: bytes) -> None:
    lab.complete(lab.run_again(id))


def test_two_last_parents_in_one_batch_are_counted_together(lab: Lab) -> None:
    workflow = new_id()
    parents = [send(lab, workflow) for _ in range(3)]
    child = send(lab, workflow, *parents)
    complete(lab, *parents)
    assert (lab.status(child), counts(lab, child)) == (S.PENDING, (0, 0))


def test_any_goes_on_with_the_first_and_ignores_the_rest(lab: Lab) -> None:
    workflow = new_id()
    a, b = send(lab, workflow), send(lab, workflow)
    child = send(lab, workflow, a, b, deps_needed=1)
    complete_one(lab, a)
    assert lab.status(child) is S.PENDING
    before = lab.task(child)
    complete_one(lab, b)
    assert lab.status(child) is S.PENDING
    assert lab.task(child).enqueued_at == before.enqueued_at


def test_any_is_skipped_when_no_parent_is_left(lab: Lab) -> None:
    workflow = new_id()
    a, b = send(lab, workflow), send(lab, workflow)
    child = send(lab, workflow, a, b, deps_needed=1)
    lab.fail(lab.run_again(a))
    assert lab.status(child) is S.WAITING
    lab.fail(lab.run_again(b))
    assert lab.status(child) is S.CANCELLED


@pytest.mark.parametrize("good", [0, 1, 2, 3])
def test_at_least_two_of_three(lab: Lab, good: int) -> None:
    workflow = new_id()
    parents = [send(lab, workflow) for _ in range(3)]
    child = send(lab, workflow, *parents, deps_needed=2, priority=99)
    for place, parent in enumerate(parents):
        task = lab.run_again(parent)
        if place < good:
            lab.complete(task)
        else:
            lab.fail(task)
    assert lab.status(child) is (S.PENDING if good >= 2 else S.CANCELLED)


def test_a_whole_graph_in_one_batch_runs_in_its_order(lab: Lab) -> None:
    workflow = new_id()
    a = step(workflow)
    b, c = step(workflow, a.id), step(workflow, a.id)
    d = step(workflow, b.id, c.id)
    lab.submit(d, c, b, a)
    order: list[bytes] = []
    while tasks := lab.claim().tasks:
        order += [task.id for task in tasks]
        lab.start(*tasks)
        for task in tasks:
            lab.complete(task)
    assert order[0] == a.id
    assert set(order[1:3]) == {b.id, c.id}
    assert order[3:] == [d.id]


def test_a_repeated_send_of_a_step_counts_its_edges_once(lab: Lab) -> None:
    workflow = new_id()
    a = step(workflow)
    b = step(workflow, a.id)
    lab.submit(a, b)
    complete_one(lab, a.id)
    before = lab.contents()
    lab.submit(a, b)
    assert lab.contents() == before


@pytest.mark.parametrize("on", get_args(On))
def test_the_same_parent_twice_is_one_parent(lab: Lab, on: On) -> None:
    workflow = new_id()
    parent = send(lab, workflow)
    child = send(lab, workflow, Edge(parent, on), Edge(parent, on))
    assert counts(lab, child) == (1, 1)
    assert len(lab.contents()["task_dependencies"]) == 1
    complete_one(lab, parent)
    assert lab.status(child) is (S.CANCELLED if on == "failure" else S.PENDING)


# Graphs in which somebody would wait for ever.


def refuses(lab: Lab, *batch: Submission, saying: str) -> HoldfastError:
    """Nothing of the batch is written, whatever else is in it."""
    before = lab.contents()
    with pytest.raises(HoldfastError, match=saying) as caught:
        lab.submit(submission(), *batch, submission())
    assert lab.contents() == before
    return caught.value


def test_a_parent_that_does_not_exist(lab: Lab) -> None:
    child = step(new_id(), missing := new_id())
    error = refuses(lab, child, saying="for which task")
    assert isinstance(error, TaskNotFound)
    assert error.needed_by is not None
    assert (error.task_id, error.needed_by) == (UUID(bytes=missing), UUID(bytes=child.id))


def test_a_parent_that_was_deleted_is_missed_by_a_new_step_only(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.reach(S.COMPLETED, workflow_id=workflow).id
    child = step(workflow, parent)
    lab.submit(child)
    lab.run(operate.delete([parent]))
    (answer,) = lab.submit(child)
    assert answer.answer is SubmitAnswer.EXISTING
    refuses(lab, step(workflow, parent), saying="no task has the id")


def test_a_parent_that_gave_way_to_the_holder_of_its_key(lab: Lab) -> None:
    workflow = new_id()
    lab.send(unique_slot="key")
    parent = step(workflow, unique_slot="key")
    refuses(lab, parent, step(workflow, parent.id), saying="no task has the id")


@pytest.mark.parametrize("of_parent", [None, new_id()], ids=["none", "another"])
def test_a_parent_that_is_no_step_of_the_workflow(lab: Lab, of_parent: bytes | None) -> None:
    parent = lab.send(workflow_id=of_parent)
    refuses(lab, step(new_id(), parent), saying="not steps of one workflow")


def test_a_child_that_is_no_step(lab: Lab) -> None:
    parent = lab.send()
    refuses(lab, submission(depends_on=[Edge(parent)]), saying="not steps of one workflow")


def test_the_same_parent_on_two_conditions(lab: Lab) -> None:
    workflow = new_id()
    parent = send(lab, workflow)
    edges = Edge(parent, "success"), Edge(parent, "failure")
    refuses(lab, step(workflow, *edges), saying="on success and on failure")


@pytest.mark.parametrize("needed", [-1, 0, 2])
def test_a_number_of_parents_that_there_are_not(lab: Lab, needed: int) -> None:
    workflow = new_id()
    parent = send(lab, workflow)
    twice = step(workflow, parent, parent, deps_needed=needed)
    refuses(lab, twice, saying="from 1 to 1")


def test_steps_that_wait_for_each_other(lab: Lab) -> None:
    workflow, ids = new_id(), [new_id() for _ in range(3)]
    ring = [step(workflow, ids[n - 1], id=ids[n]) for n in range(3)]
    refuses(lab, *ring, saying="wait for each other")
    refuses(lab, step(workflow, ids[0], id=ids[0]), saying="wait for each other")


# Unblocking.


def test_an_unblocked_step_with_a_time_waits_for_it(lab: Lab) -> None:
    workflow = new_id()
    parent = send(lab, workflow)
    child = send(lab, workflow, parent, run_at=MORNING + HOUR)
    assert lab.task(child).due_at is None
    complete_one(lab, parent)
    task = lab.task(child)
    assert (task.status, task.due_at, task.enqueued_at) == (
        S.SCHEDULED,
        MORNING + HOUR,
        MORNING + HOUR,
    )


def test_good_for_counts_from_the_unblocking(lab: Lab) -> None:
    workflow = new_id()
    parent = send(lab, workflow)
    child = send(lab, workflow, parent, good_for_us=HOUR)
    assert lab.task(child).good_until is None
    now = lab.clock.advance(10)
    complete_one(lab, parent)
    task = lab.task(child)
    assert task.good_until == task.expire_at == now + HOUR


def test_a_waiting_step_can_expire_and_is_not_unblocked_afterwards(lab: Lab) -> None:
    workflow = new_id()
    parent = send(lab, workflow)
    child = send(lab, workflow, parent, good_until=MORNING + SECOND)
    after = send(lab, workflow, Edge(child, "failure"))
    lab.clock.advance(1)
    assert lab.run(timing.expire()) == [child]
    assert lab.status(after) is S.PENDING
    complete_one(lab, parent)
    assert lab.status(child) is S.EXPIRED


# Pausing a workflow.


def test_a_held_workflow_gives_nothing_to_claim_until_it_is_resumed(lab: Lab) -> None:
    workflow = new_id()
    pending, scheduled = send(lab, workflow), send(lab, workflow, delay_us=HOUR)
    running = lab.run_again(pending)
    waiting = send(lab, workflow, running.id)
    ready = send(lab, workflow)
    other = send(lab, new_id())
    assert lab.run(dependents.hold(workflow)) == 3
    assert [task.id for task in lab.claim().tasks] == [other]
    lab.complete(running)
    assert lab.statuses([scheduled, waiting, ready]) == [S.WAITING] * 3
    now = lab.clock.advance(5)
    lab.run(dependents.resume(workflow))
    assert lab.statuses([scheduled, waiting, ready]) == [S.SCHEDULED, S.PENDING, S.PENDING]
    assert lab.task(scheduled).due_at == MORNING + HOUR
    assert lab.task(ready).enqueued_at == now
    assert counts(lab, ready) == (0, 0)


def test_a_step_that_waits_for_a_parent_goes_on_waiting_after_the_pause(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child = send(lab, workflow, parent.id)
    lab.run(dependents.hold(workflow))
    lab.run(dependents.resume(workflow))
    assert (lab.status(child), counts(lab, child)) == (S.WAITING, (1, 1))
    lab.complete(parent)
    assert lab.status(child) is S.PENDING


def test_holding_and_resuming_twice_is_the_same_as_once(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow)
    child, ready = send(lab, workflow, parent.id), send(lab, workflow)
    assert lab.run(dependents.hold(workflow)) == 2
    assert lab.run(dependents.hold(workflow)) == 0
    lab.run(dependents.resume(workflow))
    lab.run(dependents.resume(workflow))
    assert lab.statuses([child, ready]) == [S.WAITING, S.PENDING]
    assert counts(lab, child) == (1, 1)
    assert lab.run(dependents.hold(workflow)) == 2
    assert lab.status(ready) is S.WAITING


def test_a_pause_is_not_made_up_for_by_a_second_parent_of_any(lab: Lab) -> None:
    workflow = new_id()
    parents = [lab.running(workflow_id=workflow) for _ in range(2)]
    child = send(lab, workflow, *(parent.id for parent in parents), deps_needed=1)
    lab.run(dependents.hold(workflow))
    for parent in parents:
        lab.complete(parent)
    assert lab.status(child) is S.WAITING
    lab.run(dependents.resume(workflow))
    assert lab.status(child) is S.PENDING

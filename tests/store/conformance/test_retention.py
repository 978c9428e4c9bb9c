"""prune: what is forgotten, when, and what never is."""

from __future__ import annotations

import pytest

from holdfast.core.identity import new_id
from holdfast.core.records import WorkerState
from holdfast.core.status import TASK_TERMINAL_STATES, TaskStatus
from holdfast.store.op import At
from holdfast.store.verbs import retention, workers
from tests.support.locks import locked_rows
from tests.support.stores import MORNING, SECOND, Kind, Lab, Labs, on_each_engine

S = TaskStatus
DEAD = (S.FAILED, S.STALLED, S.DROPPED)
LATER = MORNING + 10**12


@on_each_engine
@pytest.mark.parametrize("status", [s for s in TaskStatus if s not in DEAD])
def test_only_what_has_ended_is_pruned(lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status)
    pruned = lab.run(retention.prune(before=LATER, dead_before=None))
    gone = status in TASK_TERMINAL_STATES
    assert pruned == (1, int(gone), None)
    assert (lab.status(case.id) is None) is gone
    assert lab.attempts(case.id) == []


@on_each_engine
@pytest.mark.parametrize("status", DEAD)
def test_dead_letters_have_a_time_of_their_own_and_none_keeps_them_for_ever(
    lab: Lab, status: TaskStatus
) -> None:
    case = lab.reach(status)
    assert lab.run(retention.prune(before=LATER, dead_before=None)).removed == 0
    assert lab.run(retention.prune(before=None, dead_before=lab.clock.now)).removed == 0
    assert lab.run(retention.prune(before=None, dead_before=lab.clock.now + 1)).removed == 1
    assert lab.status(case.id) is None


def test_a_failure_that_is_no_dead_letter_goes_with_the_others(lab: Lab) -> None:
    lab.reach(S.DROPPED, task_options='{"dead_letter":false}')
    assert lab.run(retention.prune(before=LATER, dead_before=None)).removed == 1


def test_none_keeps_everything(lab: Lab) -> None:
    lab.reach(S.COMPLETED)
    lab.reach(S.FAILED)
    assert lab.run(retention.prune(before=None, dead_before=None)).removed == 0


def test_what_ended_at_the_limit_is_kept_and_what_ended_before_it_goes(lab: Lab) -> None:
    old = lab.reach(S.COMPLETED)
    limit = lab.clock.advance(1)
    young = lab.reach(S.COMPLETED)
    assert lab.run(retention.prune(before=limit)).removed == 1
    assert lab.statuses([old.id, young.id]) == [None, S.COMPLETED]


def test_the_walk_goes_page_by_page_to_the_end(lab: Lab) -> None:
    ids = [lab.reach(S.COMPLETED).id if place % 2 else lab.send() for place in range(5)]
    first = lab.run(retention.prune(before=LATER, page=2))
    assert (first.examined, first.removed, first.next) == (2, 1, ids[1])
    assert first.next is not None
    second = lab.run(retention.prune(first.next, before=LATER, page=2))
    assert (second.examined, second.removed, second.next) == (2, 1, ids[3])
    assert second.next is not None
    third = lab.run(retention.prune(second.next, before=LATER, page=2))
    assert third == (1, 0, None)
    assert lab.statuses(ids) == [S.PENDING, None, S.PENDING, None, S.PENDING]


def test_a_step_of_a_live_workflow_stays(lab: Lab) -> None:
    workflow = new_id()
    lab.sql(
        "INSERT INTO holdfast_workflows "
        "(workflow_id, workflow_name, version, status, on_failure, digest, steps, sent_at, "
        "created_at, updated_at) VALUES (:id, 'w', 1, 'RUNNING', 'continue', '', 1, :at, :at, :at)",
        id=workflow,
        at=At(MORNING),
    )
    case = lab.reach(S.COMPLETED, workflow_id=workflow)
    assert lab.run(retention.prune(before=LATER)).removed == 0
    lab.sql("UPDATE holdfast_workflows SET finished_at = :at, status = 'COMPLETED'", at=At(MORNING))
    assert lab.run(retention.prune(before=LATER)).removed == 1
    assert lab.status(case.id) is None


def test_a_pruned_task_takes_its_attempts_with_it(lab: Lab) -> None:
    lab.complete(lab.running())
    kept = lab.running()
    lab.run(retention.prune(before=LATER))
    lab.complete(kept)
    found = lab.contents("tasks", "task_attempts")
    assert (len(found["tasks"]), len(found["task_attempts"])) == (1, 1)


def test_a_task_that_somebody_is_touching_is_left_for_the_next_walk(labs: Labs) -> None:
    with labs.open(Kind.POSTGRES) as lab:
        held, free = lab.reach(S.COMPLETED), lab.reach(S.COMPLETED)
        with locked_rows(lab, [held.id]):
            assert lab.run(retention.prune(before=LATER)).removed == 1
        assert lab.statuses([held.id, free.id]) == [S.COMPLETED, None]


def test_snapshots_of_workers_go_in_batches(lab: Lab) -> None:
    for _ in range(5):
        lab.run(workers.snapshot(WorkerState("w", "h", 1, 1, "[]", 0, 0, MORNING)))
        lab.clock.advance(1)
    limit = lab.clock.now - SECOND
    assert lab.run(retention.prune_worker_states(before=limit, batch=3)) == 3
    assert lab.run(retention.prune_worker_states(before=limit, batch=3)) == 1
    assert [state.snapshot_at for state in lab.run(workers.states("w"))] == [limit]


def test_workers_not_seen_for_long_are_forgotten(lab: Lab) -> None:
    for name in ("old", "new"):
        lab.run(
            workers.register(
                name,
                hostname="h",
                pid=1,
                version="1",
                lease_us=1,
                queues="[]",
                known="[]",
                settings="{}",
            )
        )
        lab.clock.advance(1)
    assert lab.run(retention.prune_workers(before=lab.clock.now - SECOND)) == 1
    assert [worker.worker_id for worker in lab.run(workers.list_workers())] == ["new"]

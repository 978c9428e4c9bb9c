"""A transaction of the user's stays open and holds rows of ours: nobody is delayed (PostgreSQL).

On SQLite the writer is alone by nature; there an open transaction of the user's is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psycopg
import pytest

from holdfast.core.decide import Change
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.records import BUSY, Answer, ClaimedTask, Landing
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.store.callers import postgres_connection
from holdfast.store.verbs import claims, finish, leases, retention, submit, timing
from tests.model.outcomes import change_for
from tests.support.stores import Kind, Lab, Labs
from tests.support.verbs import LEASE_US, PID, WORKER, step
from tests.support.workflows import begin, plan_of, status
from tests.support.workflows import step as step_of

COMPLETED, PENDING, RUNNING = TaskStatus.COMPLETED, TaskStatus.PENDING, TaskStatus.RUNNING
NOBODY_WAITS_S = 1.0


@pytest.fixture
def lab(labs: Labs) -> Iterator[Lab]:
    with labs.open(Kind.POSTGRES) as found:
        yield found


@pytest.fixture
def user(lab: Lab) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the user's, with a transaction that the test ends."""
    connection = psycopg.connect(lab.store.settings.address)
    yield connection
    connection.close()


@contextmanager
def at_once() -> Iterator[None]:
    began = monotonic()
    yield
    assert monotonic() - began < NOBODY_WAITS_S


def vanished(gone: leases.Abandoned) -> Change:
    return change_for("vanish", gone, Policy())


def complete_in(lab: Lab, user: psycopg.Connection[Any], task: ClaimedTask) -> Answer:
    """The task's code ends its own task, in its transaction with its own writes."""
    done = finish.Completion(task.key, task.token, "1", PID)
    op = finish.complete([done])
    return postgres_connection.run_on(user, op, lab.store.settings.schema)[task.key].answer


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_run_that_completes_itself(lab: Lab, user: psycopg.Connection[Any], ending: str) -> None:
    """Recovery takes the others of the lease and comes back for this one."""
    lab.send_many(2)
    held, other = lab.claim().tasks
    lab.start(held, other)
    assert complete_in(lab, user, held) is Answer.LANDED
    lab.clock.advance(60)

    with at_once():
        recovery = lab.run(leases.recover(vanished))
    assert recovery is not None
    assert (recovery.recovered, recovery.left) == (1, 1)
    assert lab.statuses([held.id, other.id]) == [RUNNING, PENDING]
    with at_once():
        again = lab.run(leases.recover(vanished, tried=[held.token]))
    assert again is None, "one that was tried is left for the next pass"

    getattr(user, ending)()
    lab.run(leases.recover(vanished))
    assert lab.status(held.id) is (COMPLETED if ending == "commit" else PENDING)
    assert len(lab.attempts(held.id)) == 1
    assert lab.run(leases.count()) == 0


def test_nobody_waits_for_a_task_that_is_held(lab: Lab, user: psycopg.Connection[Any]) -> None:
    """Every duty of a worker goes on around it."""
    lab.send_many(4)
    held, *others = lab.claim(3).tasks
    lab.start(held, *others)
    complete_in(lab, user, held)
    duties: dict[str, Callable[[], object]] = {
        "finish": lambda: lab.run(
            finish.complete(
                [finish.Completion(t.key, t.token, "1", PID) for t in (held, *others)],
                skip_locked=True,
            )
        ),
        "renew": lambda: lab.run(claims.renew([held.token], lease_us=LEASE_US)),
        "claim": lambda: lab.claim(),
        "promote": lambda: lab.run(timing.promote()),
        "expire": lambda: lab.run(timing.expire()),
        "prune": lambda: lab.run(retention.prune(before=lab.clock.now)),
    }
    for name, duty in duties.items():
        with at_once():
            answer = duty()
        if name == "finish":
            assert answer == {
                held.key: BUSY,
                **{t.key: Landing(Answer.LANDED, COMPLETED, 1) for t in others},
            }


def test_a_step_whose_child_is_held(lab: Lab, user: psycopg.Connection[Any]) -> None:
    """The user adds a step after one that waits, and thinks about it; the parent cannot end yet.

    Its run is over all the same: its worker tries again, and so does the reaper, and neither
    keeps anybody waiting meanwhile.
    """
    workflow = new_id()
    first = step(workflow)
    second = step(workflow, first.id)
    lab.submit(first, second)
    task = lab.started(lab.claim().tasks[0])
    third = step(workflow, second.id)
    postgres_connection.run_on(user, submit.submit([third]), lab.store.settings.schema)

    done = finish.Completion(task.key, task.token, "1", PID, in_workflow=True)
    ended = finish.RunChange(task.key, task.token, change_for("fail", task, Policy()), PID, WORKER)
    with at_once():
        assert lab.run(finish.complete([done], skip_locked=True)) == {task.key: BUSY}
        assert lab.run(finish.end([ended], skip_locked=True)) == {task.key: BUSY}
    lab.clock.advance(60)
    with at_once():
        recovery = lab.run(leases.recover(vanished))
    assert recovery is not None
    assert (recovery.recovered, recovery.left) == (0, 1)
    assert lab.status(task.id) is RUNNING

    user.commit()
    assert lab.run(finish.complete([done], skip_locked=True))[task.key].status is COMPLETED
    assert lab.statuses([second.id, third.id]) == [PENDING, TaskStatus.WAITING]


def test_a_step_whose_count_is_held(lab: Lab, user: psycopg.Connection[Any]) -> None:
    """The user ends a step in a transaction of its own: others that are counted with it wait."""
    plan = plan_of(*(step_of() for _ in range(3)))
    other = plan_of(step_of(), step_of())
    begin(lab, plan)
    begin(lab, other)
    tasks = lab.claim().tasks
    lab.start(*tasks)
    done = {
        task.id: finish.Completion(task.key, task.token, "1", PID, in_workflow=True)
        for task in tasks
    }
    held, *rest = (done[step.task.id] for step in plan.steps)
    free = [done[step.task.id] for step in other.steps]
    postgres_connection.run_on(user, finish.complete([held]), lab.store.settings.schema)
    with at_once():
        answers = lab.run(finish.complete([*rest, *free], skip_locked=True))
    assert [answers[one.key] for one in rest] == [BUSY, BUSY]
    assert {answers[one.key].status for one in free} == {COMPLETED}
    user.commit()
    answers = lab.run(finish.complete(rest, skip_locked=True))
    assert {answers[one.key].status for one in rest} == {COMPLETED}
    assert {status(lab, plan), status(lab, other)} == {WorkflowStatus.COMPLETED}

"""Workflows under racing finishers: each join runs once, every whole finishes, nothing hangs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.records import WorkflowFilter
from holdfast.store.op import Op
from holdfast.store.verbs import finish, workflows
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import LEASE_US, PID
from tests.support.workflows import begin, plan_of, step

WORKERS = 4
PATIENCE = 300.0


def diamonds(lab: Lab, number: int, width: int) -> list[bytes]:
    """Start so many; the ids of their joins."""
    joins = []
    for _ in range(number):
        middle = range(1, width + 1)
        plan = plan_of(step(), *(step(0) for _ in middle), step(*middle))
        joins.append(begin(lab, plan)[-1])
    return joins


def work(lab: Lab, number: int) -> int:
    """Claim, start and complete whatever there is, until every whole has ended."""
    done, until = 0, monotonic() + PATIENCE
    running = WorkflowFilter(status=frozenset({WorkflowStatus.RUNNING}))
    while monotonic() < until:
        tasks = lab.claim(7, worker=f"worker-{number}", lease_us=LEASE_US).tasks
        if not tasks:
            if not lab.run(workflows.find(running, limit=1)).workflows:
                return done
            continue
        lab.start(*tasks)
        ended = [
            finish.Completion(task.key, task.token, "1", PID, in_workflow=True) for task in tasks
        ]

        def make(ended: list[finish.Completion] = ended) -> Op[object]:
            return finish.complete(ended)  # type: ignore[return-value]

        lab.store.attempt(make)
        done += len(tasks)
    raise AssertionError("workflows hang")


@on_each_engine
@pytest.mark.parametrize(
    ("number", "width"),
    [(6, 20), pytest.param(200, 50, marks=pytest.mark.slow)],
)
def test_diamonds_are_joined_once(lab: Lab, number: int, width: int) -> None:
    joins = diamonds(lab, number, width)
    with ThreadPoolExecutor(WORKERS) as pool:
        done = sum(pool.map(lambda worker: work(lab, worker), range(WORKERS)))
    assert done == number * (width + 2)
    assert {lab.task(join).attempt for join in joins} == {1}
    ended = lab.run(workflows.find(WorkflowFilter(), limit=number + 1))
    assert {whole.status for whole in ended.workflows} == {WorkflowStatus.COMPLETED}

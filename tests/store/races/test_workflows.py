"""Workflows under racing finishers: each join runs once, every whole finishes, nothing hangs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event
from time import monotonic
from typing import Any

import pytest

from holdfast.core.errors import ClaimLost
from holdfast.core.outcome import CancelAcknowledged, Crashed, Failed, Outcome, Returned
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import StepEdge, WorkflowPlan
from holdfast.core.workflows.records import WorkflowFilter
from holdfast.store.op import Op
from holdfast.store.verbs import dependents, finish, resubmits, steering, timing, workflows
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import BOOM, LEASE_US, PID
from tests.support.workflows import begin, plan_of, step

WORKERS = 4
PATIENCE = 300.0
SOON = 60.0


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


# Steered while it runs.


def steer(lab: Lab) -> None:
    """What maintenance of a worker does for workflows."""
    needs = lab.store.attempt(steering.tended)
    for id in needs.stopping:
        to_the_end(lab, partial(steering.stop_some, id))
    for id in needs.resubmitting:
        to_the_end(lab, partial(resubmits.go_on, id, page=5))
    for id in needs.resumed:
        to_the_end(lab, partial(steering.release_some, id, batch=5))
    to_the_end(lab, steering.resolve_later)
    for id in lab.store.attempt(partial(steering.unheld, needs.paused)):
        to_the_end(lab, partial(dependents.hold, id, batch=5))


def to_the_end(lab: Lab, some: Callable[[], Op[int]]) -> None:
    while lab.store.attempt(some):
        pass


def run_some(lab: Lab, number: int, chance: random.Random) -> int:
    """Claim and start some steps, and end each in one way or another."""
    tasks = lab.claim(5, worker=f"worker-{number}", lease_us=LEASE_US).tasks
    if tasks:
        lab.start(*tasks)
    for task in tasks:
        outcome: Outcome = Returned("1")
        if chance.random() < 0.3:
            asked = lab.task(task.id).cancel_requested_at is not None
            failed: Outcome = Failed(BOOM) if chance.random() < 0.5 else Crashed()
            outcome = CancelAcknowledged() if asked else failed
        with suppress(ClaimLost):
            lab.end(task, outcome)
    return len(tasks)


def act(lab: Lab, ids: Sequence[bytes], chance: random.Random) -> None:
    """One thing that an operator may do."""
    id = chance.choice(ids)
    ways: list[Callable[[], Op[Any]]] = [
        lambda: steering.pause(id, by="ada"),
        lambda: steering.resume(id),
        lambda: steering.resume(id),
        lambda: steering.cancel(id, cleanup=chance.random() < 0.5),
        lambda: resubmits.begin(id),
        lambda: resubmits.begin(id),
    ]
    lab.store.attempt(chance.choice(ways))


@on_each_engine
@pytest.mark.parametrize(
    ("seed", "number", "actions"),
    [(1, 6, 60), *(pytest.param(seed, 40, 600, marks=pytest.mark.slow) for seed in (2, 3, 4))],
)
def test_what_is_steered_while_it_runs_ends_and_its_counts_agree(
    lab: Lab, seed: int, number: int, actions: int
) -> None:
    plans = []
    for place in range(number):
        policy = ("continue", "fail_fast", "pause")[place % 3]
        plan = plan_of(
            step(),
            *(step(0) for _ in range(6)),
            step(*range(1, 7)),
            step(1, 2, needed=1),
            step(StepEdge(7, "failure"), handler=True),
            step(tail="error", handler=True),
            step(tail="ended", handler=True, cleanup=True),
            on_failure=policy,
        )
        begin(lab, plan)
        plans.append(plan)
    ids = [plan.id for plan in plans]
    over = Event()

    def worker(number: int) -> None:
        chance = random.Random(seed * 100 + number)
        while not over.is_set():
            if not run_some(lab, number, chance):
                over.wait(0.001)

    def maintenance() -> None:
        while not over.wait(0.005):
            steer(lab)

    def operator() -> None:
        chance = random.Random(seed)
        try:
            for _ in range(actions):
                act(lab, ids, chance)
                over.wait(0.003)
        finally:
            over.set()

    with ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(worker, 1), pool.submit(worker, 2)]
        jobs += [pool.submit(maintenance), pool.submit(operator)]
        for job in jobs:
            job.result(PATIENCE)
    for id in ids:
        lab.run(steering.resume(id))
    chance, until = random.Random(seed), monotonic() + SOON
    while monotonic() < until:
        # What has crashed twice waits for some seconds.
        lab.clock.advance(60)
        lab.run(timing.promote())
        steer(lab)
        if not run_some(lab, 0, chance):
            for id in ids:
                lab.run(steering.resume(id))
            found = lab.run(workflows.read(ids)).values()
            if all(whole.status.is_terminal for whole in found):
                break
    check(lab, plans)


def check(lab: Lab, plans: Sequence[WorkflowPlan]) -> None:
    """Everything has ended, and what is counted is what there is."""
    for plan in plans:
        whole = lab.run(workflows.read([plan.id]))[plan.id]
        assert whole.status.is_terminal, whole
        tasks = [lab.task(step.task.id) for step in plan.steps]
        assert all(task.status.is_terminal for task in tasks), [task.status for task in tasks]
        bad = sum(
            task.status is not TaskStatus.COMPLETED and task.error_code != "UPSTREAM_SUCCEEDED"
            for task in tasks
        )
        counted = lab.sql(
            "SELECT sum(open), sum(bad) FROM holdfast_step_counts WHERE scope_id = :id", id=plan.id
        )
        assert counted == [(0, bad)]
        assert (whole.status is WorkflowStatus.COMPLETED) == (bad == 0)

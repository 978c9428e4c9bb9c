"""The claimer, turn by turn: what it claims, what it starts, and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Any, cast

import apsw
import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import NotBegun, Returned
from holdfast.core.status import TaskStatus
from holdfast.runtime.queue_choice import QueueChoice
from holdfast.runtime.supervisor.duties.claimer import Claimer
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.child_handle import (
    MOST_TASKS,
    WINDOW_US,
    Assignment,
    ChildState,
)
from holdfast.runtime.supervisor.state.costs import SHORT_US
from holdfast.runtime.supervisor.state.outcome_queue import Finished
from holdfast.runtime.supervisor.state.queue_source import sources
from holdfast.runtime.supervisor.state.reserve import RESERVE_US
from holdfast.runtime.supervisor.state.turn_plan import TurnPlan
from holdfast.runtime.wire.messages import Kind, KnownTask, Run
from holdfast.store.op import Op
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.verbs import claims
from tests.support.hands import LANES, Hands
from tests.support.stores import Kind as StoreKind
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import HOST, PID, QUEUE, TASK, WORKER

BEHIND = "behind"


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as undo:
        yield undo


class Bench:
    """A claimer and one child, with everything between them ticked by hand."""

    def __init__(self, lab: Lab, undo: ExitStack, kind: Kind) -> None:
        self.hands = Hands(undo, kind, [QUEUE, BEHIND])
        self.ledger = self.hands.ledger
        self.source = self.hands.sources[0]
        self.claimer = Claimer(lab.store, self.ledger, Outage(1.0), worker_id=WORKER, hostname=HOST)

    def turn(self) -> bool:
        """Whether there is something to do; it is done."""
        plan = self.ledger.plan(may_claim=True, patience=0)
        if plan is not None:
            self.claimer._turn(plan)
        return plan is not None

    def end_all(self) -> None:
        """Whatever runs has returned."""
        self.ledger.ended([Finished(run, Returned("1")) for run in self.ledger.assignments()])


def deep(lab: Lab, undo: ExitStack, run_us: int) -> Bench:
    """A process child, and a queue with more than was wanted so far, of tasks that take so long."""
    bench = Bench(lab, undo, "process")
    bench.ledger._placement.costs.learn(TASK, [run_us] * 1_000)
    bench.ledger._claimed([lab.claimed()])
    lab.send_many(2 * MOST_TASKS)
    bench.source.is_deep = True
    return bench


@on_each_engine
def test_a_lone_task_is_claimed_and_started_at_once(lab: Lab, undo: ExitStack) -> None:
    bench = Bench(lab, undo, "thread")
    for _ in range(2):
        lab.send()
        bench.ledger.hinted(frozenset())
        bench.claimer.tick()
        assert len(bench.hands.told()) == 1


@pytest.mark.parametrize("lab", [StoreKind.SQLITE_FILE], indirect=True)
def test_texts_that_are_too_long_together_are_claimed_one_by_one(
    lab: Lab, undo: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite has a limit for one value, and the tasks of a claim come in one."""
    bench = Bench(lab, undo, "thread")
    for _ in range(LANES):
        lab.send(args=f'["{"x" * 5_000}"]')
    store = cast("SqliteStore", lab.store)
    writer: Any = store._connections.take_writer()
    writer._raw.limit(apsw.SQLITE_LIMIT_LENGTH, 5_000 * LANES)
    store._connections.give_writer(writer)

    told = 0
    for _ in range(4 * LANES):
        bench.ledger.hinted(frozenset())
        bench.turn()
        told += len(bench.hands.told())

    assert told == LANES
    assert "one by one" in caplog.text


@on_each_engine
def test_no_more_than_the_lanes_of_a_child_are_claimed(lab: Lab, undo: ExitStack) -> None:
    bench = Bench(lab, undo, "thread")
    lab.send_many(3 * LANES)
    for _ in range(3):
        bench.claimer.tick()
        assert [job.attempt for job in bench.hands.told()] == [1] * LANES
        assert not bench.hands.held
        bench.end_all()


@on_each_engine
def test_what_was_claimed_of_a_paused_queue_is_not_started(lab: Lab, undo: ExitStack) -> None:
    bench = Bench(lab, undo, "thread")
    bench.hands.hold(lab.claimed())
    bench.ledger.pause(frozenset({QUEUE}))
    assert bench.ledger._placement.fit_held([QUEUE]) == []
    bench.claimer.tick()
    assert not bench.hands.held


@on_each_engine
def test_of_a_deep_queue_a_child_is_given_a_reserve(lab: Lab, undo: ExitStack) -> None:
    cost = SHORT_US * 2
    bench = deep(lab, undo, cost)
    bench.claimer.tick()
    reserve = bench.hands.child.window_us // cost
    assert reserve > 4 * WINDOW_US // cost
    assert len(bench.hands.told()) == reserve
    assert not bench.hands.held
    # It is not woken, and claims nothing, before half of that has ended.
    runs = bench.ledger.assignments()
    bench.ledger.ended([Finished(run, Returned("1")) for run in runs[: reserve // 2 - 1]])
    assert not bench.turn()
    bench.ledger.ended([Finished(runs[reserve // 2 - 1], Returned("1"))])
    assert bench.turn()
    assert len(bench.hands.told()) == reserve // 2


@on_each_engine
def test_an_urgent_task_is_claimed_although_no_child_is_due(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, SHORT_US * 2)
    bench.claimer.tick()
    bench.hands.told()
    lab.send()
    bench.ledger.hinted(frozenset({QUEUE}))
    bench.ledger._choice._look_at = 0.0
    assert bench.source in bench.ledger.begin_look()
    # It has been seen that it is no more urgent than the others.
    bench.ledger.looked(bench.source, lab.store.run(claims.head_priority(QUEUE)), 0.0)
    assert not bench.turn()
    urgent = lab.send(priority=1)
    bench.ledger.hinted(frozenset({QUEUE}))
    bench.ledger._choice._look_at = 0.0
    bench.claimer._look_for_urgent()
    assert bench.turn()
    (run,) = bench.hands.heard(Run)
    assert run.first
    assert [job.id for job in run.jobs] == [urgent]


@on_each_engine
def test_long_tasks_are_started_one_by_one_and_claimed_ahead(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, RESERVE_US)
    bench.claimer.tick()
    assert len(bench.hands.told()) == 1
    while bench.turn():
        pass
    assert not bench.hands.told()
    bench.end_all()
    bench.turn()
    assert len(bench.hands.told()) == 1


@on_each_engine
def test_short_tasks_are_claimed_for_a_child_and_so_started(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, 10)
    bench.claimer.tick()
    jobs = bench.hands.told()
    assert len(jobs) == MOST_TASKS
    assert {job.attempt for job in jobs} == {1}
    assert not bench.hands.held
    for job in (jobs[0], jobs[-1]):
        task = lab.task(job.id)
        assert (task.status, task.attempt) == (TaskStatus.RUNNING, 1)
        assert (task.worker_hostname, task.worker_pid) == (HOST, PID)
        assert task.worker_process_name == bench.hands.child.name
    # The window is full, so nothing is claimed before some of it has ended.
    assert bench.ledger._placement.due_window() is None
    assert not bench.turn()
    bench.end_all()
    bench.claimer.tick()
    assert len(bench.hands.told()) == MOST_TASKS


@on_each_engine
def test_a_queue_behind_one_that_fills_windows_waits(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, 10)
    behind = lab.send(queue_name=BEHIND)
    while bench.turn():
        pass
    assert len(bench.hands.told()) == MOST_TASKS
    assert lab.status(behind) is TaskStatus.PENDING


@on_each_engine
def test_what_is_held_comes_before_what_is_claimed_for_a_child(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, 10)
    (held,) = lab.claim(1).tasks
    bench.hands.hold(held)
    assert bench.ledger._placement.due_window() is None
    bench.claimer.tick()
    assert [job.id for job in bench.hands.told()] == [held.id]
    bench.claimer.tick()
    assert len(bench.hands.told()) == MOST_TASKS - 1


def went_back(bench: Bench, lab: Lab) -> set[bytes]:
    """The ids of what is to go back; no child has heard of it."""
    ended, _ = bench.ledger.outcomes.take(2 * MOST_TASKS, 0)
    runs = [done.assignment for done in ended if isinstance(done.outcome, NotBegun)]
    ids = {run.task.id for run in runs}
    assert not ids & {job.id for job in bench.hands.told()}
    assert not ids & {run.task.id for run in bench.hands.child.hand.values()}
    assert {lab.status(id) for id in ids} <= {TaskStatus.RUNNING}
    return ids


@on_each_engine
def test_a_task_that_must_be_alone_goes_back_and_is_claimed_as_such(
    lab: Lab, undo: ExitStack
) -> None:
    bench = deep(lab, undo, 10)
    (loner,) = lab.claim(1).tasks
    lab.sql("UPDATE holdfast_tasks SET crash_count = 1 WHERE id = :id", id=loner.id)
    lab.release(loner)
    bench.claimer.tick()
    assert went_back(bench, lab) == {loner.id}
    assert len(bench.hands.child.hand) == MOST_TASKS - 1
    assert not bench.source.may_share(monotonic())


@on_each_engine
def test_tasks_that_nobody_has_seen_are_not_piled_on_a_child(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, 10)
    bench.source.names.append("new@1")
    unknown = set(lab.send_many(3, task_name="new", priority=1))
    bench.claimer.tick()
    assert went_back(bench, lab) == unknown


@on_each_engine
@pytest.mark.parametrize("why", ["slow", "leaving", "stopping"])
def test_a_window_comes_back_when_its_child_cannot_take_it_any_more(
    lab: Lab, undo: ExitStack, why: str
) -> None:
    long = lab.running()
    bench = deep(lab, undo, 10)
    plan = bench.ledger.plan(may_claim=True, patience=0)
    assert plan is not None
    if why == "slow":
        bench.hands.child.slow = True
        bench.hands.child.take(Assignment(0, long, Policy(), bench.hands.child, 0), False)
    if why == "leaving":
        bench.hands.child.state = ChildState.LEAVING
    if why == "stopping":
        bench.ledger.stop_accepting()
    bench.claimer._turn(plan)
    assert not bench.ledger.is_idle
    assert len(went_back(bench, lab)) == MOST_TASKS
    assert bench.source.may_share(monotonic())


def test_a_source_with_tasks_that_must_be_alone_fills_no_windows() -> None:
    careful = KnownTask("careful", 1, QUEUE, "process", None, '{"at_most_once":true}')
    plain = KnownTask("plain", 1, QUEUE, "process", None, None)
    alone, _ = sources([QueueChoice(QUEUE)], [careful, plain])
    shared, _ = sources([QueueChoice(QUEUE)], [plain])
    assert not alone.may_share(monotonic())
    assert shared.may_share(monotonic())


@on_each_engine
def test_a_worker_is_not_idle_while_it_claims(lab: Lab, undo: ExitStack) -> None:
    bench = Bench(lab, undo, "process")
    seen: list[bool] = []
    run = lab.store.run

    def watched(op: Op[Any]) -> Any:
        seen.append(bench.ledger.is_idle)
        return run(op)

    undo.callback(setattr, lab.store, "run", run)
    lab.store.run = watched  # type: ignore[method-assign]
    bench.claimer.tick()
    assert set(seen) == {False}
    assert bench.ledger.is_idle


def test_what_went_back_is_looked_for(undo: ExitStack) -> None:
    """The hint that tells of it may come late, and a worker that stops when it is idle is quick."""
    hands = Hands(undo, "process")
    ledger, source = hands.ledger, hands.sources[0]
    while ledger.plan(may_claim=True, patience=0) is not None:
        ledger.sources.short(source, None, monotonic())
        ledger.turn_over()
    before = ledger.is_drained
    ledger.settled([], came_back={QUEUE}, totals={})
    assert (before, ledger.is_drained) == (True, False)
    plan = ledger.plan(may_claim=True, patience=0)
    assert plan is not None
    assert plan.source is source


@on_each_engine
def test_a_claim_of_one_whose_answer_was_lost_is_given_back(lab: Lab, undo: ExitStack) -> None:
    """Made because the store had refused to have many claimed: it has a token of its own."""
    bench = Bench(lab, undo, "thread")
    task = lab.send()
    request = bench.claimer._request(TurnPlan([], bench.source, 1))
    assert request is not None
    run = lab.store.run

    def cut(op: Op[Any]) -> Any:
        answer = run(op)
        if op.name == "claim":
            raise StoreUnavailable("the line is cut", commit_unknown=True)
        return answer

    lab.store.run = cut  # type: ignore[method-assign]
    try:
        with pytest.raises(StoreUnavailable):
            bench.claimer._refuser.claim(request)
    finally:
        lab.store.run = run  # type: ignore[method-assign]
    assert lab.status(task) is TaskStatus.CLAIMED
    assert bench.claimer._unknown_commits.settle()
    assert lab.status(task) is TaskStatus.PENDING


REFUSED_BACK = """
    CREATE TRIGGER guard BEFORE UPDATE ON holdfast_tasks WHEN NEW.status = 'PENDING'
    BEGIN SELECT RAISE(ABORT, 'not this one'); END
"""


@pytest.mark.parametrize("lab", [StoreKind.SQLITE_FILE], indirect=True)
def test_a_task_that_cannot_be_given_back_keeps_its_lease_until_that_has_run_out(
    lab: Lab, undo: ExitStack
) -> None:
    """Without a lease nobody would come back to it before the next audit."""
    bench = Bench(lab, undo, "thread")
    task = lab.claimed()
    bench.ledger._claimed([task])
    lab.sql(REFUSED_BACK)

    bench.claimer.release([task])

    assert not bench.hands.tokens
    assert task.token not in bench.hands.spent


@pytest.mark.parametrize("lab", [StoreKind.SQLITE_FILE], indirect=True)
def test_a_claim_without_an_answer_that_cannot_be_given_back_keeps_its_lease(
    lab: Lab, undo: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(lab, undo, "thread")
    task = lab.claimed()
    bench.ledger._claimed([task])
    lab.sql(REFUSED_BACK)

    bench.claimer._unknown_commits.of_tasks([task])
    assert bench.claimer._unknown_commits.settle()

    assert "cannot be given back" in caplog.text
    assert not bench.hands.tokens
    assert task.token not in bench.hands.spent

"""Moments in which a transaction missed what another one changed: each played by hand.

That two of them alone do not hang is in `test_workflow_pairs`; here three take part, or what has to
hold shows at once. SQLite has one writer, so this is about PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.outcome import Failed, HandedOver
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import AddedPlan, SubWorkflow
from holdfast.runtime.workflow_steering import WorkflowSteering
from holdfast.store.op import Op
from holdfast.store.verbs import operate, resubmits, steering, workflows
from tests.store.races.actor import Actor, Hand, Script, State
from tests.store.races.stage import Stage
from tests.support.stores import Kind, Labs
from tests.support.verbs import BOOM
from tests.support.workflows import begin, fail, pause, plan_of, status, step, stop

S, W = TaskStatus, WorkflowStatus


@pytest.fixture
def stage(labs: Labs) -> Iterator[Stage]:
    with ExitStack() as closing:
        yield Stage(closing.enter_context(labs.open(Kind.POSTGRES)), closing)


def until_before(stage: Stage, actor: Actor, step: str) -> None:
    """Let an actor go until it stands before this step, or has ended."""
    while actor.state is State.STANDING and actor.next != step:
        actor.go()
        stage.settle([actor])


def meets(
    stage: Stage, script: Script, before: tuple[str, ...], *then: Callable[[], object]
) -> None:
    """Stop one before its steps, one after the other, and do something else each time."""
    with stage.actor("one", script) as actor:
        for place, other in zip(before, then, strict=True):
            until_before(stage, actor, place)
            other()
        stage.finish(actor)


def test_a_page_of_a_resubmit_takes_in_no_step_that_it_has_not_locked(stage: Stage) -> None:
    """Two go on with one resubmit: what the other has done makes room for more on our page."""
    lab = stage.lab
    plan = plan_of(
        *(step(name=name, task={"queue_name": name}) for name in "abc"),
        step(0, 1, 2, task={"queue_name": "join"}),
    )
    a, b, c, join = begin(lab, plan)
    running = lab.run_again(b, "b")
    for id, name in ((a, "a"), (c, "c")):
        lab.end(lab.run_again(id, name), Failed(BOOM))
    assert lab.status(join) is S.CANCELLED
    lab.clock.advance(1)
    lab.run(resubmits.begin(plan.id))

    def another() -> None:
        while lab.status(c) is not S.PENDING:
            lab.run(resubmits.go_on(plan.id, page=1))

    meets(
        stage,
        lambda hand: hand.attempt(lambda: resubmits.go_on(plan.id, page=1)),
        ("lock_tasks", "step_places"),
        another,
        lambda: lab.complete(running),
    )
    while lab.run(resubmits.go_on(plan.id)):
        pass
    for id, name in ((a, "a"), (c, "c"), (join, "join")):
        lab.complete(lab.run_again(id, name))
    assert status(lab, plan) is W.COMPLETED


def test_a_second_failure_comes_while_the_first_one_is_accepted(stage: Stage) -> None:
    """It finds the whole paused; before it commits, that is resumed and nothing is set aside."""
    lab = stage.lab
    plan = plan_of(
        *(step(name=name, task={"queue_name": name}) for name in "ab"),
        step(1, task={"queue_name": "below"}),
        on_failure="pause",
    )
    a, b, below = begin(lab, plan)
    runs = [lab.run_again(id, name) for id, name in ((a, "a"), (b, "b"))]
    lab.end(runs[0], Failed(BOOM))

    def resumes(hand: Hand) -> None:
        hand.attempt(lambda: steering.resume(plan.id))
        while hand.attempt(lambda: steering.release_some(plan.id)):
            pass

    with (
        stage.actor("worker", lambda hand: hand.end(runs[1], Failed(BOOM))) as worker,
        stage.actor("operator", resumes) as operator,
    ):
        until_before(stage, worker, "end commit")
        # It waits for the worker, or is done before that.
        while operator.state is State.STANDING:
            operator.go()
            stage.settle([operator])
        stage.finish(worker)
        stage.finish(operator)
    # Accepted with the first one, or for somebody to accept; or for workers to go on with.
    if status(lab, plan) is W.PAUSED:
        lab.run(steering.resume(plan.id))
    WorkflowSteering(lab.store, lambda: 0.0).round()
    assert (lab.status(below), status(lab, plan)) == (S.CANCELLED, W.FAILED)


@pytest.mark.parametrize("verb", ["resume", "resubmit"])
def test_a_part_begins_while_the_pause_ends(stage: Stage, verb: str) -> None:
    """It has seen that the whole is paused, and nobody sees the part yet."""
    lab = stage.lab
    plan = plan_of(step(), step(task={"queue_name": "other"}))
    adder, _ = begin(lab, plan)
    run = lab.run_again(adder)
    pause(lab, plan.id)
    inner = step(task={"queue_name": "inner"})
    added = AddedPlan(steps=(inner,), workflow=SubWorkflow(name="part"))
    ends: dict[str, Callable[[], Op[list[bytes]]]] = {
        "resume": lambda: steering.resume(plan.id),
        "resubmit": lambda: resubmits.begin(plan.id),
    }
    with (
        stage.actor("worker", lambda hand: hand.end(run, HandedOver(added.encode()))) as worker,
        stage.actor("operator", lambda hand: hand.attempt(ends[verb])) as operator,
    ):
        until_before(stage, worker, "end commit")
        while operator.state is State.STANDING:
            operator.go()
            stage.settle([operator])
        stage.finish(worker)
        stage.finish(operator)
    steering_ = WorkflowSteering(lab.store, lambda: 0.0)
    steering_.round()
    steering_.round()
    assert lab.run(workflows.read([adder]))[adder].status is W.RUNNING
    assert lab.status(inner.task.id) is S.PENDING


def test_a_cancel_comes_while_it_is_resubmitted(stage: Stage) -> None:
    """Who comes second sees the first: a cancel is never undone by a resubmit."""
    lab = stage.lab
    plan = plan_of(step())
    begin(lab, plan)
    with (
        stage.actor("one", lambda hand: hand.attempt(lambda: steering.cancel(plan.id))) as one,
        stage.actor("other", lambda hand: hand.attempt(lambda: resubmits.begin(plan.id))) as other,
    ):
        until_before(stage, one, "cancel commit")
        while other.state is State.STANDING:
            other.go()
            stage.settle([other])
        assert stage.finish(one) is True
        assert stage.finish(other) == []
    stop(lab, plan.id)
    assert status(lab, plan) is W.CANCELLED


@pytest.mark.parametrize("verb", ["step", "whole"])
def test_what_completes_at_this_moment_is_not_resubmitted(stage: Stage, verb: str) -> None:
    lab = stage.lab
    plan = plan_of(step(required=False), step(task={"queue_name": "last"}))
    spare, last = begin(lab, plan)
    fail(lab, spare)
    run = lab.run_again(last, "last")

    def again(hand: Hand) -> object:
        if verb == "whole":
            return hand.attempt(lambda: resubmits.begin(plan.id))
        return hand.attempt(lambda: operate.resubmit([spare]))

    with (
        stage.actor("worker", lambda hand: hand.complete(run)) as worker,
        stage.actor("operator", again) as operator,
    ):
        until_before(stage, worker, "complete commit")
        while operator.state is State.STANDING:
            operator.go()
            stage.settle([operator])
        stage.finish(worker)
        assert stage.finish(operator) in ([], {spare: False})
    assert (status(lab, plan), lab.status(spare)) == (W.COMPLETED, S.FAILED)


def test_who_stops_steps_leaves_alone_what_was_resubmitted_meanwhile(stage: Stage) -> None:
    """It had looked when the whole wound down, and has been slow."""
    lab = stage.lab
    plan = plan_of(step(), step())
    ids = begin(lab, plan)
    lab.run(steering.cancel(plan.id))

    def all_of_it() -> None:
        stop(lab, plan.id)
        assert status(lab, plan) is W.CANCELLED
        lab.clock.advance(1)
        lab.run(resubmits.begin(plan.id))
        while lab.run(resubmits.go_on(plan.id)):
            pass

    meets(
        stage,
        lambda hand: hand.attempt(lambda: steering.stop_some(plan.id)),
        ("lock_tasks",),
        all_of_it,
    )
    assert lab.statuses(ids) == [S.PENDING, S.PENDING]


@pytest.mark.parametrize("tail", ["error", "ended"])
def test_a_gate_opens_while_a_step_behind_it_is_resubmitted(stage: Stage, tail: str) -> None:
    """It was open before: who resubmits sees it shut, and who opens it sees a step that ended."""
    lab = stage.lab
    plan = plan_of(
        step(task={"queue_name": "body"}),
        *(step(tail=tail, handler=True, task={"queue_name": name}) for name in ("one", "two")),
    )
    body, one, two = begin(lab, plan)
    for id, name in ((body, "body"), (one, "one")):
        lab.end(lab.run_again(id, name), Failed(BOOM))
    lab.clock.advance(1)
    lab.run(operate.resubmit([body]))
    run = lab.run_again(body, "body")
    with (
        stage.actor("worker", lambda hand: hand.end(run, Failed(BOOM))) as worker,
        stage.actor(
            "operator", lambda hand: hand.attempt(lambda: operate.resubmit([one]))
        ) as operator,
    ):
        until_before(stage, worker, "end commit")
        while operator.state is State.STANDING:
            operator.go()
            stage.settle([operator])
        stage.finish(worker)
        assert stage.finish(operator) == {one: True}
    for id, name in ((one, "one"), (two, "two")):
        lab.complete(lab.run_again(id, name))
    assert status(lab, plan) is W.FAILED

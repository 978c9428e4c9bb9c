"""A cancel meets what a worker does: it is obeyed, or it comes too late; it is never lost."""

from __future__ import annotations

import pytest

from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.records import LOST, Answer, Landing
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import leases
from tests.model.outcomes import KINDS, change_for
from tests.store.races.actor import Hand
from tests.store.races.stage import Scene, Stage
from tests.support.stores import Lab

CANCELLED, COMPLETED, RUNNING = TaskStatus.CANCELLED, TaskStatus.COMPLETED, TaskStatus.RUNNING


def test_a_claim_and_its_start(stage: Stage) -> None:
    """Before the start it is cancelled at once; after it, the wish is noted."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        ids[:] = [lab.send()]

        def worker(hand: Hand) -> list[Landing]:
            return hand.start(*hand.claim().tasks)

        return {"worker": worker, "operator": lambda hand: hand.cancel(*ids)[0]}

    seen = set()
    for ended in stage.every_order(scene):
        task = stage.lab.task(ids[0])
        assert task.status is ended["operator"]
        assert task.attempt == (task.status is RUNNING)
        assert (task.cancel_requested_at is not None) == (task.status is RUNNING)
        seen.add((tuple(landing.answer for landing in ended["worker"]), task.status))
    assert seen == {
        ((), CANCELLED),
        ((Answer.LOST,), CANCELLED),
        ((Answer.LANDED,), RUNNING),
    }


def test_a_completion(stage: Stage) -> None:
    """Work done is not denied, and the operator is told the truth."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        task = lab.running()
        ids[:] = [task.id]
        return {
            "worker": lambda hand: hand.complete(task),
            "operator": lambda hand: hand.cancel(task.id)[0],
        }

    seen = set()
    for ended in stage.every_order(scene):
        assert ended["worker"].answer is Answer.LANDED
        task = stage.lab.task(ids[0])
        assert task.status is COMPLETED
        assert (task.cancel_requested_at is not None) == (ended["operator"] is RUNNING)
        assert len(stage.lab.attempts(task.id)) == 1
        seen.add(ended["operator"])
    assert seen == {RUNNING, COMPLETED}


@pytest.mark.parametrize("kind", KINDS)
def test_any_other_end(stage: Stage, kind: str) -> None:
    """What would run again, fail or stall is CANCELLED, unless it had failed before."""
    policy = Policy(retry=Retry(3))
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        task = lab.running(max_retries=3)
        ids[:] = [task.id]
        change = change_for(kind, task, policy)
        return {
            "worker": lambda hand: hand.write(task, change),
            "operator": lambda hand: hand.cancel(task.id)[0],
        }

    for ended in stage.every_order(scene):
        task = stage.lab.task(ids[0])
        if ended["worker"] == LOST:
            assert kind == "ack_cancel", "only a cancel that nobody wished for has no place"
            assert (task.status, task.attempt) == (RUNNING, 1)
            continue
        assert len(stage.lab.attempts(task.id)) == 1
        assert task.status is ended["worker"].status or ended["operator"] is CANCELLED
        if task.status is not CANCELLED:
            assert ended["operator"] is task.status in (TaskStatus.FAILED, TaskStatus.STALLED)
        assert not stage.lab.claim().tasks, "it must never run again"


def test_a_recovery_by_the_reaper(stage: Stage) -> None:
    """Cancelled and then abandoned, or the other way round: it ends, and never runs again."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        task = lab.running()
        ids[:] = [task.id]
        lab.clock.advance(60)
        return {
            "reaper": lambda hand: hand.run(
                leases.recover(lambda gone: change_for("vanish", gone, Policy()))
            ),
            "operator": lambda hand: hand.cancel(task.id)[0],
        }

    answers = set()
    for ended in stage.every_order(scene):
        if ended["reaper"].left:
            # The cancel held the row at that moment; the next pass finds it free.
            stage.lab.run(leases.recover(lambda gone: change_for("vanish", gone, Policy())))
        task = stage.lab.task(ids[0])
        assert (task.status, task.error_code) == (CANCELLED, "TASK_CANCELLED")
        assert task.crash_count == 1
        (attempt,) = stage.lab.attempts(task.id)
        assert (attempt.outcome, attempt.will_retry) == (
            "WORKER_FAILURE",
            ended["operator"] is CANCELLED,
        )
        assert not stage.lab.claim().tasks
        assert stage.lab.run(leases.count()) == 0
        answers.add(ended["operator"])
    assert answers == {RUNNING, CANCELLED}

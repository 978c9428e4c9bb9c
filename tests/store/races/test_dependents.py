"""Parents that end at once: the child is counted down by each, and moves on exactly once."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from holdfast.core.decide import decide
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Crashed
from holdfast.core.records import Answer, ClaimedTask, SubmitAnswer
from holdfast.core.status import TaskStatus
from holdfast.store.op import Op
from holdfast.store.verbs import cancel, dependents, finish, leases, operate, timing
from tests.model.outcomes import change_for
from tests.store.races.actor import Hand, Script
from tests.store.races.stage import Scene, Stage
from tests.support.stores import SECOND, Lab
from tests.support.verbs import PID, WORKER, step

CANCELLED = TaskStatus.CANCELLED
PENDING, WAITING = TaskStatus.PENDING, TaskStatus.WAITING
OTHER = "another queue"
"""For steps that are not to be claimed."""


def parents_of(lab: Lab, workflow: bytes, number: int = 2) -> list[ClaimedTask]:
    """Running steps, each under a claim of its own."""
    lab.submit(*(step(workflow) for _ in range(number)))
    return [lab.started(lab.claim(1).tasks[0]) for _ in range(number)]


def fail(hand: Hand, *tasks: ClaimedTask) -> list[Answer]:
    """End these runs in one batch, tried again after a deadlock as a worker would."""
    ends = [
        finish.RunChange(task.key, task.token, change_for("fail", task, Policy()), PID, WORKER)
        for task in tasks
    ]
    return [landing.answer for landing in hand.attempt(lambda: finish.end(ends)).values()]


def counts(lab: Lab, id: bytes) -> tuple[TaskStatus, int, int]:
    task = lab.task(id)
    return task.status, task.deps_needed, task.deps_open


def test_two_last_parents(stage: Stage) -> None:
    """Both complete at once: one unblock, and nobody waits in a ring."""
    child: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        workflow = new_id()
        one, other = parents_of(lab, workflow)
        last = step(workflow, one.id, other.id)
        child[:] = [last.id]
        lab.submit(last)
        return {
            "one": lambda hand: hand.complete(one),
            "other": lambda hand: hand.complete(other),
        }

    waited = False
    for ended in stage.every_order(scene, switches=3):
        assert (ended["one"].answer, ended["other"].answer) == (Answer.LANDED, Answer.LANDED)
        assert counts(stage.lab, child[0]) == (PENDING, 0, 0)
        assert len(stage.lab.claim().tasks) == 1
        waited |= ended.waited
    assert waited, "they meet at the row of the child"


def test_a_parent_fails_while_its_sibling_succeeds(stage: Stage) -> None:
    """The child is skipped, and its own child with it, once."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        workflow = new_id()
        good, bad = parents_of(lab, workflow)
        child = step(workflow, good.id, bad.id)
        grandchild = step(workflow, child.id)
        ids[:] = [child.id, grandchild.id]
        lab.submit(child, grandchild)
        return {"good": lambda hand: hand.complete(good), "bad": lambda hand: fail(hand, bad)}

    for _ in stage.every_order(scene, switches=2):
        assert counts(stage.lab, ids[0]) == (CANCELLED, 1, 0)
        assert counts(stage.lab, ids[1]) == (CANCELLED, 1, 0)
        assert {stage.lab.task(id).error_code for id in ids} == {"UPSTREAM_FAILED"}


def test_two_parents_of_the_same_two_children(stage: Stage) -> None:
    """Each locks both children: in one order."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        workflow = new_id()
        one, other = parents_of(lab, workflow)
        children = [step(workflow, one.id, other.id), step(workflow, other.id, one.id)]
        ids[:] = [child.id for child in children]
        lab.submit(*reversed(children))
        return {
            "one": lambda hand: hand.complete(one),
            "other": lambda hand: hand.complete(other),
        }

    for _ in stage.every_order(scene, switches=2):
        assert [counts(stage.lab, id) for id in ids] == [(PENDING, 0, 0)] * 2


def _to_fail(lab: Lab, workflow: bytes) -> tuple[bytes, Script]:
    (task,) = parents_of(lab, workflow, 1)
    return task.id, lambda hand: fail(hand, task)


def _to_recover(lab: Lab, workflow: bytes) -> tuple[bytes, Script]:
    id = lab.send(workflow_id=workflow, queue_name=OTHER)
    lab.start(*lab.claim(queue=OTHER, lease_us=SECOND).tasks)
    lab.clock.advance(2)
    return id, lambda hand: hand.attempt(_recover)


def _recover() -> Op[leases.Recovery | None]:
    for_good = Policy(max_crashes=1)
    return leases.recover(lambda found: decide(found, Crashed(), for_good, lambda: 0.5))


def _to_cancel(lab: Lab, workflow: bytes) -> tuple[bytes, Script]:
    id = lab.send(workflow_id=workflow, queue_name=OTHER)
    return id, lambda hand: hand.attempt(lambda: cancel.cancel([id]))


def _to_expire(lab: Lab, workflow: bytes) -> tuple[bytes, Script]:
    id = lab.send(workflow_id=workflow, queue_name=OTHER, good_until=lab.clock.now + SECOND)
    lab.clock.advance(1)
    return id, lambda hand: hand.attempt(timing.expire)


def _to_drop(lab: Lab, workflow: bytes) -> tuple[bytes, Script]:
    id = lab.send(workflow_id=workflow, queue_name=OTHER)
    before = lab.clock.now + 1
    return id, lambda hand: hand.attempt(lambda: timing.drop(OTHER, known=[], before=before))


ENDS: dict[str, Callable[[Lab, bytes], tuple[bytes, Script]]] = {
    "fails": _to_fail,
    "is recovered": _to_recover,
    "is cancelled": _to_cancel,
    "expires": _to_expire,
    "is dropped": _to_drop,
}
"""A step and how it comes to an end that its children do not wait for, as the product does it."""


@pytest.mark.parametrize(
    ("first", "second"),
    [*((end, "fails") for end in ENDS), *(("fails", end) for end in ENDS if end != "fails")],
)
def test_a_cascade_meets_a_parent_of_both(stage: Stage, first: str, second: str) -> None:
    """A skip goes from a later id to an earlier one, against the order of the other's locks.

    That is a deadlock, which the server ends: whoever was undone does it again. It cannot be
    avoided by locking all that may be skipped in the order of ids, because the ended parent is
    locked before all of them, and may be somebody's child in its turn (a join that needs any).
    """
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        workflow = new_id()
        one, end_one = ENDS[first](lab, workflow)
        other, end_other = ENDS[second](lab, workflow)
        late, early = sorted([new_id(), new_id()], reverse=True)
        ids[:] = [one, other, late, early]
        lab.submit(step(workflow, one, other, id=late), step(workflow, late, other, id=early))
        return {"one": end_one, "other": end_other}

    for _ in stage.every_order(scene, switches=1):
        # What somebody held is left for the next pass.
        stage.lab.run(_recover())
        stage.lab.run(timing.expire())
        stage.lab.run(timing.drop(OTHER, known=[], before=stage.lab.clock.now + 1))
        assert all(status and status.is_terminal for status in stage.lab.statuses(ids))
        assert [counts(stage.lab, id) for id in ids[2:]] == [(CANCELLED, 2, 0)] * 2


@pytest.mark.timeout(300)
def test_many_cascades_at_once(stage: Stage) -> None:
    """A dense graph, its roots ended by eight workers at once: all of them succeed."""
    lab, workflow, workers = stage.lab, new_id(), 8
    stage.empty()
    roots = parents_of(lab, workflow, 3 * workers)
    ids = [new_id() for _ in range(60)]
    chance = random.Random(5)
    chance.shuffle(ids)
    known = [root.id for root in roots]
    steps = []
    for id in ids:
        steps.append(step(workflow, *chance.sample(known[-30:], 4), id=id))
        known.append(id)
    lab.submit(*steps)
    stores = [stage.store(f"worker-{number}") for number in range(workers)]
    begin = threading.Barrier(workers)

    def work(number: int) -> list[Answer]:
        begin.wait(30)
        answers = []
        for root in roots[number::workers]:
            change = change_for("fail", root, Policy())
            ending = finish.RunChange(root.key, root.token, change, PID, WORKER)
            landed = stores[number].attempt(partial(finish.end, [ending]))
            answers.append(landed[root.key].answer)
        return answers

    with ThreadPoolExecutor(workers) as pool:
        found = [answer for answers in pool.map(work, range(workers)) for answer in answers]
    assert found == [Answer.LANDED] * len(roots)
    assert {counts(lab, id)[0] for id in ids} == {CANCELLED}
    assert {counts(lab, id)[1:] for id in ids} == {(4, 0)}


def test_a_child_is_sent_while_its_parent_ends(stage: Stage) -> None:
    """The edge is there when the parent ends, or the end is there when the edge comes."""
    child: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        workflow = new_id()
        (parent,) = parents_of(lab, workflow, 1)
        last = step(workflow, parent.id)
        child[:] = [last.id]
        return {
            "worker": lambda hand: hand.complete(parent),
            "sender": lambda hand: hand.submit(last)[0].answer,
        }

    for ended in stage.every_order(scene):
        assert ended["sender"] is SubmitAnswer.CREATED
        assert counts(stage.lab, child[0]) == (PENDING, 0, 0)


def test_a_parent_is_resubmitted_while_its_sibling_ends(stage: Stage) -> None:
    """The child waits for the one and is counted down by the other."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        workflow = new_id()
        failed, other = parents_of(lab, workflow)
        child = step(workflow, failed.id, other.id)
        ids[:] = [child.id, failed.id]
        lab.submit(child)
        lab.fail(failed)
        assert lab.status(child.id) is CANCELLED
        return {
            "operator": lambda hand: hand.attempt(lambda: operate.resubmit([failed.id])),
            "worker": lambda hand: hand.complete(other),
        }

    for ended in stage.every_order(scene, switches=2):
        assert ended["operator"] == {ids[1]: True}
        assert counts(stage.lab, ids[0]) == (WAITING, 1, 1)
        stage.lab.complete(stage.lab.run_again(ids[1]))
        assert counts(stage.lab, ids[0]) == (PENDING, 0, 0)


def test_a_step_is_resubmitted_while_its_parent_ends(stage: Stage) -> None:
    """Its edge is open again before the parent has ended, or is resolved by how that ended."""
    child: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        workflow = new_id()
        (parent,) = parents_of(lab, workflow, 1)
        last = step(workflow, parent.id)
        child[:] = [last.id]
        lab.submit(last)
        lab.cancel(last.id)
        lab.fail(parent)
        lab.run(operate.resubmit([parent.id]))
        again = lab.run_again(parent.id)
        return {
            "worker": lambda hand: hand.complete(again),
            "operator": lambda hand: hand.attempt(lambda: operate.resubmit([last.id])),
        }

    for ended in stage.every_order(scene):
        assert ended["operator"] == {child[0]: True}
        assert counts(stage.lab, child[0]) == (PENDING, 0, 0)


def test_a_workflow_is_paused_while_a_parent_ends_and_a_step_is_claimed(stage: Stage) -> None:
    """What is claimed goes on; everything else waits until the workflow goes on."""
    ids: list[bytes] = []
    workflow = new_id()

    def scene(lab: Lab) -> Scene:
        (parent,) = parents_of(lab, workflow, 1)
        child, free = step(workflow, parent.id), step(workflow)
        ids[:] = [child.id, free.id]
        lab.submit(child, free)

        def worker(hand: Hand) -> Sequence[ClaimedTask]:
            hand.complete(parent)
            return hand.claim(1).tasks

        return {"worker": worker, "operator": lambda hand: hand.run(dependents.hold(workflow))}

    for ended in stage.every_order(scene, switches=3):
        taken = [task.id for task in ended["worker"]]
        held = [id for id in ids if id not in taken]
        assert stage.lab.statuses(held) == [WAITING] * len(held)
        stage.lab.run(dependents.resume(workflow))
        for id in ids:
            status = TaskStatus.CLAIMED if id in taken else PENDING
            assert counts(stage.lab, id) == (status, 0, 0)

"""A lease that has run out: the reaper and the worker, and two reapers, agree on one end."""

from __future__ import annotations

from holdfast.core.decide import Change
from holdfast.core.options.policy import Policy
from holdfast.core.records import Answer
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import claims, leases
from tests.model.outcomes import change_for
from tests.store.races.actor import Hand
from tests.store.races.stage import Scene, Stage
from tests.support.stores import Lab
from tests.support.verbs import LEASE_US

PENDING, RUNNING, COMPLETED = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.COMPLETED


def decide(gone: leases.Abandoned) -> Change:
    return change_for("vanish", gone, Policy())


def reap(hand: Hand) -> leases.Recovery | None:
    return hand.run(leases.recover(decide))


def sweep(lab: Lab) -> None:
    """The next passes of the reaper, when nobody holds anything any more."""
    while lab.run(leases.recover(decide)) is not None:
        pass
    assert lab.run(leases.count()) == 0


def test_a_completion(stage: Stage) -> None:
    """Exactly one of them ends the run, and there is one attempt row."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        task = lab.running()
        ids[:] = [task.id]
        lab.clock.advance(60)
        return {"worker": lambda hand: hand.complete(task), "reaper": reap}

    seen = set()
    for ended in stage.every_order(scene):
        recovered = ended["reaper"].recovered
        landed = ended["worker"].answer is Answer.LANDED
        assert landed != bool(recovered)
        sweep(stage.lab)
        task = stage.lab.task(ids[0])
        assert task.status is (COMPLETED if landed else PENDING)
        assert task.crash_count == recovered
        assert [row.outcome for row in stage.lab.attempts(task.id)] == [
            "COMPLETED" if landed else "WORKER_FAILURE"
        ]
        seen.add(landed)
    assert seen == {True, False}


def test_a_late_start(stage: Stage) -> None:
    """A worker whose lease ran out begins its task: then it is recovered as one that ran."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        task = lab.claimed()
        ids[:] = [task.id]
        lab.clock.advance(60)
        return {"worker": lambda hand: hand.start(task)[0], "reaper": reap}

    seen = set()
    for ended in stage.every_order(scene):
        began = ended["worker"].answer is Answer.LANDED
        sweep(stage.lab)
        task = stage.lab.task(ids[0])
        assert (task.status, task.attempt, task.crash_count) == (PENDING, began, began)
        assert len(stage.lab.attempts(task.id)) == began
        seen.add(began)
    assert seen == {True, False}


def test_a_renewal(stage: Stage) -> None:
    """In time: nothing is taken. Too late: the worker hears that the lease is gone."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        task = lab.running()
        ids[:] = [task.id]
        lab.clock.advance(60)
        return {
            "keeper": lambda hand: hand.run(claims.renew([task.token], lease_us=LEASE_US)),
            "reaper": reap,
        }

    seen = set()
    for ended in stage.every_order(scene):
        renewed = ended["keeper"]
        kept = bool(renewed.kept - renewed.held)
        assert kept == (ended["reaper"] is None)
        assert stage.lab.status(ids[0]) is (RUNNING if kept else PENDING)
        assert stage.lab.run(leases.count()) == kept
        seen.add(kept)
    assert seen == {True, False}


def test_two_reapers(stage: Stage) -> None:
    """One lease is recovered once, and its tasks crash once."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        ids[:] = lab.send_many(3)
        first, second, _ = lab.claim().tasks
        lab.start(first, second)
        lab.clock.advance(60)
        return {"one": reap, "other": reap}

    for ended in stage.every_order(scene, switches=2):
        (taken,) = [found for found in (ended["one"], ended["other"]) if found is not None]
        assert (taken.recovered, taken.released, taken.left) == (2, 1, 0)
        tasks = [stage.lab.task(id) for id in ids]
        assert {task.status for task in tasks} == {PENDING}
        assert sorted(task.crash_count for task in tasks) == [0, 1, 1]
        assert sum(len(stage.lab.attempts(id)) for id in ids) == 2
        assert stage.lab.run(leases.count()) == 0


def test_two_leases_and_two_reapers(stage: Stage) -> None:
    """Two that look at once take one each."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        ids[:] = [lab.running().id, lab.running().id]
        lab.clock.advance(60)
        return {"one": reap, "other": reap}

    for ended in stage.every_order(scene, switches=1):
        assert ended["one"].token != ended["other"].token
        assert [stage.lab.task(id).crash_count for id in ids] == [1, 1]
        assert stage.lab.run(leases.count()) == 0

"""A claim meets another claim, the end of a task's time, a pause, a move."""

from __future__ import annotations

from holdfast.core.records import Answer
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import claims, operate, queues, timing
from tests.store.races.actor import Hand
from tests.store.races.stage import Scene, Stage
from tests.support.stores import SECOND, Lab
from tests.support.verbs import QUEUE, new_token

CLAIMED, EXPIRED, PENDING = TaskStatus.CLAIMED, TaskStatus.EXPIRED, TaskStatus.PENDING


def test_two_claims(stage: Stage) -> None:
    """No task has two claims, and none is left behind."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        ids[:] = lab.send_many(5)
        return {"one": lambda hand: hand.claim(3), "other": lambda hand: hand.claim(3)}

    for ended in stage.every_order(scene):
        taken = [task.id for actor in ("one", "other") for task in ended[actor].tasks]
        assert sorted(taken) == sorted(ids)
        assert {len(ended[actor].tasks) for actor in ("one", "other")} == {2, 3}


def test_the_end_of_its_time(stage: Stage) -> None:
    """Claimed while it was good, or expired: never both."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        ids[:] = [lab.send(good_until=lab.clock.now + SECOND)]

        def janitor(hand: Hand) -> list[bytes]:
            lab.clock.advance(1)
            return hand.run(timing.expire())

        def worker(hand: Hand) -> list[Answer]:
            return [landing.answer for landing in hand.start(*hand.claim().tasks)]

        return {"worker": worker, "janitor": janitor}

    seen = set()
    for ended in stage.every_order(scene):
        expired = bool(ended["janitor"])
        assert ended["worker"] == ([] if expired else [Answer.LANDED])
        task = stage.lab.task(ids[0])
        assert task.status is (EXPIRED if expired else TaskStatus.RUNNING)
        seen.add(expired)
    assert True in seen


def test_a_pause(stage: Stage) -> None:
    """After the pause nothing more is claimed; what was claimed before it stays."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        ids[:] = [lab.send()]
        return {
            "worker": lambda hand: len(hand.claim().tasks),
            "operator": lambda hand: hand.run(queues.pause(QUEUE)),
        }

    seen = set()
    for ended in stage.every_order(scene):
        assert stage.lab.status(ids[0]) is (CLAIMED if ended["worker"] else PENDING)
        assert not stage.lab.claim().tasks
        stage.lab.run(queues.resume(QUEUE))
        assert len(stage.lab.claim().tasks) == 1 - ended["worker"]
        seen.add(ended["worker"])
    assert seen == {0, 1}


def test_a_move_to_another_queue(stage: Stage) -> None:
    """A worker of the old queue has it, or the new queue has it."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        ids[:] = [lab.send()]
        return {
            "worker": lambda hand: len(hand.claim().tasks),
            "operator": lambda hand: hand.run(operate.reschedule(ids, queue="other"))[ids[0]],
        }

    for ended in stage.every_order(scene):
        assert ended["operator"] != bool(ended["worker"])
        assert len(stage.lab.claim(queue="other").tasks) == ended["operator"]


def test_a_claim_that_is_undone(stage: Stage) -> None:
    """The answer of a claim was lost; it is given back whether it landed or not."""

    def scene(lab: Lab) -> Scene:
        lab.send_many(2)
        token = new_token()
        return {
            "lost": lambda hand: hand.claim(token=token) and None,
            "sender": lambda hand: hand.run(claims.release_token(token, queue=QUEUE)),
        }

    for ended in stage.every_order(scene):
        # What comes first finds nothing to undo; the worker asks after its claim has ended.
        assert ended["sender"] in (0, 2)
        assert len(stage.lab.claim().tasks) == ended["sender"]

"""A unique slot: one live task has it, whatever its holder and the senders do at once."""

from __future__ import annotations

import pytest

from holdfast.core.errors import UniqueConflict
from holdfast.core.records import ClaimedTask, Submission, SubmitAnswer, Submitted
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import operate, retention
from tests.store.races.actor import Hand
from tests.store.races.stage import Scene, Stage
from tests.support.stores import Lab
from tests.support.verbs import submission

CREATED, EXISTING = SubmitAnswer.CREATED, SubmitAnswer.EXISTING
SLOT = "customer-7"


def send(hand: Hand, wanted: Submission) -> Submitted:
    """As the client does: AGAIN means once more."""
    while True:
        (answer,) = hand.submit(wanted)
        if answer.answer is not SubmitAnswer.AGAIN:
            return answer


def holders(lab: Lab) -> int:
    ((number,),) = lab.sql("SELECT count(*) FROM holdfast_tasks WHERE unique_slot IS NOT NULL")
    assert isinstance(number, int)
    return number


@pytest.mark.parametrize("on_conflict", ["return", "replace", "debounce", "raise"])
def test_the_holder_ends(stage: Stage, on_conflict: str) -> None:
    """The sender gets the holder while it lives, and a new task once it has ended."""
    tasks: list[ClaimedTask] = []

    def scene(lab: Lab) -> Scene:
        tasks[:] = [lab.running(unique_slot=SLOT)]
        wanted = submission(unique_slot=SLOT, on_conflict=on_conflict)
        return {
            "worker": lambda hand: hand.complete(tasks[0]),
            "sender": lambda hand: send(hand, wanted),
        }

    held = SubmitAnswer.CONFLICT if on_conflict == "raise" else EXISTING
    seen = set()
    for ended in stage.every_order(scene):
        answer = ended["sender"]
        assert (answer.answer is CREATED) == (answer.id != tasks[0].id)
        assert holders(stage.lab) == (answer.answer is CREATED)
        assert stage.lab.status(tasks[0].id) is TaskStatus.COMPLETED
        seen.add(answer.answer)
    assert seen == {CREATED, held}


def test_the_holder_ends_between_the_insert_and_the_look(stage: Stage) -> None:
    """Then nobody is there to name, and the sender is asked to submit once more."""

    def scene(lab: Lab) -> Scene:
        task = lab.running(unique_slot=SLOT)
        wanted = submission(unique_slot=SLOT)
        return {
            "worker": lambda hand: hand.complete(task),
            "sender": lambda hand: [hand.submit(wanted)[0].answer, send(hand, wanted).answer],
        }

    seen = {ended["sender"][0]: ended["sender"][1] for ended in stage.every_order(scene)}
    assert seen.pop(SubmitAnswer.AGAIN) is CREATED
    assert seen.keys() == {CREATED, EXISTING}


def test_two_senders(stage: Stage) -> None:
    """One creates, the other is told of it."""

    def scene(lab: Lab) -> Scene:
        del lab
        wanted = [submission(unique_slot=SLOT) for _ in range(2)]
        return {
            "one": lambda hand: send(hand, wanted[0]),
            "other": lambda hand: send(hand, wanted[1]),
        }

    for ended in stage.every_order(scene):
        assert {ended["one"].answer, ended["other"].answer} == {CREATED, EXISTING}
        assert ended["one"].id == ended["other"].id
        assert holders(stage.lab) == 1


def test_two_senders_of_two_slots(stage: Stage) -> None:
    """In opposite order, and in transactions: no deadlock."""

    def scene(lab: Lab) -> Scene:
        del lab
        batches = [
            [submission(unique_slot=slot, on_conflict="raise") for slot in slots]
            for slots in (("x", "y"), ("y", "x"))
        ]
        return {
            "one": lambda hand: hand.submit(*batches[0]),
            "other": lambda hand: hand.submit(*batches[1]),
        }

    for ended in stage.every_order(scene):
        answers = [answer.answer for actor in ("one", "other") for answer in ended[actor]]
        assert sorted(answers) == [SubmitAnswer.CONFLICT] * 2 + [CREATED] * 2
        assert holders(stage.lab) == 2


def test_a_send_meets_a_resubmit(stage: Stage) -> None:
    """Both want the slot; the resubmit is refused with the holder's name, or the send meets it."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        case = lab.reach(TaskStatus.FAILED, unique_slot=SLOT)
        ids[:] = [case.id]
        wanted = submission(unique_slot=SLOT)

        def operator(hand: Hand) -> bytes | bool:
            try:
                return hand.attempt(lambda: operate.resubmit(ids))[ids[0]]
            except UniqueConflict as conflict:
                return conflict.task_id.bytes

        return {"operator": operator, "sender": lambda hand: send(hand, wanted)}

    seen = set()
    for ended in stage.every_order(scene):
        created = ended["sender"].answer is CREATED
        assert ended["operator"] == (ended["sender"].id if created else True)
        assert stage.lab.status(ids[0]) is (TaskStatus.FAILED if created else TaskStatus.PENDING)
        assert holders(stage.lab) == 1
        seen.add(created)
    assert seen == {True, False}


def test_prune_meets_resubmit(stage: Stage) -> None:
    """It is gone with all that belongs to it, or it is there with all that belongs to it."""
    ids: list[bytes] = []

    def scene(lab: Lab) -> Scene:
        case = lab.reach(TaskStatus.FAILED)
        ids[:] = [case.id]
        later = lab.clock.advance(60)
        return {
            "operator": lambda hand: hand.run(operate.resubmit(ids))[ids[0]],
            "janitor": lambda hand: (
                hand.run(retention.prune(before=later, dead_before=later)).removed
            ),
        }

    seen = set()
    for ended in stage.every_order(scene):
        assert ended["operator"] != bool(ended["janitor"])
        assert stage.lab.status(ids[0]) is (TaskStatus.PENDING if ended["operator"] else None)
        ((rows,),) = stage.lab.sql("SELECT count(*) FROM holdfast_task_attempts")
        assert rows == ended["operator"]
        seen.add(ended["operator"])
    assert seen == {True, False}

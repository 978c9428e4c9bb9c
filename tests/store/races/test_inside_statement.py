"""Between a statement's snapshot and its first lock, somebody else commits (PostgreSQL).

A statement decides by what it sees when it begins, and locks rows as it comes to them. A gate is
put in between: an advisory lock in the statement's own text, which the test holds. What the
statement then writes must fit the rows as they are, not as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from holdfast.core.decide import Change
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.records import LOST, Answer
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import claims, leases, operate, queues, retention, timing
from tests.model.outcomes import change_for
from tests.store.races.actor import Hand, Script
from tests.store.races.stage import Stage, Texts
from tests.support.stores import SECOND, Kind, Lab, Labs
from tests.support.verbs import LEASE_US, QUEUE

GATE = 7_001
ANCHORS = {
    "claim": "WHERE task.queue_name",
    "leased_tasks": "WHERE id = ANY",
    "expired_lease": "WHERE expires_at",
    "expire": "WHERE expire_at",
    "promote": "WHERE due_at",
    "prunable": "WHERE task.id",
    "audit": "WHERE task.id",
    "unknown_pending": "WHERE task.queue_name",
    "lock_tasks": "WHERE id = ANY",
    "complete": "WHERE id = ANY",
    "end": "WHERE id = ANY",
    "start": "WHERE id = ANY",
    "release": "WHERE id = ANY",
}
"""Where in each statement its first look at the table is."""

CANCELLED, COMPLETED, EXPIRED = TaskStatus.CANCELLED, TaskStatus.COMPLETED, TaskStatus.EXPIRED
CLAIMED, PENDING, RUNNING = TaskStatus.CLAIMED, TaskStatus.PENDING, TaskStatus.RUNNING


class Gate:
    """Stops one actor inside one kind of statement while somebody else acts."""

    def __init__(self, stage: Stage, keeper: psycopg.Connection[Any]) -> None:
        self._stage = stage
        self._keeper = keeper
        self.lab = stage.lab

    def play(self, script: Script, meanwhile: Callable[[], object]) -> Any:
        """The script's result, after `meanwhile` happened inside its statement."""
        self._keeper.execute("SELECT pg_advisory_lock(%s)", [GATE])
        with self._stage.actor("late", script) as actor:
            while actor.error is None:
                actor.go()
                if self._stage.settle([actor], moved=actor):
                    break
            meanwhile()
            self._keeper.execute("SELECT pg_advisory_unlock(%s)", [GATE])
            return self._stage.finish(actor)


@contextmanager
def gate(labs: Labs, statement: str, defect: Texts | None = None) -> Iterator[Gate]:
    """A stage whose actors stop inside this statement, which may have a defect."""

    def change(name: str, text: str) -> str:
        if defect is not None:
            text = defect(name, text)
        if name != statement:
            return text
        anchor = ANCHORS[name]
        assert anchor in text, f"the text of {name} has changed"
        stop = f"WHERE (SELECT pg_advisory_xact_lock_shared({GATE})) IS NOT NULL AND "
        return text.replace(anchor, stop + anchor.removeprefix("WHERE "), 1)

    with ExitStack() as closing:
        lab = closing.enter_context(labs.open(Kind.POSTGRES))
        keeper = closing.enter_context(psycopg.connect(lab.store.settings.address, autocommit=True))
        yield Gate(Stage(lab, closing, change), keeper)


def vanished(gone: leases.Abandoned) -> Change:
    return change_for("vanish", gone, Policy())


def reap(hand: Hand) -> leases.Recovery | None:
    return hand.run(leases.recover(vanished))


TAKERS: dict[str, Callable[[Lab, bytes], object]] = {
    "cancelled": lambda lab, id: lab.cancel(id),
    "claimed": lambda lab, id: lab.claim(),
    "delayed": lambda lab, id: lab.run(operate.reschedule([id], move=True, delay_us=SECOND)),
    "moved": lambda lab, id: lab.run(operate.reschedule([id], queue="other")),
    "expired": lambda lab, id: lab.clock.advance(5) and lab.run(timing.expire()),
}


@pytest.mark.parametrize("what", TAKERS)
def test_a_claim_takes_only_what_is_still_there(labs: Labs, what: str) -> None:
    claim_meets(labs, what)


def claim_meets(labs: Labs, what: str, defect: Texts | None = None) -> None:
    with gate(labs, "claim", defect) as gated:
        lab = gated.lab
        id = lab.send(good_until=lab.clock.now + SECOND)
        claimed = gated.play(lambda hand: hand.claim().tasks, lambda: TAKERS[what](lab, id))
        assert not claimed
        assert lab.run(leases.count()) == (what == "claimed"), "no tasks, no lease"


def test_a_claim_keeps_to_the_tasks_that_are_left(labs: Labs) -> None:
    with gate(labs, "claim") as gated:
        lab = gated.lab
        ids = lab.send_many(6)
        first = gated.play(lambda hand: hand.claim(3).tasks, lambda: lab.claim(2))
        assert [task.id for task in first] == ids[2:5]


def test_a_pause_in_the_middle_of_a_claim(labs: Labs) -> None:
    """It takes effect with the next claim."""
    with gate(labs, "claim") as gated:
        gated.lab.send()
        gated.play(lambda hand: hand.claim(), lambda: gated.lab.run(queues.pause(QUEUE)))
        gated.lab.send()
        assert not gated.lab.claim().tasks


def test_a_task_that_starts_while_its_lease_is_recovered(labs: Labs) -> None:
    """Its lease row must not go away under it: then nobody would ever recover it."""
    with gate(labs, "leased_tasks") as gated:
        lab = gated.lab
        task = lab.claimed()
        lab.clock.advance(60)
        gated.play(reap, lambda: lab.start(task))
        while lab.run(leases.recover(vanished)) is not None:
            pass
        found = lab.task(task.id)
        assert (found.status, found.crash_count) == (PENDING, 1)


def test_a_task_that_completes_while_its_lease_is_recovered(labs: Labs) -> None:
    with gate(labs, "leased_tasks") as gated:
        lab = gated.lab
        task = lab.running()
        lab.clock.advance(60)
        recovery = gated.play(reap, lambda: lab.complete(task))
        assert (recovery.recovered, recovery.released) == (0, 0)
        lab.run(leases.recover(vanished))
        assert lab.status(task.id) is COMPLETED
        assert lab.run(leases.count()) == 0


def test_a_lease_that_is_renewed_while_the_reaper_looks(labs: Labs) -> None:
    with gate(labs, "expired_lease") as gated:
        lab = gated.lab
        task = lab.running()
        lab.clock.advance(60)
        renewed = claims.renew([task.token], lease_us=LEASE_US)
        assert gated.play(reap, lambda: lab.run(renewed)) is None
        assert lab.status(task.id) is RUNNING


def test_a_task_that_starts_while_it_is_cancelled(labs: Labs) -> None:
    """The wish is noted; a task that runs is not declared ended."""
    with gate(labs, "lock_tasks") as gated:
        task = gated.lab.claimed()
        answer = gated.play(lambda hand: hand.cancel(task.id), lambda: gated.lab.start(task))
        assert answer == [RUNNING]
        assert gated.lab.task(task.id).cancel_requested_at is not None


def test_a_task_that_completes_while_it_is_cancelled(labs: Labs) -> None:
    with gate(labs, "lock_tasks") as gated:
        task = gated.lab.running()
        answer = gated.play(lambda hand: hand.cancel(task.id), lambda: gated.lab.complete(task))
        assert answer == [COMPLETED]
        assert gated.lab.task(task.id).cancel_requested_at is None


@pytest.mark.parametrize("kind", ["fail", "retry", "snooze", "not_begun", "silence", "crash"])
def test_a_cancel_that_comes_while_a_run_is_ended(labs: Labs, kind: str) -> None:
    """The row has the last word, as it is when it is written."""
    with gate(labs, "end") as gated:
        lab = gated.lab
        task = lab.running(max_retries=3)
        change = change_for(kind, task, Policy(retry=Retry(3)))
        landing = gated.play(lambda hand: hand.write(task, change), lambda: lab.cancel(task.id))
        assert (landing.answer, landing.status) == (Answer.CANCELLED, CANCELLED)
        assert lab.task(task.id).error_code == "TASK_CANCELLED"


@pytest.mark.parametrize("statement", ["complete", "end"])
def test_a_run_that_is_recovered_while_its_worker_ends_it(labs: Labs, statement: str) -> None:
    with gate(labs, statement) as gated:
        lab = gated.lab
        task = lab.running()
        lab.clock.advance(60)
        late: dict[str, Script] = {
            "complete": lambda hand: hand.complete(task),
            "end": lambda hand: hand.write(task, change_for("fail", task, Policy())),
        }
        assert gated.play(late[statement], lambda: lab.run(leases.recover(vanished))) == LOST
        assert [row.outcome for row in lab.attempts(task.id)] == ["WORKER_FAILURE"]


@pytest.mark.parametrize("statement", ["start", "release"])
def test_a_claim_that_is_taken_away_while_it_is_used(labs: Labs, statement: str) -> None:
    with gate(labs, statement) as gated:
        lab = gated.lab
        task = lab.claimed()
        lab.clock.advance(60)

        def take_away() -> None:
            lab.run(leases.recover(vanished))
            lab.claim()

        late: dict[str, Script] = {
            "start": lambda hand: hand.start(task),
            "release": lambda hand: hand.release(task),
        }
        assert gated.play(late[statement], take_away) == [LOST]
        assert (lab.status(task.id), lab.task(task.id).attempt) == (CLAIMED, 0)


def test_a_task_that_is_claimed_while_it_expires(labs: Labs) -> None:
    with gate(labs, "expire") as gated:
        lab = gated.lab
        id = lab.send(good_until=lab.clock.now + SECOND)
        later = lab.clock.now + SECOND

        def claim_in_time() -> None:
            lab.claim()
            lab.clock.move_to(later)

        assert gated.play(lambda hand: hand.run(timing.expire()), claim_in_time) == []
        assert lab.status(id) is CLAIMED


def test_a_task_that_is_put_off_while_it_is_promoted(labs: Labs) -> None:
    with gate(labs, "promote") as gated:
        lab = gated.lab
        id = lab.send(delay_us=SECOND)
        lab.clock.advance(1)
        put_off = operate.reschedule([id], move=True, delay_us=60 * SECOND)
        assert gated.play(lambda hand: hand.run(timing.promote()), lambda: lab.run(put_off)) == []
        assert lab.status(id) is TaskStatus.SCHEDULED


def test_a_task_that_is_resubmitted_while_it_is_pruned(labs: Labs) -> None:
    with gate(labs, "prunable") as gated:
        lab = gated.lab
        id = lab.reach(TaskStatus.FAILED).id
        later = lab.clock.advance(60)
        pruned = gated.play(
            lambda hand: hand.run(retention.prune(before=later, dead_before=later)),
            lambda: lab.run(operate.resubmit([id])),
        )
        assert pruned.removed == 0
        assert lab.status(id) is PENDING
        assert len(lab.attempts(id)) == 1


@pytest.mark.parametrize("what", ["claimed", "ended", "recovered"])
def test_a_task_that_changes_hands_while_it_is_audited(labs: Labs, what: str) -> None:
    """A claim and its lease come and go together; the audit has nothing to report."""
    with gate(labs, "audit") as gated:
        lab = gated.lab
        task = lab.running()
        lab.send()

        def meanwhile() -> None:
            if what == "recovered":
                lab.clock.advance(60)
                assert lab.run(leases.recover(vanished)) is not None
            elif what == "ended":
                lab.complete(task)
                lab.run(claims.clean([task.token]))
            lab.claim()

        audited = gated.play(lambda hand: hand.run(leases.audit()), meanwhile)
        assert (audited.adopted, audited.stuck) == (0, 0)
        assert lab.run(leases.count()) == (2 if what == "claimed" else 1)


@pytest.mark.parametrize("what", ["claimed", "cancelled", "delayed", "moved", "put to the end"])
def test_a_task_that_is_taken_away_while_it_is_dropped(labs: Labs, what: str) -> None:
    takers: dict[str, Callable[[Lab, bytes], object]] = {
        **TAKERS,
        "put to the end": lambda lab, id: (
            lab.clock.advance(5) and lab.run(operate.reschedule([id], move=True))
        ),
    }
    with gate(labs, "unknown_pending") as gated:
        lab = gated.lab
        id = lab.send()
        dropping = timing.drop(QUEUE, known=[], before=lab.clock.now + 1)
        assert gated.play(lambda hand: hand.run(dropping), lambda: takers[what](lab, id)) == {}
        assert lab.status(id) is not TaskStatus.DROPPED

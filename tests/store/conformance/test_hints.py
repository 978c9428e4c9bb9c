"""Hints: every verb that makes a task claimable, or ends one, says so in its transaction.

Polling is the truth, so a missing hint loses nothing but time; it is time that this guards.
How a hint travels is the engines' business, and tested with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.core.decide import Change, decide
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import Crashed, Failed, NotBegun, StoppedByShutdown
from holdfast.store import statement
from holdfast.store.op import ENDED, Channel, Op, Statement, Steps, paused
from holdfast.store.verbs import dependents, leases, operate, queues, timing
from holdfast.store.verbs.leases import Abandoned
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM, LEASE_US, step

T = TypeVar("T")
Heard = set[tuple[Channel, str]]
READY, DONE = (Channel.READY, "q"), (Channel.DONE, ENDED)


class Listening(Lab):
    """A lab that notes the hints of what it runs."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab.kind, lab.store, lab.clock)
        self.heard: Heard = set()

    def run(self, op: Op[T]) -> T:
        def steps() -> Steps[T]:
            inner = iter(op)
            asked = next(inner)
            try:
                while True:
                    self._note(asked)
                    asked = inner.send((yield asked))
            except StopIteration as end:
                value: T = end.value
                return value

        return self.store.run(Op(steps(), op.mode, op.name))

    def _note(self, asked: Statement | tuple[Statement, ...]) -> None:
        for one in (asked,) if isinstance(asked, Statement) else asked:
            if one.hint is not None:
                # On PostgreSQL it is the statement itself that notifies.
                assert "hint_payloads" in statement.text(one.name, "postgresql"), one.name
                self.heard |= {(one.hint.channel, queue) for queue in one.hint.queues}


def crashed(task: Abandoned) -> Change:
    return decide(task, Crashed(), Policy(), lambda: 0.5)


def failed(lab: Lab, policy: Policy) -> None:
    task = lab.running(max_retries=3)
    begin(lab)
    lab.end(task, Failed(BOOM, listed=True), policy)


def begin(lab: Lab) -> None:
    """From here on what is heard counts."""
    assert isinstance(lab, Listening)
    lab.heard.clear()


def submit(lab: Lab) -> None:
    lab.send()


def promote(lab: Lab) -> None:
    lab.send(delay_us=SECOND)
    lab.clock.advance(1)
    begin(lab)
    lab.run(timing.promote())


def promote_now(lab: Lab) -> None:
    id = lab.send(delay_us=SECOND)
    begin(lab)
    lab.run(timing.promote_now([id]))


def reschedule(lab: Lab) -> None:
    id = lab.send(delay_us=SECOND)
    begin(lab)
    lab.run(operate.reschedule([id], move=True))


def release(lab: Lab) -> None:
    task = lab.claimed()
    begin(lab)
    lab.release(task)


def retry(lab: Lab) -> None:
    failed(lab, Policy(retry=Retry(3)))


def interrupt(lab: Lab) -> None:
    task = lab.running()
    begin(lab)
    lab.end(task, NotBegun())


def recover(lab: Lab) -> None:
    lab.running()
    lab.clock.advance(LEASE_US / SECOND + 1)
    begin(lab)
    lab.run(leases.recover(crashed))


def release_by_reaper(lab: Lab) -> None:
    lab.claimed()
    lab.clock.advance(LEASE_US / SECOND + 1)
    begin(lab)
    lab.run(leases.recover(crashed))


def resubmit(lab: Lab) -> None:
    task = lab.running()
    lab.fail(task)
    begin(lab)
    lab.run(operate.resubmit([task.id]))


def resume_queue(lab: Lab) -> None:
    lab.run(queues.pause("q"))
    begin(lab)
    lab.run(queues.resume("q"))


def pause_queue(lab: Lab) -> None:
    begin(lab)
    lab.run(queues.pause("q"))


def resume_workflow(lab: Lab) -> None:
    workflow = new_id()
    lab.send(workflow_id=workflow)
    lab.run(dependents.hold(workflow))
    begin(lab)
    lab.run(dependents.resume(workflow))


def unblock(lab: Lab) -> None:
    workflow = new_id()
    parent = lab.running(workflow_id=workflow, queue_name="parents")
    lab.submit(step(workflow, parent.id))
    begin(lab)
    lab.complete(parent)


def complete(lab: Lab) -> None:
    task = lab.running()
    begin(lab)
    lab.complete(task)


def fail(lab: Lab) -> None:
    failed(lab, Policy())


def stall(lab: Lab) -> None:
    task = lab.running()
    begin(lab)
    lab.end(task, StoppedByShutdown(), Policy(on_shutdown="stop"))


def cancel(lab: Lab) -> None:
    id = lab.send()
    begin(lab)
    lab.cancel(id)


def cancel_by_crash(lab: Lab) -> None:
    task = lab.running()
    lab.cancel(task.id)
    begin(lab)
    lab.end(task, Crashed())


def expire(lab: Lab) -> None:
    lab.send(good_until=lab.clock.now + SECOND)
    lab.clock.advance(1)
    begin(lab)
    lab.run(timing.expire())


def drop(lab: Lab) -> None:
    lab.send()
    begin(lab)
    lab.run(timing.drop("q", known=[], before=lab.clock.now + 1))


MAKE_READY = [
    submit,
    promote,
    promote_now,
    reschedule,
    release,
    retry,
    interrupt,
    recover,
    release_by_reaper,
    resubmit,
    resume_queue,
    resume_workflow,
]
END = [complete, fail, stall, cancel, cancel_by_crash, expire, drop]
CASES: dict[Callable[[Lab], None], Heard] = {
    **{verb: {READY} for verb in MAKE_READY},
    **{verb: {DONE} for verb in END},
    unblock: {READY, DONE},
    pause_queue: {(Channel.READY, paused("q"))},
}


@on_each_engine
@pytest.mark.parametrize("verb", CASES, ids=lambda verb: verb.__name__)
def test_a_verb_hints_what_it_did(lab: Lab, verb: Callable[[Lab], None]) -> None:
    listening = Listening(lab)
    verb(listening)
    assert listening.heard == CASES[verb]


@on_each_engine
def test_a_move_to_another_queue_is_heard_there(lab: Lab) -> None:
    listening = Listening(lab)
    id = lab.send()
    listening.run(operate.reschedule([id], queue="other"))
    assert listening.heard == {(Channel.READY, "other")}


@on_each_engine
def test_nothing_done_nothing_said(lab: Lab) -> None:
    listening = Listening(lab)
    listening.run(timing.promote())
    listening.run(timing.expire())
    listening.run(timing.drop("q", known=[], before=lab.clock.now))
    listening.run(operate.resubmit([new_id()]))
    listening.run(leases.recover(crashed))
    assert listening.heard == set()

"""A worker that claims a task again which it still holds under an older claim.

It was taken from it unnoticed: cancelled and resubmitted, or its lease was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.outcome import Failed, Outcome, Returned
from holdfast.core.records import ClaimedTask
from holdfast.core.status import TaskStatus
from holdfast.runtime.supervisor.children.questions import RemoteHooks
from holdfast.runtime.supervisor.duties.claimer import Claimer
from holdfast.runtime.supervisor.duties.finisher import Finisher
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.verbs import operate
from tests.support.hands import Hands
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import BOOM, HOST, WORKER


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


def claimer(lab: Lab, hands: Hands) -> Claimer:
    return Claimer(lab.store, hands.ledger, Outage(1.0), worker_id=WORKER, hostname=HOST)


@on_each_engine
def test_it_is_begun_once_and_under_the_newer_claim(lab: Lab, hands: Hands) -> None:
    """The very turn that would start the older claim makes the newer one."""
    old, other = lab.claimed(), lab.claimed()
    hands.hold(old, other)
    lab.cancel(old.id)
    lab.run(operate.resubmit([old.id]))
    claimer(lab, hands).tick()
    told = {job.id: job for job in hands.told()}
    assert len(hands.child.hand) == len(hands.ledger.assignments()) == len(told) == 2
    assert told[old.id].token != old.token
    assert told[old.id].attempt == lab.task(old.id).attempt == 1
    assert told[other.id].token == other.token
    assert hands.tokens == {other.token: 1, told[old.id].token: 1}
    assert hands.spent == {old.token}
    assert not hands.held
    assert lab.statuses([old.id, other.id]) == [TaskStatus.RUNNING] * 2


@on_each_engine
def test_one_that_is_gone_and_not_claimed_again_is_forgotten(lab: Lab, hands: Hands) -> None:
    old = lab.claimed()
    hands.hold(old)
    lab.cancel(old.id)
    claimer(lab, hands).tick()
    assert hands.told() == []
    assert hands.ledger.is_idle
    assert hands.spent == {old.token}


@on_each_engine
@pytest.mark.parametrize("newer_first", [False, True])
def test_the_ends_of_both_claims_are_written_in_one_go(
    lab: Lab, hands: Hands, newer_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Each has its own answer: the older claim is lost, the newer one lands."""
    old = lab.running()
    lab.fail_and_resubmit(old)
    new, neighbour = lab.run_again(old.id), lab.running()
    runs: list[tuple[ClaimedTask, Outcome]] = [(old, Failed(BOOM)), (new, Returned("7"))]
    for task, outcome in (*(reversed(runs) if newer_first else runs), (neighbour, Returned("8"))):
        hands.ended(task, outcome)
    Finisher(
        lab.store,
        hands.ledger,
        Outage(1.0),
        RemoteHooks(hands.ledger, [], hands.known),
        worker_id=WORKER,
        kill=lambda child: None,
        put_off=lambda: None,
    ).tick()
    assert [lab.task(task.id).result for task in (new, neighbour)] == ["7", "8"]
    assert [row.outcome for row in lab.attempts(new.id)] == ["FAILED", "COMPLETED"]
    assert hands.ledger.is_idle
    assert hands.spent == {old.token, new.token, neighbour.token}
    assert caplog.text.count("its lease was lost") == 1

"""The chain: everybody is woken, whoever is lost on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.client.sending.pending_send import PendingSend
from holdfast.client.sending.wake_chain import WakeChain
from holdfast.core.records import SubmitAnswer, Submitted
from tests.support.deadline import until
from tests.support.verbs import submission


class Sleepers:
    """Threads that sleep on a pending send each, and pass on once the test lets them."""

    def __init__(self, chain: WakeChain) -> None:
        self._chain = chain
        self.awake: list[PendingSend] = []
        self.may_pass_on = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def start(self, number: int) -> list[PendingSend]:
        pending_sends = [PendingSend(submission(), 5.0) for _ in range(number)]
        for pending in pending_sends:
            pending.lie_down()
            thread = threading.Thread(target=self._sleep, args=(pending,))
            thread.start()
            self._threads.append(thread)
        return pending_sends

    def _sleep(self, pending: PendingSend) -> None:
        pending.sleep()
        self.awake.append(pending)
        assert self.may_pass_on.acquire(timeout=30)
        self._chain.awake(pending)

    def are_awake(self, number: int) -> bool:
        return len(self.awake) == number

    def join(self) -> None:
        self.may_pass_on.release(len(self._threads))
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()


@pytest.fixture
def chain() -> WakeChain:
    return WakeChain()


@pytest.fixture
def sleepers(chain: WakeChain) -> Iterator[Sleepers]:
    sleepers = Sleepers(chain)
    yield sleepers
    sleepers.join()


def test_one_is_woken_and_wakes_the_next(chain: WakeChain, sleepers: Sleepers) -> None:
    pending_sends = sleepers.start(6)
    chain.wake(pending_sends[:5])
    chain.wake(pending_sends[5:])
    for number in range(1, 7):
        until(partial(sleepers.are_awake, number))
        sleepers.may_pass_on.release()
    assert sleepers.awake == pending_sends


def test_whoever_is_up_already_is_passed_over(chain: WakeChain, sleepers: Sleepers) -> None:
    pending_sends = sleepers.start(2)
    gone = [PendingSend(submission(), 5.0) for _ in range(4)]
    for pending in gone:
        pending.lie_down()
        chain.awake(pending)
    chain.wake([*gone[:3], pending_sends[0], gone[3], pending_sends[1]])
    sleepers.may_pass_on.release()
    until(partial(sleepers.are_awake, 2))


def test_one_that_was_woken_and_interrupted_passes_on_once(
    chain: WakeChain, sleepers: Sleepers
) -> None:
    interrupted = PendingSend(submission(), 5.0)
    interrupted.lie_down()
    pending_sends = sleepers.start(2)
    chain.wake([interrupted, *pending_sends])
    assert not sleepers.awake
    chain.awake(interrupted)
    chain.awake(interrupted)
    until(partial(sleepers.are_awake, 1))
    assert not pending_sends[1].roused


def test_what_is_told_twice_is_woken_once(chain: WakeChain, sleepers: Sleepers) -> None:
    """By a leader that was interrupted when it had told some of them."""
    pending_sends = sleepers.start(3)
    sleepers.may_pass_on.release(3)
    chain.wake(pending_sends)
    chain.wake(pending_sends)
    until(partial(sleepers.are_awake, 3))
    chain.rest()
    chain.wake(pending_sends)
    assert not chain._goes_on


def test_whoever_rests_waits_for_all(chain: WakeChain, sleepers: Sleepers) -> None:
    for number in (1, 2, 3):
        chain.wake(sleepers.start(5))
        sleepers.may_pass_on.release(5)
        chain.rest()
        assert sleepers.are_awake(5 * number)
    chain.rest()


def test_a_chain_that_broke_is_begun_anew(
    chain: WakeChain, sleepers: Sleepers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those who were woken one never came to pass that on."""
    monkeypatch.setattr("holdfast.client.sending.wake_chain.LONGEST_REST", 0.01)
    monkeypatch.setattr("holdfast.client.sending.pending_send.LONGEST_SLEEP", 0.05)
    lost = PendingSend(submission(), 5.0)
    lost.lie_down()
    asleep = sleepers.start(2)
    for pending in asleep:
        pending.outcome = Submitted(pending.submission.id, SubmitAnswer.CREATED)
    chain.wake([lost, *asleep])
    # They find out by themselves.
    until(partial(sleepers.are_awake, 2))
    chain.rest()
    sleepers.may_pass_on.release(5)
    chain.wake(sleepers.start(2))
    until(partial(sleepers.are_awake, 4))

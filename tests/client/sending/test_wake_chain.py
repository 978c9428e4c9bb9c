"""The chain: everybody is woken, whoever is lost on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.client.sending.pending_send import Parcel
from holdfast.client.sending.wake_chain import Chain
from holdfast.core.records import SubmitAnswer, Submitted
from tests.support.deadline import until
from tests.support.verbs import submission


class Sleepers:
    """Threads that sleep on a parcel each, and pass on once the test lets them."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.awake: list[Parcel] = []
        self.may_pass_on = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def start(self, number: int) -> list[Parcel]:
        parcels = [Parcel(submission(), 5.0) for _ in range(number)]
        for parcel in parcels:
            parcel.lie_down()
            thread = threading.Thread(target=self._sleep, args=(parcel,))
            thread.start()
            self._threads.append(thread)
        return parcels

    def _sleep(self, parcel: Parcel) -> None:
        parcel.sleep()
        self.awake.append(parcel)
        assert self.may_pass_on.acquire(timeout=30)
        self._chain.awake(parcel)

    def are_awake(self, number: int) -> bool:
        return len(self.awake) == number

    def join(self) -> None:
        self.may_pass_on.release(len(self._threads))
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()


@pytest.fixture
def chain() -> Chain:
    return Chain()


@pytest.fixture
def sleepers(chain: Chain) -> Iterator[Sleepers]:
    sleepers = Sleepers(chain)
    yield sleepers
    sleepers.join()


def test_one_is_woken_and_wakes_the_next(chain: Chain, sleepers: Sleepers) -> None:
    parcels = sleepers.start(6)
    chain.wake(parcels[:5])
    chain.wake(parcels[5:])
    for number in range(1, 7):
        until(partial(sleepers.are_awake, number))
        sleepers.may_pass_on.release()
    assert sleepers.awake == parcels


def test_whoever_is_up_already_is_passed_over(chain: Chain, sleepers: Sleepers) -> None:
    parcels = sleepers.start(2)
    gone = [Parcel(submission(), 5.0) for _ in range(4)]
    for parcel in gone:
        parcel.lie_down()
        chain.awake(parcel)
    chain.wake([*gone[:3], parcels[0], gone[3], parcels[1]])
    sleepers.may_pass_on.release()
    until(partial(sleepers.are_awake, 2))


def test_one_that_was_woken_and_interrupted_passes_on_once(
    chain: Chain, sleepers: Sleepers
) -> None:
    interrupted = Parcel(submission(), 5.0)
    interrupted.lie_down()
    parcels = sleepers.start(2)
    chain.wake([interrupted, *parcels])
    assert not sleepers.awake
    chain.awake(interrupted)
    chain.awake(interrupted)
    until(partial(sleepers.are_awake, 1))
    assert not parcels[1].roused


def test_what_is_told_twice_is_woken_once(chain: Chain, sleepers: Sleepers) -> None:
    """By a leader that was interrupted when it had told some of them."""
    parcels = sleepers.start(3)
    sleepers.may_pass_on.release(3)
    chain.wake(parcels)
    chain.wake(parcels)
    until(partial(sleepers.are_awake, 3))
    chain.rest()
    chain.wake(parcels)
    assert not chain._goes_on


def test_whoever_rests_waits_for_all(chain: Chain, sleepers: Sleepers) -> None:
    for number in (1, 2, 3):
        chain.wake(sleepers.start(5))
        sleepers.may_pass_on.release(5)
        chain.rest()
        assert sleepers.are_awake(5 * number)
    chain.rest()


def test_a_chain_that_broke_is_begun_anew(
    chain: Chain, sleepers: Sleepers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those who were woken one never came to pass that on."""
    monkeypatch.setattr("holdfast.client.sending.wake_chain.LONGEST_REST", 0.01)
    monkeypatch.setattr("holdfast.client.sending.pending_send.LONGEST_SLEEP", 0.05)
    lost = Parcel(submission(), 5.0)
    lost.lie_down()
    asleep = sleepers.start(2)
    for parcel in asleep:
        parcel.outcome = Submitted(parcel.submission.id, SubmitAnswer.CREATED)
    chain.wake([lost, *asleep])
    # They find out by themselves.
    until(partial(sleepers.are_awake, 2))
    chain.rest()
    sleepers.may_pass_on.release(5)
    chain.wake(sleepers.start(2))
    until(partial(sleepers.are_awake, 4))

"""The chain: everybody is woken, whoever is lost on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.store.wake_chain import Sleeper, WakeChain
from tests.support.deadline import until


class Sleepers:
    """Threads that sleep, and pass on once the test lets them."""

    def __init__(self, chain: WakeChain) -> None:
        self._chain = chain
        self.awake: list[Sleeper] = []
        self.may_pass_on = threading.Semaphore(0)
        self.is_over = False
        self._threads: list[threading.Thread] = []

    def start(self, number: int) -> list[Sleeper]:
        sleepers = [Sleeper() for _ in range(number)]
        for sleeper in sleepers:
            thread = threading.Thread(target=self._sleep, args=(sleeper,))
            thread.start()
            self._threads.append(thread)
        return sleepers

    def _sleep(self, sleeper: Sleeper) -> None:
        sleeper.sleep(lambda: self.is_over)
        self.awake.append(sleeper)
        assert self.may_pass_on.acquire(timeout=30)
        self._chain.awake(sleeper)

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
    asleep = sleepers.start(6)
    chain.wake(asleep[:5])
    chain.wake(asleep[5:])
    for number in range(1, 7):
        until(partial(sleepers.are_awake, number))
        sleepers.may_pass_on.release()
    assert sleepers.awake == asleep


def test_whoever_is_up_already_is_passed_over(chain: WakeChain, sleepers: Sleepers) -> None:
    asleep = sleepers.start(2)
    gone = [Sleeper() for _ in range(4)]
    for sleeper in gone:
        chain.awake(sleeper)
    chain.wake([*gone[:3], asleep[0], gone[3], asleep[1]])
    sleepers.may_pass_on.release()
    until(partial(sleepers.are_awake, 2))


def test_one_that_was_woken_and_interrupted_passes_on_once(
    chain: WakeChain, sleepers: Sleepers
) -> None:
    interrupted = Sleeper()
    asleep = sleepers.start(2)
    chain.wake([interrupted, *asleep])
    assert not sleepers.awake
    chain.awake(interrupted)
    chain.awake(interrupted)
    until(partial(sleepers.are_awake, 1))
    assert not asleep[1].roused


def test_what_is_told_twice_is_woken_once(chain: WakeChain, sleepers: Sleepers) -> None:
    """By a leader that was interrupted when it had told some of them."""
    asleep = sleepers.start(3)
    sleepers.may_pass_on.release(3)
    chain.wake(asleep)
    chain.wake(asleep)
    until(partial(sleepers.are_awake, 3))
    chain.rest()
    chain.wake(asleep)
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
    monkeypatch.setattr("holdfast.store.wake_chain.LONGEST_REST", 0.01)
    monkeypatch.setattr("holdfast.store.wake_chain.LONGEST_SLEEP", 0.05)
    lost = Sleeper()
    asleep = sleepers.start(2)
    chain.wake([lost, *asleep])
    # They find out by themselves.
    sleepers.is_over = True
    until(partial(sleepers.are_awake, 2))
    sleepers.is_over = False
    chain.rest()
    sleepers.may_pass_on.release(5)
    chain.wake(sleepers.start(2))
    until(partial(sleepers.are_awake, 4))

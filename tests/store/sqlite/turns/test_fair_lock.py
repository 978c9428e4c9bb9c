from __future__ import annotations

import threading

import pytest

from holdfast.core.errors import StoreError
from holdfast.store.sqlite.turns.turnstile import FairLock
from tests.support.deadline import until


def test_it_is_granted_in_the_order_of_asking() -> None:
    line = FairLock()
    order: list[int] = []
    assert line.acquire(1)
    threads = []

    def stand(number: int) -> None:
        assert line.acquire(10)
        order.append(number)
        line.release()

    for number in range(8):
        thread = threading.Thread(target=stand, args=(number,))
        thread.start()
        threads.append(thread)
        # Only when one stands in line does the next begin to ask.
        until(lambda: len(line._waiting) == len(threads))
    line.release()
    for thread in threads:
        thread.join(10)

    assert order == list(range(8))


def test_somebody_who_gave_up_is_passed_over() -> None:
    line = FairLock()
    got: list[str] = []
    line.acquire(1)

    def ask(name: str, timeout: float) -> None:
        if line.acquire(timeout):
            got.append(name)
            line.release()

    impatient = threading.Thread(target=ask, args=("impatient", 0.01))
    impatient.start()
    impatient.join(10)
    patient = threading.Thread(target=ask, args=("patient", 10))
    patient.start()
    until(lambda: len(line._waiting) == 1)
    line.release()
    patient.join(10)

    assert got == ["patient"]
    assert line.acquire(0)


def test_a_thread_does_not_wait_for_itself() -> None:
    line = FairLock()
    line.acquire(1)

    with pytest.raises(StoreError, match="signal handler"):
        line.acquire(10)

    line.release()
    assert line.acquire(0)


def test_it_is_exclusive() -> None:
    line = FairLock()
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(300):
            assert line.acquire(10)
            inside += 1
            most = max(most, inside)
            inside -= 1
            line.release()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert most == 1

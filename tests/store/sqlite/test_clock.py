from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import pytest

from holdfast.store.sqlite.clock import Clock
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore

SECOND = 1_000_000
NOON = 1_700_000_000 * SECOND


class Hand:
    """A clock that is set by hand."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_it_is_the_machines_clock() -> None:
    before = time.time_ns() // 1_000
    now = Clock().now()

    assert before <= now <= time.time_ns() // 1_000


def test_it_never_goes_back() -> None:
    hand = Hand()
    clock = Clock(hand)
    assert clock.now() == NOON

    hand.now -= 3600 * SECOND
    assert clock.now() == NOON
    hand.now = NOON + 1
    assert clock.now() == NOON + 1


def test_threads_never_see_it_go_back() -> None:
    clock = Clock()
    wrong: list[int] = []

    def look() -> None:
        last = 0
        for _ in range(5_000):
            now = clock.now()
            if now < last:
                wrong.append(now)
            last = now

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert wrong == []


def test_a_later_process_goes_on_from_the_time_stored(make_store: MakeStore) -> None:
    first = make_store(clock=Hand(NOON))
    first.run(verbs.make())
    first.run(verbs.put("x"))
    first.close()

    second = make_store(clock=Hand(NOON - 3600 * SECOND))

    assert second.run(verbs.now()) == NOON


def test_a_process_that_was_idle_learns_of_a_later_time(make_store: MakeStore) -> None:
    theirs, ours = Hand(), Hand()
    first, second = make_store(clock=theirs), make_store(clock=ours)
    first.run(verbs.make())
    second.run(verbs.put("x"))
    theirs.now = NOON + 7200 * SECOND
    first.run(verbs.put("x"))
    # The clock was set back while we slept; it is still later than what we knew.
    ours.now = NOON + 3600 * SECOND

    assert second.run(verbs.now_in_write()) == (theirs.now, theirs.now)


def test_it_is_stored_about_once_a_second(make_store: MakeStore) -> None:
    hand = Hand()
    store = make_store(clock=hand)
    store.run(verbs.make())
    store.run(verbs.put("a"))
    assert store.run(verbs.stored_clock()) == NOON

    hand.now += SECOND // 2
    store.run(verbs.put("b"))
    assert store.run(verbs.stored_clock()) == NOON
    hand.now += SECOND
    store.run(verbs.put("c"))

    assert store.run(verbs.stored_clock()) == NOON + 3 * SECOND // 2


def test_it_is_one_time_throughout_a_transaction(store: SqliteStore) -> None:
    first, second = store.run(verbs.now_in_write())

    assert first == second


def test_a_stored_time_far_ahead_is_warned_about(
    make_store: MakeStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = make_store(clock=Hand())
    first.run(verbs.make())
    first.run(verbs.put("x"))
    first.close()

    with caplog.at_level(logging.WARNING):
        make_store(clock=Hand(NOON - 7200 * SECOND)).run(verbs.now())

    assert "7200 s behind" in caplog.text

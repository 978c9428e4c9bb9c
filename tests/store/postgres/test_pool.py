"""Who gets a connection when there are not enough: the one who has waited longest."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store.postgres.pool import Pool
from holdfast.store.postgres.store import PostgresStore
from tests.store.postgres.conftest import MakeStore
from tests.support.deadline import until

PATIENCE = 0.2


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.fixture
def pool(make_store: MakeStore) -> Pool:
    """Of one connection; the other of two is the listener's."""
    return make_store(max_connections=2)._pool


def in_line(pool: Pool, count: int) -> None:
    until(lambda: len(pool._waiting) == count)


def test_the_line_is_served_in_order(pool: Pool, threads: ThreadPoolExecutor) -> None:
    order: list[int] = []

    def ask(number: int) -> None:
        with pool.connection():
            order.append(number)

    with pool.connection() as lent:
        asked: list[Future[None]] = []
        for number in range(5):
            asked.append(threads.submit(ask, number))
            in_line(pool, number + 1)
    # Whoever asks again at once stands behind them.
    ask(5)
    for answer in asked:
        answer.result(5)
    assert order == [0, 1, 2, 3, 4, 5]
    assert pool._all == {lent}


def test_what_is_urgent_has_a_connection_of_its_own(
    pool: Pool, threads: ThreadPoolExecutor
) -> None:
    with pool.connection():
        waiting = threads.submit(lambda: pool.release(pool.acquire()))
        in_line(pool, 1)
        with pool.connection(urgent=True):
            # Theirs is not lent to others, now or when it comes back.
            assert len(pool._all) == 2
        assert len(pool._waiting) == 1
    waiting.result(5)
    assert len(pool._all) == 2


def test_a_wait_in_vain_leaves_the_line(make_store: MakeStore) -> None:
    store = make_store(max_connections=2, statement_timeout=PATIENCE)
    with store._pool.connection():
        with pytest.raises(StoreUnavailable, match=r"all 1 connections .* raise max_connections"):
            store._pool.acquire()
        assert not store._pool._waiting
    store.probe()


def test_the_next_in_line_opens_what_the_first_broke(
    pool: Pool, threads: ThreadPoolExecutor
) -> None:
    lent = pool.acquire()
    waiting = threads.submit(pool.acquire)
    in_line(pool, 1)
    lent.close()
    pool.release(lent)
    other = waiting.result(5)
    assert other is not lent
    pool.release(other)


def test_closing_ends_every_wait(store: PostgresStore, threads: ThreadPoolExecutor) -> None:
    pool = store._pool
    lent = [pool.acquire() for _ in range(4)]
    waiting = [threads.submit(pool.acquire) for _ in range(2)]
    in_line(pool, 2)
    store.close()
    for answer in waiting:
        with pytest.raises(StoreError, match="closed"):
            answer.result(5)
    for connection in lent:
        pool.release(connection)
    assert not pool._all

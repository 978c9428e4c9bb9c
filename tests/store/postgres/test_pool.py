"""Who gets a connection when there are not enough: the one who has waited longest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import pytest

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store.postgres.connection import Opener
from holdfast.store.postgres.pool import Pool
from holdfast.store.settings import StoreSettings
from tests.support.deadline import until

Admin: TypeAlias = "Callable[[str], list[tuple[Any, ...]]]"

PATIENCE = 0.2


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.fixture
def pool(settings: StoreSettings) -> Iterator[Pool]:
    """Of one connection."""
    pool = Pool(Opener(settings), 1, patience=30.0)
    yield pool
    pool.close()


@pytest.fixture
def sessions(admin: Admin) -> Callable[[], int]:
    """How many connections of ours the server has."""
    ours = "application_name = 'holdfast' AND datname = current_database()"
    return lambda: len(admin(f"SELECT 1 FROM pg_stat_activity WHERE {ours}"))


def in_line(pool: Pool, count: int) -> None:
    until(lambda: len(pool._waiting) == count)


def test_the_line_is_served_in_order(
    pool: Pool, threads: ThreadPoolExecutor, sessions: Callable[[], int]
) -> None:
    order: list[int] = []

    def ask(number: int) -> None:
        with pool.connection():
            order.append(number)

    with pool.connection():
        asked: list[Future[None]] = []
        for number in range(5):
            asked.append(threads.submit(ask, number))
            in_line(pool, number + 1)
    # Whoever asks again at once stands behind them.
    ask(5)
    for answer in asked:
        answer.result(5)
    assert order == [0, 1, 2, 3, 4, 5]
    assert sessions() == 1


def test_what_is_urgent_has_a_connection_of_its_own(
    pool: Pool, threads: ThreadPoolExecutor, sessions: Callable[[], int]
) -> None:
    with pool.connection():
        waiting = threads.submit(lambda: pool.release(pool.acquire()))
        in_line(pool, 1)
        with pool.connection(urgent=True):
            # Theirs is not lent to others, now or when it comes back.
            assert sessions() == 2
        assert not waiting.done()
    waiting.result(5)
    assert sessions() == 2


def test_a_wait_in_vain_leaves_the_line(settings: StoreSettings) -> None:
    pool = Pool(Opener(settings), 1, PATIENCE)
    with (
        pool.connection() as lent,
        pytest.raises(StoreUnavailable, match=r"all 1 connections .* raise max_connections"),
    ):
        pool.acquire()
    # Whoever comes next is not behind one who has gone.
    with pool.connection() as again:
        assert again is lent
    pool.close()


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


def test_closing_ends_every_wait(
    pool: Pool, threads: ThreadPoolExecutor, sessions: Callable[[], int]
) -> None:
    lent = pool.acquire()
    waiting = [threads.submit(pool.acquire) for _ in range(2)]
    in_line(pool, 2)
    pool.close()
    for answer in waiting:
        with pytest.raises(StoreError, match="closed"):
            answer.result(5)
    pool.release(lent)
    until(lambda: sessions() == 0)

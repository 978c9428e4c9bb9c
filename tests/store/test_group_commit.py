"""The group: who leads, what gathers, and what happens when something goes wrong in between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store import group_commit
from holdfast.store.group_commit import CROWD, MOST_ITEMS, MOST_TRIES, GroupCommit, Patience
from tests.support.deadline import until

Group = GroupCommit[int, str]
Answers = Sequence[str | Exception]


class Till:
    """Commits batches, each when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.busy = threading.Semaphore(0)
        self._go = threading.Semaphore(0)
        self.answers: list[Callable[[Sequence[int]], Answers]] = []

    def commit(self, items: Sequence[int]) -> Answers:
        self.batches.append(list(items))
        self.busy.release()
        assert self._go.acquire(timeout=30)
        return (self.answers.pop(0) if self.answers else settle)(items)

    def let_go(self, commits: int = 1) -> None:
        self._go.release(commits)

    def wait_for_commit(self) -> None:
        assert self.busy.acquire(timeout=30)

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]


def settle(items: Sequence[int]) -> Answers:
    return [f"done {item}" for item in items]


@pytest.fixture
def till() -> Till:
    return Till()


class Senders:
    """Threads that send one item each."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.threads: list[threading.Thread] = []
        self.answers: dict[int, str] = {}
        self.errors: list[BaseException] = []

    def start(self, *items: int) -> None:
        for item in items:
            thread = threading.Thread(target=self._send, args=(item,))
            thread.start()
            self.threads.append(thread)

    def _send(self, item: int) -> None:
        try:
            self.answers[item] = self._group.send(item)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.errors.append(error)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()


def waiting(group: Group) -> int:
    return len(group._waiting)


def nowhere(work: Callable[[], None]) -> None:
    raise AssertionError("no thread may be needed")


def made(
    till: Till,
    elsewhere: Callable[[Callable[[], None]], object] = nowhere,
    *,
    leaders: int = 1,
    patience: float = 5.0,
) -> Group:
    """A group whose items weigh what they are."""
    return GroupCommit(
        till.commit,
        elsewhere,
        patience=Patience(patience),
        weight=lambda item: item,
        heaviest=10_000,
        leaders=leaders,
    )


def test_a_lone_item_is_committed_by_its_own_thread(till: Till) -> None:
    group = made(till)
    till.let_go()
    assert group.send(1) == "done 1"
    assert till.sizes == [1]


@pytest.mark.parametrize("number", [CROWD - 1, 3 * CROWD])
def test_what_arrives_during_a_commit_is_the_next_one(till: Till, number: int) -> None:
    """A few are led by one of them, a crowd by the executor."""
    with ThreadPoolExecutor(1) as pool:
        group = made(till, pool.submit if number >= CROWD else nowhere)
        senders = Senders(group)
        senders.start(0)
        till.wait_for_commit()
        senders.start(*range(1, number + 1))
        until(lambda: waiting(group) == number)
        till.let_go(2)
        senders.join()
    assert till.sizes == [1, number]
    assert senders.answers == {item: f"done {item}" for item in range(number + 1)}
    assert group._leaders == 0


def test_a_crowd_without_an_executor_is_led_all_the_same(till: Till) -> None:
    """At the end of the interpreter there is none."""

    def refuse(work: Callable[[], None]) -> None:
        raise RuntimeError("cannot schedule new futures after shutdown")

    group = made(till, refuse)
    senders = Senders(group)
    senders.start(0)
    till.wait_for_commit()
    senders.start(*range(1, CROWD + 1))
    until(lambda: waiting(group) == CROWD)
    till.let_go(2)
    senders.join()
    assert till.sizes == [1, CROWD]
    assert group._leaders == 0


def test_nobody_returns_before_its_own_commit(till: Till) -> None:
    group = made(till)
    senders = Senders(group)
    senders.start(0)
    till.wait_for_commit()
    senders.start(1)
    until(lambda: waiting(group) == 1)
    till.let_go()
    till.wait_for_commit()
    assert senders.threads[1].is_alive()
    assert 1 not in senders.answers
    till.let_go()
    senders.join()


def test_a_batch_has_a_limit(till: Till) -> None:
    group = made(till)
    senders = Senders(group)
    senders.start(0)
    till.wait_for_commit()
    senders.start(6_000, 6_001, 6_002)
    until(lambda: waiting(group) == 3)
    till.let_go(4)
    senders.join()
    assert till.sizes == [1, 1, 1, 1]
    many = made(till)
    many._leaders = 1
    for _ in range(MOST_ITEMS + 1):
        many.post(0, lambda outcome: None)
    assert len(many._take(None)) == MOST_ITEMS


def test_several_leaders_commit_side_by_side(till: Till) -> None:
    group = made(till, leaders=2)
    senders = Senders(group)
    senders.start(0)
    till.wait_for_commit()
    senders.start(1)
    till.wait_for_commit()
    senders.start(2, 3)
    until(lambda: waiting(group) == 2)
    till.let_go(4)
    senders.join()
    assert sum(till.sizes) == 4
    assert group._leaders == 0


def test_an_interrupted_leader_leaves_the_others_to_the_next(till: Till) -> None:
    group = made(till)
    senders = Senders(group)
    senders.start(0)
    till.wait_for_commit()
    senders.start(1)
    until(lambda: waiting(group) == 1)
    senders.start(2, 3, 4)
    until(lambda: waiting(group) == 4)

    def interrupt(items: Sequence[int]) -> Answers:
        raise KeyboardInterrupt

    till.answers = [settle, interrupt]
    till.let_go(4)
    senders.join()
    assert [type(error) for error in senders.errors] == [KeyboardInterrupt]
    assert len(senders.answers) == 4
    assert (group._leaders, waiting(group)) == (0, 0)


def test_items_that_must_wait_go_first_next_time(till: Till) -> None:
    group = made(till)
    senders = Senders(group)

    def away(items: Sequence[int]) -> Answers:
        raise StoreUnavailable("away")

    till.answers = [away]
    senders.start(0)
    till.wait_for_commit()
    senders.start(1)
    until(lambda: waiting(group) == 1)
    till.let_go(2)
    senders.join()
    assert till.batches == [[0], [0, 1]]


def test_an_item_that_may_be_tried_again_is_for_a_while(till: Till) -> None:
    group = made(till)

    def again(items: Sequence[int]) -> Answers:
        return [StoreError("not yet") for _ in items]

    till.answers = [again] * (MOST_TRIES - 1)
    till.let_go(MOST_TRIES)
    assert group.send(1) == "done 1"
    till.answers = [again] * MOST_TRIES
    till.let_go(MOST_TRIES)
    with pytest.raises(StoreError, match="not yet"):
        group.send(2)


def test_an_item_that_is_refused_fails_alone(till: Till) -> None:
    group = made(till)
    senders = Senders(group)
    senders.start(0)
    till.wait_for_commit()
    senders.start(*range(1, CROWD))
    until(lambda: waiting(group) == CROWD - 1)

    def refuse_three(items: Sequence[int]) -> Answers:
        if 3 in items:
            raise StoreError("three")
        return settle(items)

    till.answers = [refuse_three] * 20
    till.let_go(20)
    senders.join()
    assert [str(error) for error in senders.errors] == ["three"]
    assert sorted(senders.answers) == [0, 1, 2, 4, 5, 6, 7]


def test_patience_ends_with_an_error_for_each(till: Till) -> None:
    group = made(till, patience=0.0)
    senders = Senders(group)

    def away(items: Sequence[int]) -> Answers:
        raise StoreUnavailable("away")

    till.answers = [away, away]
    senders.start(0)
    till.wait_for_commit()
    senders.start(1, 2)
    until(lambda: waiting(group) == 2)
    till.let_go(2)
    senders.join()
    assert len({id(error) for error in senders.errors}) == 3
    assert till.sizes == [1, 2]


def test_coroutines_are_led_by_the_executor(till: Till) -> None:
    async def send_all() -> list[str]:
        return await asyncio.gather(*(group.asend(item) for item in range(10)))

    with ThreadPoolExecutor(1) as pool:
        group = made(till, pool.submit)
        till.let_go(20)
        assert asyncio.run(send_all()) == [f"done {item}" for item in range(10)]
    assert sum(till.sizes) == 10
    assert group._leaders == 0


def test_a_cancelled_coroutine_that_has_not_left_is_not_sent(till: Till) -> None:
    async def cancel_one() -> list[Any]:
        sends = [asyncio.ensure_future(group.asend(0))]
        await asyncio.to_thread(till.wait_for_commit)
        sends += [asyncio.ensure_future(group.asend(item)) for item in (1, 2)]
        await asyncio.sleep(0)
        sends[1].cancel()
        await asyncio.wait([sends[1]])
        till.let_go(3)
        return await asyncio.gather(*sends, return_exceptions=True)

    with ThreadPoolExecutor(1) as pool:
        group = made(till, pool.submit)
        first, second, third = asyncio.run(cancel_one())
    assert (first, third) == ("done 0", "done 2")
    assert isinstance(second, asyncio.CancelledError)
    assert till.batches == [[0], [2]]


def test_a_thread_hands_the_group_to_the_executor_for_coroutines(till: Till) -> None:
    async def send() -> None:
        sending = asyncio.ensure_future(group.asend(1))
        await asyncio.sleep(0)
        till.let_go(2)
        await sending

    with ThreadPoolExecutor(1) as pool:
        group = made(till, pool.submit)
        senders = Senders(group)
        senders.start(0)
        till.wait_for_commit()
        asyncio.run(send())
        senders.join()
    assert till.sizes == [1, 1]
    assert group._leaders == 0


def test_a_loop_that_was_closed_is_nobody(till: Till) -> None:
    loop = asyncio.new_event_loop()
    with ThreadPoolExecutor(1) as pool:
        group = made(till, pool.submit)
        sending = loop.create_task(group.asend(1))
        loop.call_soon(loop.stop)
        loop.run_forever()
        till.wait_for_commit()
        loop.close()
        till.let_go()
        until(lambda: group._leaders == 0)
    assert till.sizes == [1]
    assert not sending.done()
    del sending


def test_who_posts_is_told(till: Till) -> None:
    told: list[str | Exception] = []
    with ThreadPoolExecutor(1) as pool:
        group = made(till, pool.submit)

        def refuse(items: Sequence[int]) -> Answers:
            raise StoreError("refused")

        till.answers = [settle, refuse]
        for item in (1, 2):
            group.post(item, told.append)
            till.let_go()
            until(lambda: group._leaders == 0)
    assert told[0] == "done 1"
    assert [str(error) for error in told[1:]] == ["refused"]


def test_who_posts_is_told_once(till: Till) -> None:
    """Also if being told fails; the others are told all the same."""
    told: list[str | Exception] = []

    def fail(outcome: str | Exception) -> None:
        told.append(outcome)
        raise OSError("gone")

    with ThreadPoolExecutor(1) as pool:
        group = made(till, pool.submit)
        group.post(0, told.append)
        till.wait_for_commit()
        group.post(1, fail)
        group.post(2, told.append)
        till.let_go(2)
        until(lambda: group._leaders == 0)
    assert told == ["done 0", "done 1", "done 2"]


def test_items_that_go_alone_do_not_wait_for_each_other(
    till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure that took long."""
    monkeypatch.setattr(group_commit, "HELD_UP", 0.0)
    group = made(till, leaders=3)
    group._leaders = 2
    senders = Senders(group)
    senders.start(0)
    till.wait_for_commit()
    senders.start(1, 2)
    until(lambda: waiting(group) == 2)
    group._leaders = 1

    def held_up(items: Sequence[int]) -> Answers:
        raise StoreUnavailable("waited in vain")

    till.answers = [settle, held_up]
    till.let_go(2)
    for _ in range(3):
        till.wait_for_commit()
    # All that is left is being committed at this moment, each by itself.
    assert sorted(till.sizes) == [1, 1, 1, 2]
    till.let_go(3)
    senders.join()
    assert (group._leaders, waiting(group)) == (0, 0)

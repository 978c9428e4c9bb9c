"""The group: who leads, what gathers, and what happens when something goes wrong in between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.client.sending.group_commit import CROWD, MOST_SENDS, GroupCommit, Pause
from holdfast.client.sending.pending_send import PendingSend
from holdfast.core.records import SubmitAnswer, Submitted
from tests.support.deadline import until
from tests.support.verbs import submission


class Till:
    """Commits batches, each when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[PendingSend]] = []
        self.busy = threading.Semaphore(0)
        self._go = threading.Semaphore(0)
        self.answers: list[Callable[[Sequence[PendingSend]], Pause | None]] = []

    def commit(self, pending_sends: Sequence[PendingSend]) -> Pause | None:
        self.batches.append(list(pending_sends))
        self.busy.release()
        assert self._go.acquire(timeout=30)
        if self.answers:
            return self.answers.pop(0)(pending_sends)
        return settle(pending_sends)

    def let_go(self, commits: int = 1) -> None:
        self._go.release(commits)

    def wait_for_commit(self) -> None:
        assert self.busy.acquire(timeout=30)

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]


def settle(pending_sends: Sequence[PendingSend]) -> Pause | None:
    for pending in pending_sends:
        pending.outcome = Submitted(pending.submission.id, SubmitAnswer.CREATED)
    return None


def pending(**fields: Any) -> PendingSend:
    return PendingSend(submission(**fields), 5.0)


@pytest.fixture
def till() -> Till:
    return Till()


class Senders:
    """Threads that send one pending send each."""

    def __init__(self, group: GroupCommit) -> None:
        self._group = group
        self.threads: list[threading.Thread] = []
        self.errors: list[BaseException] = []

    def start(self, *pending_sends: PendingSend) -> None:
        for one in pending_sends:
            thread = threading.Thread(target=self._send, args=(one,))
            thread.start()
            self.threads.append(thread)

    def _send(self, one: PendingSend) -> None:
        try:
            self._group.send(one)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.errors.append(error)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()


def waiting(group: GroupCommit) -> int:
    return len(group._waiting)


def nowhere(work: Callable[[], None]) -> None:
    raise AssertionError("no thread may be needed")


def test_a_lone_parcel_is_committed_by_its_own_thread(till: Till) -> None:
    group = GroupCommit(till.commit, nowhere, leaders=1)
    till.let_go()
    one = pending()
    group.send(one)
    assert one.outcome is not None
    assert till.sizes == [1]


@pytest.mark.parametrize("number", [CROWD - 1, 3 * CROWD])
def test_what_arrives_during_a_commit_is_the_next_one(till: Till, number: int) -> None:
    """A few are led by one of them, a crowd by the executor."""
    with ThreadPoolExecutor(1) as pool:
        group = GroupCommit(till.commit, pool.submit if number >= CROWD else nowhere, leaders=1)
        senders = Senders(group)
        senders.start(pending())
        till.wait_for_commit()
        rest = [pending() for _ in range(number)]
        senders.start(*rest)
        until(lambda: waiting(group) == number)
        till.let_go(2)
        senders.join()
    assert till.sizes == [1, number]
    assert all(one.outcome is not None for one in rest)
    assert group._leaders == 0


def test_a_crowd_without_an_executor_is_led_all_the_same(till: Till) -> None:
    """At the end of the interpreter there is none."""

    def refuse(work: Callable[[], None]) -> None:
        raise RuntimeError("cannot schedule new futures after shutdown")

    group = GroupCommit(till.commit, refuse, leaders=1)
    senders = Senders(group)
    senders.start(pending())
    till.wait_for_commit()
    senders.start(*(pending() for _ in range(CROWD)))
    until(lambda: waiting(group) == CROWD)
    till.let_go(2)
    senders.join()
    assert till.sizes == [1, CROWD]
    assert group._leaders == 0


def test_nobody_returns_before_its_own_commit(till: Till) -> None:
    group = GroupCommit(till.commit, nowhere, leaders=1)
    senders = Senders(group)
    senders.start(pending())
    till.wait_for_commit()
    late = pending()
    senders.start(late)
    until(lambda: waiting(group) == 1)
    till.let_go()
    till.wait_for_commit()
    assert senders.threads[1].is_alive()
    assert late.outcome is None
    till.let_go()
    senders.join()


def test_a_batch_has_a_limit(till: Till) -> None:
    group = GroupCommit(till.commit, nowhere, leaders=1)
    big = [pending(args="x" * 5_000_000) for _ in range(3)]
    for one in big:
        one.lie_down()
        group._waiting.append(one)
    till.let_go(3)
    group.send(pending())
    assert till.sizes == [2]
    small = [pending() for _ in range(MOST_SENDS + 1)]
    group._waiting.clear()
    for one in small:
        group._waiting.append(one)
    assert len(group._take(None)) == MOST_SENDS


def test_several_leaders_commit_side_by_side(till: Till) -> None:
    group = GroupCommit(till.commit, nowhere, leaders=2)
    senders = Senders(group)
    senders.start(pending())
    till.wait_for_commit()
    senders.start(pending())
    till.wait_for_commit()
    senders.start(pending(), pending())
    until(lambda: waiting(group) == 2)
    till.let_go(4)
    senders.join()
    assert sum(till.sizes) == 4
    assert group._leaders == 0


def test_an_interrupted_leader_leaves_the_others_to_the_next(till: Till) -> None:
    group = GroupCommit(till.commit, nowhere, leaders=1)
    senders = Senders(group)
    senders.start(pending())
    till.wait_for_commit()
    unlucky, others = pending(), [pending() for _ in range(3)]
    senders.start(unlucky)
    until(lambda: waiting(group) == 1)
    senders.start(*others)
    until(lambda: waiting(group) == 4)

    def interrupt(pending_sends: Sequence[PendingSend]) -> Pause | None:
        raise KeyboardInterrupt

    till.answers = [settle, interrupt]
    till.let_go(4)
    senders.join()
    assert [type(error) for error in senders.errors] == [KeyboardInterrupt]
    assert sum(one.outcome is None for one in (unlucky, *others)) == 1
    assert (group._leaders, waiting(group)) == (0, 0)


def test_parcels_that_must_wait_go_first_next_time(till: Till) -> None:
    group = GroupCommit(till.commit, nowhere, leaders=1)
    senders = Senders(group)
    first = pending()

    def again(pending_sends: Sequence[PendingSend]) -> Pause:
        return Pause(pending_sends, 0.01)

    till.answers = [again]
    senders.start(first)
    till.wait_for_commit()
    senders.start(pending())
    until(lambda: waiting(group) == 1)
    till.let_go(2)
    senders.join()
    assert till.sizes == [1, 2]
    assert till.batches[1][0] is first


def test_coroutines_are_led_by_the_executor(till: Till) -> None:
    async def send_all() -> int:
        loop = asyncio.get_running_loop()
        pending_sends = [PendingSend(submission(), 5.0, loop.create_future()) for _ in range(10)]
        for one in pending_sends:
            group.post(one)
        await asyncio.gather(*(one.done() for one in pending_sends))
        return sum(one.outcome is not None for one in pending_sends)

    with ThreadPoolExecutor(1) as pool:
        group = GroupCommit(till.commit, pool.submit, leaders=1)
        till.let_go(20)
        assert asyncio.run(send_all()) == 10
    assert sum(till.sizes) == 10
    assert group._leaders == 0


def test_a_cancelled_coroutine_that_has_not_left_is_not_sent(till: Till) -> None:
    async def cancel_one() -> list[PendingSend]:
        loop = asyncio.get_running_loop()
        first, second, third = (
            PendingSend(submission(), 5.0, loop.create_future()) for _ in range(3)
        )
        group.post(first)
        await asyncio.to_thread(till.wait_for_commit)
        group.post(second)
        group.post(third)
        task = asyncio.ensure_future(second.done())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        till.let_go(3)
        await asyncio.gather(first.done(), third.done())
        return [first, second, third]

    with ThreadPoolExecutor(1) as pool:
        group = GroupCommit(till.commit, pool.submit, leaders=1)
        outcomes = [one.outcome is not None for one in asyncio.run(cancel_one())]
    assert outcomes == [True, False, True]


def test_a_thread_hands_the_lane_to_the_executor_for_coroutines(till: Till) -> None:
    async def post() -> None:
        one = PendingSend(submission(), 5.0, asyncio.get_running_loop().create_future())
        group.post(one)
        till.let_go(2)
        await one.done()

    with ThreadPoolExecutor(1) as pool:
        group = GroupCommit(till.commit, pool.submit, leaders=1)
        senders = Senders(group)
        senders.start(pending())
        till.wait_for_commit()
        asyncio.run(post())
        senders.join()
    assert till.sizes == [1, 1]
    assert group._leaders == 0


def test_a_loop_that_was_closed_is_nobody(till: Till) -> None:
    loop = asyncio.new_event_loop()
    one = PendingSend(submission(), 5.0, loop.create_future())
    loop.close()
    with ThreadPoolExecutor(1) as pool:
        group = GroupCommit(till.commit, pool.submit, leaders=1)
        till.let_go()
        group.post(one)
        until(lambda: group._leaders == 0)
    assert one.outcome is not None


def test_parcels_that_go_alone_do_not_wait_for_each_other(till: Till) -> None:
    group = GroupCommit(till.commit, nowhere, leaders=3)
    group._leaders = 2
    senders = Senders(group)
    senders.start(pending())
    till.wait_for_commit()
    senders.start(pending(), pending())
    until(lambda: waiting(group) == 2)
    group._leaders = 1

    def each_alone(pending_sends: Sequence[PendingSend]) -> Pause:
        for one in pending_sends:
            one.alone = True
        return Pause(pending_sends, 0.0)

    till.answers = [settle, each_alone]
    till.let_go(2)
    for _ in range(3):
        till.wait_for_commit()
    # All that is left is being committed at this moment, each by itself.
    assert sorted(till.sizes) == [1, 1, 1, 2]
    till.let_go(3)
    senders.join()
    assert (group._leaders, waiting(group)) == (0, 0)

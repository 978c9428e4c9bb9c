"""Waiting: one thread for all, hints and polls, deadlines, and what ends a wait early."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import pytest

from holdfast import (
    ConfigError,
    Holdfast,
    StoreError,
    StoreUnavailable,
    TaskHandle,
    TaskNotFound,
    TaskStatus,
    WaitTimeout,
)
from holdfast.client import wait, waiter
from holdfast.client.wait import TASKS
from holdfast.store.verbs import inspect
from tests.client.conftest import Hands
from tests.support.deadline import until


def started(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(work())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers


def _put(heard: list[bytes], id: bytes, news: object) -> None:
    heard.append(id)


def watched(app: Holdfast) -> int:
    return app._access.waiter.watchers()


def test_a_wait_ends_with_the_task(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    thread, answers = started(lambda: handle.get(timeout=30))
    until(lambda: watched(app) == 1)
    began = time.monotonic()
    hands.finish(handle, "7")
    thread.join(30)
    assert answers == [7]
    assert time.monotonic() - began < 5
    assert watched(app) == 0


def test_many_waiters_share_one_thread(app: Holdfast, hands: Hands) -> None:
    handles = [app.send("any", n) for n in range(40)]
    before = threading.active_count()

    def finish_all() -> None:
        for number, handle in enumerate(handles):
            hands.finish(handle, str(number))

    async def main() -> list[Any]:
        waits = [asyncio.ensure_future(handle.aget(timeout=30)) for handle in handles]
        await asyncio.to_thread(until, lambda: watched(app) == len(handles))
        await asyncio.to_thread(until, lambda: app._access.waiter._listener is not None)
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("holdfast-waiter") == 1
        # The waiter, the one that looks for the test, the one that opens PostgreSQL's listening
        # connection, and the few that run the store.
        assert len(names) <= before + 3 + app.config.max_connections
        await asyncio.to_thread(finish_all)
        return await asyncio.gather(*waits)

    assert asyncio.run(main()) == list(range(40))
    assert watched(app) == 0


def test_two_wait_for_one(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    first, answers = started(lambda: handle.get(timeout=30))
    second, more = started(lambda: handle.wait(timeout=30))
    until(lambda: app._access.waiter.watchers(handle.id.bytes) == 2)
    hands.finish(handle, "7")
    first.join(30)
    second.join(30)
    assert (answers, more) == ([7], [TaskStatus.COMPLETED])


def test_what_ends_after_a_look_is_heard(app: Holdfast, hands: Hands) -> None:
    """Whether somebody listened when the watch was made, or not yet: then it is looked up again."""
    for listens in (False, True):
        handle = app.send("any")
        heard: list[bytes] = []
        ids = [handle.id.bytes]
        tell = partial(_put, heard)
        with app._access.waiter.watch(ids, tell, TASKS) as watch:
            assert watch.is_heard is listens
            hands.finish(handle)
            watch.begin()
            until(lambda heard=heard: heard)  # type: ignore[misc]
        assert heard == ids


def test_ends_for_which_nobody_waits_do_not_end_the_thread(
    app: Holdfast, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other, second = (app.send("any", n) for n in range(3))
    thread, answers = started(lambda: first.get(timeout=30))
    until(lambda: app._access.waiter._listener is not None)
    hands.finish(first, "1")
    thread.join(30)
    watcher, listener = app._access.waiter._thread, app._access.waiter._listener
    assert watcher is not None
    assert listener is not None
    waits: list[frozenset[str]] = []
    wait = listener.wait

    def record(timeout: float) -> frozenset[str]:
        waits.append(wait(timeout))
        return waits[-1]

    monkeypatch.setattr(listener, "wait", record)
    listener.wake()
    hands.finish(other)
    until(lambda: any(waits[:-1]))
    hands.finish(second, "2")
    assert second.get(timeout=30) == 2
    assert answers == [1]
    assert app._access.waiter._thread is watcher
    assert app._access.waiter._listener is listener


def test_a_hint_after_a_quiet_moment_is_followed_at_once(
    app: Holdfast, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a burst of them is made few looks of."""
    monkeypatch.setattr(waiter, "REST", 10.0)
    monkeypatch.setattr(waiter, "SAVED", 40.0)
    handles = [app.send("any", n) for n in range(2)]
    for number, handle in enumerate(handles):
        thread, answers = started(partial(handle.get, timeout=30))
        until(lambda: watched(app) == 1)
        began = time.monotonic()
        hands.finish(handle, str(number))
        thread.join(30)
        assert answers == [number]
        assert time.monotonic() - began < 5


def test_patience_ends_and_the_task_goes_on(app: Holdfast) -> None:
    handle = app.send("any")
    for waits in (
        lambda: handle.get(timeout=0),
        lambda: handle.wait(timeout=0.05),
        lambda: handle.outcome(timeout=0.05),
        lambda: asyncio.run(handle.aget(timeout=0.05)),
        lambda: app.wait([handle], timeout=0.05),
        lambda: list(app.as_completed([handle], timeout=0.05)),
    ):
        with pytest.raises(WaitTimeout, match="is PENDING after") as caught:
            waits()
        assert (caught.value.task_id, caught.value.status) == (handle.id, TaskStatus.PENDING)
    assert watched(app) == 0
    with pytest.raises(ConfigError, match="timeout=-1"):
        handle.get(timeout=-1)


def test_wait_for_all(app: Holdfast, hands: Hands) -> None:
    handles = [app.send("any", n) for n in range(3)]
    handles[1].cancel()
    thread, answers = started(lambda: app.wait([*handles, handles[1]], timeout=30))
    hands.finish(handles[0])
    hands.finish(handles[2])
    thread.join(30)
    assert answers == [["COMPLETED", "CANCELLED", "COMPLETED", "CANCELLED"]]
    assert asyncio.run(app.await_(handles)) == ["COMPLETED", "CANCELLED", "COMPLETED"]
    assert app.wait([]) == []


def test_as_completed_gives_each_when_it_ends(app: Holdfast, hands: Hands) -> None:
    handles = [app.send("any", n) for n in range(3)]
    handles[2].cancel()
    found = app.as_completed(handles, timeout=30)
    assert next(found) == handles[2]
    hands.finish(handles[0])
    assert next(found) == handles[0]
    hands.finish(handles[1])
    assert list(found) == [handles[1]]
    assert watched(app) == 0


def test_aas_completed(app: Holdfast, hands: Hands) -> None:
    handles = [app.send("any", n) for n in range(3)]

    async def main() -> list[TaskHandle[Any]]:
        found: list[TaskHandle[Any]] = []
        async for handle in app.aas_completed(handles, timeout=30):
            found.append(handle)
            if len(found) < 3:
                await asyncio.to_thread(hands.finish, handles[len(found)])
        return found

    hands.finish(handles[0])
    assert asyncio.run(main()) == handles


def test_the_poll_is_the_truth(
    app: Holdfast, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = app._access.store()
    monkeypatch.setattr(store, "listen", lambda *channels: Deaf())
    handle = app.send("any")
    thread, answers = started(lambda: handle.get(timeout=30))
    until(lambda: watched(app) == 1)
    hands.finish(handle, "7")
    thread.join(30)
    assert answers == [7]


class Deaf:
    """A listener that never hears anything."""

    def __init__(self) -> None:
        self._woken = threading.Event()

    def wait(self, timeout: float) -> frozenset[str]:
        self._woken.wait(timeout)
        self._woken.clear()
        return frozenset()

    def wake(self) -> None:
        self._woken.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_a_task_that_was_deleted_is_not_waited_for(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiter, "MISSING_EVERY", 1)
    handle = app.send("any")
    unheard = replace(
        wait.TASKS,
        # Nothing but the first look finds anything.
        endings=lambda ids, others: inspect.endings([] if others is None else ids, others),
    )
    monkeypatch.setattr("holdfast.client.handle.TASKS", unheard)
    thread, answers = started(lambda: handle.get(timeout=30))
    until(lambda: watched(app) == 1)
    handle.cancel()
    app.control.tasks.delete(handle)
    thread.join(30)
    assert [type(answer) for answer in answers] == [TaskNotFound]


def test_an_outage_does_not_end_a_wait(
    app: Holdfast, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = app._access.store()
    listen, errors = store.listen, [StoreUnavailable("away")]

    def flaky(*channels: Any) -> Any:
        if errors:
            raise errors.pop()
        return listen(*channels)

    monkeypatch.setattr(store, "listen", flaky)
    handle = app.send("any")
    thread, answers = started(lambda: handle.get(timeout=30))
    until(lambda: not errors)
    hands.finish(handle, "7")
    thread.join(30)
    assert answers == [7]


def test_an_error_that_stays_ends_every_wait(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = app._access.store()

    def broken(*channels: Any) -> Any:
        raise StoreError("the tables are gone")

    monkeypatch.setattr(store, "listen", broken)
    handles = [app.send("any") for _ in range(2)]
    for handle in handles:
        with pytest.raises(StoreError, match="the tables are gone"):
            handle.get(timeout=30)
    monkeypatch.undo()
    with pytest.raises(WaitTimeout):
        handles[0].get(timeout=0.1)


def test_close_ends_every_wait(app: Holdfast) -> None:
    handle = app.send("any")
    thread, answers = started(lambda: handle.get(timeout=30))
    until(lambda: watched(app) == 1)
    app.close()
    thread.join(30)
    assert [type(answer) for answer in answers] == [StoreError]
    assert "closed" in str(answers[0])


def test_the_thread_goes_when_nobody_waits(
    app: Holdfast, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiter, "LINGER", 0.05)
    for _ in range(2):
        handle = app.send("any")
        thread, answers = started(lambda handle=handle: handle.get(timeout=30))  # type: ignore[misc]
        until(lambda: watched(app) == 1)
        hands.finish(handle, "7")
        thread.join(30)
        assert answers == [7]
        until(lambda: app._access.waiter._thread is None)


def test_a_wait_without_workers_says_why(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wait, "REMARK_AFTER", 0.02)
    handle = app.send("any")
    with caplog.at_level(logging.WARNING, "holdfast"), pytest.raises(WaitTimeout):
        handle.get(timeout=0.2)
    assert caplog.text.count("no worker is running") == 1
    caplog.clear()
    with caplog.at_level(logging.WARNING, "holdfast"), pytest.raises(WaitTimeout):
        asyncio.run(handle.aget(timeout=0.2))
    assert caplog.text.count("no worker is running") == 1


def test_follow(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    seen: list[TaskStatus] = []
    for info in handle.follow(timeout=30):
        seen.append(info.status)
        if info.status is TaskStatus.PENDING:
            hands.finish(handle)
    assert seen == ["PENDING", "COMPLETED"]
    other = app.send("any")
    with pytest.raises(WaitTimeout):
        list(other.follow(timeout=0.05))

    async def follow() -> list[TaskStatus]:
        found: list[TaskStatus] = []
        async for info in other.afollow(timeout=30):
            found.append(info.status)
            if info.status is TaskStatus.PENDING:
                await other.acancel()
        return found

    assert asyncio.run(follow()) == ["PENDING", "CANCELLED"]


def test_a_cancelled_wait_is_forgotten(app: Holdfast) -> None:
    handle = app.send("any")

    async def main() -> None:
        wait = asyncio.ensure_future(handle.aget())
        await asyncio.to_thread(until, lambda: watched(app) == 1)
        wait.cancel()
        await asyncio.gather(wait, return_exceptions=True)

    asyncio.run(main())
    assert watched(app) == 0

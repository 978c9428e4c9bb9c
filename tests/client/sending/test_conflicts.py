"""Verbs that meet another transaction: done again, or answered with a clear refusal."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from holdfast import Holdfast, StoreUnavailable, TaskHandle, TaskStatus, Unique, UniqueConflict
from holdfast.client.sending import dispatch
from holdfast.core.records import Submission, SubmitAnswer, Submitted
from holdfast.store.op import Mode, Op, Steps
from holdfast.store.verbs.submit import submit
from tests.client.conftest import Hands
from tests.support.deadline import until

KEY = Unique("customer-7")


def connect(url: str) -> Any:
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///"), check_same_thread=False)
    return psycopg.connect(url)


class Holder:
    """A send of the unique key whose transaction is still open."""

    def __init__(self, app: Holdfast, url: str) -> None:
        self._url = url
        self._connection = connect(url)
        with app.using(self._connection):
            self.handle = app.options(unique=KEY).send("any")

    def commit_once_waited_for(self) -> None:
        if not self._url.startswith("sqlite"):
            with psycopg.connect(self._url, autocommit=True) as admin:
                until(lambda: admin.execute(_WAITING).fetchall(), what="somebody to wait")
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


_WAITING = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
def ended(app: Holdfast, url: str) -> TaskHandle[Any]:
    """A task that has ended and had the unique key."""
    # The caller's SQLite library, if it is one, is the app's.
    with closing(connect(url)) as connection, app.using(connection):
        pass
    handle = app.options(unique=KEY).send("any")
    handle.cancel()
    return handle


@pytest.fixture
def holder(app: Holdfast, url: str, ended: TaskHandle[Any]) -> Iterator[Holder]:
    del ended
    with closing(Holder(app, url)) as found:
        yield found


def meanwhile(holder: Holder, work: Callable[[], Any]) -> Exception:
    """What `work` raises that began before the holder's transaction was committed."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - looked at by the test
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    holder.commit_once_waited_for()
    thread.join(30)
    return raised[0]


RESUBMITS: dict[str, Callable[[Holdfast, TaskHandle[Any]], Any]] = {
    "handle": lambda app, task: task.resubmit(),
    "handle, async": lambda app, task: asyncio.run(task.aresubmit()),
    "control": lambda app, task: app.control.tasks.resubmit(task),
    "control, async": lambda app, task: asyncio.run(app.control.tasks.aresubmit(task)),
}


@pytest.mark.parametrize("way", RESUBMITS)
def test_a_resubmit_names_the_task_that_took_its_key_meanwhile(
    app: Holdfast, ended: TaskHandle[Any], holder: Holder, way: str
) -> None:
    before = ended.info()
    error = meanwhile(holder, lambda: RESUBMITS[way](app, ended))
    assert isinstance(error, UniqueConflict)
    assert (error.task_id, error.retryable) == (holder.handle.id, False)
    assert (error.name, error.key) == ("any", "customer-7")
    assert ended.info() == before
    assert holder.handle.status() is TaskStatus.PENDING


def test_also_in_the_callers_transaction_which_goes_on(
    app: Holdfast, url: str, ended: TaskHandle[Any], holder: Holder
) -> None:
    sent: list[TaskHandle[Any]] = []

    def work() -> None:
        with closing(connect(url)) as connection, app.using(connection):
            try:
                ended.resubmit()
            finally:
                sent.append(app.send("any"))
                connection.commit()

    error = meanwhile(holder, work)
    assert isinstance(error, UniqueConflict)
    assert error.task_id == holder.handle.id
    assert ended.status() is TaskStatus.CANCELLED
    assert sent[0].status() is TaskStatus.PENDING


def test_also_in_the_callers_async_transaction(
    postgres: str, open_app: Callable[..., Holdfast]
) -> None:
    app = open_app(postgres)
    ended = app.options(unique=KEY).send("any")
    ended.cancel()

    async def work() -> None:
        connecting = await psycopg.AsyncConnection.connect(postgres)
        async with connecting as connection, app.using(connection):
            await ended.aresubmit()

    with closing(Holder(app, postgres)) as holder:
        error = meanwhile(holder, lambda: asyncio.run(work()))
        assert isinstance(error, UniqueConflict)
        assert error.task_id == holder.handle.id


def test_a_key_is_shown_as_it_was_given(app: Holdfast) -> None:
    """Whoever asks: the name of the task is a part of the slot, not of the key."""
    assert app.options(unique=KEY).send("any").info().unique_key == "customer-7"
    by_arguments = app.options(unique=Unique(on_conflict="raise"))
    shown = by_arguments.send("any", 1).info().unique_key
    with pytest.raises(UniqueConflict) as caught:
        by_arguments.send("any", 1)
    assert caught.value.key == shown


class Fleeting:
    """Holders of the unique key that end between the insert and the look, so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.times = times

        def answer(submissions: list[Submission]) -> Op[list[Submitted]]:
            if not self.times:
                return submit(submissions)
            self.times -= 1
            return Op(self._again(submissions), Mode.WRITE, "submit")

        monkeypatch.setattr(dispatch, "submit", answer)

    @staticmethod
    def _again(submissions: list[Submission]) -> Steps[list[Submitted]]:
        yield ()
        return [Submitted(s.id, SubmitAnswer.AGAIN) for s in submissions]


def test_a_send_in_the_callers_transaction_follows_holders_that_end(
    app: Holdfast, url: str, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to return the handle of a task that nobody had written."""
    unique = app.options(unique=KEY)
    with closing(connect(url)) as connection, app.using(connection):
        fleeting = Fleeting(monkeypatch, 2)
        one = unique.send("any")
        assert (fleeting.times, one.created) == (0, True)
        fleeting.times = 2
        again = unique.send("any")
        assert (again.id, again.created) == (one.id, False)
        fleeting.times = 99
        with pytest.raises(StoreUnavailable, match="ended again and again"):
            unique.send("any")
        connection.commit()
    assert hands.status(one.id.bytes) is TaskStatus.PENDING


def test_many_sends_in_the_callers_transaction_follow_holders_that_end(
    app: Holdfast, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(unique=Unique())
    def add(a: int, b: int) -> int:
        return a + b

    with closing(connect(url)) as connection, app.using(connection):
        fleeting = Fleeting(monkeypatch, 2)
        handles = add.send_many([(1, 2), (3, 4)])
        fleeting.times = 99
        with pytest.raises(StoreUnavailable, match="ended again and again"):
            add.send_many([(5, 6)])
        connection.commit()
    assert [handle.status() for handle in handles] == [TaskStatus.PENDING] * 2

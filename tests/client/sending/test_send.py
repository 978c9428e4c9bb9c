"""Sending: what is stored, by every way there is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast import (
    ConfigError,
    Holdfast,
    PayloadError,
    PayloadMismatch,
    Retry,
    StoreUnavailable,
    Task,
    TaskStatus,
    Unique,
    UniqueConflict,
)
from holdfast.core.identity import Lineage, running
from tests.client.conftest import Hands

Add = Task[[int, int], int]


@pytest.fixture
def add(app: Holdfast) -> Add:
    @app.task("add")
    def add(a: int, b: int) -> int:
        return a + b

    return add


def total(app: Holdfast) -> int:
    return sum(app.control.tasks.count().values())


def test_a_send_is_stored(app: Holdfast) -> None:
    @app.task("add")
    def add(a: int, b: int) -> int:
        return a + b

    before = datetime.now(UTC)
    handle = add.send(1, b=2)
    info = handle.info()
    assert handle.created
    assert isinstance(handle.id, UUID)
    assert handle.id.version == 7
    assert info.id == handle.id
    assert (info.name, info.version, info.queue, info.priority) == ("add", 1, "default", 50)
    assert (info.args, info.kwargs) == ([1], {"b": 2})
    assert info.status is TaskStatus.PENDING
    assert before <= info.sent_at <= datetime.now(UTC)
    assert abs(info.submitted_at - before) < timedelta(minutes=1)


def test_asend_is_the_same(app: Holdfast, add: Add) -> None:
    handle = asyncio.run(_one(add))
    assert handle.created
    assert handle.info().args == [1, 2]


async def _one(add: Add) -> Any:
    return await add.asend(1, 2)


def test_the_options_of_the_task_travel_with_it(app: Holdfast) -> None:
    @app.task(
        "resize",
        version=3,
        queue="images",
        priority=7,
        retry=Retry(4, delay=2),
        timeout=60,
        tags=["a", "b"],
        good_for="1h",
    )
    def resize(path: Path) -> None: ...

    info = resize.send(Path("x.png")).info()
    assert (info.version, info.queue, info.priority, info.max_retries) == (3, "images", 7, 4)
    assert info.args == ["x.png"]
    assert info.options["timeout"] == 60
    assert info.options["retry"]["max_retries"] == 4
    assert info.tags == ("a", "b")
    assert info.good_until is not None
    assert abs(info.good_until - info.sent_at - timedelta(hours=1)) < timedelta(seconds=1)


def test_the_options_of_a_send_beat_those_of_the_task(add: Add) -> None:
    until = datetime(2100, 1, 1, tzinfo=timezone(timedelta(hours=3)))
    chosen = add.options(queue="fast", priority=1, tags=["urgent"], good_until=until)
    info = chosen.send(1, 2).info()
    assert (info.queue, info.priority, info.tags) == ("fast", 1, ("urgent",))
    assert info.good_until == until


@pytest.mark.parametrize("when", [60, 60.0, timedelta(minutes=1)])
def test_schedule_in_a_while(add: Add, when: Any) -> None:
    info = add.schedule(when, 1, 2).info()
    assert info.status is TaskStatus.SCHEDULED
    assert info.run_at is not None
    assert abs(info.run_at - info.submitted_at - timedelta(minutes=1)) < timedelta(milliseconds=1)


def test_schedule_at_a_moment(add: Add) -> None:
    moment = datetime(2100, 1, 1, 12, tzinfo=timezone(timedelta(hours=-5)))
    assert add.schedule(moment, 1, 2).info().run_at == moment
    assert add.options(run_at=moment).send(1, 2).info().run_at == moment
    assert add.options(delay=60).send(1, 2).status() is TaskStatus.SCHEDULED


def test_a_time_that_has_come_is_now(add: Add) -> None:
    assert add.schedule(0, 1, 2).status() is TaskStatus.PENDING
    past = datetime(2020, 1, 1, tzinfo=UTC)
    assert add.schedule(past, 1, 2).status() is TaskStatus.PENDING


def test_aschedule(add: Add) -> None:
    async def send() -> TaskStatus:
        return await (await add.aschedule(60, 1, 2)).astatus()

    assert asyncio.run(send()) is TaskStatus.SCHEDULED


def test_send_many(app: Holdfast, add: Add) -> None:
    handles = add.options(queue="bulk").send_many([(1, 2), [3, 4], {"a": 5, "b": 6}])
    assert [h.info().args or h.info().kwargs for h in handles] == [[1, 2], [3, 4], {"a": 5, "b": 6}]
    assert all(h.created and h.info().queue == "bulk" for h in handles)
    assert add.send_many([]) == []
    assert len(asyncio.run(_many(add))) == 2
    assert total(app) == 5


async def _many(add: Add) -> list[Any]:
    return await add.asend_many((n, n) for n in range(2))


def test_send_many_is_all_or_nothing(app: Holdfast, add: Add) -> None:
    with pytest.raises(PayloadError):
        add.send_many([(1, 2), (1, "x")])
    held = Unique("k", on_conflict="raise")
    add.options(unique=held).send(1, 2)
    with pytest.raises(UniqueConflict):
        add.options(unique=held).send_many([(3, 4), (5, 6)])
    assert total(app) == 1


def test_many_thousands_are_one_transaction(app: Holdfast, add: Add) -> None:
    handles = add.send_many((n, n) for n in range(5_000))
    assert len({handle.id for handle in handles}) == 5_000
    assert app.control.queues.list()[0].pending == 5_000


@pytest.mark.parametrize("call", ["ab", 5, None, b"ab"])
def test_a_call_of_send_many_is_a_tuple_or_a_dict(add: Add, call: Any) -> None:
    with pytest.raises(ConfigError, match="call 1 of send_many"):
        add.send_many([(1, 2), call])


def test_an_id_is_not_for_send_many(add: Add) -> None:
    with pytest.raises(ConfigError, match="an id is for one task"):
        add.options(id=uuid4()).send_many([(1, 2)])


def test_by_name_without_the_code(app: Holdfast) -> None:
    info = app.send("elsewhere.resize", "a.png", width=10).info()
    assert (info.name, info.version, info.args, info.kwargs) == (
        "elsewhere.resize",
        1,
        ["a.png"],
        {"width": 10},
    )
    chosen = app.options(queue="images", version=4, priority=2)
    info = asyncio.run(_named(chosen)).info()
    assert (info.version, info.queue, info.priority) == (4, "images", 2)


async def _named(chosen: Any) -> Any:
    return await chosen.asend("elsewhere.resize", "b.png")


def test_by_name_with_the_code_is_checked(app: Holdfast, add: Add) -> None:
    assert app.send("add", 1, b=2).info().name == "add"
    assert asyncio.run(app.asend("add", 1, 2)).info().args == [1, 2]
    with pytest.raises(PayloadError, match="does not fit its annotation"):
        app.send("add", 1, "two")


def test_a_repeated_send_is_one_task(app: Holdfast, add: Add, hands: Hands) -> None:
    own = add.options(id=uuid4())
    first = own.send(1, 2)
    second = own.send(1, 2)
    assert first == second
    assert (first.created, second.created) == (True, False)
    hands.finish(first, "3")
    third = own.send(1, 2)
    assert third == first
    assert not third.created
    assert third.status() is TaskStatus.COMPLETED
    assert total(app) == 1


def test_an_id_may_be_text(add: Add) -> None:
    own = uuid4()
    assert add.options(id=str(own)).send(1, 2).id == own


def test_the_same_id_with_another_payload_is_refused(app: Holdfast, add: Add) -> None:
    own = add.options(id=uuid4())
    first = own.send(1, 2)
    for other in (own, own.options(queue="other")):
        with pytest.raises(PayloadMismatch) as caught:
            other.send(1, 3)
        assert caught.value.task_id == first.id
        assert not caught.value.retryable
    with pytest.raises(PayloadMismatch):
        own.options(priority=3).send(1, 2)
    assert first.info().args == [1, 2]
    assert total(app) == 1


def test_a_unique_send_meets_the_live_task(app: Holdfast, add: Add, hands: Hands) -> None:
    one = add.options(unique=Unique("daily"))
    first = one.send(1, 2)
    second = one.send(3, 4)
    assert second == first
    assert (first.created, second.created) == (True, False)
    assert first.info().args == [1, 2]
    hands.finish(first, "3")
    third = one.send(5, 6)
    assert third.created
    assert third != first


def test_the_arguments_are_the_key_where_there_is_none(app: Holdfast) -> None:
    @app.task("once", unique=Unique())
    def once(a: int, b: int = 0) -> None: ...

    assert once.send(1).id == once.send(1).id
    assert once.send(1).id != once.send(2).id
    assert once.options(unique=None).send(1).created
    assert once.options(unique=None).send(1).created


def test_replace_gives_the_new_arguments(add: Add) -> None:
    one = add.options(unique=Unique("k", on_conflict="replace"))
    first = one.send(1, 2)
    second = one.send(3, 4)
    assert second == first
    assert not second.created
    assert first.info().args == [3, 4]


def test_debounce_puts_the_task_off(add: Add) -> None:
    one = add.options(unique=Unique("k", on_conflict="debounce"))
    first = one.schedule(60, 1, 2)
    before = first.info().run_at
    second = one.schedule(120, 3, 4)
    after = first.info().run_at
    assert second == first
    assert before is not None
    assert after is not None
    assert after - before > timedelta(seconds=50)


def test_raise_tells_who_holds_the_key(add: Add) -> None:
    one = add.options(unique=Unique("k", on_conflict="raise"))
    first = one.send(1, 2)
    with pytest.raises(UniqueConflict) as caught:
        one.send(1, 2)
    assert (caught.value.task_id, caught.value.name, caught.value.key) == (first.id, "add", "k")


def test_an_error_carries_its_call_and_can_be_resent(
    app: Holdfast, add: Add, open_app: Callable[..., Holdfast]
) -> None:
    away = open_app("postgresql://nobody@127.0.0.1:1/none", send_timeout=0)
    with pytest.raises(StoreUnavailable) as caught:
        away.send("add", 1, b=2)
    error = caught.value
    assert error.retryable
    first = app.resend(error)
    second = asyncio.run(app.aresend(error))
    assert first == second
    assert error.call is not None
    assert first.info().kwargs == {"b": 2}
    assert (first.created, second.created) == (True, False)
    assert total(app) == 1


def test_resend_many(app: Holdfast, open_app: Callable[..., Holdfast]) -> None:
    away = open_app("postgresql://nobody@127.0.0.1:1/none", send_timeout=0)

    @away.task("add")
    def add(a: int) -> int:
        return a

    with pytest.raises(StoreUnavailable) as caught:
        add.send_many([(1,), (2,)])
    assert [h.info().args for h in app.resend_many(caught.value)] == [[1], [2]]
    assert len(asyncio.run(app.aresend_many(caught.value))) == 2
    assert total(app) == 2
    with pytest.raises(ConfigError, match="use resend_many"):
        app.resend(caught.value)


def test_only_sends_can_be_resent(app: Holdfast) -> None:
    with pytest.raises(ConfigError, match="does not come from a send"):
        app.resend(ConfigError("x"))
    with pytest.raises(ConfigError, match="does not come from send_many"):
        app.resend_many(ConfigError("x"))


class Running:
    """Stands for the task whose code runs."""

    lineage = Lineage(bytes(15) + b"\1", bytes(15) + b"\2", "00-trace")

    def waits(self, waiting: bool, /) -> None: ...


def test_a_send_inside_a_task_knows_its_parent(app: Holdfast, add: Add) -> None:
    token = running.set(Running())
    try:
        infos = [handle.info() for handle in (add.send(1, 2), *add.send_many([(3, 4)]))]
    finally:
        running.reset(token)
    for info in infos:
        assert (info.parent_id, info.root_id) == (UUID(int=1), UUID(int=2))
        assert info.trace_context == "00-trace"
    assert add.send(1, 2).info().parent_id is None


@pytest.mark.parametrize("many", [False, True])
def test_a_database_that_is_away_is_said_once(
    many: bool, open_app: Callable[..., Holdfast], caplog: pytest.LogCaptureFixture
) -> None:
    app = open_app("postgresql://ada@127.0.0.1:1/nowhere", send_timeout=0.6)

    @app.task
    def task(n: int) -> None: ...

    send = partial(task.send_many, [(1,), (2,)]) if many else partial(task.send, 1)
    with caplog.at_level(logging.INFO, "holdfast"), pytest.raises(StoreUnavailable):
        send()
    (record,) = caplog.records
    assert "Connection refused; sends are tried again for up to 0.6 s" in record.getMessage()

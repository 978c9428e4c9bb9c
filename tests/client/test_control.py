"""Operating from Python: lists, counts, and verbs for many tasks at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import pytest

from holdfast import (
    ConfigError,
    Holdfast,
    IllegalTransition,
    TaskNotFound,
    TaskStatus,
    WaitTimeout,
)
from holdfast.store.verbs import inspect, workers
from tests.client.conftest import Hands

UNKNOWN = UUID("0197f3c2-5b1e-7d44-9a01-3c5e6f708192")


def test_pages(app: Holdfast) -> None:
    handles = [app.send("any", n) for n in range(5)]
    first = app.control.tasks.list(limit=3)
    assert [task.args for task in first.tasks] == [[4], [3], [2]]
    assert first.next is not None
    second = asyncio.run(app.control.tasks.alist(limit=3, before=first.next))
    assert [task.args for task in second.tasks] == [[1], [0]]
    assert app.control.tasks.show(handles[0]).args == [0]
    assert asyncio.run(app.control.tasks.ashow(str(handles[0].id))).args == [0]
    with pytest.raises(TaskNotFound):
        app.control.tasks.show(UNKNOWN)


def test_filters(app: Holdfast, hands: Hands) -> None:
    done = app.options(queue="images", tags=["red"]).send("resize")
    hands.finish(done)
    app.options(queue="mail", delay=60).send("welcome")
    lost = app.options(queue="mail").send("welcome")
    lost.cancel()
    tasks = app.control.tasks
    assert [t.id for t in tasks.list(status="COMPLETED").tasks] == [done.id]
    assert len(tasks.list(status=["SCHEDULED", TaskStatus.CANCELLED]).tasks) == 2
    assert [t.id for t in tasks.list(queue="images").tasks] == [done.id]
    assert len(tasks.list(name="welcome").tasks) == 2
    assert [t.id for t in tasks.list(tag="red").tasks] == [done.id]
    assert [t.id for t in tasks.list(error_code="TASK_CANCELLED").tasks] == [lost.id]
    assert tasks.list(submitted_until=datetime(2020, 1, 1, tzinfo=UTC)).tasks == []
    assert len(tasks.list(submitted_from=datetime(2020, 1, 1, tzinfo=UTC)).tasks) == 3
    assert tasks.list(dead=True).tasks == []
    assert tasks.count() == {"COMPLETED": 1, "SCHEDULED": 1, "CANCELLED": 1}
    assert tasks.count().at_least == frozenset()
    assert asyncio.run(tasks.acount(queue="mail")) == {"SCHEDULED": 1, "CANCELLED": 1}


def test_counts_say_where_there_may_be_more(app: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        app.send("any")
    monkeypatch.setattr(inspect, "counts", partial(inspect.counts, cap=2))
    assert app.control.tasks.count() == {"PENDING": 2}
    assert asyncio.run(app.control.tasks.acount()).at_least == {"PENDING", "WAITING", "COMPLETED"}


def test_wrong_filters(app: Holdfast) -> None:
    tasks = app.control.tasks
    with pytest.raises(ConfigError, match="'GONE' is not a valid TaskStatus: there are WAITING"):
        tasks.list(status="GONE")
    with pytest.raises(ConfigError, match="cannot be listed by 'colour'"):
        tasks.list(colour="red")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="limit=0"):
        tasks.list(limit=0)
    with pytest.raises(ConfigError, match="not a task id"):
        tasks.list(before="x")


def test_verbs_answer_for_each(app: Holdfast, hands: Hands) -> None:
    tasks = app.control.tasks
    one, two = app.send("any"), app.send("any")
    hands.finish(one)
    assert tasks.cancel(one, two.id, str(UNKNOWN)) == {
        one.id: "COMPLETED",
        two.id: "CANCELLED",
        UNKNOWN: None,
    }
    assert asyncio.run(tasks.acancel(two)) == {two.id: "CANCELLED"}
    assert tasks.resubmit(one, two, UNKNOWN) == {one.id: False, two.id: True, UNKNOWN: False}
    two.cancel()
    assert asyncio.run(tasks.aresubmit(two, keep_retries=True)) == {two.id: True}
    assert tasks.delete(one, two) == {one.id: True, two.id: False}
    two.cancel()
    assert asyncio.run(tasks.adelete(two, UNKNOWN)) == {two.id: True, UNKNOWN: False}


def test_reschedule(app: Holdfast, hands: Hands) -> None:
    tasks = app.control.tasks
    handle = app.send("any")
    assert tasks.reschedule(handle, when=60) == {handle.id: True}
    info = handle.info()
    assert (info.status, info.queue) == (TaskStatus.SCHEDULED, "default")
    moment = datetime.now(UTC) + timedelta(days=1)
    assert asyncio.run(tasks.areschedule(handle, when=moment, queue="fast", priority=1)) == {
        handle.id: True
    }
    info = handle.info()
    assert (info.run_at, info.queue, info.priority) == (moment, "fast", 1)
    tasks.reschedule(handle, priority=2)
    assert handle.info().run_at == moment
    tasks.reschedule(handle, when=0)
    assert handle.status() is TaskStatus.PENDING
    hands.finish(handle)
    assert tasks.reschedule(handle, when=0) == {handle.id: False}
    with pytest.raises(ConfigError, match="changes nothing"):
        tasks.reschedule(handle)
    with pytest.raises(ConfigError, match="priority=0"):
        tasks.reschedule(handle, priority=0)


def test_queues(app: Holdfast, hands: Hands) -> None:
    queues = app.control.queues
    app.options(queue="images").send("any")
    queues.pause("images", by="ada")
    asyncio.run(queues.apause("mail"))
    images, mail = queues.list()
    assert (images.name, images.pending, images.paused_by) == ("images", 1, "ada")
    assert images.paused_at is not None
    assert images.oldest_enqueued_at is not None
    assert (mail.name, mail.pending, mail.oldest_enqueued_at) == ("mail", 0, None)
    assert hands.claim(queue="images", known=["any@1"]).tasks == []
    assert queues.resume("images")
    assert not asyncio.run(queues.aresume("images"))
    assert len(hands.claim(queue="images", known=["any@1"]).tasks) == 1
    assert asyncio.run(queues.alist())[0].paused_at is None
    with pytest.raises(ConfigError, match="queue name 'a b'"):
        queues.pause("a b")


def test_what_waits_by_name_and_version(app: Holdfast) -> None:
    app.named("a").send_many([(n,) for n in range(3)])
    app.options(version=2).send("a")
    app.options(queue="other").send("b")
    found = app.control.queues.kinds("default", "other", "none")
    assert [(each.queue, each.name, each.version, each.count) for each in found] == [
        ("default", "a", 1, 3), ("default", "a", 2, 1), ("other", "b", 1, 1),
    ]  # fmt: skip
    assert (
        sum(each.count for each in asyncio.run(app.control.queues.akinds("default", most=2))) == 2
    )


def test_dead_letters_are_steered_apart(app: Holdfast, hands: Hands) -> None:
    dead, other = app.send("any"), app.options(queue="mail").send("any")
    hands.fail(hands.take(dead))
    other.cancel()
    letters = app.control.dead_letters
    assert [info.id for info in letters.list().tasks] == [dead.id]
    assert [info.id for info in asyncio.run(letters.alist(queue="mail")).tasks] == []
    assert letters.resubmit(dead, other, UNKNOWN) == {
        dead.id: True,
        other.id: False,
        UNKNOWN: False,
    }
    hands.fail(hands.take(dead))
    assert asyncio.run(letters.aresubmit(other)) == {other.id: False}
    assert asyncio.run(letters.adelete(other)) == {other.id: False}
    assert letters.delete(dead, other) == {dead.id: True, other.id: False}
    assert app.control.tasks.statuses(dead, other) == {other.id: TaskStatus.CANCELLED}


def test_what_is_known_of_workers(app: Holdfast, hands: Hands) -> None:
    hands.run(
        workers.register(
            "w1",
            hostname="host",
            pid=42,
            version="1",
            lease_us=30_000_000,
            queues='["a"]',
            known='["t@1"]',
            settings="{}",
        )
    )
    (worker,) = app.control.workers.list()
    assert (worker.id, worker.state, worker.queues, worker.tasks) == (
        "w1",
        "alive",
        ("a",),
        ("t@1",),
    )
    assert worker.latest is None
    hands.run(workers.stop("w1"))
    assert app.control.workers.list() == []
    (worker,) = asyncio.run(app.control.workers.alist(stopped=True))
    assert worker.state == "stopped"
    assert abs(app.control.now() - worker.seen_at) < timedelta(minutes=1)


def test_a_stack_nobody_gives(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    with pytest.raises(IllegalTransition, match="it is PENDING"):
        app.control.tasks.stack(handle)
    hands.take(handle)
    with pytest.raises(WaitTimeout):
        app.control.tasks.stack(handle, timeout=0.01)
    with pytest.raises(WaitTimeout):
        asyncio.run(app.control.tasks.astack(handle, timeout=0.01))
    with pytest.raises(ConfigError, match="timeout=nan is not usable"):
        app.control.tasks.stack(handle, timeout=float("nan"))


@pytest.mark.parametrize("by", ["a\nb", "\x1b[31m", "a\x00", "\ud800", "", " ", "x" * 1001])
def test_who_pauses_is_a_line_of_text(app: Holdfast, by: str) -> None:
    with pytest.raises(ConfigError, match="on one line"):
        app.control.queues.pause("a", by=by)
    with pytest.raises(ConfigError, match="on one line"):
        app.control.queues.limit("a", None, by=by)
    assert not app.control.queues.list()


@pytest.mark.parametrize("text", ["a\x00", "\udcff"])
def test_what_nothing_stored_can_equal_is_refused(app: Holdfast, text: str) -> None:
    control = app.control
    for ask in (
        lambda: control.tasks.list(name=text),
        lambda: control.tasks.count(queue=text),
        lambda: control.stats.series(queue=text),
        lambda: control.stats.summary(task=text),
        lambda: control.audit.list(by=text),
        lambda: control.workers.stop(text),
    ):
        with pytest.raises(ConfigError, match="NUL or is not UTF-8"):
            ask()

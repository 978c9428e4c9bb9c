"""Following the ends of tasks: each is told once, in order, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holdfast import ConfigError, Holdfast, StoreUnavailable, TaskStatus
from tests.client.conftest import Hands
from tests.support.postgres import PostgresServer

OpenApp = Callable[..., Holdfast]


def test_each_end_is_told_once(app: Holdfast, hands: Hands) -> None:
    before = app.send("t")
    hands.finish(before)
    waiting = app.send("t")
    tail = app.control.tasks.tail()
    assert tail.look() == []
    assert tail.look() == []
    between = app.options(queue="other").send("t")
    hands.finish(between)
    hands.finish(waiting)
    told = tail.look()
    assert [info.id for info in told] == [between.id, waiting.id]
    assert {info.status for info in told} == {TaskStatus.COMPLETED}
    assert tail.look() == []


def test_one_that_did_not_run_and_one_that_runs_again(app: Holdfast, hands: Hands) -> None:
    later = app.options(delay=3600).send("t")
    failing = app.send("t")
    tail = app.control.tasks.tail()
    tail.look()
    later.cancel()
    hands.fail(hands.take(failing))
    assert {info.status for info in tail.look()} == {TaskStatus.CANCELLED, TaskStatus.FAILED}
    failing.resubmit()
    assert tail.look() == []
    hands.finish(failing)
    assert [info.id for info in tail.look()] == [failing.id]


def test_filters(app: Holdfast, hands: Hands) -> None:
    good = app.options(queue="a", tags=["x"]).send("good")
    bad = app.options(queue="b").send("bad")
    ways = {
        "status": app.control.tasks.tail(status=["FAILED"]),
        "name": app.control.tasks.tail(name="good"),
        "queue": app.control.tasks.tail(queue="b"),
        "tag": app.control.tasks.tail(tag="x"),
        "dead": app.control.tasks.tail(dead=True),
    }
    for tail in ways.values():
        assert tail.look() == []
    hands.finish(good)
    hands.fail(hands.take(bad))
    told = {way: [info.id for info in tail.look()] for way, tail in ways.items()}
    assert told == {
        "status": [bad.id],
        "name": [good.id],
        "queue": [bad.id],
        "tag": [good.id],
        "dead": [bad.id],
    }


@pytest.mark.parametrize("status", ["PENDING", "DONE", "\x00"])
def test_what_no_task_ends_as_is_refused(app: Holdfast, status: str) -> None:
    with pytest.raises(ConfigError, match="no task ends as"):
        app.control.tasks.tail(status=status)


def test_a_backlog_is_followed_from_its_head(app: Holdfast, hands: Hands) -> None:
    """Older than the newest thousand, and behind nothing: the next to be claimed are watched."""
    handles = app.options(queue="q").send("t"), *(app.send("t") for _ in range(3))
    tail = app.control.tasks.tail()
    tail.look()
    for handle in handles:
        hands.finish(handle)
    assert [info.id for info in asyncio.run(tail.alook())] == [each.id for each in handles]


def test_what_ends_while_the_database_is_away_is_told_afterwards(open_app: OpenApp) -> None:
    with PostgresServer(fsync=False) as server:
        app = open_app(server.create_database(), connect_timeout=1)
        other = open_app(app.config.url)
        handle = app.send("t")
        tail = app.control.tasks.tail()
        tail.look()
        server.stop("immediate")
        with pytest.raises(StoreUnavailable):
            tail.look()
        server.start()
        Hands(other).finish(handle)
        assert [info.id for info in tail.look()] == [handle.id]

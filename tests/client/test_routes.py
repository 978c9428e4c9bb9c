"""Routes: where sends of every kind go, and who learns of a change, and when."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from holdfast import ConfigError, Holdfast, PayloadMismatch, TaskHandle, Unique, Workflow
from holdfast.client import routing
from holdfast.store.verbs import workers
from tests.client.conftest import Hands
from tests.support.deadline import until


def define(app: Holdfast) -> Any:
    @app.task("mail.send", queue="default")
    def send(n: int = 0) -> int:
        return n

    return send


def queue(handle: Any) -> str:
    found: str = handle.info().queue
    return found


def test_options_then_route_then_task(app: Holdfast) -> None:
    send = define(app)
    app.control.routes.set("mail.*", "mail")
    assert queue(send.send()) == "mail"
    assert queue(send.options(queue="fast").send()) == "fast"
    assert queue(send.options(queue="default").send()) == "default"
    assert queue(app.send("mail.send", 1)) == "mail"
    assert queue(app.send("mail.other")) == "mail"
    assert queue(app.send("sms.send")) == "default"
    assert queue(send.schedule(60)) == "mail"
    assert {queue(handle) for handle in send.send_many([(1,), (2,)])} == {"mail"}
    assert queue(asyncio.run(_sent(send))) == "mail"
    assert app.control.routes.delete("mail.*")
    assert queue(send.send()) == "default"


async def _sent(send: Any) -> Any:
    return await send.asend()


def test_several_queues_by_weight(app: Holdfast) -> None:
    send = define(app)
    app.control.routes.set("mail.send", {"a": 3, "b": 1})
    drawn = Counter(queue(handle) for handle in send.send_many([(n,) for n in range(120)]))
    assert set(drawn) == {"a", "b"}
    assert drawn["a"] > drawn["b"]


def test_a_send_that_is_repeated_is_the_same_whatever_was_drawn(
    url: str, app: Holdfast, open_app: Callable[..., Holdfast]
) -> None:
    send = define(app)
    app.control.routes.set("mail.send", {f"q{n}": 1 for n in range(9)})
    ids = [uuid4() for _ in range(5)]
    first = [send.options(id=id).send(7) for id in ids]
    where = [queue(handle) for handle in first]
    other = open_app(url)
    other.control.routes.set("mail.send", "elsewhere")
    same = define(other)
    again = [same.options(id=id).send(7) for id in ids]
    assert [handle.created for handle in again] == [False] * 5
    assert [queue(handle) for handle in again] == where
    with pytest.raises(PayloadMismatch):
        send.options(id=ids[0]).send(8)


def test_a_unique_task_stays_where_it_is(app: Holdfast) -> None:
    send = define(app).options(unique=Unique("k", on_conflict="replace"))
    first = send.send(1)
    app.control.routes.set("mail.send", "mail")
    second = send.send(2)
    assert (first.id, queue(second)) == (second.id, "default")


def test_every_sender_learns_of_it_within_a_second(
    url: str, app: Holdfast, open_app: Callable[..., Holdfast]
) -> None:
    assert routing.STALE < 1
    send = define(app)
    assert queue(send.send()) == "default"
    operator = open_app(url)
    operator.control.routes.set("mail.send", "a")
    until(lambda: queue(send.send()) == "a", within=1.5)
    operator.control.routes.set("mail.send", "b")
    until(lambda: queue(send.send()) == "b", within=1.5)
    assert operator.control.routes.delete("mail.send")
    until(lambda: queue(send.send()) == "default", within=1.5)


def test_in_the_transaction_of_the_caller(app: Holdfast, url: str) -> None:
    send = define(app)
    app.control.routes.set("mail.send", "mail")
    connection: Any
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    else:
        connection = psycopg.connect(url)
    with app.using(connection):
        one = send.send(1)
        many = send.send_many([(2,), (3,)])
    connection.commit()
    connection.close()
    assert [queue(handle) for handle in (one, *many)] == ["mail"] * 3


def has_asked_for_its_turn(said: list[str]) -> bool:
    return any("UPDATE holdfast_meta" in each for each in said)


def test_a_transaction_that_began_plainly_may_wait_for_its_turn(tmp_path: Path) -> None:
    # Django's `atomic()`: SQLite lets a transaction that has read wait for no other writer.
    file = str(tmp_path / "tasks.db")
    with Holdfast(f"sqlite:///{file}") as app:
        send = define(app)
        app.control.routes.set("mail.send", "mail")
        sends: dict[str, Callable[[], TaskHandle[None]]] = {
            "one": lambda: send.send(1),
            "many": lambda: send.send_many([(2,), (3,)])[1],
        }
        for name, sending in sends.items():
            theirs = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            said: list[str] = []
            theirs.set_trace_callback(said.append)
            writer = sqlite3.connect(file, isolation_level=None)
            writer.execute("BEGIN IMMEDIATE")
            writer.execute(f"CREATE TABLE {name} (x)")
            with ThreadPoolExecutor(1) as pool, app.using(theirs):
                theirs.execute("BEGIN")
                sent = pool.submit(copy_context().run, sending)
                until(partial(has_asked_for_its_turn, said))
                writer.execute("COMMIT")
                handle = sent.result(20)
            theirs.execute("COMMIT")
            assert queue(handle) == "mail"
            theirs.close()
            writer.close()


def test_the_steps_of_a_workflow(app: Holdfast) -> None:
    send = define(app)
    app.control.routes.set("mail.*", "mail")
    wf = Workflow("adhoc")
    first = wf.step(send, 1)
    wf.options(after=[first]).step(send.options(queue="fast"), 2)
    wf.map(send, [3, 4])
    handle = wf.send()
    assert sorted(queue(each) for each in handle.steps()) == ["fast", "mail", "mail", "mail"]


def test_what_a_task_sends_is_routed_and_runs(app: Holdfast) -> None:
    send = define(app)

    @app.task("outer")
    def outer() -> str:
        handle = send.send(3)
        return str(handle.id)

    app.control.routes.set("mail.send", "mail")
    sent = outer.send()
    app.worker(queues="default,mail").run_until_idle()
    inner = app.handle(sent.get(5))
    assert (queue(inner), inner.get(5)) == ("mail", 3)


def test_an_old_version_drains_beside_the_new(app: Holdfast) -> None:
    @app.task("resize")
    def old(n: int) -> str:
        return f"old {n}"

    before = old.send(1)

    @app.task("resize", version=2)
    def new(n: int) -> str:
        return f"new {n}"

    app.control.routes.set("resize", "images")
    after = new.send(2)
    app.worker(queues="default,images").run_until_idle()
    assert (before.get(5), after.get(5)) == ("old 1", "new 2")


def test_listing_and_deleting(app: Holdfast) -> None:
    routes = app.control.routes
    routes.set("b", {"y": 2, "x": 1}, by="ann")
    asyncio.run(routes.aset("a.*", "q"))
    first, second = asyncio.run(routes.alist())
    assert (first.pattern, first.queues) == ("a.*", {"q": 1})
    assert (second.pattern, list(second.queues.items())) == ("b", [("y", 2), ("x", 1)])
    assert (second.set_by, second.updated_at <= app.control.now()) == ("ann", True)
    routes.set("b", "z")
    assert [route.queues for route in routes.list()] == [{"q": 1}, {"z": 1}]
    assert (asyncio.run(routes.adelete("b")), routes.delete("b")) == (True, False)
    done = [(entry.verb, entry.subject) for entry in app.control.audit.list().entries]
    assert done == [
        ("delete_route", "route b"),
        ("set_route", "route b"),
        ("set_route", "route a.*"),
        ("set_route", "route b"),
    ]


def test_what_cannot_be_is_refused_before_anything_is_written(app: Holdfast) -> None:
    for pattern, queues in (("a b", "q"), ("a", "q q"), ("a", {"q": 0}), ("\x00", "q"), (3, "q")):
        with pytest.raises(ConfigError):
            app.control.routes.set(pattern, queues)  # type: ignore[arg-type]
    for gone in ("\x00", "\ud800", "x" * 20_000, 3):
        with pytest.raises(ConfigError):
            app.control.routes.delete(gone)  # type: ignore[arg-type]
    assert app.control.routes.list() == []


def test_rows_by_hand_are_named_and_send_nothing(app: Holdfast, url: str) -> None:
    send = define(app)
    app.control.routes.set("mail.*", "mail")
    rows = [
        ("mail.send", "{", 0),
        ("mail.s*", '{"a": -1}', 0),
        ("mail send", '{"a": 1}', 0),
        ("mail.sen*", '{"a": 1}', 0),
    ]
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            sql = "INSERT INTO holdfast_routes (pattern, queues, updated_at) VALUES (?, ?, ?)"
            file.executemany(sql, [*rows[:-1], (*rows[-1][:2], 2**62)])
            sql = (
                "INSERT INTO holdfast_routes VALUES (CAST(x'ff2a' AS TEXT), '{\"a\": 1}', NULL, 0)"
            )
            file.execute(sql)
        file.close()
    else:
        with psycopg.connect(url) as connection:
            for pattern, queues, _ in rows:
                connection.execute(
                    "INSERT INTO holdfast_routes VALUES (%s, %s, NULL, '294276-01-01')",
                    (pattern, queues),
                )
    app.control.routes.set("other", "q")
    listed = app.control.routes.list()
    assert [route.pattern for route in listed] == ["mail.*", "other"]
    assert len(listed.unreadable) == len(rows) + url.startswith("sqlite")
    until(lambda: queue(send.send()) == "mail", within=1.5)
    assert app.control.routes.delete("mail send")


def test_why_names_the_route_to_a_queue_that_nobody_serves(app: Holdfast, hands: Hands) -> None:
    send = define(app)
    app.control.routes.set("mail.*", {"far": 1})
    handle = send.send()
    other = send.options(queue="away").send()
    hands.run(
        workers.register(
            "w",
            hostname="h",
            pid=1,
            version="1",
            lease_us=30_000_000,
            queues='["default"]',
            known='["mail.send@1"]',
            settings="{}",
        )
    )
    assert "queue 'far': start one that does (-q far), or change the route 'mail.*'" in str(
        handle.why()
    )
    assert "route" not in str(other.why())

"""Sending under stress: shared commits, bad rows, lost answers, outages, forks, the end."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from holdfast import Holdfast, PayloadMismatch, StoreError, StoreUnavailable, TaskHandle, Unique
from holdfast.client.sending import dispatch
from holdfast.client.sending.dispatch import submit_all
from holdfast.core.identity import new_id
from holdfast.core.records import SubmitAnswer
from holdfast.store.op import Op
from tests.client.conftest import Hands
from tests.support.deadline import until
from tests.support.postgres import PostgresServer
from tests.support.proxy import Proxy
from tests.support.verbs import step

SENDERS = 64


def total(app: Holdfast) -> int:
    return sum(app.control.tasks.count().values())


class Counter:
    """Counts the transactions of an app's store, and can stand in their way."""

    def __init__(self, app: Holdfast) -> None:
        store: Any = app._access.store()
        self.runs = 0
        self.fail: Callable[[Op[Any]], Exception | None] = lambda op: None
        attempt = store.attempt

        def counted(make: Callable[[], Op[Any]], **options: Any) -> Any:
            self.runs += 1
            error = self.fail(make())
            if error is not None:
                raise error
            return attempt(make, **options)

        store.attempt = counted


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    answers: list[Any] = [None] * count
    ready = threading.Barrier(count)

    def run(number: int) -> None:
        ready.wait(30)
        try:
            answers[number] = work(number)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            answers[number] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return answers


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


def test_threads_share_commits(app: Holdfast) -> None:
    counter = Counter(app)
    handles = in_threads(SENDERS, lambda n: [app.send("any", n, k) for k in range(4)])
    assert all(isinstance(handle, TaskHandle) for some in handles for handle in some)
    assert total(app) == SENDERS * 4
    assert counter.runs < SENDERS * 2
    assert {tuple(some[k].info().args) for some in handles for k in (0, 3)} == {
        (n, k) for n in range(SENDERS) for k in (0, 3)
    }


def test_coroutines_share_commits_and_no_thread_waits_with_them(app: Holdfast) -> None:
    counter = Counter(app)

    async def main() -> list[TaskHandle[Any]]:
        sends = [asyncio.ensure_future(app.asend("any", n)) for n in range(SENDERS)]
        await asyncio.sleep(0)
        assert threading.active_count() < before + 3
        return await asyncio.gather(*sends)

    before = threading.active_count()
    handles = asyncio.run(main())
    assert [handle.info().args for handle in handles] == [[n] for n in range(SENDERS)]
    assert counter.runs < SENDERS + SENDERS // 4


def test_a_bad_row_fails_alone(app: Holdfast) -> None:
    counter = Counter(app)

    def refuse(op: Op[Any]) -> Exception | None:
        if op.name != "submit":
            return None
        statement: Any = next(iter(op))
        args = list(statement.table.columns).index("args")
        given = {row[args] for row in statement.table.rows}
        return StoreError("the database refused this row") if '["bad"]' in given else None

    counter.fail = refuse
    answers = in_threads(32, lambda n: app.send("any", "bad" if n % 8 == 0 else n))
    failed = [n for n, answer in enumerate(answers) if isinstance(answer, StoreError)]
    assert failed == [0, 8, 16, 24]
    assert all(answers[n].call.submission.args == '["bad"]' for n in failed)
    assert total(app) == 28


def test_each_gets_its_own_answer(app: Holdfast) -> None:
    own = [new_id() for _ in range(8)]
    for raw in own:
        app.options(id=_uuid(raw)).send("any", "first")

    def send(n: int) -> TaskHandle[Any]:
        return app.options(id=_uuid(own[n % 8])).send("any", "first" if n < 8 else "second")

    answers = in_threads(16, send)
    assert all(isinstance(answer, TaskHandle) and not answer.created for answer in answers[:8])
    assert all(isinstance(answer, PayloadMismatch) for answer in answers[8:])


def _uuid(raw: bytes) -> Any:
    from uuid import UUID

    return UUID(bytes=raw)


def test_many_unique_sends_at_once_are_one_task(app: Holdfast) -> None:
    answers = in_threads(32, lambda n: app.options(unique=Unique("k")).send("any", n))
    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert total(app) == 1


def test_unique_sends_meet_holders_that_end(app: Holdfast, hands: Hands) -> None:
    stop = threading.Event()

    def end_them() -> None:
        while not stop.is_set():
            for task in hands.claim(queue="default", known=["any@1"]).tasks:
                hands.started(task)
                hands.complete(task)

    worker = threading.Thread(target=end_them)
    worker.start()
    try:
        answers = in_threads(
            8, lambda n: [app.options(unique=Unique("k")).send("any") for _ in range(10)]
        )
    finally:
        stop.set()
        worker.join(30)
    assert all(isinstance(some, list) for some in answers), answers


def test_a_send_that_waits_for_a_lock_fails_alone(
    postgres: str, open_app: Callable[..., Holdfast]
) -> None:
    app = open_app(postgres, lock_timeout=1, send_timeout=0.1)
    sending: Any = app._dispatch
    # One group for all, so that the innocent share the transaction of the one that waits.
    sending._contended = sending._plain
    app.send("any")
    held = app.options(unique=Unique("held"))
    with psycopg.connect(postgres) as connection:
        with app.using(connection):
            held.send("any")
        first, blocked = started(lambda: held.send("any"))
        until(lambda: sending._plain._leaders == 1)
        answers = in_threads(6, lambda n: (held if n == 0 else app).send("any", n))
        assert [type(answer) for answer in answers[1:]] == [TaskHandle] * 5
        assert isinstance(answers[0], StoreUnavailable)
        first.join(30)
        assert isinstance(blocked[0], StoreUnavailable)
        connection.rollback()
    assert total(app) == 6


def test_an_unavailable_store_is_tried_again(app: Holdfast) -> None:
    counter = Counter(app)
    errors = [StoreUnavailable("away", commit_unknown=True), StoreUnavailable("away")]
    counter.fail = lambda op: errors.pop() if errors else None
    handle = app.send("any")
    assert handle.created
    assert total(app) == 1


def test_patience_ends(url: str, open_app: Callable[..., Holdfast]) -> None:
    app = open_app(url, send_timeout=0.3)
    counter = Counter(app)
    counter.fail = lambda op: StoreUnavailable("away")
    began = time.monotonic()
    answers = in_threads(8, lambda n: app.send("any", n))
    assert 0.3 <= time.monotonic() - began < 5
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    assert len({id(answer) for answer in answers}) == 8
    assert {answer.call.submission.args for answer in answers} == {f"[{n}]" for n in range(8)}
    assert 3 < counter.runs < 40
    counter.fail = lambda op: None
    assert {app.resend(answer).created for answer in answers} == {True}


def test_an_outage_also_meets_coroutines_and_bulk(
    url: str, open_app: Callable[..., Holdfast]
) -> None:
    app = open_app(url, send_timeout=0.1)

    @app.task("any")
    def any_(n: int) -> None: ...

    counter = Counter(app)
    counter.fail = lambda op: StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        asyncio.run(any_.asend(1))
    with pytest.raises(StoreUnavailable):
        any_.send_many([(1,)])
    with pytest.raises(StoreUnavailable):
        asyncio.run(any_.asend_many([(1,)]))


@pytest.fixture
def proxied(postgres: str) -> Iterator[Proxy]:
    with Proxy.to(postgres) as proxy:
        yield proxy


def test_a_lost_answer_of_a_commit_is_one_task(
    proxied: Proxy, open_app: Callable[..., Holdfast]
) -> None:
    app = open_app(proxied.url)
    app.send("warm")
    proxied.lose_answer_to(b"lost-answer")
    with ends_losing(proxied):
        handle = app.send("any", "lost-answer")
    assert proxied.lost >= 1
    assert handle.created
    assert total(app) == 2


def test_a_lost_answer_of_a_bulk_send_is_one_set(
    proxied: Proxy, open_app: Callable[..., Holdfast]
) -> None:
    app = open_app(proxied.url)

    @app.task("any")
    def any_(n: int) -> None: ...

    any_.send(0)
    proxied.lose_answer_to(b"COMMIT")
    with ends_losing(proxied):
        handles = any_.send_many([(n,) for n in range(100)])
    assert proxied.lost >= 1
    assert all(handle.created for handle in handles)
    assert total(app) == 101


@contextmanager
def ends_losing(proxy: Proxy) -> Iterator[None]:
    """Lose answers until one was lost; then let the repetition through."""
    done = threading.Event()

    def watch() -> None:
        until(lambda: proxy.lost or done.is_set(), within=30)
        proxy.lose_answer_to(None)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(30)


def test_a_server_that_comes_back_gets_the_task(open_app: Callable[..., Holdfast]) -> None:
    with PostgresServer(fsync=False) as server:
        app = open_app(server.create_database(), send_timeout=60)
        app.send("any", 0)
        server.stop("immediate")
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(app.send("any", 1)))
        thread.start()
        server.start()
        thread.join(60)
        assert [handle.created for handle in answers] == [True]
        assert total(app) == 2
        app.close()


def forked(work: Callable[[], object]) -> None:
    """Run in a forked child, and fail if it fails."""
    context = multiprocessing.get_context("fork")
    child = context.Process(target=work)
    child.start()
    child.join(60)
    assert child.exitcode == 0


def test_sends_in_a_forked_child_work(app: Holdfast) -> None:
    app.send("any", "parent")

    def child() -> None:
        assert app.send("any", "child").created
        assert len(in_threads(8, lambda n: app.send("any", n))) == 8
        asyncio.run(app.asend("any", "async"))
        os._exit(0)

    forked(child)
    app.send("any", "parent")
    assert total(app) == 12


def test_a_fork_before_the_first_use_works(app: Holdfast) -> None:
    forked(lambda: app.send("any"))
    app.send("any")
    assert total(app) == 2


def test_a_fork_while_others_send_works(app: Holdfast) -> None:
    stop = threading.Event()
    sent: list[int] = []

    def send() -> None:
        while not stop.is_set():
            app.send("any", "parent")
            sent.append(1)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()

    def child() -> None:
        for n in range(5):
            app.send("any", "child", n)
        os._exit(0)

    try:
        for _ in range(3):
            forked(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert total(app) == len(sent) + 15


END = """
import asyncio, sys, threading
from holdfast import Holdfast
app = Holdfast(sys.argv[1])

async def main():
    for n in range(20):
        asyncio.ensure_future(app.asend("any", n))
    await asyncio.sleep(0)

if sys.argv[2] == "coroutines":
    asyncio.run(main())
else:
    threading.Thread(target=lambda: [app.send("any", n) for n in range(20)]).start()
"""


@pytest.mark.parametrize("senders", ["threads", "coroutines"])
def test_what_was_on_its_way_at_exit_is_sent_or_was_never_promised(
    url: str, senders: str, open_app: Callable[..., Holdfast]
) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", END, url, senders],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    # Threads are waited for. The loop cancels its tasks when it ends, so only those whose
    # commit had begun are there; what matters is that ending is quick and clean.
    found = total(open_app(url))
    assert found == 20 if senders == "threads" else found in range(21)


ENDLESS = """
import sys, threading, time
from holdfast import Holdfast
app = Holdfast(sys.argv[1])

def send():
    while True:
        app.send("any", 1)

for _ in range(24):
    threading.Thread(target=send, daemon=True).start()
deadline = time.monotonic() + 30
while sum(app.control.tasks.count().values()) < 200 and time.monotonic() < deadline:
    time.sleep(0.01)
"""


def test_threads_that_send_without_end_do_not_keep_a_program_from_ending(url: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ENDLESS, url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_close_waits_for_sends_under_way(url: str, open_app: Callable[..., Holdfast]) -> None:
    app = open_app(url)
    app.send("any", 0)
    counter = Counter(app)
    begun, go_on = threading.Event(), threading.Event()

    def hold(op: Op[Any]) -> None:
        begun.set()
        go_on.wait(30)

    counter.fail = hold
    answers: list[Any] = []
    sender = threading.Thread(target=lambda: answers.append(app.send("any", 1)))
    sender.start()
    assert begun.wait(30)
    closer = threading.Thread(target=app.close)
    closer.start()
    until(lambda: app._access._closed)
    with pytest.raises(StoreError, match="closed"):
        app.send("any", 2)
    go_on.set()
    for thread in (sender, closer):
        thread.join(30)
    assert answers[0].created
    assert total(open_app(url)) == 2


def test_a_graph_is_not_cut_into_chunks(
    app: Holdfast, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step may come before the one it waits for, however large the batch is."""
    monkeypatch.setattr(dispatch, "CHUNK", 2)
    workflow = new_id()
    parent = step(workflow)
    batch = [*(step(workflow, parent.id) for _ in range(4)), parent]
    assert {answer.answer for answer in hands.run(submit_all(batch))} == {SubmitAnswer.CREATED}
    assert hands.run(submit_all([])) == []

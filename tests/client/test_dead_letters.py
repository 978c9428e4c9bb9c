"""Dead letters: which, of what, and what is done to all that fit."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from holdfast import ConfigError, Holdfast, TaskHandle, TaskStatus, Unique
from holdfast.client import dead_letter_work
from holdfast.client.dead_letter_control import Treated
from holdfast.core.result import TaskError
from tests.client.conftest import Hands

Handle = TaskHandle[Any]


def kill(hands: Hands, handle: Handle, code: str = "BOOM", message: str = "it broke") -> Handle:
    """Let this task die, which must be the first in its queue."""
    hands.fail(hands.take(handle), TaskError(code, message))
    return handle


def test_filters(app: Holdfast, hands: Hands) -> None:
    a = kill(hands, app.send("a"), "TIMEOUT", "waited for Acme")
    b = kill(hands, app.options(queue="mail", tags=["x"]).send("b"), "BOOM")
    c = kill(hands, app.options(version=2, unique=Unique("k-7")).send("a"))
    app.send("a")
    letters = app.control.dead_letters
    now = app.control.now()

    def found(**where: Any) -> list[Any]:
        ids = [info.id for info in letters.list(**where).tasks]
        assert letters.count(**where) == len(ids)
        assert sum(each.count for each in letters.causes(**where)) == len(ids)
        assert sum(each.count for each in letters.over_time(**where)) == len(ids)
        return ids

    assert found() == [c.id, b.id, a.id]
    assert found(queue="mail") == [b.id]
    assert found(name="a") == [c.id, a.id]
    assert found(name="a", version=1) == [a.id]
    assert found(version=2) == [c.id]
    assert found(error_code="BOOM") == [c.id, b.id]
    assert found(error_code="BOOM", queue="default") == [c.id]
    assert found(text="ACME") == [a.id]
    assert found(text="Broke", queue="mail") == [b.id]
    assert found(text="k-7") == [c.id]
    assert found(text=str(a.id)[:30]) == [a.id]
    assert found(tag="x") == [b.id]
    assert found(status="FAILED", dead=True) == [c.id, b.id, a.id]
    assert found(status="STALLED") == []
    assert found(ended_from=now + timedelta(hours=1)) == []
    assert found(ended_until=now + timedelta(hours=1), submitted_until=now) == [c.id, b.id, a.id]
    assert found(ended_until=datetime(1, 1, 1, tzinfo=UTC)) == []
    assert found(submitted_from=datetime(9999, 12, 31, tzinfo=UTC)) == []


@pytest.mark.parametrize(
    "where",
    [
        {"version": 0}, {"version": "1"}, {"colour": "red"}, {"text": "\x00"}, {"queue": "\ud800"},
        {"status": "LOST"}, {"ended_from": "now"}, {"workflow_id": "x"}, {"name": 3},
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(app: Holdfast, where: Any) -> None:
    letters = app.control.dead_letters
    for verb in (letters.list, letters.count, letters.causes, letters.delete_all):
        with pytest.raises((ConfigError, ValueError)):
            verb(**where)
    with pytest.raises((ConfigError, ValueError)):
        letters.resubmit_all(**where)


def test_pages(app: Holdfast, hands: Hands) -> None:
    dead = [kill(hands, app.send("a")).id for _ in range(5)]
    found, rest = [], None
    while True:
        page = app.control.dead_letters.list(before=rest, limit=2)
        found += [info.id for info in page.tasks]
        rest = page.next
        if rest is None:
            break
    assert found == dead[::-1]


def test_causes_and_time(app: Holdfast, hands: Hands) -> None:
    for code in ("TIMEOUT", "TIMEOUT", "BOOM"):
        kill(hands, app.send("a"), code)
    letters = app.control.dead_letters
    first, second = letters.causes()
    assert (first.error_code, first.name, first.version, first.queue) == (
        "TIMEOUT",
        "a",
        1,
        "default",
    )
    assert (first.count, second.count) == (2, 1)
    assert first.first_at <= first.last_at <= second.last_at
    assert asyncio.run(letters.acauses(error_code="BOOM"))[0].count == 1
    for step in ("hour", "day"):
        counts = letters.over_time(step)
        assert sum(each.count for each in counts) == 3
        assert counts[0].at <= first.first_at
    assert asyncio.run(letters.aover_time("day"))[-1].by_code.get("BOOM") == 1
    assert asyncio.run(letters.acount()) == 3
    with pytest.raises(ConfigError, match="hour or day"):
        letters.over_time("week")  # type: ignore[arg-type]


def test_all_that_fit_are_resubmitted_page_by_page(
    app: Holdfast, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_work.AtOnce, "size", 3)
    dead = [kill(hands, app.send("a")).id for _ in range(7)]
    other = kill(hands, app.send("b")).id
    told: list[Treated] = []
    with app.control.acting(by="ann"):
        outcome = app.control.dead_letters.resubmit_all(name="a", progress=told.append)
    assert (outcome.done, outcome.refused, outcome.total) == (7, 0, 7)
    assert [each.done for each in told] == [0, 3, 6, 7]
    assert set(app.control.tasks.statuses(*dead).values()) == {TaskStatus.PENDING}
    assert app.control.tasks.statuses(other) == {other: TaskStatus.FAILED}
    entries = app.control.audit.list(by="ann").entries
    assert [(entry.verb, entry.count, entry.filter) for entry in entries] == [
        ("resubmit", 1, "name=a"),
        ("resubmit", 3, "name=a"),
        ("resubmit", 3, "name=a"),
    ]
    assert asyncio.run(app.control.dead_letters.aresubmit_all()).done == 1
    assert app.control.dead_letters.resubmit_all() == Treated()


def test_with_retries_anew_or_not(app: Holdfast, hands: Hands) -> None:
    @app.task("a", retry=2)
    def a() -> None:
        raise ValueError

    handle = a.send()
    app.worker().run_until_idle()
    assert handle.info().retry_count == 2
    app.control.dead_letters.resubmit_all(keep_retries=True)
    assert handle.info().retry_count == 2
    app.worker().run_until_idle()
    app.control.dead_letters.resubmit_all(fresh=True)
    assert handle.info().retry_count == 0
    assert len(app.control.tasks.attempts(handle)) == 4


@pytest.mark.parametrize(("rate", "gaps"), [("2/s", [0, 0, 1, 1, 2]), ("1/minute", [0, 60, 120])])
def test_at_a_rate(app: Holdfast, hands: Hands, rate: str, gaps: list[int]) -> None:
    dead = [kill(hands, app.send("a")) for _ in gaps]
    start = app.control.now()
    outcome = app.control.dead_letters.resubmit_all(rate=rate)
    assert outcome.done == len(gaps)
    first, *rest = [handle.info() for handle in reversed(dead)]
    assert first.status is TaskStatus.PENDING
    base = first.run_at or first.enqueued_at
    assert base is not None
    assert abs(base - start) < timedelta(seconds=5)
    found = [0.0]
    for info in rest:
        assert info.run_at is not None
        found.append((info.run_at - base).total_seconds())
    assert found == gaps
    assert outcome.until == base + timedelta(seconds=gaps[-1])
    with pytest.raises(ConfigError, match="rate"):
        app.control.dead_letters.resubmit_all(rate="fast")


def test_one_that_cannot_is_named_and_holds_up_no_other(app: Holdfast, hands: Hands) -> None:
    unique = app.options(unique=Unique("k"))
    first = kill(hands, unique.send("a"))
    dead = [kill(hands, app.send("a")) for _ in range(4)]
    live = unique.send("a")
    assert live.id != first.id
    outcome = app.control.dead_letters.resubmit_all()
    assert (outcome.done, outcome.refused, outcome.total) == (4, 1, 5)
    assert "is unique" in outcome.reasons[first.id]
    assert {handle.status() for handle in dead} == {TaskStatus.PENDING}


def test_all_that_fit_are_deleted(
    app: Holdfast, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_work, "_PAGE", 2)
    for _ in range(5):
        kill(hands, app.send("a"), "TIMEOUT")
    left = kill(hands, app.send("a"))
    letters = app.control.dead_letters
    assert letters.delete_all(error_code="TIMEOUT").done == 5
    assert [info.id for info in letters.list().tasks] == [left.id]
    assert asyncio.run(letters.adelete_all()).done == 1
    assert letters.list().tasks == []


def test_those_that_die_meanwhile_are_left_alone(app: Holdfast, hands: Hands) -> None:
    kill(hands, app.send("a"))
    waiting = app.send("a")

    def tell(so_far: Treated) -> None:
        if not so_far.done:
            kill(hands, waiting)

    assert app.control.dead_letters.delete_all(progress=tell).done == 1
    assert waiting.status() is TaskStatus.FAILED


def test_rows_by_hand(app: Holdfast, hands: Hands, url: str) -> None:
    a, b, c = (kill(hands, app.send("a")) for _ in range(3))
    changes = [
        ("finished_at", "9223372036854775807", "'294276-01-01'", a),
        ("failed_reason", "CAST(x'ff' AS TEXT)", "repeat('x', 1000000)", b),
        ("error_code", "CAST(x'ff' AS TEXT)", "E'\\x01'", b),
        ("tags", "'{'", "'{'", c),
    ]
    for column, lite, server, handle in changes:
        if url.startswith("sqlite"):
            file = sqlite3.connect(url.removeprefix("sqlite:///"))
            sql = f"UPDATE holdfast_tasks SET {column} = {lite} WHERE id = '{handle.id}'"
            file.execute(sql)
            file.commit()
            file.close()
        else:
            with psycopg.connect(url) as connection:
                sql = f"UPDATE holdfast_tasks SET {column} = {server} WHERE id = '{handle.id}'"
                connection.execute(sql.encode())
    letters = app.control.dead_letters
    page = letters.list()
    assert len(page.tasks) + len(page.unreadable) == 3
    letters.list(tag="x", text="y")
    assert letters.count() == sum(each.count for each in letters.over_time("day")) == 3
    for outcome in (letters.resubmit_all(), letters.delete_all()):
        assert outcome.done + outcome.refused == outcome.total


def test_an_overview_is_one_look(app: Holdfast, hands: Hands) -> None:
    for name, code in (("a", "TIMEOUT"), ("a", "TIMEOUT"), ("b", "BOOM")):
        kill(hands, app.send(name), code)
    seen = app.control.dead_letters.overview()
    assert seen.is_all
    assert [(each.name, each.error_code, each.count) for each in seen.causes] == [
        ("a", "TIMEOUT", 2), ("b", "BOOM", 1),
    ]  # fmt: skip
    assert [sum(hour.count for hour in seen.by_hour[each]) for each in seen.causes] == [2, 1]
    assert asyncio.run(app.control.dead_letters.aoverview(name="b")).causes == seen.causes[1:]


def test_those_that_one_task_has_sent(app: Holdfast, hands: Hands) -> None:
    """A filter that is not applied would resubmit all there are."""
    kill(hands, app.send("a"), "TIMEOUT")
    letters = app.control.dead_letters
    nobody = uuid4()
    assert letters.list(parent_id=nobody).tasks == []
    assert letters.count(parent_id=nobody) == 0
    assert letters.resubmit_all(parent_id=nobody).done == 0


def test_exceptions_are_causes_apart(app: Holdfast, hands: Hands) -> None:
    raised = [
        ("ValueError", "no: it is"),
        ("ValueError", ""),
        ("app.GoneError", "away"),
        (None, "x"),
    ]
    for exception, message in raised:
        code = "UNHANDLED_EXCEPTION" if exception else "ValueError"
        name = None if exception is None else f"builtins.{exception}"
        error = TaskError.stored(code, message, None, name, None, ())
        hands.fail(hands.take(app.send("shop.fail")), error)
    letters, tasks = app.control.dead_letters, app.control.tasks
    causes = {(each.error_code, each.exception): each.count for each in letters.causes()}
    assert causes == {
        ("UNHANDLED_EXCEPTION", "ValueError"): 2,
        ("UNHANDLED_EXCEPTION", "app.GoneError"): 1,
        ("ValueError", None): 1,
    }
    assert [each.count for each in letters.overview().causes] == [2, 1, 1]
    assert letters.count(exception="ValueError") == 2
    assert len(letters.list(exception="app.GoneError").tasks) == 1
    assert len(tasks.list(exception="ValueError").tasks) == 2
    assert len(tasks.ids(exception="ValueError", name="shop.fail").ids) == 2
    assert not tasks.list(exception="ValueError", error_code="ValueError").tasks
    assert not tasks.list(exception="Value").tasks

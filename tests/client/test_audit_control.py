"""What operators do is written down, with who did it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from holdfast import ConfigError, Holdfast, Limit, Workflow
from holdfast.client.acting import system_user
from tests.client.conftest import Hands


def done(app: Holdfast) -> list[tuple[str, str | None, str, str, int]]:
    entries = app.control.audit.list().entries
    return [(each.by, each.origin, each.verb, each.subject, each.count) for each in entries][::-1]


def test_every_action_is_recorded_with_who_did_it(app: Holdfast) -> None:
    tasks = [app.send("any", n) for n in range(3)]
    with app.control.acting(by="anna", origin="web 10.0.0.7", filter="queue=default"):
        app.control.tasks.reschedule(tasks[0], priority=7)
        app.control.tasks.cancel(*tasks)
        app.control.tasks.resubmit(tasks[0])
        app.control.tasks.delete(tasks[1])
        app.control.queues.pause("default")
    app.control.queues.resume("default")
    web = ("anna", "web 10.0.0.7")
    assert done(app)[:-1] == [
        (*web, "reschedule", f"task {tasks[0].id}", 1),
        (*web, "cancel", "3 tasks", 3),
        (*web, "resubmit", f"task {tasks[0].id}", 1),
        (*web, "delete", f"task {tasks[1].id}", 1),
        (*web, "pause", "queue default", 1),
    ]
    by, origin, *rest = done(app)[-1]
    assert (by, rest) == (system_user(), ["resume", "queue default", 1])
    assert origin is not None
    page = app.control.audit.list(verb="cancel")
    (cancelled,) = page.entries
    assert cancelled.filter == "queue=default"
    assert set(cancelled.detail["ids"]) == {str(task.id) for task in tasks}
    (moved,) = app.control.audit.list(subject=f"task {tasks[0].id}", verb="reschedule").entries
    assert moved.detail == {"priority": 7}


def test_what_did_nothing_is_not_recorded(app: Holdfast, hands: Hands) -> None:
    task = app.send("any")
    hands.finish(task)
    app.control.tasks.cancel(task)
    app.control.tasks.resubmit(task)
    app.control.queues.resume("default")
    assert done(app) == []


def test_async_tasks_act_each_for_themselves(app: Holdfast) -> None:
    async def pause(name: str) -> None:
        async with app.control.acting(by=name):
            await app.control.queues.apause(name)

    async def both() -> None:
        await asyncio.gather(pause("anna"), pause("ben"))

    asyncio.run(both())
    entries = asyncio.run(app.control.audit.alist()).entries
    assert {(each.by, each.subject) for each in entries} == {
        ("anna", "queue anna"),
        ("ben", "queue ben"),
    }
    assert {queue.paused_by for queue in app.control.queues.list()} == {"anna", "ben"}


def test_the_record_names_whom_the_thing_names(app: Holdfast) -> None:
    """`by` of a verb, not the user of this process."""
    control = app.control
    control.schedules.add("nightly", "@daily", app.named("a").call())
    wf = Workflow("month")
    wf.step(app.named("a"))
    whole = wf.send()
    control.queues.pause("q", by="ben")
    control.queues.limit("q", Limit(concurrency=1), by="ben")
    control.tasks.limit("a", Limit(concurrency=1), by="ben")
    control.routes.set("a", "q", by="ben")
    control.schedules.pause("nightly", by="ben")
    control.workflows.pause(whole.id, by="ben")
    entries = control.audit.list(by="ben").entries
    assert [each.verb for each in entries] == [
        "pause", "pause", "set_route", "limit", "limit", "pause",
    ]  # fmt: skip
    assert whole.info().paused_by == "ben"
    assert control.routes.list()[0].set_by == "ben"


@pytest.mark.parametrize("by", ["", "a\nb", "a\x1b[31m", "x" * 2000, 7])
def test_whom_a_verb_names_is_a_line_of_text(app: Holdfast, by: Any) -> None:
    control = app.control
    verbs: list[Callable[[], object]] = [
        lambda: control.queues.pause("q", by=by),
        lambda: control.queues.limit("q", None, by=by),
        lambda: control.routes.set("a", "q", by=by),
        lambda: control.schedules.pause("nightly", by=by),
        lambda: control.workflows.pause(UUID(int=1), by=by),
    ]
    for verb in verbs:
        with pytest.raises(ConfigError, match="by="):
            verb()


def test_pages_and_filters(app: Holdfast) -> None:
    for number in range(5):
        with app.control.acting(by=f"by-{number % 2}"):
            app.control.queues.pause(f"q{number}")
    first = app.control.audit.list(limit=3)
    assert [each.subject for each in first.entries] == ["queue q4", "queue q3", "queue q2"]
    second = app.control.audit.list(limit=3, before=first.next)
    assert [each.subject for each in second.entries] == ["queue q1", "queue q0"]
    assert second.next is None
    assert len(app.control.audit.list(by="by-1").entries) == 2
    assert app.control.audit.list(until=first.entries[-1].at.replace(year=2000)).entries == []
    assert len(app.control.audit.list(since=datetime(2000, 1, 1, tzinfo=UTC)).entries) == 5


@pytest.mark.parametrize(
    "wrong",
    [{"limit": 0}, {"limit": 5000}, {"before": "x"}, {"before": -1}, {"who": "x"}],
)
def test_wrong_questions(app: Holdfast, wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        app.control.audit.list(**wrong)  # type: ignore[arg-type]


def test_who_acts_is_some_text(app: Holdfast) -> None:
    with pytest.raises(ConfigError, match="empty"):
        app.control.acting(by=" ")
    with pytest.raises(ConfigError, match="not a text"):
        app.control.acting(by=7)  # type: ignore[arg-type]
    with app.control.acting(by="a\0b\ud800", origin="x" * 5000):
        app.control.queues.pause("q")
    (entry,) = app.control.audit.list().entries
    assert entry.by == "a\ufffdb\ufffd"
    assert len(entry.origin or "") == 1000

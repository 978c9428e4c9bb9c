"""Schedules from Python: declared, added, looked at, steered."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast import (
    ConfigError,
    Holdfast,
    PayloadError,
    Retry,
    TaskFailed,
    Unique,
    Workflow,
    current_task,
)

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def nightly(app: Holdfast) -> Any:
    @app.task("nightly", queue="bulk", retry=Retry(4), timeout=7, tags=["night"])
    def nightly(region: str = "eu") -> str:
        return f"{region} {current_task().tick}"

    return nightly


def test_added_listed_steered_and_deleted(app: Holdfast, nightly: Any) -> None:
    s = app.control.schedules
    added = s.add("n", "30 2 * * *", nightly.call("us"), tz="Europe/Berlin", overlap="wait")
    assert (added.name, added.state, added.words) == (
        "n",
        "active",
        "at 02:30 every day (Europe/Berlin)",
    )
    assert (added.task, added.queue, added.args, added.declared) == (
        "nightly",
        "bulk",
        ["us"],
        False,
    )
    assert added.next_tick == s.next("n", 3)[0] == s.preview("30 2 * * *", 1, tz="Europe/Berlin")[0]
    assert s.list() == [s.show("n")]
    assert s.pause("n", by="bob") is True
    paused = s.show("n")
    assert (paused.state, paused.paused_by) == ("paused", "bob")
    assert "paused by bob at" in str(paused.why)
    assert s.resume("n") is True
    assert s.show("n").why is None
    assert s.delete("n") is True
    assert s.delete("n") is False
    with pytest.raises(ConfigError, match="no schedule is named 'n'"):
        s.show("n")
    verbs = [each.verb for each in app.control.audit.list(subject="schedule n").entries]
    assert verbs == ["delete", "resume", "pause", "schedule"]


def test_a_run_has_every_option_of_its_task_and_its_tick(app: Holdfast, nightly: Any) -> None:
    s = app.control.schedules
    s.add("n", "@daily", nightly.options(priority=7, good_for=600).call("us"))
    run = s.run_now("n")
    info = app.control.tasks.show(run.id)
    assert (info.queue, info.priority, info.max_retries, info.tags) == ("bulk", 7, 4, ("night",))
    assert info.options["timeout"] == 7
    assert info.good_until is not None
    assert info.schedule_name == "n"
    assert app.worker().run_until_idle() == 1
    assert run.get() == f"us {info.schedule_tick}"
    shown = s.show("n")
    assert (shown.run_count, shown.last_task_id) == (1, run.id)
    (tick,) = s.history("n")
    assert (tick.status, tick.cause, tick.task_id) == ("fired", "run_now", run.id)


def test_routes_decide_when_a_tick_is_fired(app: Holdfast, nightly: Any) -> None:
    s = app.control.schedules
    s.add("n", "@daily", nightly.call())
    s.add("chosen", "@daily", nightly.options(queue="mine").call())
    app.control.routes.set("nightly", "elsewhere")
    queues = [app.control.tasks.show(s.run_now(name).id).queue for name in ("n", "chosen")]
    assert queues == ["elsewhere", "mine"]


def test_why_names_the_schedule(app: Holdfast, nightly: Any) -> None:
    s = app.control.schedules
    s.add("n", "@daily", nightly.call())
    run = s.run_now("n")
    assert "schedule 'n' sent it for its tick of" in str(app.control.tasks.why(run.id))
    assert "paused" not in str(app.control.tasks.why(run.id))
    assert "ticks of schedule 'n' are dropped until it has ended" in str(run.why())
    shown = s.show("n")
    assert shown.live_run == run.id
    assert shown.why == f"task {run.id}, which it sent, has not ended: its ticks are dropped"
    assert s.list()[0].why is None
    s.add("n", "@daily", nightly.call(), overlap="wait")
    assert "has not ended: its ticks wait" in str(s.show("n").why)
    s.add("n", "@daily", nightly.call(), overlap="allow")
    assert s.show("n").why is None
    assert "dropped" not in str(run.why())
    s.pause("n", by="bob")
    assert "schedule 'n' was paused by bob at" in str(app.control.tasks.why(run.id))
    app.control.tasks.cancel(run.id)
    assert s.show("n").live_run is None
    s.delete("n")
    assert "schedule 'n' has been deleted since" in str(app.control.tasks.why(run.id))
    assert "schedule" not in str(nightly.send().why())


def test_backfill(app: Holdfast, nightly: Any) -> None:
    s = app.control.schedules
    s.add("n", "@daily", nightly.call())
    runs = s.backfill("n", LONG_AGO, LONG_AGO + timedelta(days=250))
    assert len({run.id for run in runs}) == 250
    first = app.control.tasks.show(UUID(str(runs[0].id)))
    assert first.schedule_tick == LONG_AGO
    assert s.backfill("n", LONG_AGO, LONG_AGO + timedelta(days=251)) != []
    assert s.backfill("n", LONG_AGO, LONG_AGO + timedelta(days=251)) == []
    page = s.history("n", limit=100)
    assert len(page) == 100
    assert s.history("n", before=page[-1].tick, limit=1)[0].tick < page[-1].tick
    with pytest.raises(ConfigError, match="nothing between"):
        s.backfill("n", LONG_AGO, LONG_AGO)


def test_every_verb_without_blocking(app: Holdfast, nightly: Any) -> None:
    s = app.control.schedules

    async def all_of_them() -> None:
        await s.aadd("n", timedelta(days=1), nightly.call())
        assert [each.name for each in await s.alist()] == ["n"]
        assert (await s.ashow("n")).words == "every 1 d"
        assert await s.apause("n")
        assert await s.aresume("n")
        assert len(await s.anext("n", 2)) == 2
        assert len(await s.apreview("@daily")) == 5
        run = await s.arun_now("n")
        runs = await s.abackfill("n", LONG_AGO, LONG_AGO + timedelta(days=1))
        assert {each.task_id for each in await s.ahistory("n")} == {run.id, runs[0].id}
        assert await s.adelete("n")

    asyncio.run(all_of_them())


def test_a_unique_task_is_not_sent_twice(app: Holdfast) -> None:
    @app.task("once", unique=Unique())
    def once() -> None: ...

    app.control.schedules.add("n", "@daily", once.call())
    app.control.schedules.run_now("n")
    with pytest.raises(ConfigError, match="its key is taken"):
        app.control.schedules.run_now("n")


def test_one_call_of_a_schedule_may_be_unique(app: Holdfast) -> None:
    """Of a task or of a workflow which are not."""

    @app.task("plain")
    def plain() -> None: ...

    @app.workflow("whole")
    def whole(wf: Workflow) -> None:
        wf.step(plain)

    s = app.control.schedules
    calls: list[Any] = [
        plain.options(unique=Unique("k", until="deleted")).call(),
        whole.options(unique=Unique("k")).call(),
    ]
    for number, call in enumerate(calls):
        name = s.add(f"n{number}", "@daily", call).name
        first = s.run_now(name)
        with pytest.raises(ConfigError, match="its key is taken"):
            s.run_now(name)
        assert [(t.status, t.cause, t.task_id) for t in s.history(name)] == [
            ("dropped", "unique", first.id),
            ("fired", "run_now", first.id),
        ]
    with pytest.raises(ConfigError, match="id is not for a schedule"):
        s.add("n", "@daily", plain.options(id=str(uuid4())).call())


def test_a_workflow_is_built_when_its_tick_has_come(app: Holdfast) -> None:
    @app.task("double")
    def double(x: int) -> int:
        return 2 * x

    @app.workflow("graph", on_failure="fail_fast", deadline=60)
    def graph(wf: Workflow, x: int = 4) -> int:
        assert current_task().tick is not None
        return wf.step(double, x).result

    app.control.schedules.add("n", "@daily", graph.call(21))
    assert app.control.schedules.show("n").is_workflow
    run = app.control.schedules.run_now("n")
    app.worker().run_until_idle()
    assert run.get() == 42
    handle = app.workflow_handle(run.id)
    assert handle.get() == 42
    info = handle.info()
    assert (info.name, info.on_failure, info.deadline) == (
        "graph",
        "fail_fast",
        timedelta(60 / 86400),
    )
    assert handle.step("double").get() == 42


def test_a_scheduled_workflow_is_the_whole_of_its_steps(app: Holdfast) -> None:
    """Its policy, its deadline and its verbs are about the steps of its graph."""

    @app.task("fails")
    def fails(x: int) -> int:
        raise ValueError(f"no {x}")

    @app.task("clean")
    def clean() -> None: ...

    @app.workflow("graph", on_failure="pause", tags=["nightly"])
    def graph(wf: Workflow) -> int:
        first = wf.step(fails, 1)
        wf.options(name="undo", after=[first.failed]).step(clean)
        wf.options(name="end", after=[wf.ended]).step(clean)
        return wf.options(name="last").step(fails, first.result).result

    app.control.schedules.add("n", "@daily", graph.options(deadline=3600).call())
    run: Any = app.control.schedules.run_now("n")
    app.worker().run_until_idle()
    (paused,) = app.control.workflows.list(status="PAUSED", tag="nightly").workflows
    assert (paused.id, paused.deadline) == (run.id, timedelta(hours=1))
    assert "because a step failed" in str(run.why())
    assert {name: run.step(name).status() for name in ("fails", "last", "undo", "end")} == {
        "fails": "FAILED",
        "last": "WAITING",
        "undo": "WAITING",
        "end": "WAITING",
    }
    assert run.resume() == "RUNNING"
    app.worker().run_until_idle()
    with pytest.raises(TaskFailed, match="no 1") as failed:
        run.get()
    assert failed.value.step == "graph/fails"
    assert run.step("graph/last").info().error_code == "UPSTREAM_FAILED"
    assert run.step("undo").status() == run.step("end").status() == "COMPLETED"

    again: Any = app.control.schedules.run_now("n")
    assert again.cancel() == "CANCELLED"
    third: Any = app.control.schedules.run_now("n")
    app.worker().run_until_idle()
    third.cancel()
    app.worker().run_until_idle()
    assert third.status() == "CANCELLED"
    assert third.step("undo").status() == "CANCELLED"
    assert third.step("end").status() == "COMPLETED"


def test_declared_by_code(app: Holdfast, nightly: Any) -> None:
    app.schedule("0 3 * * *", name="a")(app.schedule("0 4 * * *")(nightly))
    app.schedule(LONG_AGO, nightly.call("us"), name="past")
    assert app.control.schedules.list() == []
    assert app.worker().run_until_idle() == 0
    found = {each.name: each for each in app.control.schedules.list()}
    assert set(found) == {"a", "nightly", "past"}
    assert all(each.declared for each in found.values())
    # A moment in the past is never fired, and stays no error when the code is deployed again.
    assert found["past"].next_tick is None
    assert app.worker().run_until_idle() == 0


def test_what_is_wrong_is_said_where_it_is_declared(app: Holdfast, nightly: Any) -> None:
    declare: Any = app.schedule

    @app.task("needs")
    def needs(day: date) -> None: ...

    for match, attempt in (
        ("needs 'day'", lambda: declare("@daily")(needs)),
        ("has no name", lambda: declare("@daily", needs.call(date(2030, 1, 1)))),
        ("put it above", lambda: declare("@daily")(lambda: None)),
        ("not usable", lambda: declare("@daily", needs, name="x")),
        ("not a time to fire at", lambda: declare(5)(nightly)),
        ("not usable: it has 2 field", lambda: declare("1 2")(nightly)),
        ("no time zone", lambda: declare("@daily", tz="Mars/Base")(nightly)),
        ("overlap='maybe' is unknown", lambda: declare("@daily", overlap="maybe")(nightly)),
        ('give overlap="wait"', lambda: declare("@daily", overlap="skip", missed="all")(nightly)),
        ("from 1 to 10,000", lambda: declare("@daily", max_missed=10**5)(nightly)),
        ("'timezone' is not an option", lambda: declare("@daily", timezone="UTC")(nightly)),
        ("schedule name", lambda: declare("@daily", name="a b\x00")(nightly)),
        ("is not after", lambda: declare("@daily", start=LONG_AGO, end=LONG_AGO)(nightly)),
        ("fires once", lambda: declare(LONG_AGO, start=LONG_AGO)(nightly)),
        ("no time zone", lambda: declare(datetime(2030, 1, 1))(nightly)),  # noqa: DTZ001
    ):
        with pytest.raises(ConfigError, match=match):
            attempt()  # type: ignore[no-untyped-call]
    declare("@daily")(nightly)
    with pytest.raises(ConfigError, match="two schedules are named 'nightly'"):
        declare("@hourly")(nightly)


def test_what_is_wrong_is_said_where_it_is_added(app: Holdfast, nightly: Any) -> None:
    add: Any = app.control.schedules.add
    with pytest.raises(ConfigError, match=r"give task\.call"):
        add("n", "@daily", nightly)
    with pytest.raises(PayloadError):
        add("n", "@daily", nightly.call(1, 2, 3))
    with pytest.raises(ConfigError, match="would never fire"):
        add("n", LONG_AGO, nightly.call())
    with pytest.raises(ConfigError, match="give delay"):
        add("n", "@daily", nightly.options(run_at=LONG_AGO).call())
    for zone in ("Mars/Base", "", None, 5, ["UTC"], UTC):
        for when in ("@daily", timedelta(minutes=5), datetime.now(UTC) + timedelta(1)):
            with pytest.raises(ConfigError, match="is no time zone"):
                add("n", when, nightly.call(), tz=zone)
    later = datetime.now(UTC) + timedelta(1)
    with pytest.raises(ConfigError, match="give good_for"):
        add("n", "@daily", nightly.options(good_until=later).call())
    assert app.control.schedules.list() == []


def test_a_type_that_is_defined_further_below(app: Holdfast) -> None:
    def later(x: Below = None) -> None:  # type: ignore[name-defined]  # noqa: F821
        del x

    app.schedule("@daily")(app.task("later")(later))
    later.__globals__["Below"] = int | None
    try:
        assert app.worker().run_until_idle() == 0
        assert app.control.schedules.show("later").args == []
    finally:
        del later.__globals__["Below"]


def test_a_task_by_its_name(app: Holdfast) -> None:
    app.control.schedules.add("n", "@hourly", app.named("elsewhere", version=3).call(1, b=2))
    shown = app.control.schedules.show("n")
    assert (shown.task, shown.version, shown.kwargs) == ("elsewhere", 3, {"b": 2})


def test_from_inside_a_task(app: Holdfast, nightly: Any) -> None:
    @app.task("adds")
    def adds() -> str:
        return app.control.schedules.add("n", "@hourly", nightly.call()).name

    handle = adds.send()
    app.worker().run_until_idle()
    assert handle.get() == "n"
    assert app.control.schedules.run_now("n").info().parent_id is None

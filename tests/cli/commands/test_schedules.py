"""`schedules`: every verb, for people and as JSON."""

from __future__ import annotations

import pytest

from holdfast.store.verbs import declarations, workers
from tests.cli.conftest import Operator, join
from tests.support.schedules import schedule
from tests.support.stores import Lab


def add(operator: Operator, *more: str, name: str = "report", when: str = "30 2 * * *") -> str:
    return operator("schedules", "add", name, when, "nightly", *more).out


def test_no_schedules(operator: Operator) -> None:
    said = operator("schedules", "list")
    assert said.lines[0].split()[:3] == ["SCHEDULE", "STATE", "TASK"]
    assert "there is no schedule" in said.err
    assert operator("schedules", "list", "--json").json == {"schedules": []}


def test_added_listed_and_shown(operator: Operator) -> None:
    out = add(operator, "--tz", "Europe/Berlin", "--args", '["eu"]', "--missed", "all")
    assert out.startswith("report  at 02:30 every day (Europe/Berlin); next: ")
    (row,) = operator("schedules", "list").rows
    assert row[:3] == ["report", "active", "nightly"]
    assert row[-5:] == ["at", "02:30", "every", "day", "(Europe/Berlin)"]
    facts = operator("schedules", "show", "report").out
    assert "sends     nightly('eu')" in facts
    assert "missed    all, the newest 100" in facts
    assert "overlap   wait" in facts
    shown = operator("schedules", "show", "report", "--json").json
    assert (shown["words"], shown["overlap"]) == ("at 02:30 every day (Europe/Berlin)", "wait")
    assert shown["args"] == ["eu"]
    assert len(operator("schedules", "next", "report", "-n", "3").lines) == 3


def test_when_is_a_pattern_a_length_or_a_moment(operator: Operator) -> None:
    assert "every 5 min" in add(operator, when="5m")
    assert "every hour" in add(operator, when="@hourly")
    assert "once, at 2999-01-01" in add(operator, when="2999-01-01T00:00Z")
    assert "every fifth second" in add(operator, when="*/5 * * * * *")
    ticks = operator(
        "schedules", "next", "--when", "0 0 * * *", "--tz", "Asia/Tokyo", "--json"
    ).json
    assert all(tick.endswith("T15:00:00.000000Z") for tick in ticks["ticks"])


def test_paused_resumed_and_deleted(operator: Operator) -> None:
    add(operator)
    assert operator("schedules", "pause", "report", "--by", "bob").lines == ["report  paused"]
    assert operator("schedules", "pause", "report").lines == ["report  was paused already"]
    assert "it was paused by bob at" in operator("schedules", "show", "report").out
    found = operator("schedules", "resume", "report", "--json").json
    assert found == {"schedules": [{"schedule": "report", "resumed": True}]}
    assert operator("schedules", "resume", "report").lines == ["report  was not paused"]
    assert operator("schedules", "pause", "report", "report").lines == ["report  paused"]
    assert operator("schedules", "resume", "report", "report").lines == ["report  resumed"]
    assert operator("schedules", "delete", "report", "report").lines == ["report  deleted"]
    assert "no such schedule" in operator("schedules", "delete", "report", code=1).out


def test_run_backfilled_and_what_became_of_it(operator: Operator, lab: Lab) -> None:
    add(operator, "--queue", "bulk", "--priority", "9", "--tag", "a", when="0 0 * * *")
    (id,) = operator("schedules", "run", "report").lines
    info = operator("tasks", "show", id, "--json").json
    assert (info["queue"], info["priority"], info["schedule_name"]) == ("bulk", 9, "report")
    said = operator("schedules", "backfill", "report", "3d", "--json").json
    assert len(said["ids"]) == 3
    assert "has been fired" in operator("schedules", "backfill", "report", "3d").err
    rows = operator("schedules", "history", "report").rows
    assert [row[1:3] for row in rows] == [["fired", "run_now"], *[["fired", "backfill"]] * 3]
    page = operator("schedules", "history", "report", "--limit", "2")
    assert "there may be more: --before" in page.err
    ticks = operator("schedules", "history", "report", "--json").json["ticks"]
    assert ticks[0]["task_id"] == id


def test_one_that_no_worker_declares_any_more(operator: Operator, lab: Lab) -> None:
    join(lab, "worker")
    mine = schedule(name="mine")
    lab.run(declarations.announce("worker", {"mine": mine.config_hash}))
    lab.run(declarations.declare(mine))
    assert operator("schedules", "list").rows[0][:2] == ["mine", "active"]
    assert "would come back" in operator("schedules", "delete", "mine", code=2).err
    lab.run(workers.stop("worker"))
    assert "no live worker declares it" in operator("schedules", "show", "mine").out


def test_what_is_wrong(operator: Operator) -> None:
    add(operator)
    for command in ("show", "pause", "resume", "run", "next", "history"):
        said = operator("schedules", command, "reprot", code=1)
        assert "no schedule is named 'reprot'" in said.err
        assert "did you mean 'report'?" in said.err
    operator("schedules", "backfill", "reprot", "1d", code=1)
    for arguments, words in (
        (["next"], "give the NAME"),
        (["next", "report", "--when", "@daily"], "give the NAME"),
        (["add", "x", "61 * * * *", "t"], "bad minute"),
        (["add", "x", "soon", "t"], "a length such as 5m"),
        (["add", "x", "every 5 minutes", "t"], "'every 5 minutes' is not usable: give a cron"),
        (["add", "x", "10000-01-01", "t"], "or a moment such as"),
        (
            ["add", "x", "5m", "t", "--max-missed", "0"],
            "max_missed=0 is not usable: give a whole number from 1 to 10,000",
        ),
        (["add", "x", "0s", "t"], "too short"),
        (["add", "x", "5m", "t", "--tz", "Mars"], "no time zone"),
        (["next", "--when", "5m", "--tz", "Mars"], "no time zone"),
        (["add", "x", "@daily", "t", "--priority", "0"], "priority=0"),
        (["add", "x", "@daily", "t", "--queue", ""], "queue name"),
        (["add", "a b", "@daily", "t"], "schedule name"),
        (["add", "x", "@daily", "a b"], "task name"),
        (["add", "x", "@daily", "t", "--tz", "Mars"], "no time zone"),
        (["add", "x", "@daily", "t", "--overlap", "maybe"], "is unknown"),
        (["add", "x", "@daily", "t", "--args", "{}"], "is not a JSON list"),
        (["backfill", "report", "1d", "2d"], "nothing between"),
        (["backfill", "report", "2026-11-02", "2026-11-01"], "the end, 2026-11-01T00:00:00+00:00,"),
    ):
        assert words in operator("schedules", *arguments, code=2).err, arguments


@pytest.mark.parametrize("column", ["pattern", "payload"])
def test_a_row_by_hand(operator: Operator, lab: Lab, column: str) -> None:
    add(operator)
    lab.sql(f"UPDATE holdfast_schedules SET {column} = 'x'")
    said = operator("schedules", "list")
    assert f"unreadable  row report of holdfast_schedules: {column}" in said.out
    assert "schedules delete KEY" in said.err
    assert operator("schedules", "list", "--json").json["unreadable"][0]["key"] == "report"
    assert "to be rid of it" in operator("schedules", "show", "report", code=1).err
    operator("schedules", "delete", "report")
    assert operator("schedules", "list", "--json").json == {"schedules": []}


def test_secrets_among_its_arguments_are_not_shown(operator: Operator) -> None:
    given = ["--args", '[{"$secret": "hunter2"}]', "--kwargs", '{"password": "hunter2", "n": 1}']
    said = [
        operator("schedules", "add", "report", "@hourly", "nightly", *given, "--json"),
        operator("schedules", "show", "report"),
        operator("schedules", "show", "report", "--json"),
        operator("schedules", "list", "--json"),
    ]
    assert not [each for each in said if "hunter2" in each.out + each.err]
    assert "sends     nightly('***', password='***', n=1)" in said[1].out
    assert said[2].json["kwargs"] == {"password": "***", "n": 1}

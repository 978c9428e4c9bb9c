"""`tasks list` and `dead-letters list`: filters, pages, columns, JSON."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import Failed
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from tests.cli.conftest import Operator
from tests.support.stores import Lab
from tests.support.verbs import BOOM, WORKER


def text(id: bytes) -> str:
    return str(UUID(bytes=id))


def ids(operator: Operator, *arguments: str) -> list[str]:
    return [task["id"] for task in operator("tasks", "list", "--json", *arguments).json["tasks"]]


def test_nothing_there(operator: Operator) -> None:
    said = operator("tasks", "list")
    assert said.lines == ["ID  STATUS  NAME  QUEUE  ATTEMPT  SUBMITTED  ENDED  DETAIL"]
    assert said.err.startswith("no task fits (")
    assert operator("tasks", "list", "--json").json == {"tasks": [], "next": None}


def test_the_newest_is_first(operator: Operator, lab: Lab) -> None:
    sent = [text(id) for id in lab.send_many(3)]
    assert ids(operator) == sent[::-1]
    row = operator("tasks", "list").rows[0]
    assert row == [sent[2], "PENDING", "t", "q", "0", "2030-03-17T17:46:40Z", "-", "-"]


def test_pages(operator: Operator, lab: Lab) -> None:
    sent = [text(id) for id in lab.send_many(5)][::-1]
    first = operator("tasks", "list", "--limit", "2")
    assert [row[0] for row in first.rows] == sent[:2]
    assert first.err == f"there may be more: --after {sent[1]}\n"
    second = operator("tasks", "list", "--limit", "2", "--after", sent[1], "--json").json
    assert [task["id"] for task in second["tasks"]] == sent[2:4]
    assert second["next"] == sent[3]
    last = operator("tasks", "list", "--limit", "2", "--after", sent[3])
    assert [row[0] for row in last.rows] == sent[4:]
    assert last.err == ""


def test_more_than_the_store_gives_at_once(operator: Operator, lab: Lab) -> None:
    lab.send_many(510)
    assert len(ids(operator, "--limit", "600")) == 510
    assert len(ids(operator, "--limit", "505")) == 505


@pytest.mark.parametrize("status", list(TaskStatus))
def test_every_status_has_its_line(operator: Operator, lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status)
    lab.send()
    (row,) = operator("tasks", "list", "--queue", lab.task(case.id).queue_name).rows
    assert row[:2] == [text(case.id), status.value]
    assert ids(operator, "--status", status.value.lower())[-1] == text(case.id)


def test_filters(operator: Operator, lab: Lab) -> None:
    plain = lab.send()
    other = lab.send(queue_name="mail", task_name="welcome", tags='["vip","new"]')
    failed = lab.running(queue_name="x")
    lab.fail(failed)
    for arguments, wanted in {
        ("--queue", "mail"): [other],
        ("--name", "welcome"): [other],
        ("--tag", "vip"): [other],
        ("--tag", "nobody"): [],
        ("--worker", WORKER): [failed.id],
        ("--error", "BOOM"): [failed.id],
        ("--dead",): [failed.id],
        ("--status", "pending", "--queue", "q"): [plain],
        ("--status", "PENDING,FAILED", "--queue", "x"): [failed.id],
        ("--status", "PENDING", "--status", "FAILED", "--name", "t"): [failed.id, plain],
    }.items():
        assert ids(operator, *arguments) == [text(id) for id in wanted], arguments


def test_times(operator: Operator, lab: Lab) -> None:
    old = lab.send()
    lab.clock.advance(3600)
    new = lab.send()
    lab.clock.advance(60)
    lab.send(queue_name="elsewhere")
    both = [text(new), text(old)]
    assert ids(operator, "--queue", "q", "--since", "30m") == both[:1]
    assert ids(operator, "--queue", "q", "--until", "30m") == both[1:]
    assert ids(operator, "--queue", "q", "--since", "2h") == both
    assert ids(operator, "--queue", "q", "--until", "2030-03-17T18:00:00Z") == both[1:]
    assert ids(operator, "--queue", "q", "--since", "2030-03-17T18:00:00Z") == both[:1]


def test_details(operator: Operator, lab: Lab) -> None:
    later = lab.send(delay_us=90_000_000)
    retried = lab.running(queue_name="a", max_retries=2)
    lab.end(retried, Failed(BOOM, listed=True), Policy(retry=Retry(2, delay=60)))
    failed = lab.running(queue_name="b")
    lab.fail(failed, TaskError("BOOM", "first line\nsecond line"))
    runs = lab.running(queue_name="c")
    lab.cancel(runs.id)
    lines = {line.split()[0]: line for line in operator("tasks", "list").lines}
    assert lines[text(later)].endswith("due 2030-03-17T17:48:10Z")
    assert lines[text(retried.id)].endswith("retry 1 2030-03-17T17:47:40Z: BOOM: it went wrong")
    assert lines[text(failed.id)].endswith("BOOM: first line")
    assert lines[text(runs.id)].endswith("cancel requested, on host-1")


def test_dead_letters(operator: Operator, lab: Lab) -> None:
    failed = lab.running()
    lab.fail(failed)
    lab.end(lab.running(), Failed(BOOM), Policy(dead_letter=False))
    lab.reach(TaskStatus.COMPLETED)
    assert [row[0] for row in operator("dead-letters", "list").rows] == [text(failed.id)]
    assert operator("dead", "list", "--name", "nobody").rows == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--status", "LOST"], "'LOST' is no status; there are WAITING"),
        (["--since", "yesterday"], "'yesterday' is not a time"),
        (["--limit", "0"], "0 is not in the range"),
        (["--after", "xyz"], "'xyz' is not a task id"),
    ],
)
def test_wrong_values(operator: Operator, arguments: list[str], words: str) -> None:
    said = operator("tasks", "list", *arguments, code=2)
    assert words in " ".join(said.err.split())
    assert said.out == ""


def test_a_name_that_nobody_has_is_guessed_at(operator: Operator, lab: Lab) -> None:
    lab.send(task_name="mailer.send_mail")
    said = operator("tasks", "list", "--name", "send_mail")
    assert "did you mean --name mailer.send_mail?" in said.err
    said = operator("dead-letters", "list", "--name", "mailer.sendmail")
    assert "did you mean --name mailer.send_mail?" in said.err
    said = operator("tasks", "list", "--name", "quite-another")
    assert "no task and no worker here has the name 'quite-another'" in said.err
    assert "did you mean" not in operator("dead", "list", "--name", "mailer.send_mail").err


def test_what_cannot_be_read_has_a_line_of_its_own_and_can_be_deleted(
    operator: Operator, lab: Lab
) -> None:
    good, bad = lab.send(), lab.send()
    lab.sql("UPDATE holdfast_tasks SET args = '{' WHERE id = :id", id=bad)
    said = operator("tasks", "list")
    assert said.rows[0][0] == text(good)
    (row,) = operator("tasks", "list", "--json").json["unreadable"]
    assert (row["table"], row["column"]) == ("holdfast_tasks", "args")
    line = (
        f"unreadable  row {row['key']} of holdfast_tasks: args is not the JSON that belongs there"
    )
    assert said.lines[2:] == [line]
    assert "holdfast tasks delete --unreadable KEY" in said.err
    operator("tasks", "delete", "--unreadable", row["key"])
    assert operator("tasks", "list").lines == said.lines[:2]


@pytest.mark.parametrize("option", ["--queue", "--name", "--tag", "--worker", "--error"])
@pytest.mark.parametrize("text", ["a\udcff", "\x00"])
def test_a_filter_that_nothing_stored_can_equal(operator: Operator, option: str, text: str) -> None:
    said = operator("tasks", "list", option, text, code=2)
    assert "it holds a NUL or is not UTF-8" in said.err


@pytest.mark.parametrize(
    "when", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "99999999d", "-1e400"]
)
def test_times_at_the_ends_of_the_calendar(operator: Operator, when: str) -> None:
    assert "is not a time" in operator("tasks", "list", "--since", when, code=2).err
    assert "is not a time" in operator("tasks", "send", "x", "--delay", when, code=2).err

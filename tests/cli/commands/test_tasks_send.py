"""`tasks send`: a call by name, without its code."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast.core.status import TaskStatus
from tests.cli.conftest import Operator
from tests.support.stores import Lab


def sent(operator: Operator, *arguments: str) -> bytes:
    said = operator("tasks", "send", "resize", *arguments)
    return UUID(said.out.strip()).bytes


def test_a_plain_send(operator: Operator, lab: Lab) -> None:
    record = lab.task(sent(operator))
    assert (record.task_name, record.version, record.queue_name) == ("resize", 1, "default")
    assert (record.args, record.kwargs, record.status) == ("[]", "{}", TaskStatus.PENDING)


def test_every_option(operator: Operator, lab: Lab) -> None:
    task = "01020304-0506-7000-8000-000000000001"
    id = sent(
        operator,
        *("--args", '["a.png", {"b": [1, 2.5]}]', "--kwargs", '{"width": 10}', "--version", "2"),
        *("--queue", "images", "--priority", "3", "--delay", "1h", "--good-until", "2h"),
        *("--tag", "x", "--tag", "y z", "--id", task),
    )
    record = lab.task(id)
    assert str(UUID(bytes=id)) == task
    assert (record.args, record.kwargs) == ('["a.png",{"b":[1,2.5]}]', '{"width":10}')
    assert (record.version, record.queue_name, record.priority) == (2, "images", 3)
    assert record.tags == '["x","y z"]'
    assert record.status is TaskStatus.SCHEDULED
    assert record.run_at is not None
    assert record.good_until is not None
    assert record.run_at - record.created_at == 3_600_000_000
    assert record.good_until > record.run_at


def test_a_send_at_a_moment(operator: Operator, lab: Lab) -> None:
    record = lab.task(sent(operator, "--delay", "2030-03-17T18:00:00Z"))
    assert record.run_at == 1_900_000_800_000_000


def test_a_unique_key(operator: Operator) -> None:
    first = sent(operator, "--unique-key", "k")
    said = operator("tasks", "send", "resize", "--unique-key", "k")
    assert UUID(said.out.strip()).bytes == first
    assert said.err.startswith("nothing was sent: ")
    found = operator("tasks", "send", "resize", "--unique-key", "k", "--json").json
    assert found == {"id": str(UUID(bytes=first)), "created": False}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--args", "nonsense"], "'nonsense' is not a JSON list"),
        (["--args", '{"a": 1}'], "is not a JSON list"),
        (["--kwargs", "[1]"], "'[1]' is not a JSON object"),
        (["--kwargs", '{"a": NaN}'], "is not a JSON object"),
        (["--queue", "no spaces"], "queue name 'no spaces' is not usable"),
        (["--priority", "101"], "priority=101 is not usable"),
        (["--priority", "high"], "'high' is not a valid integer"),
        (["--delay", "later"], "'later' is not a time"),
        (["--id", "7"], "'7' is not a task id"),
        (["--unique-key", ""], "must be a string of 1 to 255 characters"),
        (["--args", f'["{"x" * 1_048_576}"]'], "over the limit of 1,048,576 bytes"),
    ],
)
def test_wrong_values(operator: Operator, arguments: list[str], words: str) -> None:
    said = operator("tasks", "send", "resize", *arguments, code=2)
    assert words in " ".join(said.err.split())
    assert operator("tasks", "list").rows == []


def test_an_id_that_means_another_call(operator: Operator) -> None:
    task = "01020304-0506-7000-8000-000000000001"
    sent(operator, "--id", task)
    assert UUID(bytes=sent(operator, "--id", task)) == UUID(task)
    said = operator("tasks", "send", "other", "--id", task, code=1)
    assert f"task {task} exists with another payload" in said.err

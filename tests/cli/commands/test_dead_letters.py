"""`dead-letters`: which there are, of what they died, and all that fit treated at once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.client import dead_letter_work
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import operate
from tests.cli.conftest import Operator
from tests.support.stores import Lab


@pytest.fixture
def dead(lab: Lab) -> list[bytes]:
    """Three that died: two of one cause."""
    found = []
    for name, code, why in (
        ("resize", "TIMEOUT", "waited for Acme"),
        ("resize", "TIMEOUT", "waited for Bolt"),
        ("mail", "BOOM", "it broke"),
    ):
        task = lab.running(task_name=name)
        lab.fail(task, TaskError(code, why))
        found.append(task.id)
    return found


def ids(operator: Operator, *arguments: str) -> int:
    return len(operator("dead-letters", "list", *arguments, "--json").json["tasks"])


def test_filters(operator: Operator, dead: list[bytes]) -> None:
    assert ids(operator) == 3
    assert ids(operator, "--text", "acme") == 1
    assert ids(operator, "--name", "resize", "--version", "1") == 2
    assert ids(operator, "--version", "2") == 0
    assert ids(operator, "--error", "BOOM") == 1
    assert ids(operator, "--ended-since", "2099-01-01") == 0
    assert ids(operator, "--ended-until", "2099-01-01", "--since", "1h") == 3
    said = operator("dead-letters", "list", "--limit", "2")
    assert len(said.rows) == 2
    rest = said.err.rpartition("--after ")[2].strip()
    assert len(operator("dead-letters", "list", "--after", rest).rows) == 1
    assert "text" in operator("dead-letters", "list", "--text", "\udcff", code=2).err


def test_causes(operator: Operator, dead: list[bytes]) -> None:
    rows = operator("dead-letters", "causes").rows
    assert [row[:5] for row in rows] == [
        ["TIMEOUT", "resize", "1", "q", "2"],
        ["BOOM", "mail", "1", "q", "1"],
    ]
    found = operator("dead-letters", "causes", "--name", "mail", "--json").json["causes"]
    assert [(each["error_code"], each["count"]) for each in found] == [("BOOM", 1)]
    said = operator("dead-letters", "causes", "--by", "day")
    assert said.lines[1].endswith("3  2 TIMEOUT, 1 BOOM")
    counts = operator("dead-letters", "causes", "--by", "hour", "--json").json["counts"]
    assert [each["count"] for each in counts] == [3]


def test_all_that_fit(operator: Operator, lab: Lab, dead: list[bytes]) -> None:
    said = operator("dead-letters", "resubmit", "--error", "TIMEOUT", answer="n\n", code=1)
    assert "resubmit 2 dead letters (2 TIMEOUT)?" in said.err
    said = operator("dead-letters", "resubmit", "--error", "TIMEOUT", "--rate", "1/h", "--yes")
    assert said.lines[0].startswith("2 dead letters resubmitted; the last runs at 2")
    assert set(lab.statuses(dead)) == {
        TaskStatus.PENDING, TaskStatus.SCHEDULED, TaskStatus.FAILED,
    }  # fmt: skip
    found = operator("dead-letters", "delete", "--all", "-y", "--json").json
    assert (found["done"], found["refused"], found["total"]) == (1, 0, 1)
    assert "no dead letter fits" in operator("dead-letters", "delete", "--all").err


def test_who_is_interrupted_is_told_how_far_it_came(
    operator: Operator, lab: Lab, dead: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_work, "_PARTS", 1)
    real, pages = operate.resubmit, list[object]()

    def interrupted(*args: Any, **options: Any) -> Any:
        pages.append(args)
        if len(pages) == 3:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr("holdfast.client.one_task.operate.resubmit", interrupted)
    said = operator("dead-letters", "resubmit", "--all", "-y", "--rate", "1/minute", code=130)
    assert "interrupted: 2 of 3 dead letters were resubmitted; the same command" in said.err
    (until,) = re.findall(r"with --delay (\S+) it follows them at the same rate", said.err)
    said = operator("dead-letters", "resubmit", "--all", "-y", "--rate", "1/m", "--delay", until)
    assert said.lines == [f"1 dead letter resubmitted; the last runs at {until}"]
    assert lab.statuses(dead).count(TaskStatus.SCHEDULED) == 2


def test_one_that_cannot_is_named(operator: Operator, lab: Lab) -> None:
    first = lab.running(unique_slot="k", unique_key="k")
    lab.fail(first)
    lab.send(unique_slot="k", unique_key="k")
    said = operator("dead-letters", "resubmit", "--all", "--yes", code=1)
    assert said.lines[0] == "0 dead letters resubmitted"
    assert "not resubmitted" in said.lines[1]
    found = operator("dead-letters", "resubmit", "--all", "-y", "--json", code=1).json
    assert len(found["reasons"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which dead letters?"),
        (["--all", "--rate", "fast"], "rate"),
        (["--version", "0"], "range"),
        (["--ended-since", "soon"], "not a time"),
        (["0", "--all"], "not both"),
        (["0", "--rate", "1/s"], "--rate is for filters"),
    ],
)
def test_what_makes_no_sense(operator: Operator, arguments: list[str], words: str) -> None:
    said = operator("dead-letters", "resubmit", "--yes", *arguments, code=2)
    assert words in " ".join(said.err.split())

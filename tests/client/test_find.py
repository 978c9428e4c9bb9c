"""Tasks by what a person types."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from holdfast import Holdfast, TaskNotFound
from holdfast.client import find
from holdfast.client.find import Ends, parse
from holdfast.core.identity import short_id

WHOLE = "0197f3c2-5b1e-7d44-9a01-3c5e6f708192"


@pytest.mark.parametrize(
    ("typed", "readings"),
    [
        (WHOLE, [Ends(first=WHOLE.replace("-", ""))]),
        (WHOLE.upper().replace("-", ""), [Ends(first=WHOLE.replace("-", ""))]),
        ("0197f3c2-708192", [Ends("0197f3c2", "708192")]),
        ("0197f3c2…708192", [Ends("0197f3c2", "708192")]),
        ("0197f3c2-5b1e..708192", [Ends("0197f3c25b1e", "708192")]),
        ("0197f3c2-5b1e", [Ends(first="0197f3c25b1e"), Ends(last="0197f3c25b1e")]),
        ("708192", [Ends(last="708192")]),
        ("6f708192", [Ends(first="6f708192"), Ends(last="6f708192")]),
        ("0197f3c2-5b1e-7d44", [Ends(first="0197f3c25b1e7d44")]),
        ("08192", []),
        ("oops", []),
        ("", []),
        (f"{WHOLE}0", []),
    ],
)
def test_what_may_be_typed(typed: str, readings: list[Ends]) -> None:
    assert parse(typed) == readings


def test_tasks_of_one_moment_are_told_apart_by_their_last_digits(app: Holdfast) -> None:
    ids = [UUID(f"0197f3c2-5b1e-7d44-9a01-3c5e6f70819{n}") for n in range(3)]
    for task in ids:
        app.options(id=task).send("any")
    tasks = app.control.tasks
    for task in ids:
        assert tasks.find(short_id(task.bytes)) == [task]
        assert tasks.find(str(task)[-6:]) == [task]
        assert tasks.find(str(task)) == [task]
        assert asyncio.run(tasks.afind(str(task)[-12:])) == [task]
    assert tasks.find("0197f3c2") == ids[::-1]
    assert tasks.find("0197f3c2-5b1e-7d44", limit=2) == ids[:0:-1]
    assert tasks.find("0197f3c2-ffffff") == []
    assert tasks.find("ffffffff-ffff-7fff-8fff-ffffffffffff") == []
    with pytest.raises(TaskNotFound):
        tasks.find("nonsense")


def test_a_search_is_bounded(app: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    handles = [app.send("any") for _ in range(6)]
    monkeypatch.setattr(find, "_NEWEST", 3)
    ends = [str(handle.id)[-12:] for handle in handles]
    assert [len(app.control.tasks.find(end)) for end in ends] == [0, 0, 0, 1, 1, 1]

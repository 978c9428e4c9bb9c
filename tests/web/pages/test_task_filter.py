"""From a URL to a filter, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import ConfigError
from holdfast.core.status import TaskStatus
from holdfast.web.pages.task_filter import TaskChoice, typed_when

NOW = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)


def test_there_and_back() -> None:
    given = {
        "status": ["failed,stalled"],
        "queue": [" email "],
        "since": ["2h"],
        "text": ["Ä&<b>"],
        "dead": ["1"],
        "sort": ["name"],
    }
    choice = TaskChoice.read(given)
    assert choice.status == (TaskStatus.FAILED, TaskStatus.STALLED)
    assert TaskChoice.read({k: [v] for k, v in choice.query().items()}) == choice
    where = choice.filter(NOW)
    assert where.get("submitted_from") == NOW - timedelta(hours=2)
    assert where.get("queue") == "email"
    assert choice.without("queue").query().keys() == {"status", "since", "text", "dead"}
    assert (
        choice.words()
        == "status failed,stalled · queue email · since 2h · text Ä&<b> · dead letters"
    )


def test_nothing() -> None:
    choice = TaskChoice.read({"queue": [""], "status": [" "]})
    assert choice.is_empty
    assert choice.query() == {}
    assert choice.words() == "all tasks"


def test_only_the_statuses_of_a_verb() -> None:
    verbs = (TaskStatus.FAILED, TaskStatus.CANCELLED)
    assert TaskChoice(queue="q").only(verbs) == TaskChoice(status=verbs, queue="q")
    chosen = TaskChoice(status=(TaskStatus.FAILED, TaskStatus.RUNNING))
    assert chosen.only(verbs) == TaskChoice(status=(TaskStatus.FAILED,))
    assert TaskChoice(status=(TaskStatus.RUNNING,)).only(verbs) is None


@pytest.mark.parametrize(
    "given",
    [
        {"status": ["kaputt"]},
        {"since": ["yesterday"]},
        {"until": ["2026-13-01"]},
        {"name": ["x" * 2_000]},
        {"tag": ["a\x00b"]},
    ],
)
def test_what_cannot_be_read_is_named(given: dict[str, list[str]]) -> None:
    with pytest.raises(ConfigError) as caught:
        TaskChoice.read(given)
    assert caught.value.option in given


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("", None),
        ("0", 0.0),
        ("90", 90.0),
        ("2h", 7200.0),
        ("2026-11-15T22:00", datetime(2026, 11, 15, 22, tzinfo=UTC)),
        ("2026-11-15T22:00+02:00", datetime(2026, 11, 15, 20, tzinfo=UTC)),
    ],
)
def test_times_that_are_typed(text: str, when: object) -> None:
    assert typed_when(text) == when


def test_a_time_that_is_none() -> None:
    with pytest.raises(ConfigError, match="is not a time"):
        typed_when("soon")

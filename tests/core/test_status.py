from __future__ import annotations

import itertools
import operator

import pytest

from holdfast.core.status import (
    TASK_TERMINAL_STATES,
    AttemptOutcome,
    TaskStatus,
    WorkflowStatus,
    celery_state,
)

S = TaskStatus


def test_the_statuses_are_their_names() -> None:
    assert [status.value for status in S] == [status.name for status in S]
    assert S.RUNNING == "RUNNING"
    assert f"{S.RUNNING}" == "RUNNING"
    assert hash(S.RUNNING) == hash("RUNNING")


def test_terminal_states() -> None:
    expected = {S.COMPLETED, S.FAILED, S.CANCELLED, S.EXPIRED, S.STALLED, S.DROPPED}
    assert expected == TASK_TERMINAL_STATES
    assert {status for status in S if status.is_terminal} == expected


def test_every_status_has_a_label_and_a_meaning() -> None:
    assert S.RUNNING.label == "In progress"
    assert S.COMPLETED.label == "Completed"
    assert len({status.label for status in S}) == len(S)
    assert all(status.meaning for status in S)


def test_precedence_is_the_documented_chain() -> None:
    others = [S.CANCELLED, S.EXPIRED, S.STALLED, S.DROPPED]
    for other in others:
        chain = [S.COMPLETED, S.FAILED, other, S.RUNNING, S.CLAIMED, S.SCHEDULED, S.PENDING]
        for higher, lower in itertools.pairwise([*chain, S.WAITING]):
            assert higher > lower
            assert higher >= lower
            assert lower < higher
            assert lower <= higher
            assert not higher < lower
            assert higher != lower


def test_endings_of_equal_precedence_are_neither_below_nor_above() -> None:
    assert not S.CANCELLED < S.EXPIRED
    assert not S.CANCELLED > S.EXPIRED
    assert S.CANCELLED <= S.EXPIRED
    assert S.CANCELLED >= S.EXPIRED
    assert len({S.CANCELLED, S.EXPIRED}) == 2


def test_the_report_to_believe_is_the_maximum() -> None:
    assert max([S.RUNNING, S.COMPLETED, S.PENDING]) is S.COMPLETED
    assert sorted([S.FAILED, S.WAITING, S.RUNNING]) == [S.WAITING, S.RUNNING, S.FAILED]


def test_a_plain_string_compares_like_the_status_it_names() -> None:
    assert S.COMPLETED > "FAILED"
    assert operator.lt("FAILED", S.COMPLETED)
    assert S.RUNNING <= "RUNNING"


@pytest.mark.parametrize("other", ["running", "", "XYZ"])
def test_other_strings_do_not_compare_alphabetically(other: str) -> None:
    with pytest.raises(TypeError, match="cannot compare a TaskStatus with"):
        operator.lt(S.RUNNING, other)


def test_attempt_outcomes() -> None:
    assert list(AttemptOutcome) == [
        "COMPLETED",
        "FAILED",
        "WORKER_FAILURE",
        "CANCELLED",
        "STALLED",
        "SNOOZED",
        "INTERRUPTED",
    ]


@pytest.mark.parametrize(
    ("status", "attempt", "stage", "expected"),
    [
        (S.WAITING, 0, None, "PENDING"),
        (S.PENDING, 0, None, "PENDING"),
        (S.SCHEDULED, 0, None, "PENDING"),
        (S.SCHEDULED, 1, None, "RETRY"),
        (S.CLAIMED, 0, None, "RECEIVED"),
        (S.RUNNING, 1, None, "STARTED"),
        (S.RUNNING, 1, "UPLOADING", "UPLOADING"),
        (S.COMPLETED, 1, "UPLOADING", "SUCCESS"),
        (S.FAILED, 1, None, "FAILURE"),
        (S.CANCELLED, 0, None, "REVOKED"),
        (S.EXPIRED, 0, None, "REVOKED"),
        (S.STALLED, 1, None, "FAILURE"),
        (S.DROPPED, 0, None, "REJECTED"),
    ],
)
def test_celery_state(status: S, attempt: int, stage: str | None, expected: str) -> None:
    assert celery_state(status, attempt=attempt, stage=stage) == expected


def test_a_workflow_that_runs_or_is_paused_has_not_ended() -> None:
    live = {status for status in WorkflowStatus if not status.is_terminal}
    assert live == {WorkflowStatus.RUNNING, WorkflowStatus.PAUSED}

"""How code can end: the status, the error code, the attempts, exit codes and signals of each."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Any

import pytest

from holdfast import ErrorCode, Holdfast, TaskHandle, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite

pytestmark = pytest.mark.mostly("postgresql")

MOMENT = timedelta(milliseconds=1)
CRASHED = AttemptOutcome.WORKER_FAILURE


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    site = make_site("tests.e2e.programs.outcomes")
    site.worker("-c", "2", "--lease", "5").ready()
    return site


def failed(handle: TaskHandle[Any]) -> Any:
    """Wait for a failure; the task."""
    assert handle.wait(20) is TaskStatus.FAILED
    info = handle.info()
    assert info.error is not None
    assert info.error_code == info.error.error_code
    assert info.failed_reason
    assert info.finished_at is not None
    assert info.failed_at is not None
    assert abs(info.failed_at - info.finished_at) < MOMENT
    assert info.completed_at is None
    assert info.dead
    return info


@pytest.mark.parametrize("value", [None, 0, "text", [1, {"a": [None, True]}], "\x00\ud7ff"])
def test_a_value(site: Site, value: Any) -> None:
    handle = site.send("value", value)
    assert handle.get(20) == value
    info, attempt = handle.info(), only_attempt(handle)
    assert info.status is TaskStatus.COMPLETED
    assert (info.attempt, info.retry_count, info.crash_count) == (1, 0, 0)
    assert (info.error_code, info.failed_reason, info.dead) == (None, None, False)
    assert info.completed_at is not None
    assert info.finished_at is not None
    assert abs(info.completed_at - info.finished_at) < MOMENT
    assert (attempt.number, attempt.outcome, attempt.will_retry) == (
        1,
        AttemptOutcome.COMPLETED,
        False,
    )
    assert attempt.worker_id == info.claimed_by_worker_id
    assert attempt.worker_pid is not None
    assert attempt.exit_code is attempt.exit_signal is None
    assert attempt.peak_memory_kb is None or attempt.peak_memory_kb > 1000
    assert attempt.cpu_time is not None


def test_a_result_that_is_ok(site: Site) -> None:
    assert site.send("ok").get(20) == 7


def test_a_result_that_is_an_error(site: Site) -> None:
    handle = site.send("err")
    info = failed(handle)
    assert (info.error_code, info.error.message) == ("CARD_DECLINED", "no funds")
    assert info.error.data == {"card": 4}
    assert only_attempt(handle).outcome is AttemptOutcome.FAILED
    outcome = handle.outcome(1)
    assert outcome.is_err
    assert outcome.err_value.error_code == "CARD_DECLINED"


def test_an_error_code_can_be_retried(site: Site) -> None:
    handle = site.send("err-listed")
    assert handle.get(20) == 2
    first, second = handle.attempts()
    assert (first.outcome, first.will_retry, first.error_code) == (
        AttemptOutcome.FAILED,
        True,
        "RATE_LIMITED",
    )
    assert second.outcome is AttemptOutcome.COMPLETED


def test_an_error_code_of_ours_is_refused_where_it_is_made(site: Site) -> None:
    info = failed(site.send("reserved-code"))
    assert info.error_code == ErrorCode.UNHANDLED_EXCEPTION
    assert info.error.exception == "builtins.ValueError"
    assert "reserved" in info.error.message


def test_an_exception_with_its_causes(site: Site) -> None:
    handle = site.send("boom")
    info = failed(handle)
    assert info.error_code == ErrorCode.UNHANDLED_EXCEPTION
    assert info.error.exception == "builtins.ValueError"
    assert info.error.message == "cannot enter"
    assert list(info.error.causes) == ["LookupError: no door", "KeyError: 'door'"]
    assert info.failed_reason == "ValueError: cannot enter"
    trace = info.error.traceback
    assert 'raise ValueError("cannot enter") from error' in trace
    assert 'doors["door"]' in trace
    assert "holdfast/runtime" not in trace
    attempt = only_attempt(handle)
    assert attempt.error is not None
    assert attempt.error.traceback == trace


def test_an_exception_that_cannot_be_shown(site: Site) -> None:
    info = failed(site.send("mute"))
    assert info.error_code == ErrorCode.UNHANDLED_EXCEPTION
    assert info.error.exception.endswith("Mute")
    assert "cannot be shown" in info.error.message


def test_an_exception_that_goes_round_in_a_ring(site: Site) -> None:
    assert list(failed(site.send("ring")).error.causes) == ["ValueError: second"]


def test_a_huge_message_is_cut(site: Site) -> None:
    info = failed(site.send("huge-message"))
    assert len(info.error.message) < 10_000
    assert len(info.error.traceback) < 50_000


def test_retry_later_spends_retries(site: Site) -> None:
    handle = site.send("later", 2)
    assert handle.get(20) == 3
    assert handle.info().retry_count == 2
    assert [a.will_retry for a in handle.attempts()] == [True, True, False]


def test_retry_later_without_a_policy_is_granted_three_times(site: Site) -> None:
    handle = site.send("later", 9)
    info = failed(handle)
    assert (info.attempt, info.error_code) == (4, ErrorCode.RETRY_LATER)


def test_snooze_spends_nothing(site: Site) -> None:
    handle = site.send("snooze")
    assert handle.get(20) == [2, 0]
    assert [a.outcome for a in handle.attempts()] == [
        AttemptOutcome.SNOOZED,
        AttemptOutcome.COMPLETED,
    ]


def test_abort_ends_it_whatever_the_policy(site: Site) -> None:
    handle = site.send("abort")
    info = failed(handle)
    assert (info.error_code, info.attempt) == (ErrorCode.ABORTED, 1)
    assert info.error.message == "not worth it"


def test_retries_with_a_delay(site: Site) -> None:
    handle = site.send("retried")
    assert handle.get(20) == 3
    attempts = handle.attempts()
    assert [a.number for a in attempts] == [1, 2, 3]
    assert [a.will_retry for a in attempts] == [True, True, False]
    first, second, third = site.ledger.lines("retried", handle.id)
    assert 0.05 <= second.at - first.at < 1.0
    assert 0.1 <= third.at - second.at < 1.0


def test_a_send_by_name_is_retried_as_its_definition_says(site: Site) -> None:
    """The sender has none of the code."""
    with Holdfast(site.app.config.url) as elsewhere:
        handle = elsewhere.send("retried")
        assert handle.get(20) == 3
        assert handle.info().max_retries == 2


def test_retries_used_up(site: Site) -> None:
    handle = site.send("retried-out")
    info = failed(handle)
    assert (info.attempt, info.retry_count, info.error.message) == (3, 2, "never")
    assert [a.will_retry for a in handle.attempts()] == [True, True, False]


def test_an_exception_that_is_not_listed_is_not_retried(site: Site) -> None:
    assert failed(site.send("not-listed")).attempt == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("unserialisable", ErrorCode.RESULT_NOT_SERIALISABLE),
        ("oversized", ErrorCode.RESULT_TOO_LARGE),
        ("wrong-type", ErrorCode.RESULT_INVALID),
        ("exits", ErrorCode.TASK_EXITED),
        ("interrupts", ErrorCode.KEYBOARD_INTERRUPT),
        ("base-exception", ErrorCode.UNHANDLED_EXCEPTION),
        ("out-of-memory", ErrorCode.UNHANDLED_EXCEPTION),
        ("once-only-retries", ErrorCode.AT_MOST_ONCE),
    ],
)
def test_a_failed_attempt_with_a_clear_code(site: Site, name: str, code: ErrorCode) -> None:
    handle = site.send(name)
    assert failed(handle).error_code == code
    attempt = only_attempt(handle)
    assert (attempt.outcome, attempt.error_code) == (AttemptOutcome.FAILED, code)
    assert attempt.exit_code is attempt.exit_signal is None


def test_arguments_that_do_not_fit(site: Site) -> None:
    from holdfast import Holdfast

    # A sender without the code cannot know the signature.
    with Holdfast(site.url) as stranger:
        handle = stranger.send("ok", "too", many=True)
    info = failed(site.app.handle(handle.id))
    assert (info.error_code, info.attempt) == (ErrorCode.ARGUMENTS_INVALID, 1)


@pytest.mark.parametrize(
    ("name", "args", "exit_code", "exit_signal"),
    [
        ("hard-exit", (7,), 7, None),
        ("hard-exit", (0,), 0, None),
        ("segfault", (), None, signal.SIGSEGV),
        ("killed", (), None, signal.SIGKILL),
    ],
)
def test_the_death_of_its_process(
    site: Site, name: str, args: tuple[Any, ...], exit_code: int, exit_signal: int
) -> None:
    handle = site.send(name, *args)
    info = failed(handle)
    assert (info.error_code, info.crash_count) == (ErrorCode.WORKER_CRASHED, 1)
    attempt = only_attempt(handle)
    assert (attempt.outcome, attempt.exit_code, attempt.exit_signal) == (
        CRASHED,
        exit_code,
        exit_signal,
    )
    # Noticed within a second, and the child is replaced.
    assert attempt.duration.total_seconds() < 1.0
    assert site.send("value", 1).get(20) == 1


def test_a_task_whose_process_died_runs_again_at_once(site: Site) -> None:
    handle = site.send("killed-once")
    assert handle.get(20) == 2
    first, second = handle.attempts()
    assert (first.outcome, first.will_retry, first.exit_signal) == (CRASHED, True, 9)
    assert (second.started_at - first.finished_at).total_seconds() < 1.0
    assert handle.info().retry_count == 0


def test_a_poison_task_ends_among_the_dead_letters(site: Site) -> None:
    handle = site.send("poison")
    info = failed(handle)
    assert (info.error_code, info.crash_count, info.attempt) == (ErrorCode.WORKER_CRASHED, 3, 3)
    assert [a.outcome for a in handle.attempts()] == [CRASHED] * 3
    assert site.ledger.count("poison", handle.id) == 3
    listed = site.app.control.tasks.list(dead=True, error_code="WORKER_CRASHED", limit=500)
    assert handle.id in {task.id for task in listed.tasks}


def test_a_crash_may_stall_a_task(site: Site) -> None:
    handle = site.send("crash-stalls")
    assert handle.wait(20) is TaskStatus.STALLED
    assert handle.info().error_code == ErrorCode.TASK_STALLED
    assert (only_attempt(handle).outcome, only_attempt(handle).exit_code) == (CRASHED, 9)


def test_at_most_once(site: Site) -> None:
    handle = site.send("once-only")
    assert failed(handle).error_code == ErrorCode.WORKER_CRASHED
    assert only_attempt(handle).exit_code == 9
    assert site.ledger.count("once-only", handle.id) == 1

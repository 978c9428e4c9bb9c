"""Every outcome, under every policy that matters to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.decide import Change, decide
from holdfast.core.error_code import ErrorCode
from holdfast.core.lifecycle import TRANSITIONS, Verb
from holdfast.core.options.policy import DEFAULT, Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import (
    AbortAsked,
    CancelAcknowledged,
    Crashed,
    Failed,
    Interrupted,
    NotBegun,
    Outcome,
    RetryAsked,
    Returned,
    SnoozeAsked,
    StalledBySilence,
    StoppedByShutdown,
    TimedOut,
)
from holdfast.core.payload.failure import decode_error
from holdfast.core.result import TaskError
from holdfast.core.status import AttemptOutcome, TaskStatus
from tests.core.quick import quick

S = TaskStatus
ERROR = TaskError("RATE_LIMITED", "slow down")
ASKED = TaskError.ours(ErrorCode.RETRY_LATER, "busy")
ABORT = TaskError.ours(ErrorCode.ABORTED, "no such order")


@dataclass(frozen=True)
class Task:
    retry_count: int = 0
    max_retries: int = 0
    crash_count: int = 0


def half() -> float:
    return 0.5


def decided(outcome: Outcome, policy: Policy = DEFAULT, task: Task | None = None) -> Change:
    return decide(task or Task(max_retries=policy.max_retries), outcome, policy, half)


def test_a_value_completes() -> None:
    change = decided(Returned("[1]"))
    assert (change.verb, change.target) == (Verb.COMPLETE, S.COMPLETED)
    assert change.result == "[1]"
    assert change.attempt is AttemptOutcome.COMPLETED
    assert (change.error, change.error_code, change.failed_reason) == (None, None, None)
    assert (change.retries, change.crashes, change.will_retry) == (0, 0, False)


def test_a_failure_without_retries_fails() -> None:
    change = decided(Failed(ERROR, listed=True))
    assert (change.verb, change.target) == (Verb.FAIL, S.FAILED)
    assert change.error is ERROR
    assert change.error_code == "RATE_LIMITED"
    assert change.failed_reason == "slow down"
    assert decode_error(change.result or "") == ERROR


def test_a_listed_failure_is_retried_until_retries_are_used_up() -> None:
    policy = Policy(retry=Retry(2, delay=10))
    first = decided(Failed(ERROR, listed=True), policy, Task(0, 2))
    second = decided(Failed(ERROR, listed=True), policy, Task(1, 2))
    third = decided(Failed(ERROR, listed=True), policy, Task(2, 2))
    assert (first.verb, first.target, first.delay_us) == (Verb.RETRY, S.SCHEDULED, 10_000_000)
    assert (first.retries, first.crashes, first.will_retry) == (1, 0, True)
    assert first.attempt is AttemptOutcome.FAILED
    assert second.delay_us == 20_000_000
    assert (third.verb, third.target, third.retries) == (Verb.FAIL, S.FAILED, 0)
    assert third.failed_reason == "slow down (after 2 retries)"


def test_a_retry_carries_the_error_in_case_the_row_ends_it() -> None:
    change = decided(Failed(ERROR, listed=True), Policy(retry=Retry(1)))
    assert decode_error(change.result or "") == ERROR


def test_a_retry_without_delay_is_pending_at_once() -> None:
    for retry in (Retry(1), Retry(1, delay=0)):
        change = decided(Failed(ERROR, listed=True), Policy(retry=retry))
        assert (change.verb, change.target, change.delay_us) == (Verb.RETRY, S.PENDING, None)


def test_an_unlisted_failure_fails_at_once() -> None:
    change = decided(Failed(ERROR, listed=False), Policy(retry=Retry(5)))
    assert change.verb is Verb.FAIL


def test_the_row_says_how_many_retries_there_are() -> None:
    """An operator may grant more; the policy is only where the number came from."""
    change = decided(Failed(ERROR, listed=True), Policy(retry=Retry(1)), Task(3, 5))
    assert change.verb is Verb.RETRY


def test_a_timeout_is_a_listed_failure() -> None:
    change = decided(TimedOut(60))
    assert change.verb is Verb.FAIL
    assert change.error_code == "TASK_TIMEOUT"
    assert change.failed_reason == "the task ran longer than its timeout of 60 s"
    assert decided(TimedOut(60), Policy(retry=Retry(1, on=(KeyError,)))).verb is Verb.RETRY
    assert (
        decided(TimedOut(60), Policy(retry=Retry(1, never_on=("TASK_TIMEOUT",)))).verb is Verb.FAIL
    )


def test_crashes_come_back_at_once_then_later_then_not() -> None:
    policy = Policy(max_crashes=4)
    changes = [decided(Crashed(exit_signal=9), policy, Task(crash_count=n)) for n in range(4)]
    assert [change.verb for change in changes] == [Verb.RECOVER] * 4
    assert [change.target for change in changes] == [S.PENDING, S.SCHEDULED, S.SCHEDULED, S.FAILED]
    assert [change.delay_us for change in changes] == [None, 2_000_000, 4_000_000, None]
    assert all((change.crashes, change.retries) == (1, 0) for change in changes)
    assert [change.will_retry for change in changes] == [True, True, True, False]
    assert {change.attempt for change in changes} == {AttemptOutcome.WORKER_FAILURE}
    assert {change.error_code for change in changes} == {"WORKER_CRASHED"}
    assert changes[0].failed_reason == "its process was killed by SIGKILL (9)"
    assert changes[3].failed_reason == "its process was killed by SIGKILL (9), 4 times now"


def test_the_delay_after_crashes_is_capped_or_that_of_the_retries() -> None:
    policy = Policy(max_crashes=100)
    assert decided(Crashed(), policy, Task(crash_count=50)).delay_us == 60_000_000
    policy = Policy(max_crashes=100, retry=Retry(1, delay=7, backoff="linear"))
    assert decided(Crashed(), policy, Task(crash_count=2)).delay_us == 14_000_000
    assert decided(Crashed(), policy, Task(crash_count=0)).delay_us is None


def test_a_crash_stalls_where_the_policy_says_so() -> None:
    change = decided(Crashed(exit_code=139), Policy(on_crash="stall"))
    assert (change.verb, change.target) == (Verb.RECOVER, S.STALLED)
    assert change.error_code == "TASK_STALLED"
    assert change.failed_reason == "its process ended with exit code 139"
    assert (change.exit_code, change.exit_signal) == (139, None)


def test_how_a_process_died_is_told() -> None:
    assert decided(Crashed()).failed_reason == "its worker vanished: the lease ran out"
    unknown = decided(Crashed(exit_signal=200)).failed_reason
    assert unknown == "its process was killed by an unknown signal (200)"


def test_retry_later_without_a_policy_is_granted_three_times() -> None:
    changes = [decided(RetryAsked(ASKED, 5_000_000), task=Task(n, 0)) for n in range(4)]
    assert [change.verb for change in changes] == [Verb.RETRY] * 3 + [Verb.FAIL]
    assert changes[0].delay_us == 5_000_000
    assert changes[3].error_code == "RETRY_LATER"
    assert decided(RetryAsked(ASKED)).target is S.PENDING


def test_retry_later_with_a_policy_spends_its_retries() -> None:
    policy = Policy(retry=Retry(1, delay=10))
    assert decided(RetryAsked(ASKED), policy).delay_us == 10_000_000
    assert decided(RetryAsked(ASKED, 5_000_000), policy).delay_us == 5_000_000
    assert decided(RetryAsked(ASKED, 0), policy).target is S.PENDING
    assert decided(RetryAsked(ASKED), policy, Task(1, 1)).verb is Verb.FAIL


def test_a_snooze_costs_nothing() -> None:
    change = decided(SnoozeAsked(60_000_000))
    assert (change.verb, change.target, change.delay_us) == (Verb.SNOOZE, S.SCHEDULED, 60_000_000)
    assert (change.retries, change.crashes, change.will_retry) == (0, 0, False)


def test_an_abort_is_never_retried() -> None:
    change = decided(AbortAsked(ABORT), Policy(retry=Retry(5)))
    assert (change.verb, change.error_code) == (Verb.FAIL, "ABORTED")


def test_an_obeyed_cancel() -> None:
    change = decided(CancelAcknowledged())
    assert (change.verb, change.target) == (Verb.ACK_CANCEL, S.CANCELLED)
    assert change.error_code == "TASK_CANCELLED"


def test_shutdown_by_policy() -> None:
    assert decided(StoppedByShutdown()).verb is Verb.INTERRUPT
    assert decided(StoppedByShutdown(), Policy(on_shutdown="continue")).verb is Verb.INTERRUPT
    stopped = decided(StoppedByShutdown(), Policy(on_shutdown="stop"))
    assert (stopped.verb, stopped.target, stopped.error_code) == (
        Verb.STALL,
        S.STALLED,
        "TASK_STALLED",
    )


def test_silence_stalls() -> None:
    change = decided(StalledBySilence(30, '  File "a.py", line 1, in wait\n'))
    assert change.error is not None
    assert change.error.traceback is not None
    assert change.error.traceback.endswith("in wait\n")
    assert change.verb is Verb.STALL
    assert change.failed_reason == "it gave no heartbeat for more than 30 s"


def test_what_had_not_begun_is_interrupted_at_no_cost() -> None:
    change = decided(NotBegun(), Policy(at_most_once=True))
    assert (change.verb, change.target) == (Verb.INTERRUPT, S.PENDING)
    assert (change.retries, change.crashes) == (0, 0)


def test_what_others_brought_to_an_end_is_interrupted_at_no_cost() -> None:
    change = decided(Interrupted("a neighbour stood in its way"), Policy(on_shutdown="stop"))
    assert (change.verb, change.target) == (Verb.INTERRUPT, S.PENDING)
    assert (change.retries, change.crashes) == (0, 0)
    once = decided(Interrupted("a neighbour stood in its way"), Policy(at_most_once=True))
    assert (once.verb, once.failed_reason) == (Verb.STALL, "a neighbour stood in its way")


def test_what_else_is_known_is_said() -> None:
    late = decided(TimedOut(1, remark="; the event loop was blocked"))
    assert late.failed_reason == (
        "the task ran longer than its timeout of 1 s; the event loop was blocked"
    )
    killed = decided(Crashed(exit_signal=9, cause="its process sent garbage"))
    assert (killed.failed_reason, killed.exit_signal) == ("its process sent garbage", 9)


OUTCOMES: list[Outcome] = [
    Returned("1"),
    Failed(ERROR, listed=True),
    Failed(ERROR, listed=False),
    TimedOut(1),
    Crashed(),
    Crashed(exit_signal=11),
    RetryAsked(ASKED),
    RetryAsked(ASKED, 1),
    SnoozeAsked(0),
    AbortAsked(ABORT),
    CancelAcknowledged(),
    StoppedByShutdown(),
    StalledBySilence(1),
    NotBegun(),
    Interrupted("a neighbour"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
@pytest.mark.parametrize("on_crash", ["retry", "stall"])
def test_at_most_once_never_starts_again_once_begun(outcome: Outcome, on_crash: str) -> None:
    policy = Policy(at_most_once=True, on_crash=on_crash)  # type: ignore[arg-type]
    change = decided(outcome, policy)
    assert change.target.is_terminal or isinstance(outcome, NotBegun)


def test_at_most_once_tells_why_it_failed() -> None:
    policy = Policy(at_most_once=True)
    assert decided(Crashed(), policy).error_code == "WORKER_CRASHED"
    assert decided(RetryAsked(ASKED), policy).error_code == "AT_MOST_ONCE"
    assert decided(SnoozeAsked(5), policy).error_code == "AT_MOST_ONCE"
    assert decided(StoppedByShutdown(), policy).target is S.STALLED


POLICIES = st.builds(
    Policy,
    retry=st.none() | st.builds(Retry, st.integers(0, 3), delay=st.sampled_from([None, 0, 5])),
    on_crash=st.sampled_from(["retry", "stall"]),
    on_shutdown=st.sampled_from(["resubmit", "stop", "continue"]),
    max_crashes=st.integers(1, 4),
    at_most_once=st.booleans(),
)
COUNTS = st.integers(0, 5)


@quick
@given(st.sampled_from(OUTCOMES), POLICIES, st.builds(Task, COUNTS, COUNTS, COUNTS))
def test_every_decision_is_a_row_of_the_table(outcome: Outcome, policy: Policy, task: Task) -> None:
    change = decide(task, outcome, policy, half)
    row = TRANSITIONS[change.verb]
    assert row.fenced
    assert row.sources == (S.RUNNING,)
    assert change.target in row.targets
    assert change.attempt is row.attempt
    assert (change.verb is Verb.COMPLETE) == isinstance(outcome, Returned), (
        "the finisher relies on it"
    )
    if change.target is S.PENDING:
        assert change.delay_us is None
    if change.target.is_terminal and change.target is not S.COMPLETED:
        assert change.error_code
        assert change.failed_reason
        assert "\n" not in change.failed_reason
        assert decode_error(change.result or "") == change.error


@quick
@given(st.lists(st.sampled_from([Failed(ERROR, listed=True), Crashed(), TimedOut(1)])), POLICIES)
def test_starts_are_bounded(happenings: list[Outcome], policy: Policy) -> None:
    """At most `max_retries + max_crashes` starts, whatever goes wrong."""
    task, starts = Task(max_retries=policy.max_retries), 0
    for outcome in happenings:
        starts += 1
        change = decide(task, outcome, policy, half)
        if change.target.is_terminal:
            break
        task = replace(
            task,
            retry_count=task.retry_count + change.retries,
            crash_count=task.crash_count + change.crashes,
        )
    assert starts <= policy.max_retries + policy.max_crashes


def test_dead_letters_are_kept_unless_the_policy_says_no() -> None:
    assert decided(Failed(ERROR)).dead_letter
    assert not decided(Failed(ERROR), Policy(dead_letter=False)).dead_letter
    assert not decided(Crashed(), Policy(dead_letter=False, max_crashes=1)).dead_letter


def test_a_reason_is_one_short_line() -> None:
    error = TaskError.ours(
        ErrorCode.UNHANDLED_EXCEPTION, "first\nsecond" + "x" * 5000, exception="builtins.ValueError"
    )
    assert decided(Failed(error)).failed_reason == "ValueError: first"
    long = TaskError("X", "y" * 5000)
    assert len(decided(Failed(long)).failed_reason or "") <= 500
    assert decided(Failed(TaskError("X"))).failed_reason == "X"


def test_a_failure_that_is_not_retried_says_why() -> None:
    retry = Retry(2, on=(OSError,))
    assert decided(Failed(ERROR), Policy(retry=retry)).failed_reason == (
        f"{decided(Failed(ERROR)).failed_reason} (not retried: its Retry(on=…) does not list this)"
    )
    once = decided(Failed(ERROR, listed=True), Policy(retry=retry, at_most_once=True))
    assert str(once.failed_reason).endswith("(not retried: it is at_most_once)")


def test_a_timeout_keeps_where_the_code_was() -> None:
    change = decided(TimedOut(60, '  File "a.py", line 1, in wait\n'))
    assert change.error is not None
    assert change.error.traceback == (
        'Where it was when it was ended (most recent call last):\n  File "a.py", line 1, in wait\n'
    )

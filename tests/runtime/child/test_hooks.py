"""Hooks in children: called around the code, in order, and without any influence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.core.outcome import (
    AbortAsked,
    Failed,
    Reported,
    RetryAsked,
    Returned,
    SnoozeAsked,
    Why,
)
from holdfast.core.payload.failure import encode_error
from holdfast.core.result import TaskError
from holdfast.runtime.wire import messages
from holdfast.runtime.wire.messages import Kind
from tests.support.nursery import Kid, Nursery, job

KINDS: dict[Kind, str] = {"process": "p", "thread": "t", "async": "a"}
RETRY = '{"retry":{"max_retries":1,"delay":5}}'


@pytest.fixture(scope="module")
def hooked() -> Iterator[Nursery]:
    with Nursery("tests.runtime.apps.hooked:app") as nursery:
        nursery.manifest()
        yield nursery


@pytest.fixture(params=KINDS)
def kid(request: pytest.FixtureRequest, hooked: Nursery) -> Kid:
    return hooked.fork(request.param, 4)


def told(kid: Kid, how: str, *, retry_count: int = 0) -> tuple[type[Reported], list[str]]:
    """What became of a run, and what its output says about hooks."""
    order = job(KINDS[kid.kind], how, task_options=RETRY, retry_count=retry_count)
    outcome = kid.do_all([order])[0]
    return outcome.kind, kid.output(order).decode().splitlines()


def test_success(kid: Kid) -> None:
    assert told(kid, "well") == (
        Returned,
        [
            "app before_start ('well',) None None None None",
            "code",
            "app on_success ('well',) well None None None",
            "task on_success ('well',) well None None None",
            "app after_finish ('well',) well None None None",
        ],
    )


@pytest.mark.parametrize(
    ("how", "retry_count", "kind", "lines"),
    [
        ("raise", 0, Failed, "on_retry ('raise',) None UNHANDLED_EXCEPTION ValueError 5.0"),
        ("raise", 1, Failed, "on_failure ('raise',) None UNHANDLED_EXCEPTION ValueError None"),
        ("later", 0, RetryAsked, "on_retry ('later',) None RETRY_LATER RetryLater 2.0"),
        ("later", 1, RetryAsked, "on_failure ('later',) None RETRY_LATER RetryLater None"),
        ("abort", 0, AbortAsked, "on_failure ('abort',) None ABORTED Abort None"),
        ("exit", 0, Failed, "on_failure ('exit',) None TASK_EXITED SystemExit None"),
        (
            "odd",
            0,
            Failed,
            "on_failure ('odd',) None RESULT_NOT_SERIALISABLE PayloadError None",
        ),
        ("snooze", 0, SnoozeAsked, None),
    ],
)
def test_failure(
    kid: Kid, how: str, retry_count: int, kind: type[Reported], lines: str | None
) -> None:
    outcome, output = told(kid, how, retry_count=retry_count)
    assert outcome is kind
    assert output[1] == "code"
    assert output[2:-1] == ([] if lines is None else [f"app {lines}"])
    assert output[-1].startswith("app after_finish")


def test_arguments_that_do_not_fit(kid: Kid) -> None:
    order = job(KINDS[kid.kind], 1, 2, task_options=RETRY)
    kid.do_all([order])
    lines = kid.output(order).decode().splitlines()
    assert lines[0] == "app on_failure () None ARGUMENTS_INVALID PayloadError None"
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("why", "line"),
    [
        ("cancel", "app on_cancel () None TASK_CANCELLED None None"),
        ("timeout", "app on_failure () None TASK_TIMEOUT None None"),
        ("shutdown", None),
        ("lost", None),
    ],
)
def test_code_that_was_ended(hooked: Nursery, why: Why, line: str | None) -> None:
    kid = hooked.fork("process")
    order = kid.begin("p.sleep")
    kid.until(lambda: b"before_start" in kid.output(order))
    kid.end(order, why)
    kid.outcomes(1)
    assert (line in kid.output(order).decode().splitlines()) is (line is not None)
    assert (b"after_finish" in kid.output(order)) is (why != "lost")


def test_a_coroutine_that_was_cancelled(hooked: Nursery) -> None:
    kid = hooked.fork("async")
    order = kid.begin("a.sleep")
    kid.until(lambda: b"before_start" in kid.output(order))
    kid.say(messages.Cancel(order.slot, "cancel"))
    kid.outcomes(1)
    assert "app on_cancel () None TASK_CANCELLED None None" in kid.output(order).decode()


def test_a_hook_that_raises_changes_nothing(hooked: Nursery) -> None:
    kid = hooked.fork("process")
    order = job("rude")
    assert kid.do_all([order])[0].result == '"fine"'
    text = kid.output(order).decode()
    assert "hook before_start (raises)" in text
    assert "RuntimeError: a hook that raises" in text
    assert "hook on_success (exits)" in text
    assert "app after_finish" in text


def test_every_child_begins_with_its_hook(kid: Kid) -> None:
    assert f"child {kid.kind}-{kid.number} started\n".encode() in kid.output(0)


def test_hooks_of_the_worker_run_when_told(kid: Kid) -> None:
    kid.say(messages.Tell(5, ["worker_started", "worker_stopping"]))
    assert kid.hear(messages.Told).ticket == 5
    kid.until(lambda: b"worker started\n" in kid.output(0))


def test_hooks_of_a_task_whose_child_is_dead(kid: Kid) -> None:
    error = encode_error(TaskError("MINE", "no"))
    order = job(KINDS[kid.kind], "x")
    kid.say(messages.Tell(6, ["on_retry", "after_finish"], order, error, 2_000_000))
    assert kid.hear(messages.Told).ticket == 6
    kid.until(lambda: b"app on_retry () None MINE None 2.0\n" in kid.output(0))

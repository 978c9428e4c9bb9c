"""Handles: what they say about a task, and what they do to it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from holdfast import (
    ConfigError,
    ErrorCode,
    Holdfast,
    IllegalTransition,
    PayloadError,
    TaskCancelled,
    TaskDropped,
    TaskError,
    TaskExpired,
    TaskFailed,
    TaskHandle,
    TaskNotCompleted,
    TaskNotFound,
    TaskResult,
    TaskStalled,
    TaskStatus,
    Unique,
    UniqueConflict,
    WaitTimeout,
)
from holdfast.client import wait
from holdfast.core.identity import Lineage, running
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Failed, StoppedByShutdown
from holdfast.core.payload.codec import to_json
from holdfast.core.payload.failure import describe
from holdfast.store.verbs import evidence, timing, workers
from tests.client.conftest import Hands


@dataclass
class Point:
    x: int
    y: int


def test_a_value_comes_back_as_its_type(app: Holdfast, hands: Hands) -> None:
    @app.task("point")
    def point(path: Path) -> Point:
        return Point(1, 2)

    @app.task("result")
    def result() -> TaskResult[list[Point], TaskError]:
        return TaskResult(ok=[])

    @app.task("fetch")
    async def fetch() -> UUID:
        return UUID(int=0)

    @app.task("lines")
    def lines() -> Generator[str, None, Path]:
        yield ""
        return Path()

    @app.task("nothing")
    def nothing() -> None: ...

    own = UUID(int=7)
    for task, stored, value in (
        (point.send(Path("x")), '{"x":1,"y":2}', Point(1, 2)),
        (result.send(), '[{"x":1,"y":2}]', [Point(1, 2)]),
        (fetch.send(), f'"{own}"', own),
        (lines.send(), '"a/b"', Path("a/b")),
        (nothing.send(), "null", None),
    ):
        handle: TaskHandle[Any] = task
        hands.finish(handle, stored)
        assert handle.get(timeout=10) == value
        assert handle.outcome(timeout=10).ok_value == value
        assert app.handle(handle.id).get() == value
        assert asyncio.run(_await(handle)) == value
        assert handle.wait(timeout=10) is TaskStatus.COMPLETED


async def _await(handle: TaskHandle[Any]) -> Any:
    assert (await handle.aoutcome(timeout=10)).is_ok
    assert await handle.await_(timeout=10) is TaskStatus.COMPLETED
    assert await handle.aget(timeout=10) == await handle
    return await handle


def test_a_task_without_the_code_gives_plain_data(app: Holdfast, hands: Hands) -> None:
    handle = app.send("elsewhere")
    hands.finish(handle, '{"x":1}')
    assert handle.get(timeout=10) == {"x": 1}


def test_a_stored_value_that_is_not_of_the_type(app: Holdfast, hands: Hands) -> None:
    @app.task("number")
    def number() -> int:
        return 0

    handle = number.send()
    hands.finish(handle, '"seven"')
    with pytest.raises(PayloadError, match="does not fit its return annotation"):
        handle.get(timeout=10)
    outcome = handle.outcome(timeout=10)
    assert outcome.err_value.error_code is ErrorCode.RESULT_UNREADABLE
    assert handle.status() is TaskStatus.COMPLETED


def fail(hands: Hands, handle: TaskHandle[Any]) -> None:
    try:
        raise ValueError("no such file")
    except ValueError as error:
        hands.end(hands.take(handle), Failed(describe(error)), Policy())


def cancel(hands: Hands, handle: TaskHandle[Any]) -> None:
    handle.cancel()


def expire(hands: Hands, handle: TaskHandle[Any]) -> None:
    hands.run(timing.expire())


def stall(hands: Hands, handle: TaskHandle[Any]) -> None:
    hands.end(hands.take(handle), StoppedByShutdown(), Policy(on_shutdown="stop"))


def drop(hands: Hands, handle: TaskHandle[Any]) -> None:
    hands.run(timing.drop("default", known=[], before=hands.task(handle.id.bytes).enqueued_at + 1))


ENDS: dict[str, tuple[Any, type[Exception], ErrorCode]] = {
    "FAILED": (fail, TaskFailed, ErrorCode.UNHANDLED_EXCEPTION),
    "CANCELLED": (cancel, TaskCancelled, ErrorCode.TASK_CANCELLED),
    "EXPIRED": (expire, TaskExpired, ErrorCode.TASK_EXPIRED),
    "STALLED": (stall, TaskStalled, ErrorCode.TASK_STALLED),
    "DROPPED": (drop, TaskDropped, ErrorCode.TASK_DROPPED),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_end_without_a_value(app: Holdfast, hands: Hands, end: str) -> None:
    act, kind, code = ENDS[end]
    if end == "EXPIRED":
        handle = app.options(good_until=datetime.now(UTC) + timedelta(seconds=0.3)).send("any")
        while handle.status() is TaskStatus.PENDING:
            act(hands, handle)
    else:
        handle = app.send("any")
        act(hands, handle)
    assert handle.wait(timeout=10) == end
    with pytest.raises(kind) as caught:
        handle.get(timeout=10)
    error: Any = caught.value
    assert error.task_id == handle.id
    assert error.error.error_code is code
    with pytest.raises(kind):
        asyncio.run(handle.aget(timeout=10))
    assert handle.outcome(timeout=10).err_value.error_code is code
    info = handle.info()
    assert info.error is not None
    assert (info.error_code, info.error.error_code) == (code, code)
    assert info.result is None
    assert info.finished_at is not None
    assert handle.why().reasons[0] == info.failed_reason


def test_a_failure_keeps_the_type_of_its_exception_everywhere(app: Holdfast, hands: Hands) -> None:
    handle = app.send("shop.pay")
    missing = KeyError("x")
    hands.end(hands.take(handle), Failed(describe(missing)))
    with pytest.raises(TaskNotCompleted) as caught:
        next(app.as_completed([handle], timeout=10)).get()
    assert str(caught.value) == f"task shop.pay ({handle.id}) failed: KeyError: 'x'"
    assert (caught.value.name, type(caught.value)) == ("shop.pay", TaskFailed)
    assert caught.value.error == handle.outcome().err == handle.info().error
    assert handle.info().failed_reason == "KeyError: 'x'"
    assert [str(attempt.error) for attempt in handle.attempts()] == ["KeyError: 'x'"]
    assert str(handle.info().error) == "KeyError: 'x'"


def test_a_failure_has_its_traceback(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    fail(hands, handle)
    with pytest.raises(TaskFailed, match="no such file") as caught:
        handle.get(timeout=10)
    assert caught.value.traceback is not None
    assert 'raise ValueError("no such file")' in caught.value.traceback
    (attempt,) = handle.attempts()
    assert (attempt.number, attempt.outcome, attempt.will_retry) == (1, "FAILED", False)
    assert attempt.error is not None
    assert attempt.error.exception == "builtins.ValueError"
    assert attempt.duration >= timedelta(0)
    assert asyncio.run(handle.aattempts()) == [attempt]


def test_a_running_task(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    claimed = hands.hold(handle)
    info = handle.info()
    assert (info.status, info.celery_state) == (TaskStatus.CLAIMED, "RECEIVED")
    assert info.last_heartbeat is not None
    assert (info.last_heartbeat.role, info.last_heartbeat.worker_id) == ("claimer", "worker-1")
    assert "worker-1 has claimed it" in str(handle.why())
    hands.started(claimed)
    info = asyncio.run(handle.ainfo())
    assert (info.status, info.celery_state, info.attempt) == (TaskStatus.RUNNING, "STARTED", 1)
    beat = info.last_heartbeat
    assert beat is not None
    assert (beat.role, beat.host, beat.pid) == ("runner", "host-1", 4711)
    assert (info.worker_pid, info.worker_hostname, info.worker_process_name) == (
        4711,
        "host-1",
        "child-1",
    )
    assert info.started_at is not None
    assert info.first_started_at is not None
    assert handle.progress() is None
    assert handle.output() is None
    assert handle.cancel() is TaskStatus.RUNNING
    assert "a cancel was requested" in str(asyncio.run(handle.awhy()))
    hands.complete(claimed)
    assert handle.info().worker_pid is None
    assert handle.cancel() is TaskStatus.COMPLETED


def test_what_running_code_leaves_behind(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    task = hands.take(handle)
    assert (handle.log(), handle.output(), handle.progress()) == ("", None, None)
    hands.run(
        evidence.write_notes(
            [
                evidence.TaskNote(
                    task.key,
                    task.token,
                    progress='{"done":3,"total":10,"message":"resizing"}',
                    stage="UPLOADING",
                    meta='{"to":"s3"}',
                    output="line\n",
                )
            ]
        )
    )
    parts = [(1, b"first \xc3"), (2, b"\xa4 and \xff\n")]
    hands.run(
        evidence.append_logs([evidence.LogPart(task.key, task.token, 1, n, d) for n, d in parts])
    )
    progress = handle.progress()
    assert progress is not None
    assert (progress.done, progress.total, progress.message) == (3, 10, "resizing")
    assert progress.fraction == 0.3
    info = handle.info()
    assert (info.stage, info.meta, info.celery_state) == ("UPLOADING", {"to": "s3"}, "UPLOADING")
    assert handle.output() == "line\n"
    assert asyncio.run(handle.aoutput()) == info.output
    assert handle.log() == "first ä and \ufffd\n"
    assert handle.log(attempt=2) == ""
    assert asyncio.run(handle.alog(attempt=1)) == handle.log()
    assert asyncio.run(handle.aprogress()) == progress


def test_celerys_names(app: Holdfast, hands: Hands) -> None:
    assert app.options(delay=60).send("any").info().celery_state == "PENDING"
    handle = app.send("any")
    assert handle.info().celery_state == "PENDING"
    handle.cancel()
    assert handle.info().celery_state == "REVOKED"


def test_cancel(app: Holdfast) -> None:
    handle = app.send("any")
    assert handle.cancel() is TaskStatus.CANCELLED
    assert asyncio.run(handle.acancel()) is TaskStatus.CANCELLED


def test_resubmit(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    fail(hands, handle)
    assert handle.resubmit() is TaskStatus.PENDING
    info = handle.info()
    assert (info.error, info.finished_at, info.attempt) == (None, None, 1)
    handle.cancel()
    later = datetime.now(UTC) + timedelta(hours=1)
    assert handle.resubmit(run_at=later, good_until=later + timedelta(hours=1)) is (
        TaskStatus.SCHEDULED
    )
    assert handle.info().run_at == later
    handle.cancel()
    assert asyncio.run(handle.aresubmit(keep_retries=True, fresh=True)) is TaskStatus.PENDING


def test_what_cannot_be_resubmitted(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any")
    with pytest.raises(IllegalTransition) as caught:
        handle.resubmit()
    assert (caught.value.verb, caught.value.status) == ("resubmit", TaskStatus.PENDING)
    hands.finish(handle)
    with pytest.raises(IllegalTransition, match="it is COMPLETED"):
        asyncio.run(handle.aresubmit())
    with pytest.raises(ConfigError, match="no time zone"):
        handle.resubmit(run_at=datetime(2100, 1, 1))  # noqa: DTZ001
    with pytest.raises(ConfigError, match="keep_retries=1"):
        handle.resubmit(keep_retries=1)  # type: ignore[arg-type]


def test_a_resubmit_meets_the_holder_of_its_key(app: Holdfast) -> None:
    one = app.options(unique=Unique("k"))
    first = one.send("any")
    first.cancel()
    second = one.send("any")
    with pytest.raises(UniqueConflict) as caught:
        first.resubmit()
    assert caught.value.task_id == second.id


def test_a_deleted_task_is_not_found(app: Holdfast) -> None:
    handle = app.send("any")
    handle.cancel()
    assert app.control.tasks.delete(handle) == {handle.id: True}
    for ask in (
        handle.status,
        handle.info,
        handle.log,
        handle.output,
        handle.cancel,
        handle.resubmit,
        handle.why,
        handle.get,
    ):
        with pytest.raises(TaskNotFound):
            ask()
    assert handle.attempts() == []


def test_handles_of_one_task_are_equal(app: Holdfast) -> None:
    handle = app.send("any")
    again = app.handle(str(handle.id))
    assert handle == again
    assert len({handle, again}) == 1
    assert handle != app.send("any")
    assert handle != handle.id
    assert str(handle.id) in repr(handle)


def test_why(app: Holdfast) -> None:
    handle = app.options(queue="images").send("any")
    assert "no worker is running" in str(handle.why())
    app.control.queues.pause("images", by="ada")
    assert "was paused by ada" in str(handle.why())
    later = app.options(delay=60).send("any").why()
    assert later.status is TaskStatus.SCHEDULED
    assert "it is due at" in later.reasons[0]


def register(
    hands: Hands,
    queues: list[str],
    known: list[str],
    settings: str = "{}",
    worker: str = "worker-1",
) -> None:
    hands.run(
        workers.register(
            worker,
            hostname="host-1",
            pid=1,
            version="1",
            lease_us=30_000_000,
            queues=to_json(queues),
            known=to_json(known),
            settings=settings,
        )
    )


def test_why_with_workers(app: Holdfast, hands: Hands) -> None:
    handle = app.options(queue="images").send("resize")
    app.options(queue="images").send("resize")
    register(hands, ["mail"], ["resize@1"])
    remedy = "queue 'images': start one that does (-q images)"
    assert handle.why().reasons[0] == f"the one worker there is does not serve {remedy}"
    register(hands, ["mail"], ["resize@1"], worker="worker-2")
    assert handle.why().reasons[0] == f"none of the 2 workers serves {remedy}"
    hands.run(workers.stop("worker-2"))
    register(hands, ["images"], ["resize@2"])
    assert "knows task 'resize' version 1: deploy its code" in str(handle.why())
    register(hands, ["images"], ["resize@1"])
    assert handle.why().reasons == (
        "1 worker could run it",
        "beside it, 1 other task in queue 'images'",
    )
    hands.run(workers.stop("worker-1"))
    assert "no worker is running" in str(handle.why())


def test_why_with_busy_workers(app: Holdfast, hands: Hands) -> None:
    parent = app.send("parent")
    hands.take(parent)
    register(hands, ["default"], ["parent@1", "child@1"], '{"concurrency": 2}')
    child = app.send("child")
    assert child.why().reasons[0] == "1 worker could run it"
    assert "busy" not in str(child.why())
    register(hands, ["default"], ["parent@1", "child@1"], '{"concurrency": 1}')
    assert child.why().reasons == ("1 worker could run it", "all its processes are busy")
    lineage = Lineage(parent.id.bytes, parent.id.bytes, None)
    own = Running(lineage)
    token = running.set(own)
    try:
        child = app.send("child")
        assert (
            f"all its processes are busy, one of them with task {parent.id} (parent), which sent "
            "this one: if that waits for it, give the worker more processes (-c), or send it to a "
            "queue that another worker serves"
        ) in child.why().reasons
    finally:
        running.reset(token)
    for odd in ("nope", "[]", '{"concurrency": "x"}'):
        register(hands, ["default"], ["parent@1", "child@1"], odd)
        assert "busy" not in str(child.why())


class Running:
    """Stands for the task whose code runs."""

    def __init__(self, lineage: Lineage) -> None:
        self.lineage = lineage
        self.said: list[bool] = []

    def waits(self, waiting: bool, /) -> None:
        self.said.append(waiting)


def test_a_task_that_waits_says_why_it_waits_in_vain(
    app: Holdfast,
    hands: Hands,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(wait, "REMARK_AFTER", 0.05)
    monkeypatch.setattr(wait, "LEND_AFTER", 0.01)
    parent = app.send("parent")
    hands.take(parent)
    register(hands, ["default"], ["parent@1", "child@1"], '{"concurrency": 1}')
    own = Running(Lineage(parent.id.bytes, parent.id.bytes, None))
    token = running.set(own)
    try:
        child = app.send("child")
        with pytest.raises(WaitTimeout):
            child.get(timeout=0.3)
        with pytest.raises(WaitTimeout):
            asyncio.run(child.aget(timeout=0.3))
    finally:
        running.reset(token)
    words = "all its processes are busy, one of them waits for this task: give the worker more"
    assert caplog.text.count(words) == 2
    assert own.said == [True, False, True, False]

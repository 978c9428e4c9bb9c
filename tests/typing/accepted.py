"""What users may write, and the types they get; read by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, assert_type
from uuid import UUID

from holdfast import (
    Call,
    Holdfast,
    PayloadError,
    Retry,
    Step,
    Steps,
    Task,
    TaskContext,
    TaskError,
    TaskEvent,
    TaskFailed,
    TaskHandle,
    TaskInfo,
    TaskNotCompleted,
    TaskNotFound,
    TaskResult,
    TaskStatus,
    Unique,
    UpstreamEnded,
    Why,
    Worker,
    WorkerEvent,
    Workflow,
    WorkflowHandle,
    any_of,
    at_least,
    chain,
    current_task,
    group,
)
from holdfast.client.call import CallPlan

app = Holdfast()
configured = Holdfast("postgresql://localhost/db", schema="queue", send_timeout=1, durable=False)


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task("resize", version=2, queue="images", priority=10, retry=Retry(3), timeout=60)
def resize(path: Path, width: int = 640) -> TaskResult[str, TaskError]:
    if width < 1:
        return TaskResult(err=TaskError("TOO_SMALL"))
    return TaskResult(ok=str(path))


@app.task
async def fetch(url: str) -> str:
    return url


@app.task(retry=3)
async def fetch_result(url: str) -> TaskResult[bytes, TaskError]:
    return TaskResult(ok=url.encode())


@app.task
def stream(lines: int) -> Generator[str, None, int]:
    yield "line"
    return lines


@app.task
def stream_result() -> Generator[str, None, TaskResult[int, TaskError]]:
    yield "line"
    return TaskResult(ok=1)


@app.task
def iterate() -> Iterator[str]:
    yield "line"


@app.task
async def astream() -> AsyncIterator[str]:
    yield "line"


@app.task()
def nothing() -> None: ...


@app.task(name="measure", queue="images", retry=Retry(3))
def measure(path: Path) -> int:
    assert_type(current_task(), TaskContext)
    return len(str(path))


@app.hooks.on_failure
def page(event: TaskEvent) -> None:
    assert_type(event.error, TaskError | None)


@app.hooks.child_started
def connect(event: WorkerEvent) -> None:
    assert_type(event.pid, int)


def plain_calls() -> None:
    assert_type(add(1, 2), int)
    assert_type(resize(Path()), TaskResult[str, TaskError])
    assert_type(fetch("x"), Coroutine[Any, Any, str]).close()
    assert_type(stream(1), Generator[str, None, int])


def sends() -> None:
    assert_type(add.send(1, b=2), TaskHandle[int])
    assert_type(add.send(1, 2).get(timeout=5), int)
    assert_type(resize.send(Path("a"), width=3), TaskHandle[str])
    assert_type(resize.send(Path("a")).outcome(), TaskResult[str, TaskError])
    assert_type(fetch.send("x"), TaskHandle[str])
    assert_type(fetch_result.send("x"), TaskHandle[bytes])
    assert_type(stream.send(3), TaskHandle[int])
    assert_type(stream_result.send(), TaskHandle[int])
    assert_type(iterate.send(), TaskHandle[Any])
    assert_type(astream.send(), TaskHandle[None])
    assert_type(nothing.send(), TaskHandle[None])
    assert_type(app.send("resize", "a.png", width=10), TaskHandle[Any])


async def async_sends() -> None:
    assert_type(await add.asend(1, 2), TaskHandle[int])
    assert_type(await (await add.asend(1, 2)), int)
    assert_type(await fetch.send("x").aget(), str)
    assert_type(await add.aschedule(60, 1, b=2), TaskHandle[int])
    assert_type(await add.asend_many([(1, 2)]), list[TaskHandle[int]])
    async for handle in app.aas_completed([add.send(1, 2)]):
        assert_type(handle, TaskHandle[int])
    async with app, app.using(object()):
        assert_type(await app.asend("x"), TaskHandle[Any])


def options() -> None:
    chosen = add.options(
        queue="fast",
        priority=1,
        delay=timedelta(minutes=1),
        good_until=datetime.now(UTC),
        unique=Unique("k"),
        id=UUID(int=1),
        tags=["a"],
    )
    assert_type(chosen.send(1, 2), TaskHandle[int])
    assert_type(chosen.options(run_at=datetime.now(UTC)).send(a=1, b=2), TaskHandle[int])
    assert_type(add.schedule(60, 1, 2), TaskHandle[int])
    assert_type(add.schedule(timedelta(1), 1, b=2), TaskHandle[int])
    assert_type(add.send_many([(1, 2), {"a": 1, "b": 2}]), list[TaskHandle[int]])


def handles() -> None:
    handle = add.send(1, 2)
    assert_type(handle.id, UUID)
    assert_type(handle.created, bool)
    assert_type(handle.status(), TaskStatus)
    assert_type(handle.wait(), TaskStatus)
    assert_type(handle.cancel(), TaskStatus)
    assert_type(handle.info(), TaskInfo)
    assert_type(handle.info().celery_state, str)
    assert_type(app.wait([handle]), list[TaskStatus])
    assert_type(list(app.as_completed([handle])), list[TaskHandle[int]])
    assert_type(
        app.control.tasks.cancel(handle, resize.send(Path())), dict[UUID, TaskStatus | None]
    )


def errors() -> None:
    try:
        add.send(1, 2).get()
    except TaskNotCompleted as error:
        assert_type(error.task_id, UUID)
        assert_type(error.name, str | None)
        assert_type(error.error, TaskError | None)
        assert_type(error.traceback, str | None)
        assert_type(error.error.type_name if error.error else None, str | None)
    except PayloadError as error:
        assert_type(error.place, int | None)
    except UpstreamEnded as error:
        assert_type(error.refused, tuple[UUID, ...])
    except TaskNotFound as error:
        assert_type(error.task_id, UUID | str)
    assert issubclass(TaskFailed, TaskNotCompleted)


def others() -> None:
    assert_type(add.send(1, 2).why(), Why)
    assert_type(app.worker(), Worker)
    assert_type(app.worker(queues=["a"], concurrency=2, lease=10, burst=True), Worker)
    assert_type(measure.send(Path()), TaskHandle[int])


def a_handle_is_covariant(handle: TaskHandle[float]) -> float:
    return handle.get()


def a_task_may_be_passed_on(task: Task[[int, int], int]) -> TaskHandle[int]:
    return task.send(1, 2)


def uses() -> None:
    assert_type(a_handle_is_covariant(add.send(1, 2)), float)
    assert_type(a_task_may_be_passed_on(add), TaskHandle[int])
    assert_type(a_task_may_be_passed_on(add.options(priority=1)), TaskHandle[int])


@app.task
def total(numbers: list[int], label: str = "") -> int:
    return sum(numbers)


@app.task
def tell(error: TaskError) -> None: ...


@app.task
def judge(results: list[TaskResult[int, TaskError]]) -> int:
    return len(results)


@app.workflow("sums", on_failure="pause", deadline=timedelta(hours=1))
def sums(wf: Workflow, numbers: list[int], factor: int = 2) -> int:
    parts = wf.map(add, numbers, factor)
    assert_type(parts, Steps[int])
    assert_type(parts.result, list[int])
    assert_type(parts[0].result, int)
    one = wf.step(add, 1, b=parts[0].result)
    assert_type(one, Step[int])
    wf.step(tell, one.error)
    wf.step(tell, wf.error)
    wf.step(judge, parts.outcome)
    wf.options(after=[wf.ended, one.failed]).step(tell, wf.error)
    assert_type(any_of(one, parts[0]), int)
    wf.step(total, at_least(2, parts))
    text = wf.step(fetch, "url")
    assert_type(text.result, str)
    assert_type(any_of(one, text), int | str)
    wf.step(total, [part.result for part in parts], label=text.result)
    wf.map(fetch, ["a", "b"])
    return wf.options(name="last").step(total.options(queue="bulk"), parts.result).result


@app.workflow
def both(wf: Workflow) -> tuple[int, str]:
    sub = wf.step(sums, [1, 2])
    assert_type(sub, Step[int])
    assert_type(wf.map(sums, [[1], [2]], factor=3), Steps[int])
    return sub.result, wf.step(fetch, "url").result


@app.task
def shown(number: int, width: int = 1) -> str:
    return str(number)


def put_calls_together() -> None:
    assert_type(add.call(1, 2), Call[int])
    assert_type(add.call(1, 2).send(), WorkflowHandle[int])
    assert_type(add.call(1, 2).then(shown), CallPlan[str])
    assert_type(add.call(1, 2).then(add, 10).then(shown).send().get(), str)
    assert_type(chain(add.call(1, 2), shown, fetch).send(), WorkflowHandle[str])
    assert_type(group(add.call(n, n) for n in range(9)).then(total).send(), WorkflowHandle[int])
    assert_type(group([add.call(1, 2)]), CallPlan[list[int]])
    assert_type(add.call(1, 2).then(fetch.call("done")), CallPlan[str])
    assert_type(sums.call([1]).then(shown), CallPlan[str])
    assert_type(app.named("far").call(1, b=2), Call[Any])
    assert_type(app.workflow_handle("0197").get(), Any)


async def steps_of_what_was_sent() -> None:
    wf = Workflow("adhoc", on_failure="pause", deadline=60, version=2, tags=["a"], max_steps=9)
    one = wf.step(add, 1, 2)
    parts = wf.map(fetch, ["a"])
    handle = wf.send(returns=one.result, id=UUID(int=1), tags=["b"], deadline=timedelta(hours=1))
    assert_type(handle, WorkflowHandle[int])
    assert_type(wf.send(), WorkflowHandle[None])
    assert_type(wf.send(returns=one), WorkflowHandle[int])
    assert_type(
        await wf.asend(returns=(one.result, parts.result)), WorkflowHandle[tuple[int, list[str]]]
    )
    assert_type(handle.step(one), TaskHandle[int])
    assert_type(await handle.astep(one), TaskHandle[int])
    assert_type(handle.step("adhoc/load"), TaskHandle[Any])
    assert_type(handle.steps(parts), list[TaskHandle[str]])
    assert_type(handle.steps(), list[TaskHandle[Any]])
    assert_type(handle.get(timeout=5), int)
    assert_type(handle.outcome(), TaskResult[int, TaskError])
    assert_type(await handle, int)
    assert_type(sums.send([1]), WorkflowHandle[int])
    assert_type(
        await sums.options(unique=Unique("k"), run_at=datetime.now(UTC)).asend([1]),
        WorkflowHandle[int],
    )


@app.task
def split(path: Path) -> list[int]:
    wf = current_task().workflow
    return wf.map(add, [1, 2], 3).result


def long_chains() -> None:
    plan = add.call(1, 2)
    seven = chain(plan, shown, fetch, fetch, fetch, fetch, fetch, fetch)
    assert_type(seven, CallPlan[str])
    assert_type(chain(seven), CallPlan[str])


def build_workflows() -> None:
    assert_type(sums.build([1], factor=3), Workflow)
    assert_type(sums.options(tags=["a"]).build([1]).to_mermaid(), str)


@app.schedule("*/5 * * * *", tz="Europe/Berlin")
@app.task
def tick() -> None:
    assert_type(current_task().tick, datetime | None)


@app.schedule(timedelta(minutes=5), overlap="allow", missed="all", max_missed=10)
@app.task("defaults")
def with_default(x: int = 3) -> int:
    return x


@app.schedule("@daily")
@app.workflow
def every_day(wf: Workflow) -> int:
    return wf.step(with_default, 1).result


@app.schedule("0 3 * * *", name="a")
@app.schedule("0 4 * * *", name="b")
@app.task
async def twice() -> str:
    return ""


app.schedule("0 3 * * *", add.call(1, b=2), name="add", missed="skip")
app.schedule(datetime(2027, 1, 1, tzinfo=UTC), every_day.call(), name="once")


async def schedules() -> None:
    s = app.control.schedules
    s.add("x", "0 3 * * *", add.call(1, 2), tz="UTC", start=datetime.now(UTC))
    assert_type((await s.ashow("x")).next_run_at, datetime | None)
    assert_type(s.run_now("x").id, UUID)
    assert_type(
        [run.id for run in s.backfill("x", datetime.now(UTC), datetime.now(UTC))], list[UUID]
    )
    assert_type(tick.send(), TaskHandle[None])
    assert_type(every_day.send(), WorkflowHandle[int])
    assert_type(with_default(1), int)
    assert_type(await twice(), str)

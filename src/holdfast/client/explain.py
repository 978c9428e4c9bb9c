"""Why a task is where it is, in sentences.

Owns the explanation behind `handle.why()`. It says only what the database shows at this
moment: it reads, it guesses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from holdfast.client import explain_limits, explain_schedule, explain_steps
from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import PayloadError, TaskNotFound
from holdfast.core.moment import from_us, length
from holdfast.core.options.retry import retries_granted
from holdfast.core.payload.codec import from_json
from holdfast.core.records import (
    AttemptRecord,
    QueueRecord,
    TaskFilter,
    TaskRecord,
    WorkerRecord,
)
from holdfast.core.routing import Route
from holdfast.core.status import TaskStatus
from holdfast.store.op import Steps, reads
from holdfast.store.verbs import routes
from holdfast.store.verbs.claims import known_name
from holdfast.store.verbs.inspect import MAX_PAGE, last_errors, list_tasks, tasks_by_id
from holdfast.store.verbs.queues import COUNT_CAP, list_queues
from holdfast.store.verbs.timing import next_due
from holdfast.store.verbs.workers import list_workers

__all__ = ["Why", "explain", "unattended"]

MOST_WORKERS: Final = 10
"""Of how many workers it is looked up what they run."""
_OURS: Final = frozenset(code.value for code in ErrorCode)


@dataclass(frozen=True, slots=True)
class Why:
    """What keeps a task from going on, or how it ended; `str()` is the whole answer."""

    task_id: UUID
    status: TaskStatus
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"task {self.task_id} is {self.status.value}: {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class _Scene:
    """What there is to see around a task."""

    task: TaskRecord
    queue: QueueRecord | None
    workers: Sequence[WorkerRecord]
    running: Mapping[str, Sequence[TaskRecord]]
    """What runs in processes of workers that could run it, if it waits for one."""
    now: int
    waiter: bytes | None
    """The running task that asks, because it waits for this one."""
    failed: AttemptRecord | None
    """Its last attempt that failed, of a task that has not ended."""
    in_workflow: Sequence[str] = ()
    """What its workflow has to do with it, and the steps above it."""
    limited: Sequence[str] = ()
    """What limits and turns have to do with it, if it is PENDING."""
    route: Route | None = None
    """The route that tasks of its name take to its queue, if one does."""
    scheduled: Sequence[str] = ()
    """What the schedule that sent it has to do with it."""

    @property
    def are_busy(self) -> bool:
        """Whether every process of every worker that could run it has something to run."""
        return bool(self.running) and all(
            len(self.running[worker.worker_id]) >= _concurrency(worker)
            for worker in self.workers
            if worker.worker_id in self.running
        )

    @property
    def is_awaited_there(self) -> bool:
        """Whether one of those processes runs the very task that waits for it."""
        return self.waiter is not None and self._runs(self.waiter) is not None

    @property
    def parent(self) -> TaskRecord | None:
        """The task that sent it, if one of those processes runs it."""
        return None if self.task.parent_id is None else self._runs(self.task.parent_id)

    def _runs(self, task_id: bytes) -> TaskRecord | None:
        tasks = (task for tasks in self.running.values() for task in tasks)
        return next((task for task in tasks if task.id == task_id), None)


@reads
def explain(task_id: bytes, *, in_whole: bool = False) -> Steps[Why]:
    """Why a task is where it is; `in_whole`: what is being done to its workflow has been said."""
    return _explanation((yield from _look_around(task_id, None, in_whole=in_whole)))


@reads
def unattended(task_id: bytes, waiter: bytes | None) -> Steps[Why | None]:
    """The same if waiting may be in vain, otherwise None: there is no worker at all, or the task
    `waiter`, which waits for it, has one of the processes that it would need."""
    scene = yield from _look_around(task_id, waiter)
    if scene.task.status.is_terminal:
        return None
    stuck = scene.are_busy and scene.is_awaited_there
    return None if scene.workers and not stuck else _explanation(scene)


def _look_around(task_id: bytes, waiter: bytes | None, *, in_whole: bool = False) -> Steps[_Scene]:
    found = yield from tasks_by_id([task_id])
    if task_id not in found:
        raise TaskNotFound(task_id)
    task = found[task_id]
    now = (yield from next_due()).now
    workers = yield from list_workers()
    queues = yield from list_queues()
    alive = [worker for worker in workers if worker.is_alive(now)]
    running: dict[str, Sequence[TaskRecord]] = {}
    if task.status is TaskStatus.PENDING:
        for worker in [worker for worker in alive if _could_run(worker, task)][:MOST_WORKERS]:
            running[worker.worker_id] = yield from _in_processes(worker)
    limited: Sequence[str] = ()
    if task.status is TaskStatus.PENDING:
        limited = yield from explain_limits.reasons(task, now)
    route = (yield from routes.read()).route_of(task.task_name)
    scheduled = yield from explain_schedule.reasons(task)
    failed: AttemptRecord | None = None
    if task.attempt and not task.status.is_terminal:
        failed = (yield from last_errors([task_id])).get(task_id)
    in_workflow = yield from explain_steps.reasons(task, in_whole=in_whole)
    return _Scene(
        task,
        next((queue for queue in queues if queue.queue_name == task.queue_name), None),
        alive,
        running,
        now,
        waiter,
        failed,
        in_workflow,
        limited,
        route if route is not None and task.queue_name in route.queues else None,
        scheduled,
    )


def _in_processes(worker: WorkerRecord) -> Steps[Sequence[TaskRecord]]:
    wanted = TaskFilter(status=frozenset({TaskStatus.RUNNING}), worker_id=worker.worker_id)
    page = yield from list_tasks(wanted, limit=MAX_PAGE)
    return [
        task
        for task in page.tasks
        if not (task.worker_process_name or "").startswith(("thread-", "async-"))
    ]


def _could_run(worker: WorkerRecord, task: TaskRecord) -> bool:
    known = known_name(task.task_name, task.version)
    return task.queue_name in from_json(worker.queues) and known in from_json(worker.known)


def _concurrency(worker: WorkerRecord) -> int:
    try:
        settings = from_json(worker.settings)
    except PayloadError:
        settings = None
    number = settings.get("concurrency") if isinstance(settings, dict) else None
    return number if isinstance(number, int) else MAX_PAGE + 1


def _ending(task: TaskRecord) -> str:
    reason = task.failed_reason or task.status.meaning
    if task.error_code is None or task.error_code in _OURS or task.error_code in reason:
        return reason
    return f"{task.error_code}: {reason}"


def _explanation(scene: _Scene) -> Why:
    return Why(UUID(bytes=scene.task.id), scene.task.status, (*_reasons(scene), *scene.scheduled))


def _reasons(scene: _Scene) -> Iterator[str]:
    task = scene.task
    match task.status:
        case TaskStatus.WAITING:
            yield from scene.in_workflow
            if not (task.handed_over or scene.in_workflow):
                # Its parents cannot be found: somebody has deleted them by hand.
                some = "one more dependency" if task.deps_needed == 1 else "more dependencies"
                yield f"it waits for {some} ({task.deps_needed} needed, {task.deps_open} open)"
        case TaskStatus.SCHEDULED:
            yield from scene.in_workflow
            yield from _scheduled(scene)
        case TaskStatus.PENDING:
            yield from scene.in_workflow
            yield from _pending(scene)
        case TaskStatus.CLAIMED:
            yield f"worker {task.claimed_by_worker_id} has claimed it and will start it"
        case TaskStatus.RUNNING:
            yield from _running(scene)
            yield from scene.in_workflow
        case _:
            yield _ending(task)
            yield from scene.in_workflow
            if task.dead:
                yield "it is listed among the dead letters; `resubmit` runs it again"


def _last_failure(scene: _Scene) -> Iterator[str]:
    failed = scene.failed
    if failed is not None:
        text = failed.failed_reason or failed.error_code
        yield f"attempt {failed.attempt} failed: {text}"


def _scheduled(scene: _Scene) -> Iterator[str]:
    task = scene.task
    yield from _last_failure(scene)
    if task.due_at is not None:
        granted = retries_granted(task.retry_count, task.max_retries)
        again = f" (retry {task.retry_count} of {granted})" if task.next_retry_at else ""
        wait = (task.due_at - scene.now) / 1_000_000
        if wait > 0:
            yield f"it is due at {_time(task.due_at)}, in {length(wait)}{again}"
        else:
            yield f"it was due at {_time(task.due_at)}, {length(-wait)} ago{again}"
    yield from _who_could(scene)


def _pending(scene: _Scene) -> Iterator[str]:
    task, queue = scene.task, scene.queue
    yield from _last_failure(scene)
    yield from scene.limited
    if task.good_until is not None and task.good_until <= scene.now:
        yield f"its good_until, {_time(task.good_until)}, has passed; it will expire"
    if queue is not None and queue.paused_at is not None:
        by = f" by {queue.paused_by}" if queue.paused_by else ""
        yield f"queue {task.queue_name!r} was paused{by} at {_time(queue.paused_at)}"
    yield from _who_could(scene)
    if scene.workers and queue is not None and queue.pending > 1:
        least = "at least " if queue.pending >= COUNT_CAP else ""
        others = _count(queue.pending - 1, "other task")
        yield f"beside it, {least}{others} in queue {task.queue_name!r}"


def _running(scene: _Scene) -> Iterator[str]:
    task = scene.task
    where = f" on {task.worker_hostname}" if task.worker_hostname else ""
    since = f" since {_time(task.started_at)}" if task.started_at is not None else ""
    yield f"attempt {task.attempt} runs{where}{since}, by worker {task.claimed_by_worker_id}"
    yield from _last_failure(scene)
    if task.cancel_requested_at is not None:
        yield f"a cancel was requested at {_time(task.cancel_requested_at)}"
    if all(worker.worker_id != task.claimed_by_worker_id for worker in scene.workers):
        yield "that worker has not been seen for a while; the task is recovered with its lease"


def _who_could(scene: _Scene) -> Iterator[str]:
    task = scene.task
    if not scene.workers:
        yield "no worker is running on this database: start one"
        return
    serving = [worker for worker in scene.workers if task.queue_name in from_json(worker.queues)]
    if not serving:
        number, remedy = len(scene.workers), f"start one that does (-q {task.queue_name})"
        who = "the one worker there is does not serve"
        if number > 1:
            who = f"none of the {number:,} workers serves"
        if scene.route is not None:
            remedy += f", or change the route {scene.route.pattern!r}, which sends it there"
        yield f"{who} queue {task.queue_name!r}: {remedy}"
        return
    name = known_name(task.task_name, task.version)
    knowing = sum(name in from_json(worker.known) for worker in serving)
    if knowing:
        yield f"{_count(knowing, 'worker')} could run it"
        if scene.are_busy:
            yield _busy(scene, knowing)
    else:
        yield (
            f"none of the workers that serve queue {task.queue_name!r} knows task "
            f"{task.task_name!r} version {task.version}: deploy its code there"
        )


def _busy(scene: _Scene, knowing: int) -> str:
    busy = f"all {'its' if knowing == 1 else 'their'} processes are busy"
    remedy = "give the worker more processes (-c), or send it to a queue that another worker serves"
    if scene.is_awaited_there:
        return f"{busy}, one of them waits for this task: {remedy}"
    parent = scene.parent
    if parent is None:
        return busy
    sent = f"task {UUID(bytes=parent.id)} ({parent.task_name}), which sent this one"
    return f"{busy}, one of them with {sent}: if that waits for it, {remedy}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def _time(us: int) -> str:
    return from_us(us).isoformat(timespec="seconds")

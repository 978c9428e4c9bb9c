"""Why a task is where it is, in sentences.

Owns the explanation behind `handle.why()`. It says only what the database shows at this
moment: it reads, it guesses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from holdfast.core.errors import TaskNotFound
from holdfast.core.moment import from_us
from holdfast.core.payload.codec import from_json
from holdfast.core.records import QueueRecord, TaskRecord, WorkerRecord
from holdfast.core.status import TaskStatus
from holdfast.store.op import Steps, reads
from holdfast.store.verbs.claims import known_name
from holdfast.store.verbs.inspect import tasks_by_id
from holdfast.store.verbs.queues import COUNT_CAP, list_queues
from holdfast.store.verbs.timing import next_due
from holdfast.store.verbs.workers import list_workers

__all__ = ["Why", "explain", "unattended"]


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
    now: int


@reads
def explain(task_id: bytes) -> Steps[Why]:
    """Why a task is where it is."""
    scene = yield from _look_around(task_id)
    return _explanation(scene)


@reads
def unattended(task_id: bytes) -> Steps[Why | None]:
    """The same if there is no worker at all, otherwise None: then waiting is in order."""
    scene = yield from _look_around(task_id)
    if scene.workers or scene.task.status.is_terminal:
        return None
    return _explanation(scene)


def _look_around(task_id: bytes) -> Steps[_Scene]:
    found = yield from tasks_by_id([task_id])
    if task_id not in found:
        raise TaskNotFound(task_id)
    task = found[task_id]
    now = (yield from next_due()).now
    workers = yield from list_workers()
    queues = yield from list_queues()
    return _Scene(
        task,
        next((queue for queue in queues if queue.queue_name == task.queue_name), None),
        [worker for worker in workers if _lives(worker, now)],
        now,
    )


def _explanation(scene: _Scene) -> Why:
    return Why(UUID(bytes=scene.task.id), scene.task.status, tuple(_reasons(scene)))


def _lives(worker: WorkerRecord, now: int) -> bool:
    return worker.stopped_at is None and worker.seen_at + worker.lease_us > now


def _reasons(scene: _Scene) -> Iterator[str]:
    task = scene.task
    match task.status:
        case TaskStatus.WAITING:
            some = "one more dependency" if task.deps_needed == 1 else "more dependencies"
            yield f"it waits for {some} ({task.deps_needed} needed, {task.deps_open} open)"
        case TaskStatus.SCHEDULED:
            yield from _scheduled(scene)
        case TaskStatus.PENDING:
            yield from _pending(scene)
        case TaskStatus.CLAIMED:
            yield f"worker {task.claimed_by_worker_id} has claimed it and will start it"
        case TaskStatus.RUNNING:
            yield from _running(scene)
        case _:
            yield task.failed_reason or task.status.meaning
            if task.dead:
                yield "it is listed among the dead letters; `resubmit` runs it again"


def _scheduled(scene: _Scene) -> Iterator[str]:
    task = scene.task
    if task.due_at is not None:
        again = f" (retry {task.retry_count} of {task.max_retries})" if task.next_retry_at else ""
        wait = max(0.0, (task.due_at - scene.now) / 1_000_000)
        yield f"it is due at {_time(task.due_at)}, in {wait:.0f} s{again}"
    yield from _who_could(scene)


def _pending(scene: _Scene) -> Iterator[str]:
    task, queue = scene.task, scene.queue
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
        running = _count(len(scene.workers), "worker")
        yield f"none of {running} serves queue {task.queue_name!r}"
        return
    name = known_name(task.task_name, task.version)
    knowing = sum(name in from_json(worker.known) for worker in serving)
    if knowing:
        yield f"{_count(knowing, 'worker')} could run it"
    else:
        yield (
            f"none of the workers that serve queue {task.queue_name!r} knows task "
            f"{task.task_name!r} version {task.version}: deploy its code there"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def _time(us: int) -> str:
    return from_us(us).isoformat(timespec="seconds")

"""What keeps tasks from running: workers, queues, leases, schedules, rows that cannot be read.

Owns the judgement of what was read; it asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.client.doctor.finding import Finding, Severity
from holdfast.core.errors import UnreadableRow
from holdfast.core.identity import as_text
from holdfast.core.moment import length
from holdfast.core.payload.codec import from_json
from holdfast.core.records import QueueRecord, WorkerRecord
from holdfast.store.verbs.claims import known_name
from holdfast.store.verbs.diagnosis import ExpiredLeases, LateSchedule, PendingKind

_SECOND_US: Final = 1_000_000
_MINUTE_US: Final = 60 * _SECOND_US
_DAY_US: Final = 24 * 60 * _MINUTE_US
_MOST_NAMED: Final = 10


class Crew:
    """The workers that are alive, and what they do."""

    def __init__(self, workers: Sequence[WorkerRecord], now: int) -> None:
        self.alive = [worker for worker in workers if worker.is_alive(now)]
        self._queues = {worker.worker_id: set(from_json(worker.queues)) for worker in self.alive}
        self._known = {worker.worker_id: set(from_json(worker.known)) for worker in self.alive}

    def serves(self, queue: str) -> bool:
        """Whether somebody takes tasks from this queue."""
        return any(queue in queues for queues in self._queues.values())

    def knows(self, kind: PendingKind) -> bool:
        """Whether somebody who serves that queue has the code of such a task."""
        name = known_name(kind.task_name, kind.version)
        return any(
            name in self._known[worker] and kind.queue_name in queues
            for worker, queues in self._queues.items()
        )


def judge_workers(
    workers: Sequence[WorkerRecord], queues: Sequence[QueueRecord], now: int
) -> Iterator[Finding]:
    """Whether there are any, and how those are that there are."""
    crew = Crew(workers, now)
    waiting = sum(queue.pending for queue in queues if queue.paused_at is None)
    if not crew.alive:
        yield Finding(
            "no-worker",
            Severity.CRITICAL if waiting else Severity.NOTICE,
            f"no worker is running; {waiting:,} task(s) wait",
            "nothing is run, promoted, expired or recovered",
            "start one: holdfast worker MODULE:APP",
            {"waiting": waiting},
        )
    for worker in workers:
        silent = now - worker.seen_at
        if worker.stopped_at is None and not worker.is_alive(now) and silent < _DAY_US:
            yield Finding(
                "worker-silent",
                Severity.WARNING,
                f"worker {worker.worker_id} on {worker.hostname} (pid {worker.pid}) has not been "
                f"seen for {length(silent / _SECOND_US)}, and did not say that it stops",
                "it was killed, its machine is gone, or it cannot reach the database; "
                + (
                    "others take its tasks over"
                    if crew.alive
                    else "nobody is there to take its tasks over"
                ),
                "look at its log and its machine; it is forgotten after some days",
                {"worker_id": worker.worker_id, "hostname": worker.hostname, "pid": worker.pid},
            )
    versions = {worker.version for worker in crew.alive}
    if len(versions) > 1:
        yield Finding(
            "versions-differ",
            Severity.NOTICE,
            f"workers run different versions of Holdfast: {', '.join(sorted(versions))}",
            "during an upgrade that is as it should be",
            "upgrade what is older",
            {"versions": sorted(versions)},
        )


def judge_queues(
    queues: Sequence[QueueRecord], workers: Sequence[WorkerRecord], now: int, patience_us: int
) -> Iterator[Finding]:
    """Queues in which tasks wait and nobody takes them."""
    crew = Crew(workers, now)
    for queue in queues:
        if not queue.pending:
            continue
        oldest = now if queue.oldest_enqueued_at is None else queue.oldest_enqueued_at
        age = max(0, now - oldest)
        name, waits = queue.queue_name, f"{queue.pending:,} task(s) wait in queue"
        for_how_long = f"the oldest for {length(age / _SECOND_US)}"
        detail = {"queue": name, "pending": queue.pending, "oldest_seconds": age / _SECOND_US}
        if queue.paused_at is not None:
            paused = length(max(0, now - queue.paused_at) / _SECOND_US)
            yield Finding(
                "queue-paused",
                Severity.WARNING if now - queue.paused_at > _DAY_US else Severity.NOTICE,
                f"{waits} {name!r}, which {queue.paused_by or 'somebody'} paused {paused} ago",
                "nothing is taken from it until somebody resumes it",
                f"holdfast queues resume {name}",
                detail,
            )
        elif not crew.alive:
            # That there is no worker is said once.
            continue
        elif not crew.serves(name):
            yield Finding(
                "queue-unserved",
                Severity.WARNING,
                f"{waits} {name!r}, {for_how_long}, and no worker serves it",
                "they wait until one does",
                f"start a worker with -q {name}, or move them: holdfast tasks reschedule ID "
                "--queue NAME",
                detail,
            )
        elif age > patience_us:
            yield Finding(
                "queue-behind",
                Severity.NOTICE,
                f"{waits} {name!r}, {for_how_long}",
                "more is sent than its workers finish, a limit holds it back, or its tasks are not "
                "known to them",
                f"holdfast tasks list --queue {name} --status PENDING, then holdfast tasks why ID",
                detail,
            )


def judge_kinds(
    kinds: Sequence[PendingKind], workers: Sequence[WorkerRecord], now: int
) -> Iterator[Finding]:
    """Tasks whose code no worker of their queue has."""
    crew = Crew(workers, now)
    for kind in kinds:
        if crew.alive and crew.serves(kind.queue_name) and not crew.knows(kind):
            named = kind.task_name if kind.version == 1 else f"{kind.task_name} v{kind.version}"
            yield Finding(
                "task-unknown",
                Severity.WARNING,
                f"{kind.number:,} task(s) {named!r} wait in queue {kind.queue_name!r}, and no "
                f"worker that serves it knows that name; the oldest for "
                f"{length(max(0, now - kind.oldest) / _SECOND_US)}",
                "the task was renamed or removed, or its worker runs other code",
                f"deploy code that has it, or cancel them: holdfast tasks cancel --name "
                f"{kind.task_name}",
                {
                    "task": kind.task_name,
                    "version": kind.version,
                    "queue": kind.queue_name,
                    "number": kind.number,
                },
            )


def judge_leases(
    leases: Sequence[ExpiredLeases], workers: Sequence[WorkerRecord], now: int
) -> Iterator[Finding]:
    """Leases that ended, and that nobody has recovered."""
    someone = bool(Crew(workers, now).alive)
    for lease in leases:
        yield Finding(
            "leases-expired",
            Severity.CRITICAL if someone else Severity.WARNING,
            f"{lease.number:,} lease(s) of worker {lease.worker_id} ended "
            f"{length(max(0, now - lease.since) / _SECOND_US)} ago, and their tasks were not "
            "recovered",
            "workers recover within a second, unless another transaction holds the rows"
            if someone
            else "nobody is there to recover them",
            "holdfast's worker log names who holds the rows; see docs/operations/locks.md"
            if someone
            else "start a worker: it recovers them at once",
            {"worker_id": lease.worker_id, "leases": lease.number},
        )


def judge_schedules(schedules: Sequence[LateSchedule], now: int) -> Iterator[Finding]:
    """Schedules that should have fired."""
    for schedule in schedules[:_MOST_NAMED]:
        late = length(max(0, now - schedule.due_at) / _SECOND_US)
        yield Finding(
            "schedule-late",
            Severity.WARNING,
            f"schedule {schedule.name!r} is {late} late",
            "workers fire schedules within a second: none is alive, or something holds its row",
            f"start a worker; holdfast schedules show {schedule.name}",
            {"schedule": schedule.name, "late_seconds": (now - schedule.due_at) / _SECOND_US},
        )
    if len(schedules) > _MOST_NAMED:
        yield Finding(
            "schedule-late",
            Severity.WARNING,
            f"{len(schedules) - _MOST_NAMED} more schedules are late",
            "workers fire schedules within a second",
            "holdfast schedules list",
        )


def judge_steps(stuck: Sequence[bytes]) -> Iterator[Finding]:
    """Steps of workflows that wait for what will never come."""
    if stuck:
        first = as_text(stuck[0])
        yield Finding(
            "steps-stuck",
            Severity.WARNING,
            f"{len(stuck):,} step(s) of workflows wait for what has ended or is gone, the first "
            f"is {first}",
            "nothing that Holdfast does leaves them so: somebody changed rows, or it is a defect",
            "a worker lets them go on within about an hour, and says so; if nobody changed rows, "
            f"report it with what holdfast tasks why {first} says",
            {"number": len(stuck), "tasks": [as_text(id) for id in stuck[:_MOST_NAMED]]},
        )


def judge_rows(found: Sequence[UnreadableRow]) -> Iterator[Finding]:
    """Rows that Holdfast did not write."""
    for row in found[:_MOST_NAMED]:
        remedy = (
            f"correct it, or holdfast tasks delete --unreadable {row.key}"
            if row.table == "holdfast_tasks"
            else "correct or delete it with SQL"
        )
        yield Finding(
            "row-unreadable",
            Severity.WARNING,
            f"row {row.key} of {row.table} cannot be read: {row.column} {row.reason}",
            "it was written by hand or by other code, or is damaged; it is passed over",
            remedy,
            {"table": row.table, "key": row.key, "column": row.column},
        )
    if len(found) > _MOST_NAMED:
        yield Finding(
            "row-unreadable",
            Severity.WARNING,
            f"{len(found) - _MOST_NAMED:,} more rows cannot be read",
            "they were written by hand or by other code, or are damaged; they are passed over",
            "holdfast tasks list shows them",
        )


def judge_dead(by_queue: Mapping[str, int]) -> Iterator[Finding]:
    """Tasks that failed for good, and about which nobody has decided."""
    number = sum(by_queue.values())
    if number:
        yield Finding(
            "dead-letters",
            Severity.NOTICE,
            f"{number:,} dead letter(s) wait for a decision",
            "they failed for good; they are kept until somebody resubmits or deletes them",
            "holdfast dead-letters list",
            {"number": number},
        )

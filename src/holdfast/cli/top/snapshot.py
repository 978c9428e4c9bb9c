"""What the monitor shows, as it was at one moment.

Owns the reading: bounded lists and counters, never a walk over the tasks, so that an open monitor
does not hurt the queue. `SnapshotReader` reads in a thread of its own, so that keys are answered
while the database is slow, and keeps the last answer while it is away.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final

from holdfast.client.control import Control
from holdfast.client.ending_tail import EndingTail
from holdfast.client.info import TaskInfo
from holdfast.client.redacted import redacted_task
from holdfast.client.stats_control import QueueDepth, StatsPoint
from holdfast.client.worker_control import WorkerInfo
from holdfast.core.errors import HoldfastError
from holdfast.core.redaction import is_secret
from holdfast.core.status import TaskStatus

LAST: Final = "5m"
MINUTES: Final = 5
_ROWS: Final = 100
_FAILURES: Final = 50
_BAD: Final = (TaskStatus.FAILED, TaskStatus.STALLED, TaskStatus.DROPPED, TaskStatus.EXPIRED)


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue: how deep it is, and what its tasks do."""

    name: str
    pending: int
    running: int
    oldest: float
    """Seconds."""
    sent: float
    ended: float
    """A minute, both."""
    failed: int
    run_p95: float | None
    paused_by: str | None
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is shown."""

    now: datetime
    queues: Sequence[QueueLine]
    workers: Sequence[WorkerInfo]
    running: Sequence[TaskInfo]
    failures: Sequence[TaskInfo]
    dead: int
    unreadable: int

    @property
    def pending(self) -> int:
        """How many tasks wait."""
        return sum(queue.pending for queue in self.queues)


class SnapshotReader:
    """Reads a snapshot now and then; `hides` says of a key whether its value is shown to nobody."""

    def __init__(
        self, control: Control, every: float, hides: Callable[[str], bool] = is_secret
    ) -> None:
        self._control = control
        self._hides = hides
        self._every = every
        self._wake = threading.Event()
        self._stopping = False
        self._asked_at: float | None = None
        self._tail: EndingTail = control.tasks.tail(status=_BAD)
        self._failures: deque[TaskInfo] = deque(maxlen=_FAILURES)
        self.latest: Snapshot | None = None
        self.problem: str | None = None
        """Why there is nothing newer."""
        self.number = 0
        """Counts the answers, good and bad, so that one can be seen to be new."""
        self._thread = threading.Thread(target=self._run, name="holdfast-top", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def again(self) -> None:
        """Read now."""
        self._wake.set()

    def stop(self) -> bool:
        """Read no more; whether the last reading has ended."""
        self._stopping = True
        self._wake.set()
        self._thread.join(1.0)
        return not self._thread.is_alive()

    @property
    def silence(self) -> float:
        """For how many seconds the database has been asked and has not answered."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else monotonic() - asked_at

    def read(self) -> Snapshot:
        """One snapshot, now."""
        control = self._control
        for info in self._tail.look():
            self._failures.append(info)
        queues = control.queues.list()
        depths = {depth.queue: depth for depth in control.stats.depths()}
        counted = {
            point.queue or "": point for point in control.stats.summary(last=LAST, by="queue")
        }
        workers = control.workers.list()
        running = control.tasks.list(status=TaskStatus.RUNNING, limit=_ROWS)
        dead = control.dead_letters.list(limit=_FAILURES)
        paused = {queue.name: queue for queue in queues}
        names = sorted(paused.keys() | depths.keys() | counted.keys())
        lines = []
        for name in names:
            queue = paused.get(name)
            who = None if queue is None or queue.paused_at is None else queue.paused_by or "?"
            lines.append(_line(name, depths.get(name), counted.get(name), who))
        failures = {info.id: info for info in (*self._failures, *dead.tasks)}
        # One that was resubmitted has not failed any more.
        stands = control.tasks.statuses(*failures) if failures else {}
        bad = [info for task, info in failures.items() if stands.get(task) in _BAD]
        bad.sort(key=lambda info: info.finished_at or info.updated_at, reverse=True)
        return Snapshot(
            control.now(),
            lines,
            list(workers),
            [redacted_task(info, self._hides) for info in sorted(running.tasks, key=_began)],
            [redacted_task(info, self._hides) for info in bad[:_FAILURES]],
            sum(depth.dead for depth in depths.values()),
            len(queues.unreadable) + len(workers.unreadable) + len(running.unreadable),
        )

    def _run(self) -> None:
        while not self._stopping:
            self._asked_at = monotonic()
            try:
                self.latest, self.problem = self.read(), None
            except HoldfastError as error:
                self.problem = str(error)
            self._asked_at = None
            self.number += 1
            self._wake.wait(self._every)
            self._wake.clear()


def _began(info: TaskInfo) -> datetime:
    return info.started_at or info.updated_at


def _line(
    name: str, depth: QueueDepth | None, point: StatsPoint | None, paused_by: str | None
) -> QueueLine:
    counted = None if point is None else point.counted
    return QueueLine(
        name,
        0 if depth is None else depth.pending,
        0 if depth is None else depth.running,
        0.0 if depth is None else depth.oldest,
        0.0 if counted is None else counted.sent / MINUTES,
        0.0 if counted is None else counted.ended / MINUTES,
        0 if counted is None else counted.failures,
        None if counted is None else counted.run.p95,
        paused_by,
        paused_by is not None,
    )

"""The verbs of the store, with the arguments a test does not care about filled in.

Owns builders: a submission, a task in any state. A state is reached by real verbs only, so
that what a test starts from is something that can exist.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from holdfast.core.decide import Change, decide
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Failed, Outcome, StoppedByShutdown
from holdfast.core.records import (
    HEAD,
    AttemptRecord,
    Claimed,
    ClaimedTask,
    Edge,
    Landing,
    Position,
    Submission,
    SubmitAnswer,
    Submitted,
    TaskRecord,
)
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from holdfast.store.op import Key, Op
from holdfast.store.verbs import (
    cancel,
    claims,
    dependents,
    finish,
    inspect,
    operate,
    submit,
    timing,
)

T = TypeVar("T")

QUEUE, TASK, KNOWN, WORKER = "q", "t", "t@1", "worker-1"
HOST, PID, PROCESS = "host-1", 4711, "child-1"
LEASE_US = 30_000_000
BOOM = TaskError("BOOM", "it went wrong")
ENDED = tuple(status for status in TaskStatus if status.is_terminal)
"""The terminal states, in the order of their definition: a set has none."""
LIVE = tuple(status for status in TaskStatus if not status.is_terminal)


class MovableClock(Protocol):
    """A clock that stands still until a test moves it."""

    @property
    def now(self) -> int: ...

    def advance(self, seconds: float) -> int: ...

    def move_to(self, at: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Case:
    """A task in some state, and the tokens that somebody may believe in."""

    id: bytes
    key: Key
    stale: bytes
    """Of a claim of this task that was given back."""
    current: bytes | None
    """Of its latest claim: it is on the row while the task is in flight."""
    claimed: ClaimedTask
    """The latest claim's answer, for verbs that need more than the token."""


def new_token() -> bytes:
    return os.urandom(16)


def submission(**fields: Any) -> Submission:
    """A plain task to submit, except for what is said here."""
    given: dict[str, Any] = {
        "id": new_id(),
        "task_name": TASK,
        "version": 1,
        "queue_name": QUEUE,
        "priority": 50,
        "args": "[]",
        "kwargs": "{}",
        "enqueue_sha": "sha-1",
        "sent_at": 1_700_000_000_000_000,
    }
    return Submission(**{**given, **fields})


def step(workflow_id: bytes, *parents: bytes | Edge, **fields: Any) -> Submission:
    """A step of a workflow that waits for its parents' success, or for what an edge says."""
    edges = [parent if isinstance(parent, Edge) else Edge(parent) for parent in parents]
    return submission(workflow_id=workflow_id, depends_on=edges, **fields)


class Verbs(ABC):
    """Calls of the store in one line each."""

    clock: MovableClock

    @abstractmethod
    def run(self, op: Op[T]) -> T: ...

    @abstractmethod
    def sql(self, text: str, **params: Any) -> list[tuple[Any, ...]]: ...

    # Beginning.

    def submit(self, *submissions: Submission) -> list[Submitted]:
        return self.run(submit.submit(submissions))

    def send(self, **fields: Any) -> bytes:
        """Submit one new task; its id."""
        (answer,) = self.submit(submission(**fields))
        assert answer.answer is SubmitAnswer.CREATED, answer
        return answer.id

    def send_many(self, number: int, **fields: Any) -> list[bytes]:
        """Submit several new tasks; their ids, in the order of the queue."""
        answers = self.submit(*(submission(**fields) for _ in range(number)))
        assert {answer.answer for answer in answers} == {SubmitAnswer.CREATED}
        return [answer.id for answer in answers]

    # A claim and its end.

    def claim(
        self,
        wanted: int = 100,
        *,
        queue: str = QUEUE,
        known: Iterable[str] = (KNOWN,),
        worker: str = WORKER,
        lease_us: int = LEASE_US,
        token: bytes | None = None,
        after: Position = HEAD,
        policies: Mapping[str, claims.Rules] | None = None,
        child: claims.ChildIdentity | None = None,
    ) -> Claimed:
        return self.run(
            claims.claim(
                claims.Request(
                    token=token or new_token(),
                    worker_id=worker,
                    queue=queue,
                    known=known,
                    wanted=wanted,
                    lease_us=lease_us,
                    after=after,
                    policies=policies or {},
                    child=child,
                )
            )
        )

    def start(self, *tasks: ClaimedTask, pid: int = PID) -> list[Landing]:
        begins = [claims.Begin(task.key, task.token, pid, PROCESS) for task in tasks]
        return list(self.run(claims.start(begins, hostname=HOST)).values())

    def release(self, *tasks: ClaimedTask) -> list[Landing]:
        holds = [claims.Hold(task.key, task.token) for task in tasks]
        return list(self.run(claims.release(holds, queues=[QUEUE])).values())

    def complete(self, task: ClaimedTask, result: str = "null") -> Landing:
        done = finish.Completion(
            task.key, task.token, result, PID, in_workflow=task.workflow_id is not None
        )
        return self.run(finish.complete([done]))[task.key]

    def write(self, task: ClaimedTask, change: Change) -> Landing:
        """End a run as this change says."""
        ending = finish.RunChange(task.key, task.token, change, PID, WORKER)
        return self.run(finish.end([ending]))[task.key]

    def end(self, task: ClaimedTask, outcome: Outcome, policy: Policy | None = None) -> Landing:
        """End a run by what became of its code; counters are read from the row."""
        record = self.task(task.id)
        options = policy or Policy.decode(record.task_options)
        return self.write(task, decide(record, outcome, options, lambda: 1.0))

    def fail(self, task: ClaimedTask, error: TaskError = BOOM) -> Landing:
        return self.end(task, Failed(error), Policy())

    def fail_and_resubmit(self, task: ClaimedTask) -> None:
        """End a run for good, and let the task run again as an operator would."""
        self.fail(task)
        assert self.run(operate.resubmit([task.id]))[task.id]

    def claimed(self, **fields: Any) -> ClaimedTask:
        """A new task, CLAIMED."""
        name = claims.known_name(fields.get("task_name", TASK), fields.get("version", 1))
        return self.claim_of(self.send(**fields), fields.get("queue_name", QUEUE), name)

    def running(self, **fields: Any) -> ClaimedTask:
        """A new task, RUNNING."""
        return self.started(self.claimed(**fields))

    def claim_of(self, id: bytes, queue: str = QUEUE, known: str = KNOWN) -> ClaimedTask:
        """Claim this task, which must be the first in its queue."""
        (task,) = self.claim(1, queue=queue, known=[known]).tasks
        assert task.id == id, "another task stands before it in the queue"
        return task

    def run_again(self, id: bytes, queue: str = QUEUE) -> ClaimedTask:
        """Claim and start this task, which must be the first in its queue."""
        return self.started(self.claim_of(id, queue))

    def started(self, task: ClaimedTask) -> ClaimedTask:
        (landing,) = self.start(task)
        assert landing.status is TaskStatus.RUNNING
        return task

    # Looking.

    def task(self, id: bytes) -> TaskRecord:
        return self.run(inspect.tasks_by_id([id]))[id]

    def status(self, id: bytes) -> TaskStatus | None:
        return self.run(inspect.statuses([id])).get(id)

    def statuses(self, ids: Sequence[bytes]) -> list[TaskStatus | None]:
        found = self.run(inspect.statuses(ids))
        return [found.get(id) for id in ids]

    def attempts(self, id: bytes) -> list[AttemptRecord]:
        return self.run(inspect.attempts(id))

    def cancel(self, *ids: bytes) -> list[TaskStatus | None]:
        answers = self.run(cancel.cancel(ids))
        return [answers[id] for id in ids]

    # Any state.

    def reach(self, status: TaskStatus, **fields: Any) -> Case:
        """A new task in this state, which has been claimed and given back before.

        It lives in a queue of its own, so that what else there is does not matter.
        """
        given: dict[str, Any] = {"queue_name": f"queue-{new_id().hex()}", **fields}
        if status is TaskStatus.EXPIRED and given.get("good_until") is None:
            given["good_until"] = self.clock.now + 1_000_000
        if status is TaskStatus.WAITING:
            given = {"workflow_id": new_id(), **given}
        queue = given["queue_name"]
        held = self.claimed(**given)
        self.release(held)
        return self._on_from(held, status, queue)

    def bring(self, case: Case, status: TaskStatus) -> Case:
        """Bring a PENDING task on to this state; to EXPIRED only if it was sent with a deadline."""
        return self._on_from(case.claimed, status, case.claimed.queue_name)

    def _on_from(self, held: ClaimedTask, status: TaskStatus, queue: str) -> Case:
        id, latest = held.id, held
        current: bytes | None = None
        match status:
            case TaskStatus.PENDING:
                pass
            case TaskStatus.WAITING:
                assert held.workflow_id is not None
                self.run(dependents.hold(held.workflow_id))
            case TaskStatus.SCHEDULED:
                self.run(operate.reschedule([id], move=True, delay_us=3_600_000_000))
            case TaskStatus.CANCELLED:
                self.cancel(id)
            case TaskStatus.EXPIRED:
                assert held.good_until is not None
                self.clock.advance((held.good_until - self.clock.now) / 1_000_000)
                self.run(timing.expire())
            case TaskStatus.DROPPED:
                self.run(timing.drop(queue, known=[], before=self.clock.now + 1))
            case _:
                known = claims.known_name(held.task_name, held.version)
                latest = self.claim_of(id, queue, known)
                current = latest.token
                self._run_to(latest, status)
        assert self.status(id) is status
        return Case(id, held.key, held.token, current, latest)

    def _run_to(self, task: ClaimedTask, status: TaskStatus) -> None:
        if status is TaskStatus.CLAIMED:
            return
        self.started(task)
        match status:
            case TaskStatus.RUNNING:
                pass
            case TaskStatus.COMPLETED:
                self.complete(task)
            case TaskStatus.FAILED:
                self.fail(task)
            case TaskStatus.STALLED:
                self.end(task, StoppedByShutdown(), Policy(on_shutdown="stop"))
            case _:
                raise AssertionError(f"no way to {status} is known here")

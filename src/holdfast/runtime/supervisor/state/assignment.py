"""One task in the hands of one child, as the supervisor sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Outcome, Why
from holdfast.core.records import NO_USAGE, ClaimedTask, Usage
from holdfast.runtime.wire.messages import Job
from holdfast.store.verbs.evidence import LogPart, TaskNote

if TYPE_CHECKING:
    from holdfast.runtime.supervisor.state.child_handle import ChildHandle


class Assignment(Struct, eq=False):
    """Changes under the ledger's lock only."""

    slot: int
    task: ClaimedTask
    policy: Policy
    child: ChildHandle
    cost_us: int
    attempt: int = 0
    given_at: float = 0.0
    started: bool = False
    """Whether its start is durable; before that nothing was handed over."""
    doomed: Why | None = None
    doomed_at: float = 0.0
    killed: bool = False
    begun_at: float = 0.0
    """When its code began, from when we first saw that on: a child may write what it likes."""
    excused: float = 0.0
    """Seconds for which others kept it from going on."""
    remark: str = ""
    """What an error about its time limit has to add."""
    beat_at: float = 0.0
    """When it last gave a sign of life, for tasks that promise to (monotonic)."""
    stack: str | None = None
    """Where its code was when it was told to end."""
    wanted_gone: bool = False
    """Whether a cancel of it has been read from the store."""

    def job(self) -> Job:
        """What the child is told."""
        return job_of(self.task, self.slot, self.attempt)


def job_of(task: ClaimedTask, slot: int, attempt: int) -> Job:
    """A claimed task, as those who run it know it."""
    return Job(
        slot,
        task.id,
        task.task_name,
        task.version,
        task.queue_name,
        task.args,
        task.kwargs,
        attempt,
        task.retry_count,
        task.task_options,
        task.parent_id,
        task.root_id,
        task.workflow_id,
        task.trace_context,
        task.key,
        task.token,
    )


class Finished(Struct, frozen=True, gc=False):
    """A run that has ended and is not yet written."""

    assignment: Assignment
    outcome: Outcome
    usage: Usage = NO_USAGE
    run_us: int = 0
    note: TaskNote | None = None
    printed: LogPart | None = None
    orphaned: bool = False
    """Its child is dead, and has run no hook about it."""
    committed: bool = False
    """The code completed itself in its own transaction (`complete_in`); the row tells."""

"""complete, and the seven other ways out of RUNNING.

Owns the end of a run. Every write matches the task, RUNNING, and that task's own claim
token, and answers per task: landed, cancelled (a requested cancel had the last word),
lost (the claim is gone; nothing was written) or busy (another transaction holds the row).
The attempt row is written in the same transaction, and so are the dependents resolved.

Never touches `leases`: a finish and the reaper would take the same two rows in opposite
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.core.decide import Change
from holdfast.core.lifecycle import Verb
from holdfast.core.records import BUSY, LOST, NO_USAGE, Answer, Landing, Usage
from holdfast.core.status import TaskStatus
from holdfast.core.workflows.plan import AddedPlan
from holdfast.store import rows
from holdfast.store.op import (
    Changes,
    Channel,
    Column,
    Hint,
    Key,
    Mode,
    Op,
    Row,
    Rows,
    Statement,
    Steps,
    Table,
    reads,
)
from holdfast.store.verbs import evidence, freed_slots, returned_steps, workflows
from holdfast.store.verbs.claims import lockable
from holdfast.store.verbs.dependents import ended_steps, resolve
from holdfast.store.verbs.end_reasons import CANCELLED, WORKFLOW_DEADLINE, WORKFLOW_STOPPED
from holdfast.store.verbs.ended_counts import count_ended
from holdfast.store.verbs.returned_steps import NOTHING
from holdfast.store.verbs.statistics import Tally, add_tallies
from holdfast.store.verbs.step_counts import EndedStep

_DONE = Hint(Channel.DONE)
_RESULT = 1
"""Which field of a completion is its result."""
_BACK = frozenset({TaskStatus.PENDING.value, TaskStatus.SCHEDULED.value})


class Completion(Struct, frozen=True, gc=False):
    """A run that returned a value."""

    key: Key
    token: bytes
    result: str
    pid: int | None = None
    usage: Usage = NO_USAGE
    in_workflow: bool = False


class RunChange(NamedTuple):
    """A run that ended otherwise, and what is to become of its task."""

    key: Key
    token: bytes
    change: Change
    pid: int | None = None
    worker_id: str | None = None
    usage: Usage = NO_USAGE


def complete(
    completions: Sequence[Completion], *, skip_locked: bool = False
) -> Op[dict[Key, Landing]]:
    """RUNNING → COMPLETED. With `skip_locked`, a row that another transaction holds is BUSY."""
    single = not skip_locked and not any(c.in_workflow for c in completions)
    return Op(
        _complete(completions, skip_locked),
        Mode.ALONE if single else Mode.WRITE,
        "complete",
    )


def _complete(completions: Sequence[Completion], skip_locked: bool) -> Steps[dict[Key, Landing]]:
    answers: dict[Key, Landing] = {c.key: LOST for c in completions}
    if skip_locked:
        free = yield from lockable([c.key for c in completions])
        answers.update({c.key: BUSY for c in completions if c.key not in free})
        completions = [c for c in completions if c.key in free]
    ended = yield Statement(
        "complete",
        {
            "changes": Changes(
                [
                    (c.key, c.token, (c.pid, c.result, c.usage.peak_memory_kb, c.usage.cpu_time_us))
                    for c in completions
                ],
                text=_RESULT,
            )
        },
        hint=_DONE,
    )
    # Nearly all of them are at their first attempt.
    landings: dict[int, Landing] = {}
    steps: list[EndedStep] = []
    for key, attempt, step_id, *_ in ended:
        landing = landings.get(attempt)
        if landing is None:
            landing = landings[attempt] = Landing(Answer.LANDED, TaskStatus.COMPLETED, attempt)
        answers[key] = landing
        if step_id is not None and rows.is_uuid(step_id):
            steps.append(EndedStep(rows.uuid(step_id), TaskStatus.COMPLETED))
    if steps:
        yield from resolve(steps)
    return answers


class _EndedRow(NamedTuple):
    """What `end` answers for each run."""

    key: Any
    id: Any
    status: Any
    attempt: int
    started_at: int | None
    updated_at: int
    worker_hostname: Any
    worker_process_name: Any
    queue_name: Any
    workflow_id: Any
    task_name: Any
    slots: int


def end(changes: Sequence[RunChange], *, skip_locked: bool = False) -> Op[dict[Key, Landing]]:
    """fail, retry, snooze, interrupt, stall, recover, ack_cancel, as each `Change` says."""
    return Op(end_steps(changes, skip_locked), Mode.WRITE, "end")


def end_steps(
    changes: Sequence[RunChange], skip_locked: bool = False, *, counts: bool = False
) -> Steps[dict[Key, Landing]]:
    """The steps of `end`, for operations that end runs among other things.

    With `counts` the ends are counted here: nobody is there who has made the runs.
    """
    answers: dict[Key, Landing] = {e.key: LOST for e in changes}
    if skip_locked:
        free = yield from lockable([e.key for e in changes])
        answers.update({e.key: BUSY for e in changes if e.key not in free})
        changes = [e for e in changes if e.key in free]
    found: list[Row] = []
    for run in changes:
        if run.change.added is not None:
            found += yield from _hand_over(run, run.change.added)
    others = [e for e in changes if e.change.added is None]
    if others:
        found += yield from _end(others)
    ended = [*map(_EndedRow._make, found)]
    back = [row for row in ended if row.workflow_id is not None and row.status in _BACK]
    restrained = (yield from returned_steps.stop([*rows.uuids(back, 1)])) if back else NOTHING
    if restrained.cancelled:
        stopped = {step.id for step in restrained.cancelled}
        ended = [_as_it_stands(row, stopped) for row in ended]
    by_key = {e.key: e for e in changes}
    queues: set[str] = set()
    attempts: list[Row] = []
    for row in ended:
        run, status = by_key[rows.key(row.key)], TaskStatus(row.status)
        answers[run.key] = Landing(_answer(run.change, status), status, row.attempt, row.updated_at)
        attempts.append(_attempt(run, status, row))
        if status is TaskStatus.PENDING:
            queues.update(rows.texts([row.queue_name]))
    if attempts:
        yield Statement("write_attempts", table=Table(_ATTEMPT_COLUMNS, attempts))
    if counts:
        yield from count_ended(
            rows.uuids([(row.id,) for row in ended if TaskStatus(row.status).is_terminal])
        )
    yield from resolve(ended_steps((row.id, row.status, row.workflow_id) for row in ended))
    yield from returned_steps.hold(restrained.paused)
    yield from _hints(ended, queues)
    return answers


def _as_it_stands(row: _EndedRow, stopped: set[bytes]) -> _EndedRow:
    is_stopped = rows.is_uuid(row.id) and rows.uuid(row.id) in stopped
    return row._replace(status=TaskStatus.CANCELLED) if is_stopped else row


def _end(changes: Sequence[RunChange]) -> Steps[Rows]:
    found: Rows = yield Statement(
        "end",
        {
            "changes": Changes([(e.key, e.token, _wish(e.change)) for e in changes]),
            "cancel_error": CANCELLED.error,
            "cancel_reason": CANCELLED.reason,
            "deadline_error": WORKFLOW_DEADLINE.error,
            "deadline_reason": WORKFLOW_DEADLINE.reason,
        },
    )
    return found


def _hand_over(run: RunChange, added: AddedPlan) -> Steps[Rows]:
    """RUNNING → WAITING, with the steps that it adds, in the form of the rows of `end`."""
    found: Rows = yield Statement(
        "hand_over",
        {
            "key": run.key,
            "token": run.token,
            "cancel_error": CANCELLED.error,
            "cancel_reason": CANCELLED.reason,
            "deadline_error": WORKFLOW_DEADLINE.error,
            "deadline_reason": WORKFLOW_DEADLINE.reason,
            "stopped_error": WORKFLOW_STOPPED.error,
            "stopped_reason": WORKFLOW_STOPPED.reason,
        },
    )
    for row in map(_EndedRow._make, found):
        if row.status == TaskStatus.WAITING:
            id, workflow_id = rows.uuid(row.id), rows.uuid(row.workflow_id)
            yield from workflows.add(id, workflow_id, added, row.updated_at)
            yield from returned_steps.restrain([step.task.id for step in added.steps])
    return found


class Extras(NamedTuple):
    """What is written together with the ends of runs."""

    notes: Sequence[evidence.TaskNote] = ()
    logs: Sequence[evidence.LogPart] = ()
    tallies: Sequence[Tally] = ()


NO_EXTRAS = Extras()


def finish(
    completions: Sequence[Completion],
    changes: Sequence[RunChange],
    extras: Extras = NO_EXTRAS,
    *,
    skip_locked: bool = False,
) -> Op[dict[Key, Landing]]:
    """Everything a worker has to write about ended runs, in one transaction.

    With `skip_locked`, a task that another transaction holds is BUSY, and so is one of which
    something that waits for it is held; nothing about it is written.
    """
    if not changes and extras is NO_EXTRAS:
        return complete(completions, skip_locked=skip_locked)
    return Op(_finish(completions, changes, extras, skip_locked), Mode.WRITE, "finish")


def _finish(
    completions: Sequence[Completion],
    changes: Sequence[RunChange],
    extras: Extras,
    skip_locked: bool,
) -> Steps[dict[Key, Landing]]:
    answers: dict[Key, Landing] = {}
    notes, logs = extras.notes, extras.logs
    if skip_locked:
        keys = [c.key for c in completions] + [e.key for e in changes]
        free = yield from lockable(keys)
        answers = {key: BUSY for key in keys if key not in free}
        completions = [c for c in completions if c.key in free]
        changes = [e for e in changes if e.key in free]
        notes = [note for note in notes if note.key not in answers]
        logs = [part for part in logs if part.key not in answers]
    # First what is fenced by the claims that are about to end.
    if notes:
        yield from evidence.write_notes(notes)
    if logs:
        yield from evidence.append_logs(logs)
    if completions:
        answers |= yield from _complete(completions, False)
    if changes:
        answers |= yield from end_steps(changes)
    if extras.tallies:
        yield from add_tallies(extras.tallies)
    return answers


@reads
def ended_under(claims: Sequence[tuple[Key, bytes]]) -> Steps[set[tuple[Key, bytes]]]:
    """Which of these claims ended in an attempt row: how a worker whose finish got no answer
    learns that it had landed."""
    found = yield Statement(
        "ended_under", {"changes": Changes([(key, token, ()) for key, token in claims])}
    )
    return {(rows.key(row[0]), rows.uuid(row[1])) for row in found}


def _hints(ended: Sequence[_EndedRow], queues: set[str]) -> Steps[None]:
    if any(TaskStatus(row.status).is_terminal for row in ended):
        yield Statement("notify", hint=_DONE)
    said = queues | freed_slots.payloads(
        (row.slots, row.queue_name, row.task_name) for row in ended
    )
    if said:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(said)))


def _answer(change: Change, status: TaskStatus) -> Answer:
    if status is TaskStatus.CANCELLED and change.verb is not Verb.ACK_CANCEL:
        return Answer.CANCELLED
    return Answer.LANDED


def _wish(change: Change) -> dict[str, Any]:
    return {
        "verb": change.verb.value,
        "status": change.target.value,
        "delay_us": change.delay_us,
        "allowed": change.retries_allowed,
        "error": change.result,
        "error_code": change.error_code,
        "failed_reason": change.failed_reason,
        "dead_letter": change.dead_letter,
    }


_ATTEMPT_COLUMNS = {
    "key": Column.KEY,
    "attempt": Column.INT,
    "outcome": Column.TEXT,
    "will_retry": Column.BOOL,
    "token": Column.UUID,
    "started_at": Column.TIME,
    "finished_at": Column.TIME,
    "error_code": Column.TEXT,
    "error_message": Column.TEXT,
    "failed_reason": Column.TEXT,
    "error": Column.TEXT,
    "worker_id": Column.TEXT,
    "worker_hostname": Column.TEXT,
    "worker_pid": Column.INT,
    "worker_process_name": Column.TEXT,
    "exit_code": Column.INT,
    "exit_signal": Column.INT,
    "peak_memory_kb": Column.BIGINT,
    "cpu_time_us": Column.BIGINT,
}


def _attempt(run: RunChange, status: TaskStatus, row: _EndedRow) -> Row:
    """The attempt row says what became of the code, whatever became of the task."""
    change, usage = run.change, run.usage
    error = change.error
    return (
        run.key,
        row.attempt,
        change.attempt.value,
        change.will_retry and not status.is_terminal,
        run.token,
        # Absent only where somebody has taken it away.
        row.updated_at if row.started_at is None else row.started_at,
        row.updated_at,
        change.error_code,
        None if error is None else error.message,
        change.failed_reason,
        change.result,
        run.worker_id,
        rows.optional_text(row.worker_hostname),
        run.pid,
        rows.optional_text(row.worker_process_name),
        change.exit_code,
        change.exit_signal,
        usage.peak_memory_kb,
        usage.cpu_time_us,
    )

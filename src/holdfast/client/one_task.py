"""What is asked about one task: the store's batches, for a batch of one.

Owns the errors a single task gives: `TaskNotFound` for an id that does not exist, and
`IllegalTransition` for a verb that its status does not allow. They are raised inside the
operation, so nothing of it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeAlias, TypedDict

from holdfast.client.refusals import refusals
from holdfast.core.errors import (
    IllegalTransition,
    PayloadError,
    TaskNotFound,
    UnreadableRow,
)
from holdfast.core.identity import as_uuid
from holdfast.core.lifecycle import Verb
from holdfast.core.moment import optional_us
from holdfast.core.options import checks
from holdfast.core.records import TaskRecord
from holdfast.core.status import TaskStatus
from holdfast.core.workflows.inputs import Missing
from holdfast.store.op import Op, Steps, reads, writes
from holdfast.store.verbs import cancel as cancelling
from holdfast.store.verbs import evidence, inspect, operate, step_results

__all__ = [
    "ManyVerb",
    "ResubmitOptions",
    "cancel",
    "log",
    "output",
    "resubmission",
    "resubmit",
    "show",
    "status",
    "value_of_step",
]

ManyVerb: TypeAlias = "Callable[[Sequence[bytes]], Op[dict[bytes, bool]]]"
"""Says of each of these tasks whether it applied."""


@reads
def status(task_id: bytes) -> Steps[TaskStatus]:
    """Where a task stands."""
    return (yield from _status(task_id))


@reads
def show(task_id: bytes) -> Steps[TaskRecord]:
    """Everything that is stored about a task."""
    unreadable: list[UnreadableRow] = []
    found = yield from inspect.tasks_by_id([task_id], unreadable)
    if unreadable:
        raise unreadable[0]
    if task_id not in found:
        raise TaskNotFound(task_id)
    record = found[task_id]
    if record.handed_over and record.status is TaskStatus.COMPLETED:
        try:
            result = yield from step_results.result(task_id)
        except Missing:
            return record
        return replace(record, result=result)
    return record


@reads
def value_of_step(task_id: bytes) -> Steps[str]:
    """The value of a completed step that added others: what these have left."""
    try:
        return (yield from step_results.result(task_id))
    except Missing as missing:
        raise PayloadError(f"the value of task {as_uuid(task_id)} is gone: {missing}") from None


@reads
def log(task_id: bytes, attempt: int | None) -> Steps[str]:
    """What a task printed, in one attempt or in all."""
    printed = bytearray()
    after = (0, -1)
    while True:
        found = yield from evidence.read_log(task_id, attempt=attempt, after=after)
        if not found:
            break
        printed += b"".join(part.data for part in found)
        after = found[-1].attempt, found[-1].part
    if not printed:
        yield from _status(task_id)
    return printed.decode(errors="replace")


@reads
def output(task_id: bytes) -> Steps[str | None]:
    """What a generator task has yielded so far."""
    found = yield from evidence.read_output(task_id)
    if found is None:
        raise TaskNotFound(task_id)
    return found.text


@writes
def cancel(task_id: bytes) -> Steps[TaskStatus]:
    """Cancel a task, or ask its worker to; the status it has then."""
    after = (yield from cancelling.cancel([task_id]))[task_id]
    if after is None:
        raise TaskNotFound(task_id)
    return after


class ResubmitOptions(TypedDict, total=False):
    """The keywords of every `resubmit`."""

    keep_retries: bool
    """Leave the counts of retries and crashes as they are."""
    fresh: bool
    """Forget its checkpoints."""
    good_until: datetime | None
    run_at: datetime | None


def resubmission(
    *,
    keep_retries: bool = False,
    fresh: bool = False,
    good_until: datetime | None = None,
    run_at: datetime | None = None,
) -> ManyVerb:
    """Lets ended tasks run again, in this way."""
    return partial(
        operate.resubmit,
        keep_retries=checks.flag(keep_retries, "keep_retries"),
        fresh=checks.flag(fresh, "fresh"),
        good_until=optional_us(good_until, option="good_until"),
        run_at=optional_us(run_at, option="run_at"),
    )


@writes
def resubmit(task_id: bytes, again: ManyVerb) -> Steps[TaskStatus]:
    """Let an ended task run again; the status it has then."""
    done = yield from again([task_id])
    status = yield from _status(task_id)
    if not done[task_id]:
        why = yield from refusals(Verb.RESUBMIT, [task_id])
        raise IllegalTransition(task_id, Verb.RESUBMIT, status, why=why[task_id])
    return status


def _status(task_id: bytes) -> Steps[TaskStatus]:
    found = yield from inspect.statuses([task_id])
    if task_id not in found:
        raise TaskNotFound(task_id)
    return found[task_id]

"""A verb applied to many tasks: those named, or those that a filter finds.

Owns the counting beforehand, the batches, and what became of each task. A filter is walked from the
newest task to the oldest, in pages; each page is one transaction and one entry in the record of
actions, and where the walk stands is the answer's `next`. So one request does a bounded amount of
work, whoever asks goes on with the next one, and a task that is sent meanwhile is not touched.

A verb leaves a task as it is that it does not apply to, and says so; it stops no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, TypeAlias
from uuid import UUID

from holdfast.client.control import Control
from holdfast.client.task_search import Filter
from holdfast.core.errors import UniqueConflict, UpstreamEnded
from holdfast.core.status import TaskStatus
from holdfast.web.allowed import statuses_for

__all__ = ["BATCH", "BulkAnswer", "BulkVerb", "Chosen", "count", "do_to_filter", "do_to_ids"]

BATCH: Final = 500
MOST_COUNTED: Final = 10_000
MOST_REFUSED: Final = 100
"""How many refusals one answer names."""
PATIENCE: Final = 5.0
"""Seconds after which a request answers with what it has done so far."""

BulkVerb: TypeAlias = "Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, bool]]]"
"""Says of each task whether it was done."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """How many tasks a verb would be applied to."""

    count: int
    is_all: bool
    """False: there may be more."""
    by_status: Mapping[TaskStatus, int]


@dataclass(slots=True)
class BulkAnswer:
    """What became of the tasks."""

    done: int = 0
    refused: dict[UUID, str] = field(default_factory=dict)
    """Why not, of the first few."""
    not_done: int = 0
    next: UUID | None = None
    """Where to go on; None: at the beginning."""
    is_all: bool = True
    """The filter has been walked to its end."""

    def refuse(self, task: UUID, why: str) -> None:
        """A task that was left as it is."""
        self.not_done += 1
        if len(self.refused) < MOST_REFUSED:
            self.refused[task] = why


async def count(control: Control, verb: str, where: Filter) -> Chosen:
    """How many tasks fit that the verb applies to, up to 10,000."""
    wanted = _applicable(verb, where)
    if wanted is None:
        return Chosen(0, True, {})
    found: Counter[TaskStatus] = Counter()
    start: UUID | None = None
    end = monotonic() + PATIENCE
    while found.total() < MOST_COUNTED and monotonic() < end:
        page = await control.tasks.alist(before=start, limit=BATCH, **wanted)
        found.update(info.status for info in page.tasks)
        start = page.next
        if start is None:
            return Chosen(found.total(), True, dict(found))
    return Chosen(found.total(), False, dict(found))


async def do_to_filter(
    control: Control, verb: str, where: Filter, act: BulkVerb, *, before: UUID | None, most: int
) -> BulkAnswer:
    """Apply a verb to at most so many of the tasks that fit, the newest first."""
    answer = BulkAnswer(next=before, is_all=False)
    wanted = _applicable(verb, where)
    if wanted is None:
        return BulkAnswer()
    end = monotonic() + PATIENCE
    while answer.done + answer.not_done < most and monotonic() < end:
        left = most - answer.done - answer.not_done
        page = await control.tasks.alist(before=answer.next, limit=min(BATCH, left), **wanted)
        tasks = [info.id for info in page.tasks]
        refused = await _do(control, verb, act, tasks, answer)
        if page.next is None:
            answer.next, answer.is_all = None, True
            break
        if verb != "delete" or not tasks:
            answer.next = page.next
        elif refused:
            # No page begins behind a task that is gone.
            answer.next = [task for task in tasks if task in refused][-1]
    return answer


async def do_to_ids(control: Control, verb: str, act: BulkVerb, ids: Sequence[UUID]) -> BulkAnswer:
    """Apply a verb to tasks that are named."""
    answer = BulkAnswer()
    tasks = list(dict.fromkeys(ids))
    for start in range(0, len(tasks), BATCH):
        await _do(control, verb, act, tasks[start : start + BATCH], answer)
    return answer


def _applicable(verb: str, where: Filter) -> Filter | None:
    """The filter, for the statuses that the verb applies to; None: there are none of them."""
    asked = where.get("status", ())
    names = [asked] if isinstance(asked, str) else list(asked)
    allowed = statuses_for(verb)
    chosen = [status for status in allowed if not names or status in names]
    return Filter(**{**where, "status": chosen}) if chosen else None


async def _do(
    control: Control, verb: str, act: BulkVerb, ids: Sequence[UUID], answer: BulkAnswer
) -> set[UUID]:
    """Do it, and note what became of each; those that were left as they are."""
    if not ids:
        return set()
    try:
        done = await act(ids)
    except (UniqueConflict, UpstreamEnded) as error:
        # Nothing of the batch was written.
        if len(ids) == 1:
            answer.refuse(ids[0], str(error))
            return set(ids)
        parts = _parts(ids, error)
        return set().union(*[await _do(control, verb, act, part, answer) for part in parts])
    answer.done += sum(done.values())
    left = [task for task, was_done in done.items() if not was_done]
    if not left:
        return set()
    after = await control.tasks.astatuses(*left)
    for task in left:
        status = after.get(task)
        answer.refuse(task, "no such task" if status is None else _why_not(verb, status))
    return {task for task in left if task in after}


def _why_not(verb: str, status: TaskStatus) -> str:
    if verb == "delete" and status.is_terminal:
        return "not deleted: its workflow has not ended"
    return f"cannot {verb} it: it is {status.value}"


def _parts(ids: Sequence[UUID], error: UniqueConflict | UpstreamEnded) -> list[list[UUID]]:
    """What to try after a batch was refused: those it was not about together, the rest alone."""
    alone = set(error.refused) if isinstance(error, UpstreamEnded) else set(ids)
    together = [task for task in ids if task not in alone]
    return [part for part in (together, *([task] for task in ids if task in alone)) if part]

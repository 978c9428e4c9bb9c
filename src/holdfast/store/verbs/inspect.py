"""Reading: one task, many tasks, what ended, how many there are.

Owns every read that a person or a waiter makes. No read examines an unbounded number of
rows: lists are keyset pages over bounded scans, counts stop at a cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.core.errors import UnreadableRow
from holdfast.core.payload.codec import from_json, to_json
from holdfast.core.records import AttemptRecord, TaskFilter, TaskRecord
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import At, Ints, Row, Statement, Steps, Texts, Uuids, reads

_NO_TEXTS, _NO_INTS = Texts(), Ints()
NEWEST = b"\xff" * 16
MAX_PAGE = 500
SCAN = 10_000
"""How many entries one statement examines for a page, and how often it is repeated."""
_SCANS = 10

_IN_FLIGHT = frozenset({TaskStatus.CLAIMED, TaskStatus.RUNNING})
_IN_ANOTHER_ORDER = frozenset({"pending", "pending_of", "scheduled", "scheduled_of"})
"""Paths whose index is not in the order of a page."""


class Ending(NamedTuple):
    """How a task ended."""

    status: TaskStatus
    result: str | None
    error_code: str | None
    failed_reason: str | None
    finished_at: int
    task_name: str
    handed_over: bool | None = None
    """It is a step that added others: its value is what these have left (`step_results`)."""


class Dependency(NamedTuple):
    """A task that another one waits for, or waited for."""

    parent_id: bytes
    task_name: str | None
    """None, like the status, if the parent has been deleted since."""
    status: TaskStatus | None
    on: str
    satisfied: bool | None
    """None while the parent has not ended."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some tasks, the newest first, and where the next page begins."""

    tasks: Sequence[TaskRecord] = ()
    next: bytes | None = None
    """Give this as `before` for the next page; None when there is none."""
    unreadable: Sequence[UnreadableRow] = ()
    """Rows among them that cannot be read."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tasks are in each state."""

    cap: int
    by_status: dict[TaskStatus, int] = field(default_factory=dict)
    at_least: frozenset[TaskStatus] = frozenset()
    """States of which there may be more: counting stopped at `cap` entries. Such a state may
    have no number at all."""


@reads
def tasks_by_id(
    ids: Sequence[bytes], set_aside: list[UnreadableRow] | None = None
) -> Steps[dict[bytes, TaskRecord]]:
    """Everything stored about these tasks; an unknown id is absent.

    So is one whose row cannot be read; it is added to `set_aside`.
    """
    found = yield by_id(ids)
    return {task.id: task for task in rows.readable(rows.task, found, set_aside)}


def by_id(ids: Sequence[bytes], texts: Texts = _NO_TEXTS, numbers: Ints = _NO_INTS) -> Statement:
    """Asks for every column of these tasks; on SQLite also by what else a row can be named by."""
    return Statement("tasks_by_id", {"ids": Uuids(ids), "texts": texts, "numbers": numbers})


@reads
def statuses(ids: Sequence[bytes]) -> Steps[dict[bytes, TaskStatus]]:
    """Where these tasks stand; an unknown id is absent."""
    found = yield Statement("statuses", {"ids": Uuids(ids)})
    return {rows.uuid(id): TaskStatus(status) for id, status in found if rows.is_status(status)}


@reads
def endings(ids: Sequence[bytes], others: set[bytes] | None = None) -> Steps[dict[bytes, Ending]]:
    """How those of these tasks that have ended did so.

    The others are added to `others`, if it is given; an unknown id is in neither.
    """
    found = yield Statement("endings", {"ids": Uuids(ids), "all_of_them": others is not None})
    ended: dict[bytes, Ending] = {}
    for id, status, result, code, reason, finished_at, *rest in found:
        if not rows.is_status(status):
            continue
        if finished_at is not None:
            ended[rows.uuid(id)] = Ending(
                TaskStatus(status), result, code, reason, finished_at, *rest
            )
        elif others is not None:
            others.add(rows.uuid(id))
    return ended


@reads
def find_ids(
    first: bytes, last: bytes, ending: str = "", *, scan: int, limit: int
) -> Steps[list[bytes]]:
    """The ids between two that end with these digits, examining no more than `scan`."""
    found = yield Statement(
        "find_ids",
        {"first": first, "last": last, "ending": ending, "scan": scan, "limit": limit},
    )
    return list(rows.uuids(found))


@reads
def attempts(id: bytes) -> Steps[list[AttemptRecord]]:
    """The ended attempts of one task, in order; those that cannot be read are left out."""
    found = yield Statement("attempts", {"id": id})
    return list(rows.readable(rows.attempt, found))


@reads
def last_errors(ids: Sequence[bytes]) -> Steps[dict[bytes, AttemptRecord]]:
    """The last attempt of each task that ended with an error; a task without one that can be read
    is absent."""
    found = yield Statement("last_errors", {"ids": Uuids(ids)})
    return {made.task_id: made for made in rows.readable(rows.attempt, found)}


@reads
def dependencies(id: bytes, *, limit: int = MAX_PAGE) -> Steps[list[Dependency]]:
    """What one task waits for, or waited for."""
    found = yield Statement("dependencies", {"id": id, "limit": limit})
    return [
        Dependency(
            rows.uuid(parent),
            name,
            TaskStatus(status) if rows.is_status(status) else None,
            on,
            None if satisfied is None else bool(satisfied),
        )
        for parent, name, status, on, satisfied in found
        if rows.is_uuid(parent)
    ]


@reads
def list_tasks(wanted: TaskFilter, *, before: bytes | None = None, limit: int = 50) -> Steps[Page]:
    """One page of the tasks that fit, the newest first."""
    limit = max(1, min(limit, MAX_PAGE))
    path = path_of(wanted)
    ids: list[bytes] = []
    unreadable: list[UnreadableRow] = []
    cursor: bytes | None = before or NEWEST
    for _ in range(_SCANS):
        assert cursor is not None
        # One more than is shown tells whether there is a next page.
        found = yield Statement("list_tasks", _filter(wanted, path, cursor, limit + 1 - len(ids)))
        examined = next(rows.uuids([row for row in found if row[1]]), None)
        if examined is not None and path in _IN_ANOTHER_ORDER:
            # The newest need not be among the first of this index; so many are not rare
            # among all tasks either.
            path = "walk"
            continue
        met = [row for row in found if not row[1]]
        ids += rows.uuids(met)
        unreadable += [nameless(row) for row in met if not rows.is_uuid(row[0])]
        cursor = ids[limit - 1] if len(ids) > limit else examined
        if cursor is None or len(ids) > limit:
            break
    tasks = yield from tasks_by_id(ids[:limit], unreadable)
    shown = [tasks[id] for id in ids[:limit] if id in tasks]
    return Page(tagged(shown, wanted.tag), cursor, tuple(unreadable))


@reads
def fitting(
    wanted: TaskFilter, *, before: bytes | None = None, limit: int = SCAN
) -> Steps[tuple[list[bytes], bytes | None]]:
    """The ids of the tasks that fit, the greatest first, and where to go on if there may be more.

    For counting, and for verbs on all of them; it does not read the tasks.
    """
    path = path_of(wanted)
    ids: list[bytes] = []
    cursor: bytes | None = before or NEWEST
    for _ in range(_SCANS):
        assert cursor is not None
        found = yield Statement("list_tasks", _filter(wanted, path, cursor, limit + 1 - len(ids)))
        examined = next(rows.uuids([row for row in found if row[1]]), None)
        if examined is not None and path in _IN_ANOTHER_ORDER:
            path = "walk"
            continue
        ids += rows.uuids([row for row in found if not row[1]])
        cursor = ids[limit - 1] if len(ids) > limit else examined
        if cursor is None or len(ids) > limit:
            break
    return ids[:limit], cursor


def folded(text: str | None) -> str | None:
    """Text as both databases fold it: the letters A to Z only."""
    if text is None or text.islower():
        return text
    return "".join(each.lower() if each.isascii() else each for each in text)


def nameless(row: Row) -> UnreadableRow:
    """The error for a row of a list whose id is none; its last column is its key."""
    return UnreadableRow("holdfast_tasks", rows.named(row[-1]), "id", "is not a uuid")


def tagged(tasks: list[TaskRecord], tag: str | None) -> list[TaskRecord]:
    """Those of these tasks that have a tag.

    A statement looks for the text of the tag, which another tag may contain, and which says
    nothing about whether the rest is JSON.
    """
    if tag is None:
        return tasks
    return [task for task in tasks if task.tags and tag in from_json(task.tags)]


def path_of(wanted: TaskFilter) -> str:
    """The narrowest way to the tasks that fit."""
    if wanted.workflow_id is not None:
        return "workflow"
    if wanted.parent_id is not None:
        return "parent"
    if wanted.error_code is not None:
        return "failed"
    one = "" if wanted.queue_name is None else "_of"
    if wanted.dead:
        return f"dead{one}"
    if wanted.status and wanted.status <= _IN_FLIGHT:
        return "leased"
    if wanted.status == {TaskStatus.SCHEDULED}:
        return f"scheduled{one}"
    if wanted.status == {TaskStatus.PENDING}:
        return f"pending{one}"
    return "walk"


def _filter(wanted: TaskFilter, path: str, before: bytes, limit: int) -> dict[str, object]:
    def at(value: int | None) -> At | None:
        return None if value is None else At(value)

    return {
        "path": path,
        "before": before,
        "scan": SCAN,
        "limit": limit,
        "any_status": not wanted.status,
        "statuses": Texts(wanted.status),
        "queue_name": wanted.queue_name,
        "task_name": wanted.task_name,
        "tag": None if wanted.tag is None else to_json(wanted.tag),
        "worker_id": wanted.worker_id,
        "error_code": wanted.error_code,
        "exception": wanted.exception,
        "workflow_id": wanted.workflow_id,
        "parent_id": wanted.parent_id,
        "dead": wanted.dead,
        "text": folded(wanted.text),
        "created_from": at(wanted.created_from),
        "created_until": at(wanted.created_until),
    }


_FAILED = frozenset(status for status in TaskStatus if status.is_terminal) - {TaskStatus.COMPLETED}
_COUNTED_BY: dict[str, frozenset[TaskStatus]] = {
    "newest": frozenset({TaskStatus.WAITING, TaskStatus.COMPLETED}),
    "due": frozenset({TaskStatus.SCHEDULED}),
    "failed": _FAILED,
}
"""Which states are no longer exact once so many entries were examined on a way."""


@reads
def counts(queue: str | None = None, *, cap: int = SCAN) -> Steps[Counts]:
    """How many tasks are in each state, examining no more than `cap` entries on each way."""
    found = yield Statement("counts", {"queue_name": queue, "cap": cap})
    numbers: dict[TaskStatus, int] = {}
    more: set[TaskStatus] = set()
    for name, number in found:
        if name in _COUNTED_BY:
            more |= _COUNTED_BY[name] if number >= cap else set()
        elif number and rows.is_status(name):
            # By two ways: each finds some of them, and neither finds one that is not there.
            numbers[TaskStatus(name)] = max(number, numbers.get(TaskStatus(name), 0))
    if numbers.get(TaskStatus.PENDING, 0) >= cap:
        more.add(TaskStatus.PENDING)
    return Counts(cap, numbers, frozenset(more))

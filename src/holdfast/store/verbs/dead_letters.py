"""Dead letters: those that fit, how many there are of each cause, and verbs on them alone.

Owns the walk over them: pages by id, from the newest on, each of which examines a bounded number of
entries. No verb here takes more than it is given, so whoever treats a million of them does so in
many transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from holdfast.core.errors import UnreadableRow
from holdfast.core.payload.codec import to_json
from holdfast.core.records import DeadLetterFilter
from holdfast.store import rows
from holdfast.store.op import At, Op, Statement, Steps, Texts, Uuids, reads, writes
from holdfast.store.verbs import operate
from holdfast.store.verbs.inspect import MAX_PAGE, NEWEST, SCAN, Page, nameless, tagged, tasks_by_id

__all__ = ["Causes", "DeadIds", "DeathCount", "causes", "delete", "find", "list_dead", "of_dead"]

_SCANS: Final = 10
_UNKNOWN: Final = "?"
_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


class DeadIds(NamedTuple):
    """Some of those that fit."""

    ids: list[bytes]
    next: bytes | None
    """Where to go on; None if there are no more."""


class DeathCount(NamedTuple):
    """How many died in one hour, in one way."""

    error_code: str | None
    exception: str | None
    task_name: str
    version: int
    queue_name: str
    hour: int
    number: int
    first_at: int
    last_at: int


class Causes(NamedTuple):
    """Counts of a part of them."""

    counts: list[DeathCount]
    next: bytes | None
    """Where to go on; None if there are no more."""


@reads
def find(
    wanted: DeadLetterFilter, *, before: bytes | None = None, limit: int = 50
) -> Steps[DeadIds]:
    """The ids of some that fit, the newest first.

    None may be among those examined, and more may follow all the same.
    """
    found, rest, _ = yield from _find(wanted, before, limit)
    return DeadIds(found, rest)


@reads
def list_dead(
    wanted: DeadLetterFilter, *, before: bytes | None = None, limit: int = 50
) -> Steps[Page]:
    """One page of those that fit, the newest first."""
    limit = max(1, min(limit, MAX_PAGE))
    ids: list[bytes] = []
    unreadable: list[UnreadableRow] = []
    rest = before
    for _ in range(_SCANS):
        found, rest, nameless_rows = yield from _find(wanted, rest, limit - len(ids))
        ids += found
        unreadable += nameless_rows
        if rest is None or len(ids) >= limit:
            break
    tasks = yield from tasks_by_id(ids, unreadable)
    shown = [tasks[id] for id in ids if id in tasks]
    return Page(tagged(shown, wanted.tag), rest, tuple(unreadable))


def _find(
    wanted: DeadLetterFilter, before: bytes | None, limit: int
) -> Steps[tuple[list[bytes], bytes | None, list[UnreadableRow]]]:
    # One more than is asked for tells whether there are more.
    params = {**_params(wanted, before), "limit": limit + 1}
    found = yield Statement("find_dead", params)
    examined = next(rows.uuids([row for row in found if row[1]]), None)
    met = [row for row in found if not row[1]]
    ids = list(rows.uuids(met))
    unnamed = [nameless(row) for row in met if not rows.is_uuid(row[0])]
    if len(ids) > limit:
        return ids[:limit], ids[limit - 1], unnamed
    return ids, examined, unnamed


@reads
def causes(wanted: DeadLetterFilter, *, before: bytes | None = None) -> Steps[Causes]:
    """How many there are of each cause, in a part of them."""
    found = yield Statement("count_dead", _params(wanted, before))
    rest = next(rows.uuids([row for row in found if row[0] is not None]), None)
    counts = [
        DeathCount(
            rows.optional_text(code),
            rows.optional_text(exception),
            rows.optional_text(name) or _UNKNOWN,
            version,
            rows.optional_text(queue) or _UNKNOWN,
            rows.within_calendar(hour),
            number,
            rows.within_calendar(first),
            rows.within_calendar(last),
        )
        for id, code, exception, name, version, queue, hour, number, first, last in found
        if id is None
    ]
    return Causes(counts, rest)


@writes
def of_dead(
    ids: Sequence[bytes], verb: Callable[[Sequence[bytes]], Op[dict[bytes, bool]]]
) -> Steps[dict[bytes, bool]]:
    """Apply a verb to those of these tasks that are dead letters."""
    found = yield from tasks_by_id(ids)
    done = yield from verb([raw for raw, record in found.items() if record.dead])
    return {raw: done.get(raw, False) for raw in ids}


@writes
def delete(ids: Sequence[bytes]) -> Steps[dict[bytes, bool]]:
    """Remove dead letters. A step stays with its workflow, and is listed no more."""
    done = yield from operate.delete(ids)
    left = Uuids(sorted(raw for raw, gone in done.items() if not gone))
    unlisted = set(rows.uuids((yield Statement("unlist_dead", {"ids": left})))) if left else set()
    return {raw: gone or raw in unlisted for raw, gone in done.items()}


def _params(wanted: DeadLetterFilter, before: bytes | None) -> dict[str, object]:
    def at(value: int | None) -> At | None:
        return None if value is None else At(value)

    return {
        "before": before or NEWEST,
        "scan": SCAN,
        "any_status": not wanted.status,
        "statuses": Texts(wanted.status),
        "queue_name": wanted.queue_name,
        "task_name": wanted.task_name,
        "version": wanted.version,
        "error_code": wanted.error_code,
        "exception": wanted.exception,
        "text": None if wanted.text is None else wanted.text.translate(_LOWER),
        "tag": None if wanted.tag is None else to_json(wanted.tag),
        "worker_id": wanted.worker_id,
        "workflow_id": wanted.workflow_id,
        "parent_id": wanted.parent_id,
        "created_from": at(wanted.created_from),
        "created_until": at(wanted.created_until),
        "ended_from": at(wanted.ended_from),
        "ended_until": at(wanted.ended_until),
    }

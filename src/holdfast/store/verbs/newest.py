"""Lists of tasks, the newest first, whoever made their ids.

Owns the order of a list. An id that Holdfast makes (UUIDv7) begins with its time, so the primary
key, read backwards, is the newest first. Ids that callers make (`uuid5`, for sends that may be
repeated) say nothing about time, and there may be millions of them; they stand in a partial index
by `created_at`, which costs other tasks nothing. A page is put together from the two.

The narrow paths (dead letters, an error code, a workflow, what waits or runs) stay in the order of
the ids: their indexes are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.core.errors import TaskNotFound, UnreadableRow
from holdfast.core.payload.codec import to_json
from holdfast.core.records import TaskFilter
from holdfast.store import rows
from holdfast.store.op import At, Statement, Steps, Texts, reads
from holdfast.store.verbs.inspect import (
    MAX_PAGE,
    SCAN,
    Page,
    by_id,
    folded,
    list_tasks,
    nameless,
    path_of,
    tagged,
    tasks_by_id,
)
from holdfast.store.verbs.timing import next_due

_LOOKS: Final = 8
_AHEAD_MS: Final = 10 * 365 * 86_400_000
"""How far ahead of the database's clock a sender's may be. A list begins there: nearly all ids that
callers make are greater, and need not be stepped over."""
_LATEST: Final = 253_402_300_799_000_000
"""The end of the year 9999."""


class Key(NamedTuple):
    """A place in the list; the greatest comes first."""

    ms: int
    is_own: bool
    created_at: int
    id: bytes


_NOTHING: Final = Key(0, False, 0, bytes(16))
"""Behind it comes nothing."""


@dataclass(slots=True)
class Stream:
    """One of the two lists: what was found, and where to go on if there may be more."""

    rest: Key | None
    found: list[Key] = field(default_factory=list)

    def take(self, keys: Iterable[Key], examined: Key | None, limit: int) -> None:
        """Add what the next look has found."""
        self.found += sorted(keys, reverse=True)
        self.rest = examined if len(self.found) <= limit else self.found[limit - 1]

    def is_settled(self, limit: int) -> bool:
        """Whether a page of this length can be made without another look."""
        return self.rest is None or len(self.found) > limit


def is_own(id: bytes) -> bool:
    """Whether a caller made this id."""
    return id[6] >> 4 != 7


def key_of(id: bytes, created_at: int) -> Key:
    """The place of a task."""
    if is_own(id):
        return Key(created_at // 1000, True, created_at, id)
    return Key(int.from_bytes(id[:6]), False, 0, id)


@reads
def newest(wanted: TaskFilter, *, before: bytes | None = None, limit: int = 50) -> Steps[Page]:
    """One page of the tasks that fit, the newest first."""
    if path_of(wanted) != "walk":
        return (yield from list_tasks(wanted, before=before, limit=limit))
    limit = max(1, min(limit, MAX_PAGE))
    made, own = yield from _beginning(before)
    unreadable: list[UnreadableRow] = []
    # Most lists are filled by the first few entries; only a filter that fits rarely needs many.
    scan = min(SCAN, 4 * limit + 4)
    for _ in range(_LOOKS):
        # One more than is shown tells whether there are more.
        asked = _filter(wanted, made.rest or _NOTHING, own.rest or _NOTHING, scan, limit + 1)
        scan = min(SCAN, 5 * scan)
        found = yield Statement("list_newest", asked)
        for stream, which in ((made, False), (own, True)):
            if not stream.is_settled(limit):
                keys: list[Key] = []
                examined: list[Key] = []
                for row in found:
                    id, created_at, is_callers, is_last, *_ = row
                    if bool(is_callers) is not which:
                        continue
                    if rows.is_uuid(id):
                        place = key_of(rows.uuid(id), created_at)
                        (examined if is_last else keys).append(place)
                    elif not is_last:
                        unreadable.append(nameless(row))
                stream.take(keys, next(iter(examined), None), limit)
        if made.is_settled(limit) and own.is_settled(limit):
            break
    keys, rest = _merged((made, own), limit)
    tasks = yield from tasks_by_id([key.id for key in keys], unreadable)
    shown = [tasks[key.id] for key in keys if key.id in tasks]
    return Page(tagged(shown, wanted.tag), rest, tuple(unreadable))


def _merged(streams: Sequence[Stream], limit: int) -> tuple[list[Key], bytes | None]:
    """The page, and where the next one begins."""
    keys = sorted((key for stream in streams for key in stream.found), reverse=True)
    # What lies behind the end of a list that was not read to its end is not known yet.
    unread = [stream.rest for stream in streams if not stream.is_settled(limit)]
    floor = max((rest for rest in unread if rest is not None), default=None)
    if floor is not None:
        keys = [key for key in keys if key >= floor]
    if len(keys) > limit:
        return keys[:limit], keys[limit - 1].id
    return keys, None if floor is None else floor.id


def _beginning(before: bytes | None) -> Steps[tuple[Stream, Stream]]:
    """Where a page begins, in both lists."""
    if before is None:
        now = (yield from next_due()).now
        return Stream(_made_before(now // 1000 + _AHEAD_MS)), Stream(_own_before(_LATEST))
    if not is_own(before):
        key = key_of(before, 0)
        return Stream(key), Stream(_own_before(key.ms * 1000))
    # Of a row that cannot be read, its place still can.
    found = yield by_id([before])
    if not found:
        raise TaskNotFound(before)
    key = key_of(before, found[0][rows.CREATED_AT])
    return Stream(_made_before(key.ms + 1)), Stream(key)


def _made_before(ms: int) -> Key:
    """Behind it come the ids with an earlier time."""
    return Key(ms, False, 0, min(ms, (1 << 48) - 1).to_bytes(6) + bytes(10))


def _own_before(at: int) -> Key:
    """Behind it come the tasks that were created earlier."""
    return Key(at // 1000, True, at, bytes(16))


def _filter(wanted: TaskFilter, made: Key, own: Key, scan: int, limit: int) -> dict[str, object]:
    def moment(value: int | None) -> At | None:
        return None if value is None else At(value)

    return {
        "before_made": made.id,
        "before_at": At(own.created_at),
        "before_own": own.id,
        "scan": scan,
        "limit": limit,
        "any_status": not wanted.status,
        "statuses": Texts(wanted.status),
        "queue_name": wanted.queue_name,
        "task_name": wanted.task_name,
        "tag": None if wanted.tag is None else to_json(wanted.tag),
        "worker_id": wanted.worker_id,
        "dead": wanted.dead,
        "text": folded(wanted.text),
        "created_from": moment(wanted.created_from),
        "created_until": moment(wanted.created_until),
    }

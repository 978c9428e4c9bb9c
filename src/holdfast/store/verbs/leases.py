"""Leases: who may finish what, and what becomes of the tasks of a worker that vanished.

Invariant: a worker holds a lease exactly while its row exists. It is lost when the row is gone,
not when its time has passed; `expires_at` only entitles a reaper to take it. One row covers one
claim statement's tasks.

Failure: a worker dies, freezes or is cut off, and its rows expire. Recovery: `recover`
takes one expired lease in one transaction: it locks the row (another reaper skips it),
locks those tasks that still carry the token (one that cannot be locked is being ended by
its worker this instant and stays in the row for the next pass), decides about each as if
its child had crashed, and deletes the row. A worker that comes back finds its tokens gone
from `renew`'s answer, and every write of it misses.

The gap rule: while leases exist, maintenance stamps `maintained_at`, whoever finds that due, for
the whole fleet. A pass that finds the stamp older than the gap recovers nothing until the gap has
passed again, or as long as a keeper may need to come back if that is longer: the database was
away, so live workers could not renew, and they go first. The time is noted in the store, for
reapers that have just started, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.core.decide import Change
from holdfast.core.errors import PayloadError
from holdfast.core.identity import as_text
from holdfast.core.records import LOST
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import (
    At,
    Key,
    Keys,
    Statement,
    Steps,
    Uuids,
    reads,
    writes,
)
from holdfast.store.rows import LeasedTask
from holdfast.store.verbs import stuck_steps
from holdfast.store.verbs.claims import Hold, lockable, release, writable
from holdfast.store.verbs.finish import RunChange, end_steps
from holdfast.store.verbs.refusal import invalid

log = logging.getLogger("holdfast.store")

_MAINTAINED = "maintained_at"
_QUIET_UNTIL = "recover_after"
KEEPERS_NEED_US = 2_500_000
"""Within which a keeper has renewed once the store is back, however short its lease: the longest
pause between two attempts to connect (0.8 s, see `store.postgres.backoff`), a new connection,
and a busy machine."""
_LONGEST_QUIET_US = 60_000_000
"""A quiet time further ahead than any gap was noted before the clock stepped back."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A running task whose worker is gone: what deciding about it needs."""

    id: bytes
    task_name: str
    attempt: int
    retry_count: int
    max_retries: int
    crash_count: int
    good_until: int | None
    task_options: str | None
    worker_id: str | None
    worker_hostname: str | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What one `recover` did with one lease."""

    token: bytes
    worker_id: str
    released: int
    recovered: int
    left: int
    """Tasks that could not be locked, decided or written; they stay in the lease row."""
    unreadable: str | None = None
    """The token of a lease that could not be read, as it stood there."""


class Outlook(NamedTuple):
    """What a reaper has to know before it does anything."""

    leases: int
    expired: int
    maintained_at: int | None
    quiet_until: int | None
    now: int

    def may_recover(self, gap_us: int) -> bool | None:
        """Whether recovery is allowed; None if the stamp has to be looked at and written first."""
        if self.maintained_at is None or not 0 <= self.now - self.maintained_at < gap_us // 4:
            return None
        return _is_over(self.quiet_until, self.now)


@reads
def outlook() -> Steps[Outlook]:
    """How many leases there are, how many have expired, and how the gap rule stands."""
    found = yield Statement("outlook", {"maintained": _MAINTAINED, "quiet": _QUIET_UNTIL})
    return Outlook(*found[0])


@writes
def held() -> Steps[list[bytes]]:
    """The expired leases that another transaction holds: their owners may live, and could not
    renew them."""
    found = yield Statement("held_leases")
    return [rows.uuid(row[0]) for row in found]


@reads
def count() -> Steps[int]:
    """How many leases there are."""
    found = yield Statement("lease_count")
    total: int = found[0][0]
    return total


@writes
def may_recover(gap_us: int) -> Steps[bool]:
    """Stamp the maintenance of the fleet, if nobody has just done so; False while the gap rule
    forbids recovery."""
    last, now = (yield Statement("read_meta", {"name": _MAINTAINED}))[0]
    quiet_until, _ = (yield Statement("read_meta", {"name": _QUIET_UNTIL}))[0]
    if last is None or not 0 <= now - last < gap_us // 4:
        yield Statement("write_meta", {"name": _MAINTAINED, "at": None})
    quiet_us = max(gap_us, KEEPERS_NEED_US)
    # A stamp in the future means that the clock stepped back. No stamp at all: the store went
    # away before anybody had looked at its first leases. The same doubt.
    if last is None or not 0 <= now - last <= gap_us:
        yield Statement("write_meta", {"name": _QUIET_UNTIL, "at": At(now + quiet_us)})
        return False
    return _is_over(quiet_until, now)


def _is_over(quiet_until: int | None, now: int) -> bool:
    return quiet_until is None or now >= quiet_until or quiet_until > now + _LONGEST_QUIET_US


@writes
def recover(
    decide: Callable[[Abandoned], Change],
    *,
    tried: Sequence[bytes] = (),
    aside: Collection[Key] = (),
    gap_us: int | None = None,
) -> Steps[Recovery | None]:
    """Take over one expired lease, if there is one (not among `tried`).

    Tasks in `aside`, whose rows the store refuses to have written, stay in the lease. A lease
    that cannot be read goes: what carries its token is found by the audit.

    With `gap_us` it is asked once more, by the very statement that looks at the clock,
    whether maintenance goes on: a reaper that was let in before the store stood still must
    not find, when it goes on, that everybody's time has passed.
    """
    found = yield Statement("expired_lease", {"tried": Uuids(tried), "gap_us": gap_us})
    if not found:
        return None
    raw, worker_id, named = found[0]
    task_ids = _named_in(named)
    if task_ids is None or not rows.is_uuid(raw):
        yield Statement("delete_lease", {"token_hex": rows.as_hex(raw)})
        return Recovery(bytes(16), worker_id, 0, 0, 0, unreadable=rows.named(raw))
    token = rows.uuid(raw)
    leased = yield Statement("leased_tasks", {"token": token, "keys": Keys(task_ids)})
    holds: list[Hold] = []
    changes: list[RunChange] = []
    left: list[Key] = []
    queues: set[str] = set()
    for row in map(LeasedTask._make, leased):
        key = rows.key(row.key)
        if not row.locked or key in aside:
            left.append(key)
        elif row.status == TaskStatus.CLAIMED:
            holds.append(Hold(key, token))
            queues.update(rows.texts([row.queue_name]))
        else:
            run = _decided(decide, key, token, row)
            if run is None:
                left.append(key)
            else:
                changes.append(run)
    if changes:
        # What waits for such a task may be held, too, by somebody who is adding to a workflow.
        free = yield from lockable([run.key for run in changes])
        left += [run.key for run in changes if run.key not in free]
        changes = [run for run in changes if run.key in free]
    released = (yield from release(holds, queues=queues)) if holds else {}
    ended = (yield from end_steps(changes, counts=True)) if changes else {}
    if left:
        yield Statement("cut_lease", {"token": token, "keys": Keys(left)})
    else:
        yield Statement("clean_leases", {"tokens": Uuids([token])})
    return Recovery(
        token,
        worker_id,
        released=sum(landing is not LOST for landing in released.values()),
        recovered=sum(landing is not LOST for landing in ended.values()),
        left=len(left),
    )


class HandedBack(NamedTuple):
    """What one `hand_back` did."""

    back: list[Key]
    held: dict[Key, bytes]
    """Tasks (and their ids) that another transaction holds: ours still, to be tried again."""


@writes
def expired(tried: Sequence[bytes] = ()) -> Steps[tuple[bytes, list[Key]] | None]:
    """The lease that `recover` would take, and the tasks it names."""
    found = yield Statement("expired_lease", {"tried": Uuids(tried), "gap_us": None})
    keys = _named_in(found[0][2]) if found else None
    return None if keys is None or not rows.is_uuid(found[0][0]) else (rows.uuid(found[0][0]), keys)


@writes
def hand_back(
    token: bytes, interrupted: Change, *, keys: Sequence[Key] | None = None
) -> Steps[HandedBack]:
    """Hand back tasks of an own lease whose claim or start got no answer.

    Whatever of it landed is undone at no cost: CLAIMED is released, RUNNING is interrupted
    (nothing was handed to a child). Without `keys`, the whole lease goes.
    """
    lease = yield Statement("lease_keys", {"token": token})
    if not lease:
        return HandedBack([], {})
    wanted = _named_in(lease[0][1]) or [] if keys is None else list(keys)
    found = yield Statement("leased_tasks", {"token": token, "keys": Keys(wanted)})
    leased = [*map(LeasedTask._make, found)]
    held = {rows.key(row.key): _id(row) for row in leased if not row.locked}
    ours = [row for row in leased if row.locked]
    holds = [Hold(rows.key(row.key), token) for row in ours if row.status == TaskStatus.CLAIMED]
    running = {rows.key(row.key): row for row in ours if row.status == TaskStatus.RUNNING}
    if running:
        # What waits for such a task may be held, too.
        free = yield from lockable(list(running))
        held |= {key: _id(row) for key, row in running.items() if key not in free}
    changes = [
        RunChange(key, token, interrupted, pid=row.worker_pid, worker_id=_worker(row))
        for key, row in running.items()
        if key not in held
    ]
    if holds:
        yield from release(holds, queues=rows.texts({row.queue_name for row in ours}))
    if changes:
        yield from end_steps(changes, counts=True)
    if keys is None and not held:
        yield Statement("clean_leases", {"tokens": Uuids([token])})
    return HandedBack([hold.key for hold in holds] + [run.key for run in changes], held)


class Audited(NamedTuple):
    """One page of the audit."""

    adopted: int
    """Tasks in flight that no lease row covered, and that now have an expired one."""
    stuck: int
    """Steps that waited for nothing; they have been unblocked or skipped."""
    next: bytes | None
    """Where the next page starts; None when the walk is over."""


class Suspects(NamedTuple):
    """What one look at a page of the audit found."""

    orphans: dict[bytes, list[Key]]
    """By their tokens, which have no lease row."""
    idle: dict[Key, bytes]
    """Keys and ids of steps that wait for nothing."""
    next: bytes | None
    """Where the next page starts; None when the walk is over."""

    @property
    def keys(self) -> list[Key]:
        return [key for keys in self.orphans.values() for key in keys] + list(self.idle)


@reads
def suspects(after: bytes = bytes(16), *, page: int = 500) -> Steps[Suspects]:
    """Look at one page of `tasks` for what no verb leaves behind; nothing is locked or changed."""
    return (yield from _suspects(after, page))


def _suspects(after: bytes, page: int) -> Steps[Suspects]:
    found = yield Statement("audit", {"after": after, "page": page})
    orphans: dict[bytes, list[Key]] = {}
    idle: dict[Key, bytes] = {}
    for key, id, status, token, orphaned, is_idle in found:
        if not rows.is_uuid(token if orphaned else id):
            continue
        if orphaned and status in (TaskStatus.CLAIMED, TaskStatus.RUNNING):
            orphans.setdefault(rows.uuid(token), []).append(rows.key(key))
        elif is_idle:
            idle[rows.key(key)] = rows.uuid(id)
    return Suspects(orphans, idle, rows.last_id(found, 1, page))


@writes
def audit(after: bytes = bytes(16), *, page: int = 500) -> Steps[Audited]:
    """Walk one page of `tasks` and mend what no verb leaves behind.

    A task in flight whose lease row is gone would never be recovered: it is given a lease
    that has expired, so the reaper finds it. A WAITING step whose edges are all resolved, or wait
    for what has ended, would wait forever: it is told (`stuck_steps`). What looks so is locked and
    looked at once more: nobody can claim or end it then, and only what is found both times is
    mended.
    """
    first = yield from _suspects(after, page)
    if not first.keys:
        return Audited(0, 0, first.next)
    ours = yield from writable(first.keys)
    again = yield from _suspects(after, page)
    adopted = 0
    for token, keys in again.orphans.items():
        lost = [key for key in keys if key in ours and key in first.orphans.get(token, ())]
        if lost:
            adopted += len(lost)
            yield Statement("adopt", {"token": token, "keys": Keys(lost)})
    stuck = [id for key, id in again.idle.items() if key in ours and key in first.idle]
    if stuck:
        yield from stuck_steps.mend(stuck)
    return Audited(adopted, len(stuck), first.next)


def _decided(
    decide: Callable[[Abandoned], Change], key: Key, token: bytes, row: LeasedTask
) -> RunChange | None:
    """The change of one abandoned task; one that cannot be decided must not stop the others.

    One that cannot be read ends as it would have at the next claim.
    """
    wrong = rows.wrong_in_flight(row)
    if wrong is not None:
        return RunChange(key, token, invalid(wrong), worker_id=_worker(row))
    id = rows.uuid(row.id)
    abandoned = Abandoned(
        id=id,
        task_name=row.task_name,
        attempt=row.attempt,
        retry_count=row.retry_count,
        max_retries=row.max_retries,
        crash_count=row.crash_count,
        good_until=row.good_until,
        task_options=row.task_options,
        worker_id=row.claimed_by_worker_id,
        worker_hostname=row.worker_hostname,
    )
    try:
        change = decide(abandoned)
    except PayloadError:
        change = invalid("task_options are none that this worker knows")
    except Exception:
        log.exception("task %s cannot be recovered; it is set aside", as_text(id))
        return None
    return RunChange(key, token, change, pid=row.worker_pid, worker_id=_worker(row))


def _id(row: LeasedTask) -> bytes:
    """The id of a leased task, to name it by; zero bytes if the id is malformed."""
    return rows.uuid(row.id) if rows.is_uuid(row.id) else bytes(16)


def _worker(row: LeasedTask) -> str | None:
    return rows.optional_text(row.claimed_by_worker_id)


def _named_in(task_ids: Any) -> list[Key] | None:
    """The tasks that a lease names; None if that is no list of tasks."""
    try:
        return rows.keys(task_ids)
    except (ValueError, TypeError):
        return None
